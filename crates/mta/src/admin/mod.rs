//! The admin socket: one JSON request a line, one JSON answer a line.

mod client;
pub mod server;

pub use client::{AskError, ask};

use node::status::Status;
use serde::{Deserialize, Serialize};

/// Longest request or answer, in octets.
const LINE_MAX: u64 = 64 << 20;

/// What an administrator asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What is going on?
    Status,
    /// Read `users.toml` again.
    ReloadUsers,
    /// Stop in order, as on SIGTERM.
    Stop,
}

/// What the daemon answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What is going on.
    Status(Box<Status>),
    /// Done, or begun.
    Done(Request),
    /// The request was not understood.
    Error(String),
}
