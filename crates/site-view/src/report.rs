//! The report on a site: plain data, made of a look at the database.

use crate::fault::DatabaseFault;
use crate::servers::servers;
use crate::words;
use base::{Precedence, Utc};
use engine::Record;
use engine::journal::QueueId;
use membership::{NodeEpoch, NodeRow, first_of};
use postgres_store::{NodeState, ServerState, ShardState, Survey};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use store::StoreError;

/// How a site is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All is as it is to be.
    #[default]
    Healthy,
    /// It works, and something is missing: the troubles name it.
    Degraded,
    /// The primary of the database answers, and the configuration of this node cannot use it: it does not let the
    /// account in, or its tables are not those of this release.
    Unusable,
    /// No primary of the database answers: no node takes or sends anything.
    DatabaseAway,
}

/// What the configuration has of the node that looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The name of the MTA.
    pub mta: String,
    /// The name of the node; absent where the configuration has no `[cluster]`.
    pub node: Option<String>,
    /// The length of a lease.
    pub lease: Duration,
}

/// A whole site.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SiteReport {
    /// The name of the MTA.
    pub mta: String,
    /// RFC 3339 UTC, by the clock of the database; absent while that is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// How the site is.
    pub health: Health,
    /// What is not as it is to be, each a sentence.
    pub troubles: Vec<String>,
    /// The node of the configuration that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The nodes: the last joining of each name.
    pub nodes: Vec<NodeReport>,
    /// The shards: peers first, then mailboxes.
    pub shards: Vec<ShardReport>,
    /// The servers of the database.
    pub servers: Vec<ServerReport>,
    /// So many servers may be lost without a loss of what was acknowledged; standbys that are not there do not
    /// count.
    pub may_be_lost: usize,
    /// So many standbys may be away before commits stop.
    pub may_be_away: usize,
    /// The same in sentences, with what is wrong.
    pub durability: Vec<String>,
    /// What would happen if a node died now: one for each that lives.
    pub if_died: Vec<IfDied>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// The number of its last joining.
    pub epoch: u32,
    /// It is the one of the configuration that was used.
    pub this: bool,
    /// `lives`, `draining`, `drained`, `lease_over` or `dead`.
    pub state: &'static str,
    /// What is left of its lease; 0 if it is over.
    pub lease_left_seconds: f64,
    /// It gives its shards away, or has.
    pub draining: bool,
    /// RFC 3339 UTC: when its lease was ended, by another node after it was over, or by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ended: Option<String>,
}

/// A shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShardReport {
    /// The name of the peer, or the address of the mailbox.
    pub name: String,
    /// `peer` or `mailbox`.
    pub kind: &'static str,
    /// The node that has it; absent if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// For how long that has been so; absent if it never had an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_seconds: Option<f64>,
    /// The number of the ownership.
    pub fence: u64,
    /// A node that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// Entries that wait to be sent or delivered.
    pub queued: BTreeMap<Precedence, u64>,
    /// The age of the one that was committed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_age_seconds: Option<f64>,
    /// Items of the mailbox; absent for a peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
}

/// A server of the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerReport {
    /// Its address and port; absent where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The name by which a standby follows; absent for the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `primary`, `standby` or `unknown`.
    pub role: &'static str,
    /// `streaming` and so on, as the primary has it; `away`; `name unknown`; `does not let us in`; `TLS fails`;
    /// `does not follow`; `not connected`; `writes`.
    pub state: String,
    /// Octets of the log that it does not have on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_octets: Option<u64>,
    /// How long what is written takes until it is on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<f64>,
    /// It is there, and commits may wait for it.
    pub counted: bool,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What would happen if a node died now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IfDied {
    /// The node.
    pub node: String,
    /// Which node would take which of its shards.
    pub taken: BTreeMap<String, Vec<String>>,
    /// Shards that nobody would take.
    pub left: Vec<String>,
    /// Within this time, about.
    pub within_seconds: f64,
    /// Entries that would wait so long.
    pub queued: u64,
    /// All of it in words.
    pub words: String,
}

/// A dead node whose shards are with others is a trouble for this long, unless it is forgotten before.
pub(crate) fn name_of(nodes: &[NodeState], epoch: NodeEpoch) -> String {
    let found = nodes.iter().find(|node| node.epoch == epoch);
    found.map_or_else(|| format!("epoch {epoch}"), |node| node.name.clone())
}

fn time(at: Utc) -> String {
    at.to_string()
}

/// The report on a site whose database answers.
#[must_use]
pub fn report(own: &Own, survey: &Survey, asked: &[ServerState]) -> SiteReport {
    let durability = survey.settings.durability();
    let shards = shards(survey);
    let nodes = nodes(own, survey, &shards);
    let mut report = SiteReport {
        mta: own.mta.clone(),
        time: Some(time(survey.at)),
        node: own.node.clone(),
        servers: servers(survey, asked),
        may_be_lost: durability.may_be_lost,
        may_be_away: durability.may_be_away,
        durability: durability.sentences(),
        if_died: if_died(own, survey, &nodes, &shards),
        nodes,
        shards,
        ..SiteReport::default()
    };
    report.troubles = words::troubles(own, survey, &report, asked.len());
    report.health = match report.troubles.is_empty() {
        true => Health::Healthy,
        false => Health::Degraded,
    };
    report
}

/// The report on a site whose database could not be looked at.
#[must_use]
pub fn unseen(own: &Own, why: &StoreError, asked: &[ServerState]) -> SiteReport {
    let servers = crate::servers::unseen(asked);
    let is_away = DatabaseFault::from_error(why) == DatabaseFault::Away;
    SiteReport {
        mta: own.mta.clone(),
        node: own.node.clone(),
        health: if is_away { Health::DatabaseAway } else { Health::Unusable },
        troubles: words::of_unseen(why, asked),
        servers,
        ..SiteReport::default()
    }
}

