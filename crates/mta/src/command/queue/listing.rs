//! `mta queue list`: rows of the queue as a table.

use super::select::{Filter, Selection};
use super::{DONE, FAILED, Listing, PARTLY};
use crate::command::error::RequestError;
use crate::command::output::{print, print_error, print_json};
use node::listing::QueuePage;
use status_text::queue_to_text as to_text;
use std::path::Path;

pub(super) fn run(socket: &Path, listing: &Listing, json: bool) -> u8 {
    let most = usize::try_from(listing.limit).unwrap_or(usize::MAX);
    let found = match Filter::selection(&listing.filter) {
        Ok(selection) => read(socket, &selection, most),
        Err(code) => return code,
    };
    let Some((page, unread)) = found else { return FAILED };
    if let Some(why) = &unread {
        print_error(&format!(
            "what other nodes of the site have, or what nobody has, could not be read: {why}"
        ));
    }
    if json {
        print_json(&page);
    } else if unread.is_some() && page.entries.is_empty() {
        print("this node has nothing that waits; of the rest of the queue nothing is known\n");
    } else {
        let nothing = page.entries.is_empty() && !page.reading_queue && listing.filter.is_given();
        match nothing {
            true => print("nothing that waits matches\n"),
            false => print(&to_text(&page)),
        }
    }
    if unread.is_some() { PARTLY } else { DONE }
}

/// Rows, and why some may be missing.
type Read = (QueuePage, Option<RequestError>);

/// Rows that were selected; `None` after printing why there are none.
fn read(socket: &Path, selection: &Selection, most: usize) -> Option<Read> {
    match selection.read(socket, most) {
        Ok(page) => Some(page),
        Err(why) => {
            print_error(&why.to_string());
            None
        }
    }
}
