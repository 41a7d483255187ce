//! Hunts for faults: each seed draws a network of MTAs with real stores, its traffic, and all that goes wrong; the network
//! is played in virtual time until everything is done, and then checkers look for broken promises.
//!
//! ```text
//!  seed ─▶ draw ─▶ World ─▶ Play (testkit::Network, LineWire, RealStore over a disk that fails) ─▶ check
//!                    ▲                                                                             │
//!                    └───────────────────── shrink ◀──────────── a promise is broken ◀─────────────┘
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod build;
mod check;
mod draw;
mod less;
mod lie;
mod line;
mod outcome;
mod play;
mod remote;
mod shrink;
pub mod site;
mod story;
mod world;

pub use check::{Broken, Failure};
pub use draw::{Kind, Size, draw, draw_of};
pub use outcome::{Outcome, run};
pub use shrink::shrink;
pub use world::{Profile, Reads, World};