/// The last joining of each name, by name.
fn nodes(own: &Own, survey: &Survey, shards: &[ShardReport]) -> Vec<NodeReport> {
    let last: BTreeMap<&str, &NodeState> =
        survey.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let has = |name: &str| shards.iter().any(|shard| shard.owner.as_deref() == Some(name));
    let one = |node: &NodeState| {
        let state = match node {
            NodeState { died: Some(_), .. } => "dead",
            NodeState { lease_left, .. } if lease_left.is_zero() => "lease_over",
            NodeState { draining: true, name, .. } if has(name) => "draining",
            NodeState { draining: true, .. } => "drained",
            _ => "lives",
        };
        NodeReport {
            name: node.name.clone(),
            epoch: node.epoch.0,
            this: own.node.as_deref() == Some(&node.name),
            state,
            lease_left_seconds: node.lease_left.as_secs_f64(),
            draining: node.draining,
            lease_ended: node.died.map(time),
        }
    };
    last.into_values().map(one).collect()
}

/// Peers by name, then mailboxes; the items of a mailbox are with what waits for it.
fn shards(survey: &Survey) -> Vec<ShardReport> {
    let items: BTreeMap<QueueId, &ShardState> = survey
        .shards
        .iter()
        .filter(|shard| mailbox::item::is_queue(shard.shard))
        .map(|shard| (shard.shard, shard))
        .collect();
    let mut all: Vec<ShardReport> = survey
        .shards
        .iter()
        .filter(|shard| !mailbox::item::is_queue(shard.shard))
        .map(|shard| one_shard(survey, shard, &items))
        .collect();
    all.sort_by(|a, b| (b.kind, &a.name).cmp(&(a.kind, &b.name)));
    all
}

fn one_shard(
    survey: &Survey,
    shard: &ShardState,
    items: &BTreeMap<QueueId, &ShardState>,
) -> ShardReport {
    let brief = shard.first.as_ref().and_then(|record| Record::peek(record).ok());
    let is_mailbox = shard.shard.is_of_mailbox();
    let name = match (&brief, shard.name.is_empty()) {
        (Some(brief), true) => match &*brief.next_hop {
            engine::NextHop::Mailbox(address) => address.clone(),
            engine::NextHop::Peer(peer) => peer.to_string(),
        },
        (None, true) => format!("shard {}", shard.shard.0),
        _ => shard.name.clone(),
    };
    let its_items = items.get(&mailbox::item::queue_at(&name)).filter(|_| is_mailbox);
    let count = |shard: &&ShardState| shard.entries.values().sum::<u64>();
    ShardReport {
        kind: if is_mailbox { "mailbox" } else { "peer" },
        owner: shard.owner.map(|owner| name_of(&survey.nodes, owner)),
        since_seconds: shard.since.map(|since| since.as_secs_f64()),
        fence: shard.fence,
        asked_by: shard.asked_by.map(|by| name_of(&survey.nodes, by)),
        queued: shard.entries.clone(),
        oldest_age_seconds: brief.map(|brief| survey.at.since(brief.accepted).as_secs_f64()),
        stored: is_mailbox.then(|| its_items.as_ref().map_or(0, |items| count(items))),
        name,
    }
}

/// A peer is taken as soon as the lease is over and the others have looked; a mailbox is left to who wants it for a
/// quarter of a lease.
fn within(lease: Duration, has_mailbox: bool) -> Duration {
    lease + lease / 4 + if has_mailbox { lease / 4 } else { Duration::ZERO }
}

fn if_died(
    own: &Own,
    survey: &Survey,
    nodes: &[NodeReport],
    shards: &[ShardReport],
) -> Vec<IfDied> {
    let row = |node: &NodeState| NodeRow {
        epoch: node.epoch,
        name: node.name.clone(),
        lease_left: node.lease_left,
        draining: node.draining,
    };
    let living: Vec<NodeRow> =
        survey.nodes.iter().filter(|node| node.died.is_none()).map(row).collect();
    let numbers: BTreeMap<(&str, bool), QueueId> = survey
        .shards
        .iter()
        .filter(|shard| !mailbox::item::is_queue(shard.shard))
        .map(|shard| ((shard.name.as_str(), shard.shard.is_of_mailbox()), shard.shard))
        .collect();
    let one = |node: &NodeReport| {
        let others: Vec<NodeRow> =
            living.iter().filter(|row| row.epoch.0 != node.epoch).cloned().collect();
        let mut died = IfDied { node: node.name.clone(), ..IfDied::default() };
        let its = shards.iter().filter(|shard| shard.owner.as_ref() == Some(&node.name));
        let mut has_mailbox = false;
        for shard in its {
            has_mailbox |= shard.kind == "mailbox";
            died.queued += shard.queued.values().sum::<u64>();
            let number = numbers.get(&(shard.name.as_str(), shard.kind == "mailbox"));
            match number.and_then(|number| first_of(&others, *number)) {
                Some(taker) => {
                    let taker = name_of(&survey.nodes, taker);
                    died.taken.entry(taker).or_default().push(shard.name.clone());
                }
                None => died.left.push(shard.name.clone()),
            }
        }
        died.within_seconds = within(own.lease, has_mailbox).as_secs_f64();
        died.words = words::of_death(&died);
        died
    };
    nodes.iter().filter(|node| node.lease_ended.is_none()).map(one).collect()
}
