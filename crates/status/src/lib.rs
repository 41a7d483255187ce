//! What an operator sees of an MTA: plain data, made on request by the node, and completed by the daemon.

pub mod event;

use base::Precedence;
use dscp::Dscp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole MTA (DESIGN section 11: snake_case, sizes in bytes, durations with their unit).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Our MTA name.
    pub mta: String,
    /// RFC 3339 UTC.
    pub time: String,
    /// When the daemon was ready, likewise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<String>,
    /// That the wall clock is not trusted; absent while it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock: Option<ClockStatus>,
    /// Room on the disk of the data directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<DiskStatus>,
    /// What of the store is damaged, as far as it was read; absent while nothing is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub damage: Option<DamageStatus>,
    /// Whether the queue is still being read after the start: its counts are not complete.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reading_queue: bool,
    /// Whether a stop was asked for.
    pub stopping: bool,
    /// Which node of a site it is; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub site: Option<SiteStatus>,
    /// Peers and their channels.
    pub peers: Vec<PeerStatus>,
    /// MINIMIZE, in force or at other hours.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub minimize: Vec<MinimizeStatus>,
    /// Mailboxes with waiting deliveries or bound users.
    pub mailboxes: Vec<MailboxStatus>,
    /// Counters since start.
    pub counters: Counters,
    /// Lines of the event log that could not be written; absent where there is no such log.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_lost: Option<u64>,
}

/// What a node of a site knows of itself and of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Its name.
    pub node: String,
    /// The number of its joining; absent while it has not joined.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<u32>,
    /// Its lease lasts: without it the node takes and sends nothing.
    pub lease_holds: bool,
    /// What is left of the lease as the node counts it, which is less than the database does.
    pub lease_left_seconds: f64,
    /// It gives its shards away, or has.
    pub draining: bool,
    /// It has given all of them away.
    pub drained: bool,
    /// The peers and mailboxes that it has.
    pub shards: Vec<String>,
    /// The other nodes that are not dead, by its last look.
    pub others: Vec<OtherNode>,
    /// For how long the database has not answered it; absent while it answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub database_away_seconds: Option<f64>,
    /// Why no commit is possible now, in words; absent as long as commits end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_commits: Option<String>,
}

/// Another node of the site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherNode {
    /// Its name.
    pub node: String,
    /// Its lease lasts.
    pub lease_holds: bool,
    /// It gives its shards away, or has.
    pub draining: bool,
}

/// Why a channel is closed whose peer another node of the site has.
pub const ELSEWHERE: &str = "another node of the site has this peer";

/// Room on the disk of the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// Octets that may still be allocated.
    pub free: u64,
    /// Octets below which lower precedences are refused.
    pub reserve: u64,
    /// The highest precedence that is refused; absent while all are taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<Precedence>,
    /// The highest precedence for which the store itself had no room in the last minute: a smaller message
    /// may find room.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_room_for: Option<Precedence>,
}

/// What of the store is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageStatus {
    /// Parts of the log that are lost: batches that cannot be read, segments that are missing or cut off. It is
    /// not known which messages they had; a segment may have had thousands of changes.
    pub log_parts: u64,
    /// Queue entries whose records are damaged.
    pub records: u64,
    /// Contents that are damaged or missing.
    pub contents: u64,
    /// Blocks of remembered keys: duplicates of what they remembered are not recognised.
    pub keys: u64,
    /// Files `*.aside`: contents that no queue entry names, since the queue or a part of it was lost.
    #[serde(default)]
    pub set_aside: u64,
}

/// A wall clock that jumped and is not trusted: expiry waits. Times are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStatus {
    /// When that began, by the clock itself.
    pub since: String,
    /// Why, in words.
    pub because: String,
    /// When the clock is trusted if nobody sets it until then.
    pub expiry_waits_until: String,
    /// What time it would be by the clock as it was before.
    pub believed: String,
    /// Messages that would have expired by the clock as it is.
    pub late: u64,
}

/// What the node holds in memory for work in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// Messages and operations arriving, or waiting for their commit to be asked for.
    pub arrivals: usize,
    /// Questions to the edge that are not answered.
    pub pending: usize,
    /// Keys reserved for a commit in progress, and arrivals that wait for them.
    pub keys: usize,
    /// Associations.
    pub associations: usize,
    /// Octets of envelopes being put together.
    pub octets: usize,
}

/// MINIMIZE of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimizeStatus {
    /// `all peers`, a peer's name or `peer/channel`.
    pub on: String,
    /// The lowest precedence that starts; absent while it is not in force.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub floor: Option<Precedence>,
    /// `operator` or `windows`.
    pub by: String,
    /// Who ordered it, where an operator did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ordered_by: Option<String>,
    /// When that changes, RFC 3339; absent where only the operator changes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
}

/// One peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Name in the configuration.
    pub name: String,
    /// The other node of the site that has it, by the last look.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<String>,
    /// Channels.
    pub channels: Vec<ChannelStatus>,
}

