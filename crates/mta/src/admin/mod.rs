//! The protocol of the admin socket: one JSON request per line, one JSON answer per line.

mod client;
pub mod server;

pub use client::{AskError, ask};

use crate::backup::BackupReport;
use crate::config::Findings;
use crate::store_check::StoreReport;
use base::EntryId;
use node::changes::Changes;
use node::connect::ConnectOutcome;
use node::listing::{QueuePage, QueueRequest};
use node::minimize::MinimizeOrder;
use node::operator::HoldOutcome;
use node::status::{ClockStatus, MinimizeStatus, Status};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Longest request or answer, in octets.
const MAX_LINE: u64 = 64 << 20;

/// A request of an administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The daemon's status.
    Status,
    /// Read the configuration and the users again.
    Reload,
    /// List the queue.
    Queue {
        /// Filter and page size.
        asked: QueueRequest,
    },
    /// Hold these entries, or release them.
    Operate {
        /// The entries.
        entries: Vec<EntryId>,
        /// `true` to hold, `false` to release.
        hold: bool,
    },
    /// Order MINIMIZE: start nothing below a floor; or withdraw that order.
    Minimize {
        /// The floor, its scope and its duration.
        order: MinimizeOrder,
    },
    /// Accept the wall clock as correct.
    AcceptClock,
    /// End the wait of this channel, and open it.
    Connect {
        /// The channel, as `PEER/CHANNEL`.
        channel: String,
    },
    /// The state of the check of the store.
    CheckStore {
        /// Begin one, unless one is running.
        begin: bool,
        /// Octets to read a second at most.
        rate: Option<u64>,
    },
    /// The state of the backup.
    BackUp {
        /// Begin one in this directory, which does not exist yet, unless one is being made.
        begin: Option<PathBuf>,
        /// Octets to copy a second at most.
        rate: Option<u64>,
    },
    /// Read `users.toml` again.
    ReloadUsers,
    /// Stop in order, as on SIGTERM.
    Stop,
}

/// An answer of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The status.
    Status(Box<Status>),
    /// The result of a reload.
    Reloaded(Box<Reloaded>),
    /// A page of the queue.
    Queue(QueuePage),
    /// The outcome for each entry, once the change is durable.
    Operated(Vec<(EntryId, HoldOutcome)>),
    /// The MINIMIZE orders and windows in force.
    Minimized(Vec<MinimizeStatus>),
    /// Why the wall clock is not trusted; `None` where it is.
    Clock(Option<ClockStatus>),
    /// The result of opening a channel.
    Connected(ConnectOutcome),
    /// The check of the store: the one that runs, or the last.
    Store(Box<StoreReport>),
    /// The backup: the one that is being made, or the last.
    Backup(Box<BackupReport>),
    /// The request is done, or has begun.
    Done(Request),
    /// The request was not understood.
    Error(String),
}

/// The result of reading the configuration again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The configuration file.
    pub file: PathBuf,
    /// Whether the new configuration is in force.
    pub verdict: Verdict,
    /// The errors and warnings found in it.
    pub report: Findings,
    /// What it changed, where it is in force.
    pub changes: Option<Changes>,
}

/// Whether a configuration took effect. It takes effect as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The configuration is in force.
    Applied,
    /// The file has errors and must be corrected.
    Wrong(String),
    /// The operating system refused a step, such as opening a listener.
    Failed(String),
}
