//! Connections to the server: where it is, the threads on which they run, and what their calls end with.

pub(crate) mod client;
pub(crate) mod edge;
pub(crate) mod failure;
pub(crate) mod pool;
pub(crate) mod target;
mod tls;
