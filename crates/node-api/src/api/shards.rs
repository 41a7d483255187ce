//! Several nodes of one site on one store: what this node owns. A shard is a next hop: one node at a time has the
//! entries for it.

use base::{Instant, PeerId};
use engine::NextHop;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What changes for this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShardChange {
    /// It is one of several nodes: it owns nothing but what follows. Comes first, before all entries.
    Several,
    /// It owns the entries for this next hop from now on. They follow, each as
    /// [`Input::Recovered`](crate::api::Input::Recovered) with any other input behind them, and so does later each
    /// one that another node accepts.
    Gained(NextHop),
    /// Another node may own them: transfers of them end at once, and they are forgotten here. Nothing changes in
    /// the store.
    Lost(NextHop),
    /// Another node is to have them: nothing more is begun, and once no transfer of them is in progress they are
    /// forgotten here, with [`Output::ShardLeft`](crate::api::Output::ShardLeft). Transfers to a peer end at their
    /// next checkpoint. A mailbox with somebody bound to it stays.
    Leave(NextHop),
    /// The lease of this node has ended: nothing can be acknowledged. What it owned is lost already. All
    /// associations end, and binds are refused as busy until the next one of these.
    Lease(bool),
}

/// The peers that have open associations with this node, whether it owns their entries or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerAssociations {
    /// All of them.
    pub open: BTreeSet<PeerId>,
    /// Those that opened one themselves, and when the last such one was opened.
    pub called: BTreeMap<PeerId, Instant>,
    /// Those that opened all of theirs, and gave us leave to send on one of them: perhaps nobody else can reach them.
    pub held: BTreeSet<PeerId>,
}
