//! From start to stop.

use base::Utc;

/// How far the node has come.
#[derive(Debug, Default)]
pub struct Lifecycle {
    started_at: Option<Utc>,
    stopping: bool,
    stopped: bool,
    /// A record of the store could not be read: what it needs is not known.
    unreadable: bool,
    /// The node is one of several, and its lease has ended.
    lapsed: bool,
}

impl Lifecycle {
    /// The node serves.
    pub fn start(&mut self, at: Utc) {
        self.started_at = Some(at);
    }

    /// A stop is asked for. Gives whether one was asked for before.
    pub fn stop(&mut self) -> bool {
        std::mem::replace(&mut self.stopping, true)
    }

    /// All is done that a stop waits for. Gives whether this is the first time.
    pub fn stopped(&mut self) -> bool {
        !std::mem::replace(&mut self.stopped, true)
    }

    /// A record of the store could not be read.
    pub fn note_unreadable(&mut self) {
        self.unreadable = true;
    }

    /// The lease of this node holds, or has ended.
    pub fn lease_changed(&mut self, holds: bool) {
        self.lapsed = !holds;
    }

    /// Why nothing can be acknowledged, if that is so.
    #[must_use]
    pub fn without_lease(&self) -> Option<&'static str> {
        self.lapsed.then_some("this node cannot reach the store of its site")
    }

    /// When it began to serve.
    #[must_use]
    pub fn started_at(&self) -> Option<Utc> {
        self.started_at
    }

    /// Whether it serves, or did.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.started_at.is_some()
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Whether it is started and no stop was asked for.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_started() && !self.stopping
    }

    /// Whether a record of the store could not be read.
    #[must_use]
    pub fn has_unreadable(&self) -> bool {
        self.unreadable
    }
}
