//! The protocol of the admin socket: one JSON request per line, one JSON answer per line.

mod client;
pub mod server;

pub use client::{AskError, ask, ask_within};

use crate::backup::BackupReport;
use crate::config::Findings;
use base::{EntryId, Precedence};
use node::changes::Changes;
use node::channel_order::{ChannelOrder, ChannelOutcome};
use node::connect::ConnectOutcome;
use node::listing::{QueuePage, QueueRequest};
use node::lists::{List, ListChange};
use node::mailbox_view::MailboxView;
use node::minimize::MinimizeOrder;
use node::operator::{Act, ActOutcome};
use node::status::{ClockStatus, MinimizeStatus, Status};
use serde::{Deserialize, Serialize};
use site_view::{ElsewherePage, ElsewhereRequest};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store_check::StoreReport;

/// Longest request or answer, in octets.
const MAX_LINE: u64 = 64 << 20;

/// The status of an item in the message store (X.413 6.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Neither listed nor fetched.
    New,
    /// Listed.
    Listed,
    /// Fetched.
    Processed,
}

impl ItemStatus {
    fn name(self) -> &'static str {
        match self {
            ItemStatus::New => "new",
            ItemStatus::Listed => "listed",
            ItemStatus::Processed => "processed",
        }
    }

    fn of_store(self) -> node::mailbox::Status {
        match self {
            ItemStatus::New => node::mailbox::Status::New,
            ItemStatus::Listed => node::mailbox::Status::Listed,
            ItemStatus::Processed => node::mailbox::Status::Processed,
        }
    }
}

/// An order to a node of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainOrder {
    /// Give all shards away, and end then.
    Drain {
        /// Stay, without shards.
        stay: bool,
    },
    /// Take shards again.
    Undo,
}

