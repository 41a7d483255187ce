//! A selector (X.413 8.1.2) as a scan, a filter and a limit.

use super::narrow;
use super::scan::{Bounds, Next, Scan};
use super::{Access, Answer, Ask, Row};
use crate::attributes::Attributes;
use crate::delivery::Mailbox;
use base::Precedence;
use p7::error::RangeProblem;
use p7::matching::Truth;
use p7::{EntryClass, Filter, MsError, Range, Selector, matching};

/// The selected items.
#[derive(Debug)]
pub(super) struct Selection {
    scan: Scan,
    filter: Option<Filter>,
    /// Most items, of the selector; no bound if `None`.
    pub limit: Option<usize>,
}

/// What a selection has next.
#[derive(Debug)]
pub(super) enum Selected {
    /// Nothing before this is answered.
    Ask(Ask),
    /// The next selected item.
    Row(Row),
    /// All were taken.
    End,
}

/// Checks that a class of entries is one that this store has.
pub(super) fn check_class(class: EntryClass, access: &Access) -> Result<(), MsError> {
    match class {
        EntryClass::DELIVERY => Ok(()),
        // The delivered messages are all that is stored.
        EntryClass::STORED_MESSAGE if access.is_1994 => Ok(()),
        // unsupported-entry-class.
        _ if access.is_1994 => Err(MsError::EntryClass { entry_class: class, problem: 1 }),
        _ => Err(MsError::InvalidParameters),
    }
}

fn bounds(range: Option<&Range>, access: &Access) -> Result<Bounds, MsError> {
    let all = Bounds::default();
    let Some(range) = range else { return Ok(all) };
    if range.is_reversed() {
        return Err(match access.is_1994 {
            true => MsError::InvalidParameters,
            false => MsError::Range(RangeProblem::REVERSED),
        });
    }
    Ok(match range {
        Range::SequenceNumber { from, to } => Bounds {
            from: from.map_or(all.from, |from| from.0.max(1)),
            to: to.map_or(all.to, |to| to.0),
            ..all
        },
        Range::CreationTime { from, to } => {
            // An invalid time is refused: without a bound a delete would take more than was meant.
            let end = |time: &Option<p1::Time>| match time {
                Some(time) => time.utc.ok_or(MsError::InvalidParameters).map(Some),
                None => Ok(None),
            };
            Bounds { since: end(from)?, until: end(to)?, ..all }
        }
    })
}

impl Selection {
    /// What a selector selects. `most` is how many items the caller takes at most.
    pub(super) fn new(
        mailbox: &Mailbox,
        access: &Access,
        selector: &Selector,
        most: Option<usize>,
    ) -> Result<Selection, MsError> {
        let limit = match selector.limit {
            None => None,
            Some(limit @ 1..) => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
            Some(_) => return Err(MsError::InvalidParameters),
        };
        let filter = selector.filter.as_ref();
        if let Some(filter) = filter {
            narrow::check(filter)?;
        }
        let bounds = bounds(selector.range.as_ref(), access)?;
        let truth = |level| filter.map_or(Truth::True, |filter| narrow::of_level(filter, level));
        let levels = Precedence::ALL.map(|level| (level, truth(level)));
        let levels = levels.iter().filter(|(_, truth)| *truth != Truth::False);
        // Where the level decides, every item that is read is selected.
        let is_decided = levels.clone().all(|(_, truth)| *truth == Truth::True);
        let levels: Vec<_> = levels.map(|(level, _)| *level).collect();
        let taken = [limit, most].into_iter().flatten().min();
        // One more, to know the next.
        let expected = taken.filter(|_| is_decided).map(|taken| taken.saturating_add(1));
        let scan = Scan::new(mailbox, bounds, &levels, expected);
        Ok(Selection { scan, filter: selector.filter.clone(), limit })
    }

    /// What is next: it passes over what was read and does not match.
    ///
    /// # Errors
    /// The filter does not fit an item.
    pub(super) fn next(&mut self) -> Result<Selected, MsError> {
        loop {
            match self.scan.next() {
                Next::Ask(ask) => return Ok(Selected::Ask(ask)),
                Next::End => return Ok(Selected::End),
                Next::Row(row) => {
                    if self.matches(&row)? {
                        return Ok(Selected::Row(row));
                    }
                }
            }
        }
    }

    /// A record that cannot be read matches nothing.
    fn matches(&self, row: &Row) -> Result<bool, MsError> {
        let Ok(item) = Attributes::new(row.number, row.precedence, &row.record) else {
            return Ok(false);
        };
        match &self.filter {
            None => Ok(true),
            Some(filter) => Ok(matching::matches(filter, &item)?),
        }
    }

    /// Takes an answer; false if it has no items.
    pub(super) fn take(&mut self, answer: Answer) -> bool {
        match answer {
            Answer::Start => true,
            Answer::Rows(rows) => {
                self.scan.take(rows);
                true
            }
            Answer::Committed | Answer::NotCommitted | Answer::Failed => false,
        }
    }
}
