//! Interruption of a user's work, by Ctrl-C or by the caller.

use std::sync::Arc;
use tokio::sync::watch;

/// A flag that is set once; all clones see it.
#[derive(Clone, Debug)]
pub struct Interrupted(Arc<watch::Sender<bool>>);

impl Default for Interrupted {
    fn default() -> Interrupted {
        Interrupted(Arc::new(watch::Sender::new(false)))
    }
}

impl Interrupted {
    /// Sets it, from any thread; returns whether it was set before.
    pub fn set(&self) -> bool {
        self.0.send_replace(true)
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it is set.
    pub async fn wait(&self) {
        // We hold the sender, so it exists.
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
