//! A mailbox in parts, by arrival or by precedence.

use super::call::Call;
use super::entry::{self, Entry};
use super::{BadAnswer, Find, Store, StoreError};
use base::Precedence;
use base::ber::Element;
use p7::operation::{LIST, ListArgument, ListResult};
use p7::selector::Range;
use p7::{Selector, SequenceNumber};

/// What one list returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The entries, in ascending order of their numbers.
    pub entries: Vec<Entry>,
    /// The first entry that the limit, the selector's or the store's, left out.
    pub next: Option<u32>,
}

/// The order of the entries of all pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they came, the oldest first.
    #[default]
    Arrival,
    /// The highest precedence first; those of one precedence as they came; at the end those that have none.
    Precedence,
}

/// Where a listing in parts has come to.
#[derive(Clone, Debug)]
pub struct Pages {
    /// What is still to be listed, the next last.
    finds: Vec<Find>,
    /// The first number that was not listed yet.
    from: u32,
    /// The first number of all.
    first: u32,
    size: u32,
}

impl Pages {
    /// The entries found, in this order, at most `size` at once, 1 or more.
    pub fn new(find: &Find, order: Order, size: u32) -> Pages {
        let finds = match order {
            Order::Arrival => vec![find.clone()],
            Order::Precedence => {
                let levels = Precedence::ALL.map(|level| find.clone().precedences(&[level]));
                [find.clone().without_precedence()].into_iter().chain(levels).collect()
            }
        };
        Pages { finds, from: 0, first: 0, size: size.max(1) }
    }

    /// Begins at this number, and not before it.
    #[must_use]
    pub fn from(mut self, number: u32) -> Pages {
        (self.from, self.first) = (number, number);
        self
    }

    /// Whether all is listed.
    pub fn is_done(&self) -> bool {
        self.finds.is_empty()
    }
}

impl Store {
    /// Lists what a selector selects. New entries become listed.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or what ended the association.
    pub async fn list(&mut self, selector: Selector) -> Result<Listed, StoreError> {
        let requested = entry::selection(|oid| self.has(oid));
        let argument = ListArgument {
            selector,
            requested_attributes: Some(requested),
            ..ListArgument::default()
        };
        let octets = self.call(Call::retrieval("list", LIST, |w| argument.write(w))).await?;
        let malformed = StoreError::malformed("list");
        let element = Element::parse(&octets).map_err(&malformed)?;
        let result = ListResult::read(&element).map_err(&malformed)?;
        let entries: Vec<Entry> = result.requested.iter().map(Entry::read).collect();
        let listed = Listed { entries, next: result.next.map(|next| next.0) };
        ascending(&listed)?;
        Ok(listed)
    }

    /// The next entries, at most the size of a page; empty only once all are listed. What arrives meanwhile may or may
    /// not be listed; what is there all the time is listed once.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub async fn next_page(&mut self, pages: &mut Pages) -> Result<Vec<Entry>, StoreError> {
        while let Some(find) = pages.finds.last() {
            let from = (pages.from > 0).then_some(SequenceNumber(pages.from));
            let range = from.map(|from| Range::SequenceNumber { from: Some(from), to: None });
            let limit = Some(i64::from(pages.size));
            let filter = find.filter();
            let listed =
                self.list(Selector { range, filter, limit, ..Selector::default() }).await?;
            match listed.next {
                Some(next) if next <= pages.from && pages.from > 0 => {
                    return Err(BadAnswer::NotAscending(pages.from).into());
                }
                Some(next) => pages.from = next,
                None => {
                    pages.finds.pop();
                    pages.from = pages.first;
                }
            }
            if !listed.entries.is_empty() {
                return Ok(listed.entries);
            }
        }
        Ok(Vec::new())
    }
}

/// Checks the order of a list: pages of one that is not in order would never end.
fn ascending(listed: &Listed) -> Result<(), StoreError> {
    let numbers = listed.entries.iter().map(|entry| entry.number).chain(listed.next);
    let mut last = None;
    for number in numbers {
        match last {
            Some(last) if last >= number => return Err(BadAnswer::NotAscending(last).into()),
            _ => last = Some(number),
        }
    }
    Ok(())
}