/// One channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Name in the configuration.
    pub name: String,
    /// The mark of its connections in both directions, 0 to 63.
    pub dscp: Dscp,
    /// Its name, or the number as text where it has none.
    pub dscp_name: String,
    /// Associations with their states.
    pub associations: Vec<AssociationStatus>,
    /// The precedences it carries as their own channel, highest first.
    #[serde(default)]
    pub levels: Vec<LevelStatus>,
    /// The lowest precedence that MINIMIZE lets start now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minimize: Option<Precedence>,
    /// Where that was ordered or configured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minimize_because: Option<String>,
    /// Waiting messages by precedence.
    pub queued: BTreeMap<Precedence, u64>,
    /// Octets of content waiting.
    pub queued_bytes: u64,
    /// Of the waiting ones, those that a higher message to the same peer or an operator holds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub held: BTreeMap<Precedence, u64>,
    /// Why the oldest of them is held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_because: Option<String>,
    /// Age of the oldest waiting message; absent where none waits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oldest_age_seconds: Option<f64>,
    /// How fast the line was for one association, measured on transfers that took long enough.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line_kbit_s: Option<f64>,
    /// The checkpoint that the next association proposes, or accepts at most; 0 for none.
    #[serde(default)]
    pub checkpoint_bytes: u64,
    /// Disabled by an operator, or outside the windows of a scheduled channel: so in words, since or until when.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closed: Option<String>,
    /// The last error on this channel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_error: Option<String>,
    /// Why no association of ours is open, since the last one was lost or could not be opened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<FailureStatus>,
}

/// Why an association of ours could not be opened, or was lost, and when the next is tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureStatus {
    /// Whose part it was: `they_refused`, `they_ended`, `we_refused` or `no_answer`.
    pub part: String,
    /// The layer: `name`, `tcp`, `transport`, `session`, `presentation`, `acse`, `rtse` or `bind`.
    pub layer: String,
    /// The reason, in the words of the standard where it has any.
    pub reason: String,
    /// When, RFC 3339.
    pub at: String,
    /// How often in a row.
    pub failures: u32,
    /// Not before when the next is tried, likewise; absent where nothing waits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_try: Option<String>,
    /// How long that is from now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_try_seconds: Option<f64>,
}

/// What there is of one precedence for a channel. A precedence that several channels share is counted
/// at the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelStatus {
    /// Which.
    pub precedence: Precedence,
    /// How many wait, for whatever reason; those in transfer do not.
    pub queued: u64,
    /// Octets of content of these.
    pub queued_bytes: u64,
    /// Age of the oldest of these; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oldest_age_seconds: Option<f64>,
    /// How many of these a higher message for the same peer holds (rule 1).
    pub held: u64,
    /// How many of these are below a floor (rule 6, MINIMIZE).
    pub minimized: u64,
    /// How many of these an operator holds.
    pub held_by_operator: u64,
    /// How many of these wait for a time: deferred, or to be tried again.
    pub delayed: u64,
    /// Why the oldest held one is held: the rule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_because: Option<String>,
    /// The message that holds it: its entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_by_entry: Option<String>,
    /// Its MTS identifier, where it is in transfer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_by_mts_id: Option<String>,
    /// How many are in transfer.
    pub in_transfer: u64,
    /// How many of these are paused for a higher one (rule 8).
    pub paused: u64,
    /// How many are overdue, waiting or in transfer.
    pub overdue: u64,
}

/// One association.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssociationStatus {
    /// Identifier in the log.
    pub id: String,
    /// `initiator` or `responder`.
    pub role: String,
    /// `connecting`, `opening`, `idle`, `sending`, `receiving`, `releasing`.
    pub state: String,
    /// Whether it takes nothing new and ends, because the configuration changed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub draining: bool,
    /// The mark of its channel, 0 to 63: what the peer's handshake should arrive with.
    pub dscp_expected: Dscp,
    /// Its name.
    pub dscp_expected_name: String,
    /// The mark the peer's handshake arrived with; `null` where it was not observable: on
    /// connections we made over IPv4, and as long as there is no connection.
    #[serde(default)]
    pub dscp_seen: Option<Dscp>,
    /// Its name.
    #[serde(default)]
    pub dscp_seen_name: Option<String>,
    /// MTS identifier of the message in transfer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// Its precedence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub precedence: Option<Precedence>,
    /// Octets the peer confirmed of it, envelope included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_confirmed: Option<u64>,
    /// How fast it goes: what the peer confirmed over the last 10 s.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_kbit_s: Option<f64>,
    /// The entry in transfer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// Since when nothing of it was confirmed or taken, RFC 3339; absent where that is not longer than
    /// `stall`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stalled_since: Option<String>,
    /// Octets between checkpoints, as agreed on; absent without checkpoints.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint_bytes: Option<u64>,
    /// Content octets handed to the association or received so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_done: Option<u64>,
    /// Content octets in all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_total: Option<u64>,
}

/// One mailbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MailboxStatus {
    /// Canonical O/R address.
    pub address: String,
    /// Waiting deliveries by precedence.
    pub queued: BTreeMap<Precedence, u64>,
    /// Users bound now.
    pub bound: u64,
    /// What the mailbox in the message store holds; absent where it is not open, or the user has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<StoredStatus>,
    /// There is a mailbox in the message store, and it is not open.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unopened: bool,
    /// Its user is not configured now.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub former: bool,
}

/// What a mailbox in the message store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredStatus {
    /// Items by precedence.
    pub items: BTreeMap<Precedence, u64>,
    /// Octets of all of them, as its quota counts them.
    pub octets: u64,
}

/// Counters since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Messages and probes submitted.
    pub submitted: u64,
    /// Messages, probes and reports received over P1.
    pub received: u64,
    /// Transfers confirmed by peers.
    pub transferred: u64,
    /// Deliveries confirmed by users.
    pub delivered: u64,
    /// Reports made.
    pub reports_made: u64,
    /// Copies given up because their time was over.
    #[serde(default)]
    pub expired: u64,
    /// Copies that became late, each counted.
    #[serde(default)]
    pub overdue: u64,
    /// Repetitions recognised and dropped.
    pub duplicates: u64,
}
