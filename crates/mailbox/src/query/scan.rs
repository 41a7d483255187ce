//! The items of a range in ascending order of their numbers: six levels, read page by page and merged.

use super::{Ask, Row};
use crate::delivery::Mailbox;
use crate::item::Brief;
use base::{Precedence, Utc};
use engine::journal::MailboxId;
use std::collections::VecDeque;

/// What a scan has next.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing before this is answered.
    Ask(Ask),
    /// The item with the next number.
    Row(Row),
    /// All were taken.
    End,
}

/// Bounds of a scan; both ends are in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The first number.
    pub from: u32,
    /// The last number.
    pub to: u32,
    /// The first creation-time, to the second.
    pub since: Option<Utc>,
    /// The last creation-time, to the second.
    pub until: Option<Utc>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { from: 1, to: u32::MAX, since: None, until: None }
    }
}

/// One level.
#[derive(Debug)]
struct Level {
    precedence: Precedence,
    /// Items of a page.
    page: usize,
    /// The number after which the next page begins.
    after: u32,
    rows: VecDeque<Row>,
    /// All of it was read.
    ended: bool,
    /// The number up to which the first item of the range is sought; `None` once it is found.
    seek: Option<u32>,
}

/// A scan.
#[derive(Debug)]
pub(super) struct Scan {
    mailbox: MailboxId,
    bounds: Bounds,
    levels: Vec<Level>,
    /// The level that was asked for.
    asked: Option<usize>,
}

fn seconds(time: Utc) -> u64 {
    time.0 / 1_000_000
}

impl Scan {
    /// Of these levels. `expected` is how many items the caller takes, if it is known: then about as many are read,
    /// shared among the levels by what they have.
    pub(super) fn new(
        mailbox: &Mailbox,
        bounds: Bounds,
        levels: &[Precedence],
        expected: Option<usize>,
    ) -> Scan {
        let totals = mailbox.totals();
        let bounds = Bounds { to: bounds.to.min(totals.last), ..bounds };
        let all = levels.iter().map(|level| totals.level(*level).items).sum::<u64>().max(1);
        let level = |precedence| {
            let items = totals.level(precedence).items;
            let share = expected.map_or(super::PAGE as u64, |expected| {
                (expected as u64).saturating_mul(items) / all + 4
            });
            Level {
                precedence,
                page: usize::try_from(share).unwrap_or(super::PAGE).min(super::PAGE),
                after: bounds.from.saturating_sub(1),
                rows: VecDeque::new(),
                ended: items == 0 || bounds.from > bounds.to,
                seek: bounds.since.map(|_| bounds.to),
            }
        };
        let levels = levels.iter().copied().map(level).collect();
        Scan { mailbox: mailbox.id(), bounds, levels, asked: None }
    }

    /// Of all levels, also where the totals have no items.
    pub(super) fn of_all(mailbox: &Mailbox, bounds: Bounds) -> Scan {
        let mut scan = Scan::new(mailbox, bounds, &Precedence::ALL, None);
        let is_empty = scan.bounds.from > scan.bounds.to;
        scan.levels.iter_mut().for_each(|level| level.ended = is_empty);
        scan
    }

    /// What is next. An [`Next::Ask`] is answered by [`Scan::take`] before the next call.
    pub(super) fn next(&mut self) -> Next {
        if let Some((at, ask)) = self.missing() {
            self.asked = Some(at);
            return Next::Ask(ask);
        }
        let first = self.levels.iter_mut().filter(|level| !level.rows.is_empty());
        let first = first.min_by_key(|level| level.rows.front().map(|row| row.number));
        match first.and_then(|level| level.rows.pop_front()) {
            Some(row) => Next::Row(row),
            None => Next::End,
        }
    }

    fn missing(&self) -> Option<(usize, Ask)> {
        let missing = |level: &&Level| level.rows.is_empty() && !level.ended;
        let at = self.levels.iter().position(|level| missing(&level))?;
        let level = self.levels.get(at)?;
        let (after, limit) = match level.seek {
            Some(end) => (middle(level.after, end), 1),
            None => (level.after, level.page),
        };
        let Level { precedence, .. } = *level;
        Some((at, Ask::Items { mailbox: self.mailbox, precedence, after, limit }))
    }

    /// The items that were asked for.
    pub(super) fn take(&mut self, rows: Vec<Row>) {
        let Some(level) = self.asked.take().and_then(|at| self.levels.get_mut(at)) else { return };
        match level.seek {
            Some(end) => level.seek(rows.first(), end, self.bounds),
            None => level.take(rows, self.bounds),
        }
    }
}

/// Between two numbers, the first included.
fn middle(after: u32, end: u32) -> u32 {
    after + end.saturating_sub(after) / 2
}

impl Level {
    fn take(&mut self, rows: Vec<Row>, bounds: Bounds) {
        let Some(last) = rows.last().map(|row| row.number) else {
            self.ended = true;
            return;
        };
        // An answer that does not ascend would never end.
        self.ended = last <= self.after || last >= bounds.to;
        let after = std::mem::replace(&mut self.after, last);
        let fits = |row: &Row| row.number > after && row.number <= bounds.to;
        self.rows.extend(rows.into_iter().filter(fits));
        // Creation times ascend with the numbers.
        let Some(until) = bounds.until.map(seconds) else { return };
        let is_late = |row: &Row| created(row).is_some_and(|time| time > until);
        if let Some(end) = self.rows.iter().position(is_late) {
            self.rows.truncate(end);
            self.ended = true;
        }
    }

    /// Halves the numbers between `after`, before which all items are older than the range, and `end`, after which
    /// none is. `row` is the first item after their middle.
    fn seek(&mut self, row: Option<&Row>, end: u32, bounds: Bounds) {
        let middle = middle(self.after, end);
        let since = bounds.since.map_or(0, seconds);
        let row = row.filter(|row| row.number > middle && row.number <= end);
        let is_older = |row: &&Row| created(row).is_some_and(|time| time < since);
        let end = match row.filter(is_older) {
            Some(row) => {
                self.after = row.number;
                end
            }
            None => middle,
        };
        self.seek = (self.after < end).then_some(end);
    }
}

/// The creation-time in seconds; `None` for a damaged record.
fn created(row: &Row) -> Option<u64> {
    Brief::read(&row.record).ok().map(|brief| seconds(brief.created))
}
