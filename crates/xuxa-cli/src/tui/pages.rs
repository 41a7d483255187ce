//! Pages of a mailbox with the newest first. A list of P7 ascends, so a page downward is a range of numbers that
//! is made wider until it has enough.

use base::Precedence;
use p7::selector::Range;
use ua::store::{Entry, Filter, Find, Selector, Store, StoreError};
use xuxa_tui::model::{From, Order};

/// Widest range that is listed at once: so many entries at most are read for one page.
const MAX_WIDTH: u64 = 1 << 15;

/// The highest first. Entries without a precedence are listed as Routine.
const LEVELS: [Option<Precedence>; 6] = [
    Some(Precedence::Override),
    Some(Precedence::Flash),
    Some(Precedence::Immediate),
    Some(Precedence::Priority),
    Some(Precedence::Routine),
    Some(Precedence::Deferred),
];

/// A part of the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// One precedence, or all.
    pub level: Option<Precedence>,
    /// The first number.
    pub from: u32,
    /// The last one, or to the end.
    pub to: Option<u32>,
    /// Most entries, or all of the range.
    pub limit: Option<usize>,
    /// Only so many, the newest, are of use.
    pub newest: Option<usize>,
}

/// Where the entries of a part are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The lowest number.
    pub lowest: u32,
    /// The highest one, where it is known.
    pub highest: Option<u32>,
    /// How many there are, where it is known.
    pub count: Option<u64>,
}

/// Lists parts of a mailbox.
pub(crate) trait Lists {
    /// The entries of a part, ascending.
    async fn list(&mut self, part: Part) -> Result<Vec<Entry>, StoreError>;

    /// Where those of a part are; `None` if there are none.
    async fn span(&mut self, part: Part) -> Result<Option<Span>, StoreError> {
        first(self, part).await
    }
}

/// The lowest entry of a part, by a list of one.
async fn first(lists: &mut (impl Lists + ?Sized), part: Part) -> Result<Option<Span>, StoreError> {
    let listed = lists.list(Part { limit: Some(1), ..part }).await?;
    let found = |entry: &Entry| Span { lowest: entry.number, highest: None, count: None };
    Ok(listed.first().map(found))
}

/// The list operation under conditions.
pub(crate) struct Listing<'a> {
    pub store: &'a mut Store,
    pub find: Find,
    /// Lower precedences are not asked for.
    pub least: Option<Precedence>,
    /// Nothing is listed that is of no use: what is listed is not new afterwards. The store counts instead.
    pub is_sparing: bool,
}

