//! `mta queue show`: all that is known of entries.

use super::{page, partly};
use crate::command::output::{print, print_error, print_json};
use base::EntryId;
use node::listing::{QueuePage, QueueRequest};
use status_text::entry_to_text as to_text;
use std::path::Path;

pub(super) fn run(socket: &Path, entries: &[EntryId], json: bool) -> u8 {
    let mut found = QueuePage::default();
    for id in entries {
        let asked = QueueRequest { entry: Some(*id), limit: 1, ..QueueRequest::default() };
        match page(socket, &asked) {
            Ok(page) => found.entries.extend(page.entries),
            Err(why) => print_error(&why.to_string()),
        }
    }
    if json {
        print_json(&found);
    } else {
        for row in &found.entries {
            print(&to_text(row));
        }
    }
    partly(found.entries.len(), entries.len())
}
