//! Events: put together, counted, and kept from flooding the log.

pub(crate) mod draft;
pub(crate) mod outputs;
pub(crate) mod rate;
pub(crate) mod tally;
