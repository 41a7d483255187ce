//! Queued entries: taken up, late, or without a route.

pub(crate) mod damaged;
pub(crate) mod enqueue;
pub(crate) mod expanding;
pub(crate) mod late;
pub(crate) mod lateness;
pub(crate) mod ordered;
pub(crate) mod rerouting;
mod too_long;
pub(crate) mod unrouted;
pub(crate) mod unrouted_reading;
