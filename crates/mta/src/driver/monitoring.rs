//! What the daemon shows of itself: event log, log, metrics.

pub(crate) mod event_log;
pub(crate) mod gauge;
pub(crate) mod labels;
pub mod log;
pub(crate) mod metrics;
pub(super) mod space;
