//! The admin socket: one JSON request a line, one JSON answer a line.

mod client;
pub mod server;

pub use client::{AskError, ask};

use crate::config::Report;
use base::EntryId;
use node::changes::Changes;
use node::connect::Connected;
use node::listing::{QueuePage, QueueRequest};
use node::minimize::MinimizeOrder;
use node::operator::Outcome;
use node::status::{ClockStatus, MinimizeStatus, Status};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Longest request or answer, in octets.
const MAX_LINE: u64 = 64 << 20;

/// What an administrator asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What is going on?
    Status,
    /// Read the configuration and the users again.
    Reload,
    /// What waits?
    Queue {
        /// Which part of it.
        asked: QueueRequest,
    },
    /// Hold these entries, or let them go again.
    Operate {
        /// Which.
        entries: Vec<EntryId>,
        /// Hold, or release.
        hold: bool,
    },
    /// Let nothing below a floor start, or all again.
    Minimize {
        /// What, where and for how long.
        order: MinimizeOrder,
    },
    /// The wall clock is right.
    AcceptClock,
    /// End the wait of this channel, and open it.
    Connect {
        /// Which, as `PEER/CHANNEL`.
        channel: String,
    },
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
    /// What came of reading the configuration again.
    Reloaded(Box<Reloaded>),
    /// What waits.
    Queue(QueuePage),
    /// What became of each entry, now that it is durable.
    Operated(Vec<(EntryId, Outcome)>),
    /// What MINIMIZE there is now.
    Minimized(Vec<MinimizeStatus>),
    /// That the wall clock is not trusted, or nothing.
    Clock(Option<ClockStatus>),
    /// What came of opening a channel.
    Connected(Connected),
    /// Done, or begun.
    Done(Request),
    /// The request was not understood.
    Error(String),
}

/// What came of reading the configuration again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The configuration file.
    pub file: PathBuf,
    /// Whether it holds now.
    pub verdict: Verdict,
    /// What was found in it.
    pub report: Report,
    /// What it changed, where it holds.
    pub changes: Option<Changes>,
}

/// Whether a configuration took effect: whole, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Applied,
    /// The file is to be changed.
    Wrong(String),
    /// The system did not do what it takes.
    Failed(String),
}
