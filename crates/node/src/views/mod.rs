//! What an operator sees.

pub mod listing;
pub mod metrics;
pub mod minimize;
pub mod names;
pub(crate) mod snapshot;
