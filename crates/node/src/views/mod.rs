//! What an operator sees.

pub mod filter;
pub mod listing;
pub mod metrics;
pub mod minimize;
pub mod names;
pub(crate) mod reasons;
pub(crate) mod row;
pub(crate) mod snapshot;
