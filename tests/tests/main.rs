//! All end-to-end tests, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod access;
mod e2e;
mod hostile;
mod kill;
mod netns;
mod pasted;
mod recorder;
mod restore;
mod scripted;
mod start;
