//! Delivery: users and their mailboxes.

pub(crate) mod answers;
pub(crate) mod binds;
pub(crate) mod breaks;
pub(crate) mod controlled;
pub(crate) mod controlling;
pub(crate) mod dispatch;
pub(crate) mod waits;

use crate::delivery::breaks::Breaks;
use crate::delivery::controlled::Controlled;
use std::collections::BTreeMap;

/// Users and their mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) breaks: Breaks,
    /// The controls in force, by mailbox.
    controlled: BTreeMap<u32, Controlled>,
}
