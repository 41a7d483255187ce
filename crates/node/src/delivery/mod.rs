//! Delivery: users and their mailboxes.

pub(crate) mod answers;
pub(crate) mod binds;
pub(crate) mod breaks;
pub(crate) mod dispatch;
pub(crate) mod waits;

use crate::delivery::breaks::Breaks;
use std::time::Duration;

/// Longest wait for a user to take more of a delivery, or to answer it: another association of the
/// user may be waiting for the message. What his transport takes starts it anew.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

/// Users and their mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) breaks: Breaks,
}
