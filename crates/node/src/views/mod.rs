//! What an operator sees.

pub mod listing;
mod lists;
mod mailbox;
pub mod metrics;
pub mod minimize;
pub mod names;
pub(crate) mod reasons;
pub(crate) mod snapshot;
