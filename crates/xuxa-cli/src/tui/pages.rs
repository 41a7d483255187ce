//! Pages of a mailbox with the newest first. A list of P7 ascends, so a page downward is a range of numbers that
//! is made wider until it has enough.

use base::Precedence;
use ua::store::{Entry, StoreError};
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
pub(super) struct Part {
    /// One precedence, or all.
    pub level: Option<Precedence>,
    /// The first number.
    pub from: u32,
    /// The last one, or to the end.
    pub to: Option<u32>,
    /// Most entries, or all of the range.
    pub limit: Option<usize>,
}

/// Lists parts of a mailbox.
pub(super) trait Lists {
    /// The entries of a part, ascending.
    async fn list(&mut self, part: Part) -> Result<Vec<Entry>, StoreError>;
}

/// The precedence under which an entry is listed.
pub(super) fn level(entry: &Entry) -> Precedence {
    entry.precedence.unwrap_or(Precedence::Routine)
}

/// Up to `count` entries in display order, and whether no other follows in this direction. `highest` is the
/// highest number that is known to be used.
pub(super) async fn page(
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
                let more = lists.list(Part { level: *level, from, to: None, limit }).await?;
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
    let first = lists.list(Part { level, from: 0, to, limit: Some(1) }).await?;
    let Some(lowest) = first.first().map(|entry| entry.number) else {
        return Ok((Vec::new(), true));
    };
    let mut top = to.unwrap_or(highest).max(lowest);
    let mut width = wanted.max(1) as u64;
    let mut found: Vec<Entry> = Vec::new();
    loop {
        let reach = u32::try_from(width - 1).unwrap_or(u32::MAX);
        let from = top.saturating_sub(reach).max(lowest);
        let part = lists.list(Part { level, from, to, limit: None }).await?;
        found.extend(part.into_iter().rev());
        if found.len() >= wanted || from <= lowest {
            let is_last = from <= lowest && found.len() <= wanted;
            found.truncate(wanted);
            return Ok((found, is_last));
        }
        top = from - 1;
        to = Some(top);
        width = (width * 4).min(MAX_WIDTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;
    use std::collections::BTreeMap;
    use xuxa_tui::model::{Kind, Row};

    /// A mailbox that counts what it lists.
    struct Fake {
        entries: BTreeMap<u32, Option<Precedence>>,
        calls: usize,
        listed: usize,
    }

    impl Lists for Fake {
        async fn list(&mut self, part: Part) -> Result<Vec<Entry>, StoreError> {
            let to = part.to.unwrap_or(u32::MAX);
            let range = part.from..=to;
            let entry = |(number, precedence): (&u32, &Option<Precedence>)| Entry {
                number: *number,
                precedence: *precedence,
                ..Entry::default()
            };
            let matches = |entry: &Entry| part.level.is_none_or(|wanted| level(entry) == wanted);
            let found = self.entries.iter().filter(|(number, _)| range.contains(number)).map(entry);
            let found: Vec<Entry> =
                found.filter(matches).take(part.limit.unwrap_or(usize::MAX)).collect();
            self.calls += 1;
            self.listed += found.len();
            Ok(found)
        }
    }

    fn fake(
        count: u32,
        precedence: impl Fn(u32) -> Option<Precedence>,
        has: impl Fn(u32) -> bool,
    ) -> Fake {
        let entries = (1..=count).filter(|n| has(*n)).map(|n| (n, precedence(n))).collect();
        Fake { entries, calls: 0, listed: 0 }
    }

    fn row(entry: &Entry) -> Row {
        Row {
            number: u64::from(entry.number),
            kind: Kind::Message,
            precedence: level(entry),
            is_unread: true,
            from: String::new(),
            subject: String::new(),
            time: Utc::default(),
            size: 0,
        }
    }

    fn block<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    /// All numbers in display order.
    fn expected(fake: &Fake, order: Order) -> Vec<u32> {
        let mut numbers: Vec<u32> = fake.entries.keys().copied().collect();
        numbers.sort_by_key(|number| {
            let precedence = fake.entries[number].unwrap_or(Precedence::Routine);
            let level = if order == Order::Precedence { Some(precedence) } else { None };
            std::cmp::Reverse((level, *number))
        });
        numbers
    }

    #[test]
    fn pages_downward_and_upward_are_the_whole_mailbox_in_order() {
        let mixed = |n: u32| match n % 7 {
            6 => None,
            other => Precedence::from_number(i64::from(other)),
        };
        let mailboxes = [
            fake(1_000, mixed, |n| n % 3 != 0),
            fake(1_000, |_| Some(Precedence::Flash), |n| !(100..900).contains(&n)),
            fake(1_000, mixed, |n| n % 90 == 1),
            fake(0, mixed, |_| true),
        ];
        for mut fake in mailboxes {
            for order in [Order::Precedence, Order::Arrival] {
                for count in [1, 7, 100] {
                    let all = expected(&fake, order);
                    let (mut at, mut seen) = (From::Top, Vec::new());
                    loop {
                        let (rows, is_last) =
                            block(page(&mut fake, order, &at, count, 1_000)).unwrap();
                        seen.extend(rows.iter().map(|entry| entry.number));
                        match rows.last() {
                            Some(last) => at = From::After(row(last)),
                            None => assert!(is_last),
                        }
                        if is_last {
                            break;
                        }
                        assert_eq!(rows.len(), count);
                    }
                    assert_eq!(seen, all, "{order:?} by {count}");
                    let (mut at, mut seen) = (From::Bottom, Vec::new());
                    loop {
                        let (rows, is_last) =
                            block(page(&mut fake, order, &at, count, 1_000)).unwrap();
                        seen.splice(..0, rows.iter().map(|entry| entry.number));
                        if is_last {
                            break;
                        }
                        at = From::Before(row(&rows[0]));
                    }
                    assert_eq!(seen, all, "upward, {order:?} by {count}");
                }
            }
        }
    }

    #[test]
    fn a_page_of_a_large_mailbox_reads_little_of_it() {
        let rare = |n: u32| match n % 5_000 {
            0 => Some(Precedence::Flash),
            _ => Some(Precedence::Routine),
        };
        let mut fake = fake(500_000, rare, |_| true);
        for order in [Order::Precedence, Order::Arrival] {
            (fake.calls, fake.listed) = (0, 0);
            let (rows, is_last) = block(page(&mut fake, order, &From::Top, 100, 500_000)).unwrap();
            assert!(rows.len() == 100 && !is_last);
            assert!(fake.listed <= 1_000 && fake.calls <= 24, "{} in {}", fake.listed, fake.calls);
        }
    }
}
