//! From start to stop.

use base::Utc;

/// How far the node has come.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
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
    pub(crate) fn start(&mut self, at: Utc) {
        self.started_at = Some(at);
    }

    /// A stop is asked for. Gives whether one was asked for before.
    pub(crate) fn stop(&mut self) -> bool {
        std::mem::replace(&mut self.stopping, true)
    }

    /// All is done that a stop waits for. Gives whether this is the first time.
    pub(crate) fn stopped(&mut self) -> bool {
        !std::mem::replace(&mut self.stopped, true)
    }

    /// A record of the store could not be read.
    pub(crate) fn note_unreadable(&mut self) {
        self.unreadable = true;
    }

    /// The lease of this node holds, or has ended.
    pub(crate) fn lease_changed(&mut self, holds: bool) {
        self.lapsed = !holds;
    }

    /// Why nothing can be acknowledged, if that is so.
    pub(crate) fn without_lease(&self) -> Option<&'static str> {
        self.lapsed.then_some("this node cannot reach the store of its site")
    }

    pub(crate) fn started_at(&self) -> Option<Utc> {
        self.started_at
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started_at.is_some()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Whether it is started and no stop was asked for.
    pub(crate) fn is_running(&self) -> bool {
        self.is_started() && !self.stopping
    }

    /// Whether a record of the store could not be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        self.unreadable
    }
}
