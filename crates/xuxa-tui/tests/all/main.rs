//! The terminal interface on a mailbox in memory: screens, keys, hostile text, and a real terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod behaviour;
mod harness;
mod hostile;
mod screens;
mod terminal;
mod tmux;
mod urgent;
