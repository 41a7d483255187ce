//! Processor time of a message in the scheduler beside a long queue: one message is inserted, the
//! next one starts and finishes.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use base::{EntryId, Instant, PeerId, Precedence, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use scheduler::{Associations, ChannelId, ChannelRules, Destination, Item, Policy, Scheduler};
use std::time::Duration;

const PEER: PeerId = PeerId(1);
const NOW: Instant = Instant(1_000_000);

fn item(id: u64) -> Item {
    // The three lower precedences in turn: the waiting messages never empty the highest queue.
    let precedence = Precedence::ALL.get(id as usize % 3).copied().expect("one of six");
    Item {
        id: EntryId(id),
        precedence,
        destination: Destination::Peer(PEER),
        size: 1_000,
        accepted: Utc(id),
        not_before: Instant(0),
        expires: Instant(u64::MAX / 2 + id),
        alert_at: Instant(u64::MAX / 4 + id),
        body: None,
    }
}

fn waiting(count: u64) -> (Scheduler, ChannelId) {
    let channel = ChannelId { peer: PEER, index: 0 };
    let rules = ChannelRules {
        id: channel,
        precedences: Precedence::ALL.to_vec(),
        fallback: Vec::new(),
        permanent: true,
        max: 1,
        grow_at: 8,
        keep: Duration::from_secs(10),
    };
    let mut scheduler = Scheduler::new([rules], Policy::default());
    let up = Associations { ours: 1, usable: 1, free: 1, ..Associations::default() };
    scheduler.associations(NOW, channel, up);
    for id in 0..count {
        assert!(scheduler.insert(NOW, item(id)));
    }
    (scheduler, channel)
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("scheduler, insert + next + finished");
    for count in [0u64, 1_000, 100_000, 1_000_000] {
        let (mut scheduler, channel) = waiting(count);
        let mut id = count;
        group.bench_function(format!("{count} waiting"), |b| {
            b.iter(|| {
                id += 1;
                scheduler.insert(NOW, item(id));
                let start = scheduler.next(NOW, channel).expect("something waits");
                scheduler.finished(start.id)
            });
        });
        assert_eq!(scheduler.len() as u64, count);
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
