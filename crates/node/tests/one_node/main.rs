//! One node, whose peers and users are scripted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod access;
mod forget;
mod hoard;
mod rig;
mod slices;