impl Listing<'_> {
    /// The conditions, and those of a precedence.
    fn conditions(&self, level: Option<Precedence>) -> Find {
        let find = self.find.clone();
        let Some(level) = level else { return find };
        let mut any: Vec<Filter> = Find::new().precedences(&[level]).filter().into_iter().collect();
        if level == Precedence::Routine {
            any.extend(Find::new().without_precedence().filter());
        }
        find.and(match (any.len(), any.pop()) {
            (1, Some(one)) => one,
            (_, last) => Filter::Or(any.into_iter().chain(last).collect()),
        })
    }

    /// The first number from which on a part has no more than so many entries.
    async fn narrowed(&mut self, part: Part, most: u64) -> Result<u32, StoreError> {
        let find = self.conditions(part.level);
        let Some(mut high) =
            part.to.or(self.store.summarize_range(&find, part.from, None).await?.span.map(|s| s.1))
        else {
            return Ok(part.from);
        };
        // From `low` on there are too many or enough, from `high` + 1 on none.
        let mut low = part.from;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.store.summarize_range(&find, middle, part.to).await?.count {
                count if count > most => low = middle + 1,
                count if count == most => return Ok(middle),
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

impl Lists for Listing<'_> {
    async fn list(&mut self, part: Part) -> Result<Vec<Entry>, StoreError> {
        if matches!((part.level, self.least), (Some(level), Some(least)) if level < least) {
            return Ok(Vec::new());
        }
        let find = self.conditions(part.level);
        let mut found: Vec<Entry> = Vec::new();
        let mut from = part.from;
        if let Some(newest) = part.newest.filter(|_| self.is_sparing) {
            let most = newest as u64;
            if self.store.summarize_range(&find, from, part.to).await?.count > most {
                from = self.narrowed(part, most).await?;
            }
        }
        loop {
            let left = part.limit.map(|limit| limit.saturating_sub(found.len()));
            let number = |number: u32| p7::SequenceNumber(number);
            let range = Range::SequenceNumber {
                from: (from > 0).then(|| number(from)),
                to: part.to.map(number),
            };
            let selector = Selector {
                range: (from > 0 || part.to.is_some()).then_some(range),
                filter: find.filter(),
                limit: left.and_then(|left| i64::try_from(left).ok()),
                ..Selector::default()
            };
            let listed = self.store.list(selector).await?;
            found.extend(listed.entries);
            let is_enough = part.limit.is_some_and(|limit| found.len() >= limit);
            match listed.next.filter(|next| !is_enough && part.to.is_none_or(|to| *next <= to)) {
                Some(next) => from = next,
                None => return Ok(found),
            }
        }
    }

    async fn span(&mut self, part: Part) -> Result<Option<Span>, StoreError> {
        if !self.is_sparing {
            return first(self, part).await;
        }
        let summary =
            self.store.summarize_range(&self.conditions(part.level), part.from, part.to).await?;
        let found = |(lowest, highest): (u32, u32)| Span {
            lowest,
            highest: Some(highest),
            count: Some(summary.count),
        };
        Ok(summary.span.map(found))
    }
}

/// The precedence under which an entry is listed.
pub(crate) fn level(entry: &Entry) -> Precedence {
    entry.precedence.unwrap_or(Precedence::Routine)
}

/// Up to `count` entries in display order, and whether no other follows in this direction. `highest` is the
/// highest number that is known to be used.
pub(crate) async fn page(
    lists: &mut impl Lists,
    order: Order,
    from: &From,
    count: usize,
    highest: u32,
) -> Result<(Vec<Entry>, bool), StoreError> {
    let levels: &[Option<Precedence>] = match order {
        Order::Precedence => &LEVELS,
        Order::Arrival => &[None],
    };
    let place = |row: &xuxa_tui::model::Row| {
        let at = levels.iter().position(|level| *level == Some(row.precedence)).unwrap_or(0);
        (at, u32::try_from(row.number).unwrap_or(u32::MAX))
    };
    let mut found = Vec::new();
    match from {
        From::Top | From::After(_) => {
            let (first, mut below) = match from {
                From::After(row) => (place(row).0, Some(place(row).1)),
                _ => (0, None),
            };
            for level in levels.iter().skip(first) {
                let wanted = count.saturating_sub(found.len());
                if wanted == 0 {
                    return Ok((found, false));
                }
                let (more, is_last) =
                    descending(lists, *level, below.take(), wanted, highest).await?;
                found.extend(more);
                if !is_last {
                    return Ok((found, false));
                }
            }
            Ok((found, true))
        }
        From::Bottom | From::Before(_) => {
            let (first, mut above) = match from {
                From::Before(row) => (place(row).0, Some(place(row).1)),
                _ => (levels.len() - 1, None),
            };
            for level in levels.iter().take(first + 1).rev() {
                let wanted = count.saturating_sub(found.len());
                let from = above.take().map_or(0, |number| number.saturating_add(1));
                let limit = Some(wanted + 1);
                let part = Part { level: *level, from, to: None, limit, newest: None };
                let more = lists.list(part).await?;
                let is_more = more.len() > wanted;
                found.extend(more.into_iter().take(wanted));
                if is_more {
                    found.reverse();
                    return Ok((found, false));
                }
            }
            found.reverse();
            Ok((found, true))
        }
    }
}

/// The newest entries of a level below a number, and whether there are no others.
async fn descending(
    lists: &mut impl Lists,
    level: Option<Precedence>,
    below: Option<u32>,
    wanted: usize,
    highest: u32,
) -> Result<(Vec<Entry>, bool), StoreError> {
    let mut to = match below {
        Some(0) => return Ok((Vec::new(), true)),
        Some(number) => Some(number - 1),
        None => None,
    };
    // What ends the search where there is nothing.
    let all = Part { level, from: 0, to, limit: None, newest: None };
    let Some(span) = lists.span(all).await? else { return Ok((Vec::new(), true)) };
    let lowest = span.lowest;
    let mut top = span.highest.or(to).unwrap_or(highest).max(lowest);
    let mut width = match span.count {
        Some(count) if count <= wanted as u64 => u64::from(top - lowest) + 1,
        _ => wanted.max(1) as u64,
    };
    let mut found: Vec<Entry> = Vec::new();
    loop {
        let reach = u32::try_from(width - 1).unwrap_or(u32::MAX);
        let from = top.saturating_sub(reach).max(lowest);
        let newest = Some(wanted.saturating_sub(found.len()));
        let part = lists.list(Part { level, from, to, limit: None, newest }).await?;
        found.extend(part.into_iter().rev());
        if found.len() >= wanted || from <= lowest {
            found.truncate(wanted);
            let is_lowest = found.last().is_some_and(|last| last.number <= lowest);
            let is_last = from <= lowest && (found.len() < wanted || is_lowest);
            return Ok((found, is_last));
        }
        top = from - 1;
        to = Some(top);
        width = (width * 4).min(MAX_WIDTH);
    }
}

#[cfg(test)]
mod tests;
