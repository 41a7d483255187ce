//! The simulation as its users see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod chance;
mod messages;
mod nato;
mod routes;
mod setting;
mod slow;
mod traffic;
