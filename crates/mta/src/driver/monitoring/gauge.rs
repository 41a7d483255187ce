//! A counter of waiting octets, and a wait until few are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The counter.
#[derive(Debug, Default)]
pub(in crate::driver) struct Gauge {
    octets: AtomicUsize,
    released: AtomicBool,
    fell: Notify,
    /// A counter that includes this one.
    share: Option<Arc<Gauge>>,
}

impl Gauge {
    /// A counter whose octets also count in `share` while it exists.
    pub(in crate::driver) fn within(share: &Arc<Gauge>) -> Gauge {
        let mut gauge = Gauge::default();
        gauge.share = Some(Arc::clone(share));
        gauge
    }

    pub(in crate::driver) fn add(&self, octets: usize) {
        self.octets.fetch_add(octets, Ordering::AcqRel);
        if let Some(share) = &self.share {
            share.add(octets);
        }
    }

    pub(in crate::driver) fn sub(&self, octets: usize) {
        self.octets.fetch_sub(octets, Ordering::AcqRel);
        self.fell.notify_waiters();
        if let Some(share) = &self.share {
            share.sub(octets);
        }
    }

    /// The octets that wait.
    pub(in crate::driver) fn octets(&self) -> usize {
        self.octets.load(Ordering::Acquire)
    }

    /// From now on [`Gauge::below`] returns at once.
    pub(in crate::driver) fn release(&self) {
        self.released.store(true, Ordering::Release);
        self.fell.notify_waiters();
    }

    /// Returns once fewer than `limit` octets wait.
    pub(in crate::driver) async fn below(&self, limit: usize) {
        loop {
            // Registered before the check, so that a decrease in between is not missed.
            let fell = self.fell.notified();
            let few = self.octets.load(Ordering::Acquire) < limit;
            if few || self.released.load(Ordering::Acquire) {
                return;
            }
            fell.await;
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        if let Some(share) = &self.share {
            share.sub(self.octets.load(Ordering::Acquire));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_one_leaves_behind_counts_no_more() {
        let all = Arc::new(Gauge::default());
        let peer = Arc::new(Gauge::within(&all));
        let (one, two) = (Gauge::within(&peer), Gauge::within(&peer));
        one.add(10);
        two.add(5);
        two.sub(2);
        assert_eq!((peer.octets(), all.octets()), (13, 13));
        drop(one);
        assert_eq!((peer.octets(), all.octets()), (3, 3));
        drop((two, peer));
        assert_eq!(all.octets(), 0);
    }
}
