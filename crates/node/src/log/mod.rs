//! Events: put together, counted, and kept from flooding the log.

pub(crate) mod draft;
pub mod event;
pub(crate) mod limited;
pub(crate) mod rate;
pub(crate) mod tally;
