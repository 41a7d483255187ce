//! The scheduler against a model that is one unsorted `Vec`.

use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;

#[derive(Clone, Debug)]
struct Row {
    item: Item<u8>,
    /// `None` while in transfer.
    until: Option<Instant>,
    failures: u32,
}

#[derive(Default)]
struct Model(Vec<Row>);

impl Model {
    fn insert(&mut self, item: Item<u8>) -> bool {
        let new = self.0.iter().all(|r| r.item.id != item.id);
        if new {
            self.0.push(Row { until: Some(item.not_before), item, failures: 0 });
        }
        new
    }

    fn next(&mut self, now: Instant, queue: u8) -> Option<EntryId> {
        let row = self
            .0
            .iter_mut()
            .filter(|r| r.item.queue == queue && r.until.is_some_and(|u| u <= now))
            .min_by_key(|r| (Reverse(r.item.precedence), r.item.accepted, r.item.id))?;
        row.until = None;
        Some(row.item.id)
    }

    fn in_transfer(&mut self, id: EntryId) -> Option<&mut Row> {
        self.0.iter_mut().find(|r| r.item.id == id && r.until.is_none())
    }

    fn retry(&mut self, now: Instant, id: EntryId, seed: u64) -> Option<Instant> {
        let row = self.in_transfer(id)?;
        row.failures += 1;
        row.until = Some(now + delay(row.failures, seed ^ id.0));
        row.until
    }

    fn remove(&mut self, id: EntryId) -> Option<Item<u8>> {
        let at = self.0.iter().position(|r| r.item.id == id)?;
        Some(self.0.remove(at).item)
    }

    fn status(&self, queue: u8) -> QueueStatus {
        let mut status = QueueStatus::default();
        for row in self.0.iter().filter(|r| r.item.queue == queue && r.until.is_some()) {
            status.by_precedence[usize::from(row.item.precedence.number())] += 1;
            status.bytes += row.item.size;
            status.oldest = Some(row.item.accepted.min(status.oldest.unwrap_or(Utc(u64::MAX))));
        }
        status
    }
}

#[derive(Clone, Debug)]
enum Verb {
    Insert(Item<u8>),
    Next(u8),
    Retry(u64, u64),
    PutBack(u64),
    Finished(u64),
    Wait(u64),
}

fn item() -> impl Strategy<Value = Item<u8>> {
    (0u64..40, 0u8..3, 0usize..6, 0u64..1000, 0u64..10, 0u64..40_000_000).prop_map(
        |(id, queue, p, size, accepted, not_before)| Item {
            id: EntryId(id),
            queue,
            precedence: Precedence::ALL[p],
            size,
            accepted: Utc(accepted),
            // Half of them could go at once.
            not_before: Instant(not_before.saturating_sub(20_000_000)),
        },
    )
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        4 => item().prop_map(Verb::Insert),
        4 => (0u8..3).prop_map(Verb::Next),
        2 => (0u64..40, any::<u64>()).prop_map(|(id, seed)| Verb::Retry(id, seed)),
        1 => (0u64..40).prop_map(Verb::PutBack),
        1 => (0u64..40).prop_map(Verb::Finished),
        2 => (0u64..30_000_000).prop_map(Verb::Wait),
    ]
}

proptest! {
    #[test]
    fn agrees_with_the_model(verbs in proptest::collection::vec(verb(), 0..200)) {
        let (mut s, mut m, mut now) = (Scheduler::new(), Model::default(), Instant(0));
        for verb in verbs {
            match verb {
                Verb::Insert(item) => prop_assert_eq!(s.insert(now, item.clone()), m.insert(item)),
                Verb::Next(q) => {
                    let peeked = s.peek(now, &q).map(|(id, _)| id);
                    let next = s.next(now, &q);
                    prop_assert_eq!(next, m.next(now, q));
                    prop_assert_eq!(peeked, next);
                }
                Verb::Retry(id, seed) => {
                    let id = EntryId(id);
                    let again = s.retry(now, id, seed);
                    prop_assert_eq!(again, m.retry(now, id, seed));
                    prop_assert!(again.is_none_or(|at| at > now));
                }
                Verb::PutBack(id) => {
                    let row = m.in_transfer(EntryId(id));
                    prop_assert_eq!(s.put_back(now, EntryId(id)), row.is_some());
                    if let Some(row) = row { row.until = Some(Instant(0)); }
                }
                Verb::Finished(id) => {
                    prop_assert_eq!(s.finished(EntryId(id)), m.remove(EntryId(id)));
                }
                Verb::Wait(d) => now = Instant(now.0 + d),
            }
            s.tick(now);
            prop_assert_eq!(s.len(), m.0.len());
            let due = m.0.iter().filter_map(|r| r.until).filter(|u| *u > now).min();
            prop_assert_eq!(s.deadline(), due);
            for q in 0..3 {
                let status = s.status(&q);
                prop_assert_eq!(status, m.status(q));
                prop_assert_eq!(s.waiting(&q), status.by_precedence.iter().sum::<u64>());
                let ready = m.0.iter().filter(|r| r.item.queue == q && r.until.is_some_and(|u| u <= now));
                prop_assert_eq!(s.ready(&q), ready.count() as u64);
                prop_assert_eq!(s.queues().any(|k| *k == q), s.waiting(&q) > 0);
            }
        }
    }
}

#[test]
fn highest_first_then_in_order_of_acceptance() {
    let mut s = Scheduler::new();
    let rows = [(1, Precedence::Routine, 5), (2, Precedence::Flash, 9), (3, Precedence::Flash, 7)];
    for (id, precedence, accepted) in rows {
        let item = Item {
            id: EntryId(id),
            queue: "x",
            precedence,
            size: 1000,
            accepted: Utc(accepted),
            not_before: Instant(0),
        };
        assert!(s.insert(Instant(0), item));
    }
    let order: Vec<u64> = std::iter::from_fn(|| s.next(Instant(0), &"x")).map(|id| id.0).collect();
    assert_eq!(order, [3, 2, 1]);
    // A failed item waits its time out, and lets lower ones pass meanwhile.
    let again = s.retry(Instant(0), EntryId(3), 0).unwrap();
    assert!(s.put_back(Instant(0), EntryId(1)));
    assert_eq!(s.next(again - std::time::Duration::from_micros(1), &"x"), Some(EntryId(1)));
    assert_eq!(s.next(again - std::time::Duration::from_micros(1), &"x"), None);
    assert_eq!(s.next(again, &"x"), Some(EntryId(3)));
}
