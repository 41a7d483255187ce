//! Where a channel stands in its hours.

use base::{Instant, Utc};

/// Where a channel stands in its hours; a channel without any is always open.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) closed: bool,
    /// When it opens.
    pub(crate) opens: Option<Utc>,
    /// When to look at the clock again.
    pub(crate) look_at: Option<Instant>,
}

impl Schedule {
    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// For the status: nothing while it is open.
    pub(crate) fn describe(&self) -> Option<String> {
        let opens = self.opens.filter(|_| self.closed)?;
        Some(format!("outside its windows, opens at {opens}"))
    }
}
