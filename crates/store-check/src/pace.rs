//! Reading at a limited rate beside other work.

use std::time::Duration;
use store::QueueStore;

/// How far a reader of the whole store has come.
pub struct Pace<'a> {
    store: &'a dyn QueueStore,
    /// Octets a second at most.
    rate: Option<u64>,
    began: Box<dyn Fn() -> Duration + 'a>,
    octets: u64,
}

impl<'a> Pace<'a> {
    /// `rate`: octets a second at most. `since` gives the time since the reading began.
    pub fn new(
        store: &'a dyn QueueStore,
        rate: Option<u64>,
        since: impl Fn() -> Duration + 'a,
    ) -> Pace<'a> {
        Pace { store, rate, began: Box::new(since), octets: 0 }
    }

    /// So many octets more were read: waits as the rate demands. Returns all octets so far, and false if
    /// the store is closed.
    pub fn read(&mut self, octets: u64) -> (u64, bool) {
        self.octets = self.octets.saturating_add(octets);
        let Some(rate) = self.rate else { return (self.octets, true) };
        let due = Duration::from_secs_f64(self.octets as f64 / rate.max(1) as f64);
        while let Some(wait) = due.checked_sub((self.began)()) {
            if self.store.entry_count().is_err() {
                return (self.octets, false);
            }
            std::thread::park_timeout(wait.min(Duration::from_millis(100)));
        }
        (self.octets, true)
    }
}
