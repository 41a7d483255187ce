//! The sections of a configuration file, each with its keys.

pub(crate) mod channel;
pub(crate) mod clearance;
pub(crate) mod clock;
pub(crate) mod events;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod metrics;
pub(crate) mod peer;
pub(crate) mod precedence;
pub(crate) mod route;
pub(crate) mod secret;
pub mod site;
pub mod store;
pub(crate) mod tracking;
pub(crate) mod window;
