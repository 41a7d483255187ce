//! Where a channel stands in its hours, and by order of an operator.

use crate::api::channel_order::Disabled;
use base::{Instant, Utc};

/// Where a channel stands in its hours; a channel without any is always open, unless an operator disabled it.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) closed: bool,
    /// When it opens.
    pub(crate) opens: Option<Utc>,
    /// When to look at the clock again.
    pub(crate) look_at: Option<Instant>,
    /// An operator disabled it.
    pub(crate) disabled: Option<Disabled>,
    /// Another node of the site has its peer.
    pub(crate) elsewhere: bool,
    /// An operator opened it outside its hours, until then.
    pub(crate) opened_until: Option<Instant>,
}

impl Schedule {
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && self.disabled.is_none() && !self.elsewhere
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// For the status: nothing while it is open.
    pub(crate) fn describe(&self) -> Option<String> {
        if let Some(disabled) = &self.disabled {
            return Some(disabled.to_string());
        }
        if self.elsewhere {
            return Some(status::ELSEWHERE.to_owned());
        }
        let opens = self.opens.filter(|_| self.closed)?;
        Some(format!("outside its windows, opens at {opens}"))
    }
}