/// A request of an administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The daemon's status.
    Status,
    /// Read the configuration and the users again.
    Reload {
        /// Change nothing, and answer what would change.
        #[serde(default)]
        dry_run: bool,
    },
    /// List the queue.
    Queue {
        /// Filter and page size.
        asked: QueueRequest,
    },
    /// List what other nodes of the site have.
    Elsewhere {
        /// Filter and page size.
        asked: ElsewhereRequest,
    },
    /// Order something of these entries.
    Operate {
        /// The entries.
        entries: Vec<EntryId>,
        /// What.
        act: Act,
        /// How they were chosen, as it was written, for the log.
        #[serde(default)]
        conditions: Option<String>,
    },
    /// The status, once all mailboxes of the message store are open, or after three seconds.
    Mailboxes,
    /// All that is known of a mailbox, once it is open, or after three seconds.
    Mailbox {
        /// The O/R address of its user.
        mailbox: String,
    },
    /// Delete items of a mailbox in the message store.
    Purge {
        /// The O/R address of its user.
        mailbox: String,
        /// Only items of this status.
        status: Option<ItemStatus>,
        /// Only items of this age or older, in seconds; 0 for all.
        older: u64,
        /// Only count them.
        #[serde(default)]
        try_only: bool,
    },
    /// Remove what a user has registered: redirection, limits, holds.
    Unregister {
        /// The user's O/R address.
        mailbox: String,
    },
    /// All distribution lists.
    Lists,
    /// Change a distribution list.
    ChangeList {
        /// What.
        change: Box<ListChange>,
        /// Only check whether it can be done.
        #[serde(default)]
        try_only: bool,
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
    /// Disable, enable or disconnect this channel.
    Order {
        /// The channel, as `PEER/CHANNEL`.
        channel: String,
        /// What.
        order: ChannelOrder,
        /// Abort its associations, instead of an end in order.
        at_once: bool,
        /// Change nothing, and answer what would happen.
        dry_run: bool,
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
    /// Give the shards of this node away, or take some again.
    Drain {
        /// Which.
        order: DrainOrder,
    },
    /// Stop in order, as on SIGTERM.
    Stop,
}

impl Request {
    /// What it orders, for the log; `None` where it only asks.
    #[must_use]
    pub fn order(&self) -> Option<String> {
        Some(match self {
            Request::Status
            | Request::Queue { .. }
            | Request::Elsewhere { .. }
            | Request::Mailboxes
            | Request::Mailbox { .. }
            | Request::Purge { try_only: true, .. }
            | Request::Lists
            | Request::ChangeList { try_only: true, .. }
            | Request::Operate { act: Act::Trial(_), .. }
            | Request::Order { dry_run: true, .. } => return None,
            Request::CheckStore { begin: false, .. } | Request::BackUp { begin: None, .. } => {
                return None;
            }
            Request::Reload { dry_run: true } => return None,
            Request::Reload { dry_run: false } => "reload".to_owned(),
            Request::Operate { entries, act, conditions } => {
                let to = match act {
                    Act::Reroute { to: Some(peer) } => format!(" to {peer}"),
                    _ => String::new(),
                };
                let text = match &entries[..] {
                    [one] => format!("{} {one}{to}", act.name()),
                    [first, ..] => {
                        format!("{} {first} and {} more{to}", act.name(), entries.len() - 1)
                    }
                    [] => format!("{} nothing", act.name()),
                };
                match conditions {
                    Some(conditions) => format!("{text} ({})", base::shown::line(conditions)),
                    None => text,
                }
            }
            Request::ChangeList { change, .. } => match &**change {
                ListChange::Add(list) => format!("add list {}", list.address),
                ListChange::Change { address, .. } => format!("change list {address}"),
                ListChange::Remove { address } => format!("remove list {address}"),
            },
            Request::Purge { mailbox, status, older, .. } => {
                let status = status.map_or("", ItemStatus::name);
                format!("purge mailbox {mailbox} of {status} items older than {older} s")
            }
            Request::Unregister { mailbox } => format!("unregister {mailbox}"),
            Request::Minimize { order } => format!("minimize {order}"),
            Request::AcceptClock => "accept the clock".to_owned(),
            Request::Connect { channel } => format!("connect {channel}"),
            Request::Order { channel, order, at_once, .. } => {
                let now = if *at_once { " at once" } else { "" };
                format!("{} {channel}{now}", order.name())
            }
            Request::CheckStore { .. } => "check the store".to_owned(),
            Request::BackUp { begin: Some(to), .. } => format!("back up to {}", to.display()),
            Request::ReloadUsers => "read the users again".to_owned(),
            Request::Drain { order: DrainOrder::Undo } => "undo the draining".to_owned(),
            Request::Drain { order: DrainOrder::Drain { stay: true } } => {
                "drain, and stay".to_owned()
            }
            Request::Drain { order: DrainOrder::Drain { stay: false } } => "drain".to_owned(),
            Request::Stop => "stop".to_owned(),
        })
    }
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
    /// A page of what other nodes have.
    Elsewhere(ElsewherePage),
    /// The outcome for each entry, once the change is durable.
    Operated(Vec<(EntryId, ActOutcome)>),
    /// A mailbox.
    Mailbox(Box<MailboxView>),
    /// How many items were deleted, or would be; `None` while they are being deleted.
    Purged(Option<u64>),
    /// All distribution lists.
    Lists(Vec<List>),
    /// The MINIMIZE orders and windows in force.
    Minimized(Vec<MinimizeStatus>),
    /// Why the wall clock is not trusted; `None` where it is.
    Clock(Option<ClockStatus>),
    /// The result of opening a channel.
    Connected(ConnectOutcome),
    /// What an order for a channel did, or would do.
    Ordered(ChannelOutcome),
    /// The check of the store: the one that runs, or the last.
    Store(Box<StoreReport>),
    /// The backup: the one that is being made, or the last.
    Backup(Box<BackupReport>),
    /// The request is done, or has begun.
    Done(Request),
    /// The request was not understood.
    Error(String),
    /// An order has no answer yet, and may be carried out still.
    InDoubt(String),
}

impl Answer {
    /// The outcome of an order, for the log.
    #[must_use]
    pub fn outcome(&self) -> String {
        match self {
            Answer::Operated(outcomes) => summary(outcomes),
            Answer::Reloaded(reloaded) => match &reloaded.verdict {
                Verdict::Applied | Verdict::Planned => "applied".to_owned(),
                Verdict::Wrong(why) | Verdict::Failed(why) => format!("not applied: {why}"),
            },
            Answer::Connected(outcome) => match outcome {
                ConnectOutcome::Opened => "opened".to_owned(),
                ConnectOutcome::Open { .. } => "it was open".to_owned(),
                ConnectOutcome::Opening => "it is being opened".to_owned(),
                ConnectOutcome::Failed { reason } => format!("not opened: {reason}"),
            },
            Answer::Purged(Some(count)) => format!("{count} items deleted"),
            Answer::Purged(None) => "begun".to_owned(),
            Answer::Ordered(outcome) if !outcome.changed => "unchanged".to_owned(),
            Answer::Ordered(outcome) => format!("done, {} associations end", outcome.ending),
            Answer::Error(why) => format!("refused: {why}"),
            Answer::InDoubt(why) => format!("in doubt: {why}"),
            Answer::Store(_) | Answer::Backup(_) => "begun".to_owned(),
            Answer::Status(_)
            | Answer::Queue(_)
            | Answer::Elsewhere(_)
            | Answer::Mailbox(_)
            | Answer::Lists(_)
            | Answer::Minimized(_)
            | Answer::Clock(_)
            | Answer::Done(_) => "done".to_owned(),
        }
    }
}

/// How many entries came to which outcome: "3 done, 1 in transfer".
#[must_use]
pub fn summary(outcomes: &[(EntryId, ActOutcome)]) -> String {
    let word = |outcome: &ActOutcome| match outcome {
        ActOutcome::Done | ActOutcome::Silent | ActOutcome::Doubted | ActOutcome::Would(_) => {
            "done"
        }
        ActOutcome::InTransfer => "in transfer",
        ActOutcome::Unchanged => "unchanged",
        ActOutcome::Unknown => "not in the queue",
        ActOutcome::Became(_) => "routed again",
        ActOutcome::Refused(_) => "refused",
    };
    let words = ["done", "routed again", "in transfer", "unchanged", "not in the queue", "refused"];
    let count = |of: &str| outcomes.iter().filter(|(_, outcome)| word(outcome) == of).count();
    let counts = words.iter().map(|of| (count(of), of)).filter(|(count, _)| *count > 0);
    let text = counts.map(|(count, of)| format!("{count} {of}")).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "nothing".to_owned() } else { text }
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
    /// What it changed, where it is in force, or would change.
    pub changes: Option<Changes>,
    /// What is queued for the peers that would be removed; empty where it is in force.
    #[serde(default)]
    pub removed: Vec<RemovedPeer>,
}

/// A peer that a configuration would remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedPeer {
    /// Its name.
    pub name: String,
    /// What is queued for it or in transfer to it, by precedence.
    pub queued: BTreeMap<Precedence, u64>,
}

/// Whether a configuration took effect. It takes effect as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The configuration is in force.
    Applied,
    /// It could be in force: nothing was changed.
    Planned,
    /// The file has errors and must be corrected.
    Wrong(String),
    /// The operating system refused a step, such as opening a listener.
    Failed(String),
}
