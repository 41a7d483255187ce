//! That someone wants what is under way to end.

use std::sync::Arc;
use tokio::sync::watch;

/// Set once, by Ctrl-C or by whoever started something; all that were given a clone notice.
#[derive(Clone, Debug)]
pub struct Interrupted(Arc<watch::Sender<bool>>);

impl Default for Interrupted {
    fn default() -> Interrupted {
        Interrupted(Arc::new(watch::Sender::new(false)))
    }
}

impl Interrupted {
    /// Sets it, from any thread; whether it was set before.
    pub fn set(&self) -> bool {
        self.0.send_replace(true)
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Comes back when it is set.
    pub async fn wait(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|set| *set).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_clones_notice_and_late_ones_too() {
        let interrupted = Interrupted::default();
        let other = interrupted.clone();
        let waiting = tokio::spawn(async move { other.wait().await });
        assert!(!interrupted.is_set());
        assert!(!interrupted.set() && interrupted.set() && interrupted.is_set());
        waiting.await.unwrap();
        interrupted.wait().await;
    }
}
