//! The memory of a queued message, as requested from the allocator, so the same on every machine.

#![expect(unsafe_code, reason = "an allocator that counts")]

use base::{BodyId, EntryId, Instant, PeerId, Precedence, Utc};
use scheduler::{ChannelId, ChannelRules, Destination, Item, Policy, Scheduler};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const COUNT: u64 = 1_000_000;
/// Octets per queued message; the whole MTA may take 250.
const MAX: usize = 175;

#[test]
fn a_queued_message_takes_little_and_leaves_nothing() {
    let peer = PeerId(1);
    let rules = ChannelRules {
        id: ChannelId { peer, index: 0 },
        precedences: Precedence::ALL.to_vec(),
        fallback: Vec::new(),
        permanent: true,
        max: 1,
        grow_at: 8,
        keep: Duration::from_secs(10),
    };
    let mut scheduler = Scheduler::new([rules], Policy::default());
    let before = HELD.load(Ordering::Relaxed);
    for id in 0..COUNT {
        let precedence = Precedence::ALL[id as usize % 6];
        // They arrive in order, and expire by precedence.
        let after = Duration::from_secs(3_600 * u64::from(6 - precedence.number()));
        let taken = scheduler.insert(
            Instant(id),
            Item {
                id: EntryId(id),
                destination: Destination::Peer(peer),
                precedence,
                size: 1_000,
                accepted: Utc(id),
                not_before: Instant(0),
                expires: Instant(id) + after * 4,
                alert_at: Instant(id) + after,
                body: Some(BodyId(id)),
            },
        );
        assert!(taken);
    }
    let each = (HELD.load(Ordering::Relaxed) - before) as f64 / COUNT as f64;
    println!("{each:.1} octets for each of {COUNT} queued messages");
    assert!(each <= MAX as f64, "{each:.1}");
    for id in 0..COUNT {
        assert!(scheduler.finished(EntryId(id)).is_some());
    }
    assert!(HELD.load(Ordering::Relaxed) - before < 100_000, "memory follows the queue down");
}
