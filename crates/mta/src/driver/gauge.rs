//! How many octets wait somewhere, and waiting until they are few.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Octets that wait.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    octets: AtomicUsize,
    released: AtomicBool,
    fell: Notify,
}

impl Gauge {
    pub(super) fn add(&self, octets: usize) {
        self.octets.fetch_add(octets, Ordering::AcqRel);
    }

    pub(super) fn sub(&self, octets: usize) {
        self.octets.fetch_sub(octets, Ordering::AcqRel);
        self.fell.notify_waiters();
    }

    /// How many wait.
    pub(super) fn octets(&self) -> usize {
        self.octets.load(Ordering::Acquire)
    }

    /// From now on it does not matter how many wait there.
    pub(super) fn release(&self) {
        self.released.store(true, Ordering::Release);
        self.fell.notify_waiters();
    }

    /// Returns once fewer than `limit` octets wait.
    pub(super) async fn below(&self, limit: usize) {
        loop {
            // Registered before looking, so that a fall in between is not missed.
            let fell = self.fell.notified();
            let few = self.octets.load(Ordering::Acquire) < limit;
            if few || self.released.load(Ordering::Acquire) {
                return;
            }
            fell.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn waits_until_few() {
        let gauge = Arc::new(Gauge::default());
        gauge.add(10);
        gauge.below(11).await;
        let waiter = tokio::spawn({
            let gauge = Arc::clone(&gauge);
            async move { gauge.below(5).await }
        });
        tokio::task::yield_now().await;
        gauge.sub(5);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        gauge.sub(1);
        waiter.await.unwrap();
        gauge.release();
        gauge.below(1).await;
    }
}
