//! From an accepted message to its next hops: routes, copies, transfer and delivery.

pub(crate) mod asked;
pub(crate) mod clearance;
pub(crate) mod copying;
pub(crate) mod deliver;
pub(crate) mod delivered;
pub(crate) mod downgrade;
pub(crate) mod redirect;
pub(crate) mod reroute;
pub(crate) mod route;
pub(crate) mod split;
pub(crate) mod transfer;
