//! The interface between the node and its edge. The edge owns sockets, disk, clock and secrets; the
//! node makes every decision. The daemon, the simulation and the crash tests drive the same node
//! through these two enums.
//!
//! Contract: `handle(now, input)`, then `poll()` until `None`; `deadline()` states when to hand in
//! [`Input::Tick`]. Every output that names a `token` is answered with an input of that token.

pub mod channel_order;
pub mod connect;
pub mod lists;
pub mod mailbox_view;
pub mod operator;
pub mod shards;
pub mod site_orders;

use crate::api::channel_order::{ChannelOrder, ChannelOutcome};
use crate::api::connect::ConnectOutcome;
use crate::api::event::LogEvent;
use crate::api::lists::{ListChange, ListsError};
use crate::api::operator::{Act, ActError, ActOutcome, Operator};
use crate::api::shards::ShardChange;
use crate::error::{CommitError, EdgeError, PasswordProblem, ReadError};
use crate::ids::{ListenerId, Principal, Token};
use base::{AssociationId, BodyId, EntryId, PeerId, Precedence, Utc};
use bytes::Bytes;
use dscp::Dscp;
use engine::NextHop;
use engine::journal::{Batch, Digest, SpoolId};
use engine::space::DiskSpace;
use guard::Secret;
use mailbox::machine::{Found, Read};
pub use scheduler::{ChannelId, Scope};
use settings::NodeConfig;
use settings::changes::EdgeChanges;
pub use status::event;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What the edge hands in.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum Input {
    /// The value of [`crate::api::operator::HELD`] found in the store at start, before the entries.
    RecoveredHolds(Bytes),
    /// The value of [`crate::api::channel_order::DISABLED`] found in the store at start, before the entries.
    RecoveredDisabled(Bytes),
    /// The value of [`site_orders::MINIMIZED`] found in the store at start, or when another node has changed it.
    RecoveredMinimize(Bytes),
    /// The value of [`site_orders::ACCEPTED`], which another node has written.
    RecoveredAcceptance(Bytes),
    /// The value of [`scheduler::wall::CLOCK`] found in the store at start, before the entries.
    RecoveredClock(Bytes),
    /// The value of [`mailbox::machine::NAMES`] found in the store at start, before the entries.
    RecoveredMailboxes(Bytes),
    /// What the user of this mailbox has registered, found in the store at start under
    /// [`engine::registered::Registration::name`].
    RecoveredRegistration {
        /// The canonical address.
        mailbox: String,
        /// The value.
        value: Bytes,
    },
    /// The value of `node::SENDING` found in the store at start, before the entries.
    RecoveredSends(Bytes),
    /// A content that an earlier run was receiving, found in the store at start with its notes, before the
    /// entries. Its spool is open.
    RecoveredReception {
        /// Its spool; all of an earlier run are numbered from 1 on.
        spool: SpoolId,
        /// Octets of content.
        length: u64,
        /// The notes of [`Output::SpoolNote`], the oldest first.
        notes: Vec<Bytes>,
    },
    /// The value of [`lists::LISTS`] found in the store at start, before the entries.
    RecoveredLists(Bytes),
    /// One queue entry found in the store at start, the highest precedences first; all come before
    /// [`Input::Started`]. It is sent from the next input of another kind on.
    Recovered {
        /// Precedence part of its key.
        precedence: Precedence,
        /// Its identifier.
        id: EntryId,
        /// Its record.
        record: Bytes,
    },
    /// Contents found in the store at start, in as many inputs as the edge likes; all come after
    /// the last [`Input::Recovered`]. Those that no entry needs are dropped: a crash may come
    /// between the commit that forgets the last copy and the one that drops the content. Contents
    /// stored since the start are left alone.
    RecoveredBodies(Vec<BodyId>),
    /// The room on the disk of the store, whenever the edge looks.
    DiskSpace(DiskSpace),
    /// The edge found these damaged while it read the store, after all of the queue is handed in.
    Damaged {
        /// Entries whose records are damaged.
        records: Vec<(Precedence, EntryId)>,
        /// Contents that are damaged or missing.
        contents: BTreeSet<BodyId>,
    },
    /// What this node owns changes, where several nodes share the store.
    Shard(ShardChange),
    /// Some entries are handed in: the node serves, and opens its permanent channels if it did not serve
    /// before. More follow, another one of these after each part, and [`Input::Started`] after the last.
    /// May be left out.
    Serve,
    /// Recovery is complete: the node serves, if it does not yet.
    Started,
    /// The transport connection asked for with [`Output::Connect`] is there.
    Connected {
        /// Which.
        association: AssociationId,
    },
    /// It could not be made.
    ConnectFailed {
        /// Which.
        association: AssociationId,
        /// For the log and the status.
        error: String,
    },
    /// A peer or a user connected; answered with [`Output::Admitted`] before anything else.
    Accepted {
        /// The edge's number for the connection.
        connection: u64,
        /// Where.
        listener: ListenerId,
        /// From where.
        remote: IpAddr,
    },
    /// The mark the peer's handshake arrived with, where the kernel knows it; follows
    /// [`Input::Connected`] or [`Input::Accepted`] at once.
    MarkSeen {
        /// On which association.
        association: AssociationId,
        /// What was seen.
        dscp: Dscp,
    },
    /// Octets arrived.
    Bytes {
        /// On which association.
        association: AssociationId,
        /// In order, any division.
        bytes: Bytes,
    },
    /// Answers [`Output::Measure`].
    Taken {
        /// Which association.
        association: AssociationId,
        /// Octets that the peer's transport has taken (TCP acknowledged) on it so far.
        octets: u64,
    },
    /// The connection ended, in order or not. The association is forgotten by the edge.
    Closed {
        /// Which.
        association: AssociationId,
        /// For the log: `None` for an orderly end of stream.
        error: Option<String>,
    },
    /// Answers [`Output::SpoolSync`].
    Synced {
        /// Which spool.
        spool: SpoolId,
        /// The token.
        token: Token,
        /// How many octets are stored, or why not.
        result: Result<u64, EdgeError>,
    },
    /// A write to the spool failed; it is of no use any more.
    SpoolFailed {
        /// Which spool.
        spool: SpoolId,
        /// For the log.
        error: String,
    },
    /// Answers [`Output::Commit`].
    Committed {
        /// The token.
        token: Token,
        /// Durable, or nothing of it happened.
        result: Result<(), CommitError>,
    },
    /// Answers [`Output::Load`].
    Loaded {
        /// The token.
        token: Token,
        /// The record; `Ok(None)` where there is none.
        result: Result<Option<Bytes>, ReadError>,
    },
    /// Answers [`Output::LookUp`].
    LookedUp {
        /// The token.
        token: Token,
        /// For each key the record it was remembered with.
        result: Result<Vec<Option<Bytes>>, EdgeError>,
    },
    /// Answers [`Output::ForgetSeen`].
    Forgot {
        /// The token.
        token: Token,
        /// Whether there are more of them, or why nothing was forgotten.
        result: Result<bool, EdgeError>,
    },
    /// Answers [`Output::ReadContent`], after what was written before has left our own buffers: the
    /// delay is the flow control. Or [`Output::ReadFront`], at once.
    Content {
        /// The token.
        token: Token,
        /// 1 to `len` octets.
        result: Result<Bytes, ReadError>,
    },
    /// Answers [`Output::ReadMailbox`].
    MailboxRead {
        /// The token.
        token: Token,
        /// What was found.
        found: Found,
    },
    /// Answers [`Output::ChangePassword`].
    PasswordChanged {
        /// The token.
        token: Token,
        /// Whose: his canonical address.
        mailbox: String,
        /// It is changed, durably, or why not.
        result: Result<(), PasswordProblem>,
    },
    /// Answers [`Output::Verify`].
    Verified {
        /// The token.
        token: Token,
        /// Whether the password is right.
        right: bool,
    },
    /// The deadline passed.
    Tick,
    /// The mailboxes changed (a user was added or removed, or has another password). Who is bound to
    /// one that is gone or has another password is aborted.
    Mailboxes {
        /// The canonical addresses of all.
        addresses: Vec<String>,
        /// Those of them whose messages are delivered into the message store.
        stored: BTreeSet<String>,
        /// Those gone or with another password.
        changed: Vec<String>,
    },
    /// Another configuration holds from now on. Keys that take a restart by `node::Node::changes`
    /// must not differ. Mailboxes, seed, epoch and sockets stay as they are. The edge has opened the
    /// listeners that are new, and closes those that are gone afterwards.
    Configure {
        /// The configuration.
        config: Box<NodeConfig>,
        /// What changed besides.
        edge: EdgeChanges,
    },
    /// An operator's order of MINIMIZE: nothing below `floor` goes out in this scope.
    Minimize {
        /// All peers, one peer or one channel.
        scope: Scope,
        /// The lowest precedence that goes out. None until a time suspends the windows of the
        /// configuration so long; none without a time withdraws the order, and they hold again.
        floor: Option<Precedence>,
        /// When the order ends by itself.
        until: Option<Utc>,
        /// Who orders it.
        by: Operator,
    },
    /// An operator accepts the wall clock: expiry waits no longer.
    AcceptClock {
        /// Who.
        by: Operator,
    },
    /// An operator removes what the user of this mailbox has registered; answered with [`Output::Operated`]
    /// without entries.
    Unregister {
        /// Chosen by the edge.
        request: u64,
        /// The canonical address.
        mailbox: String,
        /// Who orders it.
        by: Operator,
    },
    /// An operator orders something of these entries; answered with [`Output::Operated`].
    Operate {
        /// Pairs it with its answer.
        request: u64,
        /// Which, [`operator::MAX_ORDERED`] at most.
        entries: Vec<EntryId>,
        /// What.
        act: Act,
        /// Who.
        by: Operator,
    },
    /// Opens all mailboxes of the message store, so that the status has what they hold.
    OpenMailboxes,
    /// An operator has items of a mailbox in the message store deleted; answered with [`Output::Purged`].
    Purge {
        /// Pairs it with its answer.
        request: u64,
        /// The canonical address of its user, who may have been removed.
        mailbox: String,
        /// What is given up.
        rules: mailbox::Rules,
        /// Only how many would be is asked for.
        try_only: bool,
    },
    /// An operator changes a distribution list; answered with [`Output::ListsChanged`].
    ChangeList {
        /// Pairs it with its answer.
        request: u64,
        /// What.
        change: Box<ListChange>,
        /// Who.
        by: Operator,
        /// Only whether it could be done is asked for.
        try_only: bool,
    },
    /// An operator wants this channel opened now: its wait ends. Answered with
    /// [`Output::ChannelConnected`].
    ConnectChannel {
        /// Pairs it with its answer.
        request: u64,
        /// Which.
        channel: ChannelId,
    },
    /// An operator's order for a channel. Answered with [`Output::ChannelOrdered`].
    OrderChannel {
        /// Pairs it with its answer.
        request: u64,
        /// Which.
        channel: ChannelId,
        /// What.
        order: ChannelOrder,
        /// Abort its associations, instead of an end in order.
        at_once: bool,
        /// Who.
        by: Operator,
    },
    /// Stop: accept nothing, finish or interrupt transfers, release associations. The node gives
    /// [`Output::Stopped`] when all is done. The edge bounds the wait and then hands this in again:
    /// associations that are left are aborted, so that peers need not wait to find out.
    Stop,
    /// A peer whose entries this node has opened an association with another node of the site: it is there.
    PeerBoundElsewhere(PeerId),
}

