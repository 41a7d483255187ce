//! Channels: how they stand, when they open, and what ends their waits.

pub(crate) mod ends;
pub(crate) mod opening;
pub(crate) mod orders;
pub(crate) mod places;
pub(crate) mod schedule;
pub(crate) mod schedules;
pub(crate) mod state;
pub(crate) mod touched;
pub(crate) mod waits;
