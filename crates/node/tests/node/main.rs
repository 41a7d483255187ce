//! A whole node in virtual time, by subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod admission;
mod associations;
mod habits;
mod messages;
mod operation;
mod recovery;
mod responsibility;
mod scheduling;
mod store;
