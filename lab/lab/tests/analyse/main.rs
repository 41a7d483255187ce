//! `lab analyse` against tshark on captures of a network that loses packets, and on files that are none.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helper may fail as the test itself"
)]

#[path = "../up/support.rs"]
#[allow(dead_code, reason = "shared with the tests of `lab up`, which use all of it")]
mod support;

mod files;
mod judge;
mod network;
