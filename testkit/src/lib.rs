//! What the tests of several crates share: whole MTAs in virtual time, and all that stands around
//! them. This page is for authors of tests, fuzz targets and simulations.
//!
//! ```text
//!  Network   N nodes with named sites ── Wire ── users (P3, P7) and other nodes (P1)
//!  Pair      a network of two: OPS in Naples submits, OPS in Act takes delivery
//!  Bench     one node; the other end of each connection is played by hand
//! ```
//!
//! Each node has a [`FaultyStore`], or a [`real::RealStore`] over a disk that fails. A [`Wire`] carries the octets of each connection. One seed
//! decides everything: the same test gives the same events at the same times.
//!
//! No crate of the MTA depends on this one, except for its tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

pub mod bench;
pub mod build;
mod edge;
mod events;
pub mod network;
mod pair;
pub mod real;
mod sites;
mod store;
mod tape;
mod wire;

pub use bench::Bench;
pub use events::Events;
pub use network::{
    Death, Delivered, Durable, End, Follow, Network, Opened, Reader, Row, Seen, Site, Strike, User,
};
pub use pair::Pair;
pub use sites::{
    ACT, NAPLES, NOTHING, P3, RELAY, Setup, address, five_channels, listen, node_config, route,
    site_config,
};
pub use store::{Delays, FaultyStore, Reply};
pub use tape::{assert_replays, record_nodes};
pub use wire::{Delayed, Direct, Paced, VirtualTcp, Wire, WireArrival, WireMoment};

/// Thursday, 1 January 2026, 00:00 UTC in microseconds since 1970: every test begins here.
pub const NEW_YEAR: u64 = 1_767_225_600_000_000;
