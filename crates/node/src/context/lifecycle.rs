//! From start to stop.

use base::Utc;

/// How far the node has come.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    pub(crate) started: bool,
    /// When it was started.
    pub(crate) started_at: Option<Utc>,
    /// A record of the store could not be read: what it needs is not known.
    pub(crate) unreadable: bool,
    pub(crate) stopping: bool,
    pub(crate) stopped: bool,
}
