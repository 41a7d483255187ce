//! Pages of mailboxes of any shape, and how little of them is read.

use super::*;
use base::Utc;
use std::collections::BTreeMap;
use xuxa_tui::model::{Kind, Row};

/// A mailbox that counts what it lists.
struct Fake {
    entries: BTreeMap<u32, Option<Precedence>>,
    calls: usize,
    listed: usize,
    /// It counts, and lists only what is of use.
    is_sparing: bool,
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
        let newest = part.newest.filter(|_| self.is_sparing).unwrap_or(usize::MAX);
        let found = found[found.len().saturating_sub(newest)..].to_vec();
        self.listed += found.len();
        Ok(found)
    }

    async fn span(&mut self, part: Part) -> Result<Option<Span>, StoreError> {
        if !self.is_sparing {
            return first(self, part).await;
        }
        let before = self.listed;
        let found = self.list(part).await?;
        self.listed = before;
        let (Some(low), Some(high)) = (found.first(), found.last()) else { return Ok(None) };
        Ok(Some(Span {
            lowest: low.number,
            highest: Some(high.number),
            count: Some(found.len() as u64),
        }))
    }
}

fn fake(
    count: u32,
    precedence: impl Fn(u32) -> Option<Precedence>,
    has: impl Fn(u32) -> bool,
) -> Fake {
    let entries = (1..=count).filter(|n| has(*n)).map(|n| (n, precedence(n))).collect();
    Fake { entries, calls: 0, listed: 0, is_sparing: false }
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
        for (order, is_sparing) in [
            (Order::Precedence, false),
            (Order::Arrival, false),
            (Order::Precedence, true),
            (Order::Arrival, true),
        ] {
            fake.is_sparing = is_sparing;
            for count in [1, 7, 100] {
                fake.listed = 0;
                let all = expected(&fake, order);
                let (mut at, mut seen) = (From::Top, Vec::new());
                loop {
                    let (rows, is_last) = block(page(&mut fake, order, &at, count, 1_000)).unwrap();
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
                assert!(!is_sparing || fake.listed == all.len(), "nothing else is listed");
                let (mut at, mut seen) = (From::Bottom, Vec::new());
                loop {
                    let (rows, is_last) = block(page(&mut fake, order, &at, count, 1_000)).unwrap();
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
