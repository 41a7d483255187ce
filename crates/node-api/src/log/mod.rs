//! Events: put together, counted, and kept from flooding the log.

pub mod draft;
pub mod outputs;
pub mod parties;
pub mod rate;
pub mod tally;