/// What the edge is to do.
#[derive(Debug)]
pub enum Output {
    /// Make a transport connection for this channel.
    Connect {
        /// The association it is for.
        association: AssociationId,
        /// The channel whose `remote`, `dscp` and socket options apply.
        channel: ChannelId,
    },
    /// Answers [`Input::Accepted`].
    Admitted {
        /// The edge's number for the connection.
        connection: u64,
        /// Its association; none where sockets have run out: it is closed without a word.
        association: Option<AssociationId>,
    },
    /// Write to the connection, in order.
    Write {
        /// Which.
        association: AssociationId,
        /// What.
        bytes: Bytes,
    },
    /// See how much of what was written the peer's transport has taken; answered with
    /// [`Input::Taken`], at once or never. Asked every few seconds while something is outstanding.
    Measure {
        /// Which.
        association: AssociationId,
    },
    /// Close the connection after what was written; answered with [`Input::Closed`].
    Close {
        /// Which.
        association: AssociationId,
    },
    /// Close the connection at once, whatever was not read or written, or give up making it: its
    /// place is needed. Both sides forget it; no [`Input::Closed`] follows.
    Drop {
        /// Which.
        association: AssociationId,
    },
    /// Begin a spool.
    SpoolOpen {
        /// Which.
        spool: SpoolId,
    },
    /// Append to a spool, in order. The edge stops reading from the association while too much
    /// waits to be written.
    SpoolAppend {
        /// Which.
        spool: SpoolId,
        /// Where the octets came from.
        association: AssociationId,
        /// The octets.
        bytes: Bytes,
    },
    /// Append a note to a spool: once a [`Output::SpoolSync`] after it is answered, the note and what was
    /// appended before it are found at the next start, and given with [`Input::RecoveredReception`].
    SpoolNote {
        /// Which.
        spool: SpoolId,
        /// Where the octets came from.
        association: AssociationId,
        /// Opaque.
        note: Bytes,
    },
    /// Make durable what was appended so far.
    SpoolSync {
        /// Which.
        spool: SpoolId,
        /// Where the octets came from.
        association: AssociationId,
        /// The token.
        token: Token,
    },
    /// Throw a spool away; one that a failed commit used up already is fine.
    SpoolDiscard {
        /// Which.
        spool: SpoolId,
    },
    /// Commit these changes durably, whole; after those asked for before that change the same. Of
    /// others the higher ones go first.
    Commit {
        /// The token.
        token: Token,
        /// The highest precedence they are for.
        precedence: Precedence,
        /// The changes.
        batch: Batch,
    },
    /// Read a queue entry's record.
    Load {
        /// The token.
        token: Token,
        /// Precedence part of its key.
        precedence: Precedence,
        /// Its identifier.
        id: EntryId,
    },
    /// Look up what is remembered under these keys.
    LookUp {
        /// The token.
        token: Token,
        /// The precedence of what is to be taken.
        precedence: Precedence,
        /// The keys.
        keys: Vec<Digest>,
    },
    /// A shard that [`ShardChange::Leave`] named is left: nothing of it is in progress here, but what was asked of
    /// the store before.
    ShardLeft {
        /// Which.
        shard: NextHop,
        /// It is not left: somebody is bound to it.
        stays: bool,
    },
    /// Forget keys whose time was over before this, the oldest first: at most so many, for every
    /// commit waits for this one.
    ForgetSeen {
        /// The token.
        token: Token,
        /// The time.
        before: Utc,
        /// Most keys.
        most: usize,
    },
    /// Read part of a content, to be sent on this association.
    ReadContent {
        /// The token.
        token: Token,
        /// The association it is for: answer once its connection can take more.
        association: AssociationId,
        /// The content.
        body: BodyId,
        /// From where.
        offset: u64,
        /// Most octets.
        len: usize,
    },
    /// Read part of a content, for a delivery into the message store; answered with [`Input::Content`].
    ReadFront {
        /// The token.
        token: Token,
        /// The precedence of the message.
        precedence: Precedence,
        /// The content.
        body: BodyId,
        /// From where.
        offset: u64,
        /// Most octets.
        len: usize,
    },
    /// Read of a mailbox of the message store.
    ReadMailbox {
        /// The token.
        token: Token,
        /// The level of what waits for it.
        precedence: Precedence,
        /// What.
        read: Read,
    },
    /// A user changes his password: the old one is checked, and the new one is durable when this is
    /// answered.
    ChangePassword {
        /// The token.
        token: Token,
        /// His canonical address.
        mailbox: String,
        /// The password that must be his.
        old: Secret,
        /// The new one.
        new: Secret,
    },
    /// Check a password (slow by design: not on the node's thread).
    Verify {
        /// The token.
        token: Token,
        /// Whose password.
        principal: Principal,
        /// What was presented.
        password: Secret,
    },
    /// Answers [`Input::Operate`], once what changed is durable.
    Operated {
        /// Which request.
        request: u64,
        /// The outcome for each entry, or why nothing was changed.
        result: Result<Vec<(EntryId, ActOutcome)>, ActError>,
    },
    /// Answers [`Input::Purge`], once the items are deleted.
    Purged {
        /// Which request.
        request: u64,
        /// How many items were deleted, or would be; or why not.
        result: Result<u64, String>,
    },
    /// Answers [`Input::ChangeList`], once the change is durable.
    ListsChanged {
        /// Which request.
        request: u64,
        /// Done, or why nothing was changed.
        result: Result<(), ListsError>,
    },
    /// Answers [`Input::ConnectChannel`], once it is open or failed.
    ChannelConnected {
        /// Which request.
        request: u64,
        /// The outcome.
        outcome: ConnectOutcome,
    },
    /// Answers [`Input::OrderChannel`], once what changed is durable.
    ChannelOrdered {
        /// Which request.
        request: u64,
        /// What it did; or that it could not be made durable, and nothing was done.
        result: Result<Box<ChannelOutcome>, EdgeError>,
    },
    /// For the log.
    Event(Box<LogEvent>),
    /// All associations are closed after [`Input::Stop`].
    Stopped,
}
