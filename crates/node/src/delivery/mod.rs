//! Delivery: users and their mailboxes.

pub(crate) mod answers;
pub(crate) mod binds;
pub(crate) mod breaks;
pub(crate) mod dispatch;
pub(crate) mod waits;

use crate::delivery::breaks::Breaks;

/// Users and their mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) breaks: Breaks,
}
