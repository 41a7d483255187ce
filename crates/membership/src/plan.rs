//! What a node calls for next, from what the store knows.

use crate::machine::Call;
use crate::reach::Reach;
use crate::rows::{NodeEpoch, NodeRow, ShardRow};
use base::Instant;
use engine::journal::QueueId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A peer that a node does not know is left to others for so long.
const UNKNOWN_PEER: Duration = Duration::from_secs(600);

/// What a node knows of itself.
pub(crate) struct Own<'a> {
    pub(crate) epoch: NodeEpoch,
    pub(crate) now: Instant,
    pub(crate) lease: Duration,
    /// Its associations with peers.
    pub(crate) reach: &'a Reach,
    pub(crate) draining: bool,
    /// The shards it owns.
    pub(crate) shards: &'a BTreeSet<QueueId>,
    /// Those it is about to give away.
    pub(crate) leaving: &'a BTreeSet<QueueId>,
    /// The peers of its configuration, with their names.
    pub(crate) peers: &'a BTreeMap<QueueId, String>,
    /// Mailboxes whose users bind here.
    pub(crate) wanted: &'a BTreeMap<QueueId, String>,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) calls: Vec<Call>,
    /// Owned by another node, though this one believed to own it.
    pub(crate) lost: Vec<QueueId>,
    /// To be given away, in order.
    pub(crate) leave: Vec<QueueId>,
}

/// A number for a node and a shard that is the same at all nodes (FNV-1a, with the bits mixed).
fn rank(name: &str, shard: QueueId) -> u64 {
    let octets = name.bytes().chain(shard.0.to_be_bytes());
    let hash = octets.fold(0xcbf2_9ce4_8422_2325, |hash: u64, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// The node that takes a shard first, if it is free.
#[must_use]
pub fn first_of(nodes: &[NodeRow], shard: QueueId) -> Option<NodeEpoch> {
    let able = nodes.iter().filter(|node| is_able(node));
    able.max_by_key(|node| (rank(&node.name, shard), node.epoch)).map(|node| node.epoch)
}

/// What this node does now.
pub(crate) fn plan(own: &Own<'_>, nodes: &[NodeRow], rows: &[ShardRow]) -> Plan {
    let mut plan = Plan::default();
    let is_over = |node: &&NodeRow| node.epoch != own.epoch && node.lease_left == Duration::ZERO;
    let over: Vec<NodeEpoch> = nodes.iter().filter(is_over).map(|node| node.epoch).collect();
    if !over.is_empty() {
        plan.calls.push(Call::Bury(over));
    }
    let known: BTreeMap<QueueId, &ShardRow> = rows.iter().map(|row| (row.shard, row)).collect();
    let listed = rows.iter().map(|row| (row.shard, row.name.as_str()));
    let named = own.peers.iter().chain(own.wanted).map(|(shard, name)| (*shard, name.as_str()));
    let all: BTreeMap<QueueId, &str> = listed.chain(named).collect();
    let mut moves = true;
    for (shard, name) in all {
        let row = known.get(&shard).copied();
        if own.shards.contains(&shard) {
            keep_or_leave(own, &mut plan, nodes, shard, row);
        } else {
            take_or_ask(own, &mut plan, nodes, (shard, name, row), &mut moves);
        }
    }
    // Somebody waits for these, and peers have what is urgent; of mailboxes those first for which that waits.
    let waits = |shard: &QueueId| known.get(shard).and_then(|row| row.waits);
    plan.calls.sort_by_key(|call| match call {
        Call::Acquire { shard, .. } | Call::Ask(shard) if own.wanted.contains_key(shard) => {
            (1, Reverse(None))
        }
        Call::Acquire { shard, .. } if shard.is_of_mailbox() => (3, Reverse(waits(shard))),
        Call::Acquire { .. } | Call::Ask(_) | Call::Withdraw(_) => (2, Reverse(None)),
        _ => (0, Reverse(None)),
    });
    plan
}

/// Whether a node may take shards.
fn is_able(node: &NodeRow) -> bool {
    !node.draining && node.lease_left > Duration::ZERO
}

fn keep_or_leave(
    own: &Own<'_>,
    plan: &mut Plan,
    nodes: &[NodeRow],
    shard: QueueId,
    row: Option<&ShardRow>,
) {
    let is_ours = row.and_then(|row| row.owner).is_some_and(|(owner, _)| owner == own.epoch);
    let asked_by = row.and_then(|row| row.asked_by).filter(|by| *by != own.epoch);
    if !is_ours {
        plan.lost.push(shard);
        return;
    }
    let gives = own.draining || asked_by.is_some_and(|by| gives_to(own, nodes, shard, by));
    if gives && !own.leaving.contains(&shard) {
        plan.leave.push(shard);
    }
}

/// Whether a shard is given to a node that asks for it. A peer is not, where it would be harder to reach then.
fn gives_to(own: &Own<'_>, nodes: &[NodeRow], shard: QueueId, by: NodeEpoch) -> bool {
    if shard.is_of_mailbox() {
        return true;
    }
    if own.reach.is_kept(own.now, shard) {
        return false;
    }
    // Else the peer has called the other node.
    let is_there = nodes.iter().any(|node| node.epoch == by && is_able(node));
    first_of(nodes, shard) == Some(by)
        || is_there && own.reach.is_out_of_reach(own.now, own.lease, shard)
}

fn take_or_ask(
    own: &Own<'_>,
    plan: &mut Plan,
    nodes: &[NodeRow],
    (shard, name, row): (QueueId, &str, Option<&ShardRow>),
    moves: &mut bool,
) {
    if own.draining {
        return;
    }
    let acquire = || Call::Acquire { shard, name: name.to_owned() };
    let is_first = first_of(nodes, shard) == Some(own.epoch);
    let is_wanted = own.wanted.contains_key(&shard);
    let is_peer = own.peers.contains_key(&shard);
    let asked_by = row.and_then(|row| row.asked_by);
    match row.and_then(|row| row.owner) {
        // The node had it before its lease ended, or the answer was lost.
        Some((owner, _)) if owner == own.epoch => plan.calls.push(acquire()),
        Some(_) if asked_by == Some(own.epoch) => {
            if is_first && is_peer {
                // A peer that its owner keeps does not keep the others from moving.
                *moves &= own.reach.asks_in_vain(own.now, own.lease, shard);
            } else if !shard.is_of_mailbox() && !own.reach.is_kept(own.now, shard) {
                plan.calls.push(Call::Withdraw(shard));
            }
        }
        Some(_) if is_wanted => plan.calls.push(Call::Ask(shard)),
        // One peer after the other moves to a node that has joined.
        Some(_) if is_first && is_peer && *moves => {
            *moves = false;
            plan.calls.push(Call::Ask(shard));
        }
        Some(_) => {
            let able = |by| nodes.iter().any(|node| node.epoch == by && is_able(node));
            let is_stuck = own.reach.is_stuck(own.now, own.lease, shard);
            if is_peer && is_stuck && !asked_by.is_some_and(able) {
                plan.calls.push(Call::Ask(shard));
            }
        }
        None if takes(own, nodes, (shard, row), (is_first, is_wanted, is_peer)) => {
            plan.calls.push(acquire());
        }
        None => {}
    }
}

/// Whether a shard that is free is taken.
fn takes(
    own: &Own<'_>,
    nodes: &[NodeRow],
    (shard, row): (QueueId, Option<&ShardRow>),
    (is_first, is_wanted, is_peer): (bool, bool, bool),
) -> bool {
    // A peer that is not in this configuration is perhaps new: nodes that know it are before this one.
    let is_unknown = !shard.is_of_mailbox() && !is_peer;
    if is_unknown && row.is_none_or(|row| row.since < UNKNOWN_PEER) {
        return false;
    }
    let is_forgotten = row.is_some_and(|row| row.since > own.lease);
    if is_wanted || is_forgotten {
        return true;
    }
    let given_to = own.reach.given_to(shard);
    if is_peer && (given_to == Some(own.epoch) || own.reach.is_held(shard)) {
        return true;
    }
    // A mailbox is perhaps given away for somebody who wants it, and so is a peer that has called another node.
    let is_for_another = match given_to {
        Some(by) => nodes.iter().any(|node| node.epoch == by && is_able(node)),
        None => !is_peer,
    };
    is_first && (!is_for_another || row.is_none_or(|row| row.since > own.lease / 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Fence;
    use base::Precedence;
    use engine::NextHop;

    const LEASE: Duration = Duration::from_secs(4);

    fn node(epoch: u32, left: u64) -> NodeRow {
        let lease_left = Duration::from_secs(left);
        NodeRow { epoch: NodeEpoch(epoch), name: format!("n{epoch}"), lease_left, draining: false }
    }

    fn row(shard: u64, owner: Option<u32>) -> ShardRow {
        let owner = owner.map(|owner| (NodeEpoch(owner), Fence(1)));
        let name = format!("peer {shard}");
        let since = Duration::ZERO;
        ShardRow { shard: QueueId(shard), name, owner, since, asked_by: None, waits: None }
    }

    #[derive(Default)]
    struct Known {
        shards: BTreeSet<QueueId>,
        leaving: BTreeSet<QueueId>,
        peers: BTreeMap<QueueId, String>,
        wanted: BTreeMap<QueueId, String>,
        draining: bool,
        reach: Reach,
        now: Instant,
    }

    impl Known {
        fn plan(&self, epoch: u32, nodes: &[NodeRow], rows: &[ShardRow]) -> Plan {
            let Known { shards, leaving, peers, wanted, draining, reach, now } = self;
            let (epoch, lease, draining, now) = (NodeEpoch(epoch), LEASE, *draining, *now);
            plan(
                &Own { epoch, now, lease, reach, draining, shards, leaving, peers, wanted },
                nodes,
                rows,
            )
        }
    }

    #[test]
    fn a_free_peer_has_one_taker_among_those_that_live() {
        let peers: BTreeMap<QueueId, String> =
            (0..60).map(|shard| (QueueId(shard), format!("peer {shard}"))).collect();
        let known = Known { peers, ..Known::default() };
        let nodes = [node(1, 4), node(2, 4), node(3, 0)];
        let plans = [1, 2].map(|epoch| known.plan(epoch, &nodes, &[]));
        let taken = |plan: &Plan| -> Vec<QueueId> {
            let taken = |call: &Call| match call {
                Call::Acquire { shard, .. } => Some(*shard),
                _ => None,
            };
            plan.calls.iter().filter_map(taken).collect()
        };
        let [one, two] = [taken(&plans[0]), taken(&plans[1])];
        assert_eq!(one.len() + two.len(), 60);
        assert!(one.iter().all(|shard| !two.contains(shard)));
        assert!(one.len() > 15 && two.len() > 15, "{} and {}", one.len(), two.len());
        assert_eq!(plans[0].calls.first(), Some(&Call::Bury(vec![NodeEpoch(3)])));
    }

    #[test]
    fn a_shard_that_stays_free_is_taken_by_anybody() {
        let nodes = [node(1, 4), node(2, 4)];
        for epoch in [1, 2] {
            let free = ShardRow { since: LEASE * 2, ..row(7, None) };
            let peers = [(QueueId(7), String::new())].into();
            let plan = Known { peers, ..Known::default() }.plan(
                epoch,
                &nodes,
                std::slice::from_ref(&free),
            );
            assert_eq!(plan.calls.len(), 1, "{plan:?}");
            // A peer that this node does not know is perhaps new.
            assert_eq!(Known::default().plan(epoch, &nodes, &[free]).calls.len(), 0);
            let old = ShardRow { since: UNKNOWN_PEER, ..row(7, None) };
            assert_eq!(Known::default().plan(epoch, &nodes, &[old]).calls.len(), 1);
        }
    }

    /// The first in rank gave it away for a user who binds elsewhere: it does not take it back at once.
    #[test]
    fn a_mailbox_that_was_just_given_away_is_for_who_wants_it() {
        let nodes = [node(1, 4), node(2, 4)];
        let shard = QueueId(1 << 63 | 7);
        let first = first_of(&nodes, shard).unwrap().0;
        let free = |since| ShardRow { since, ..row(shard.0, None) };
        let asked = |known: &Known, since| known.plan(first, &nodes, &[free(since)]).calls.len();
        assert_eq!(asked(&Known::default(), Duration::from_millis(5)), 0);
        assert_eq!(asked(&Known::default(), LEASE / 2), 1);
        let wanted = [(shard, String::new())].into();
        assert_eq!(asked(&Known { wanted, ..Known::default() }, Duration::from_millis(5)), 1);
        let peers = [(shard, String::new())].into();
        assert_eq!(asked(&Known { peers, ..Known::default() }, Duration::from_millis(5)), 1);
    }

    #[test]
    fn peers_move_to_a_new_node_one_by_one() {
        let peers = (0..60).map(|shard| (QueueId(shard), String::new())).collect();
        let known = Known { peers, ..Known::default() };
        let mut rows: Vec<ShardRow> = (0..60).map(|shard| row(shard, Some(1))).collect();
        let nodes = [node(1, 4), node(2, 4)];
        let plan = known.plan(2, &nodes, &rows);
        let [Call::Ask(first)] = plan.calls[..] else { panic!("{plan:?}") };
        let asked = rows.iter_mut().find(|row| row.shard == first).unwrap();
        asked.asked_by = Some(NodeEpoch(2));
        assert_eq!(known.plan(2, &nodes, &rows), Plan::default(), "it waits for the first");
        let owner = Known { shards: rows.iter().map(|r| r.shard).collect(), ..Known::default() };
        assert_eq!(owner.plan(1, &nodes, &rows).leave, [first]);
    }

    #[test]
    fn what_another_node_owns_is_lost_and_a_drained_node_leaves_all() {
        let shards: BTreeSet<QueueId> = [QueueId(1), QueueId(2)].into();
        let known = Known { shards, draining: true, ..Known::default() };
        let plan = known.plan(1, &[node(1, 4), node(2, 4)], &[row(1, Some(2)), row(2, Some(1))]);
        assert_eq!((plan.lost, plan.leave), (vec![QueueId(1)], vec![QueueId(2)]));
        assert_eq!(plan.calls, []);
    }

    #[test]
    fn of_many_free_mailboxes_those_with_what_is_urgent_come_first() {
        let levels = [Precedence::Routine, Precedence::Flash, Precedence::Priority];
        let rows: Vec<ShardRow> = (0..30_usize)
            .map(|n| {
                let name = format!("/s=m{n}");
                let shard = NextHop::Mailbox(name.clone()).queue();
                let waits = levels.get(n % 3).copied();
                ShardRow { shard, name, waits, since: LEASE * 2, ..row(0, None) }
            })
            .collect();
        let plan = Known::default().plan(1, &[node(1, 3)], &rows);
        let level = |call: &Call| match call {
            Call::Acquire { shard, .. } => rows.iter().find(|row| row.shard == *shard)?.waits,
            _ => None,
        };
        let levels: Vec<_> = plan.calls.iter().map(level).collect();
        assert!(levels.len() == 30 && levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
    }
    /// A node that ranks first for this peer, one that does not, and the shard.
    fn ranked() -> (u32, u32, QueueId) {
        let shard = QueueId(7);
        let first = first_of(&[node(1, 4), node(2, 4)], shard).unwrap().0;
        (first, 3 - first, shard)
    }

    /// A node that has looked at these rows before, so long ago; the peer had called it then.
    fn held(own: u32, looked: Duration, row: &ShardRow) -> Known {
        let mut reach = Reach::default();
        let (now, nodes) = (Instant(1_000_000_000), [node(1, 4), node(2, 4)]);
        reach.changed(now, [row.shard].into(), [row.shard].into());
        let own = (NodeEpoch(own), LEASE);
        reach.looked(now, own, (&nodes, std::slice::from_ref(row)), |_| None);
        let peers = [(row.shard, row.name.clone())].into();
        Known { reach, peers, now: now + looked, ..Known::default() }
    }

    #[test]
    fn who_was_called_by_a_peer_asks_for_it_once_its_messages_wait_for_half_a_lease() {
        let (first, other, shard) = ranked();
        let nodes = [node(1, 4), node(2, 4)];
        let waiting = ShardRow { waits: Some(Precedence::Flash), ..row(shard.0, Some(first)) };
        let asks = |looked, row: &ShardRow| {
            held(other, looked, row).plan(other, &nodes, std::slice::from_ref(row)).calls
        };
        assert_eq!(asks(LEASE / 2, &waiting), [Call::Ask(shard)]);
        assert_eq!(asks(LEASE / 4, &waiting), []);
        assert_eq!(asks(LEASE, &row(shard.0, Some(first))), [], "nothing waits");
        // Two that ask would go on asking.
        let by = |epoch| ShardRow { asked_by: Some(NodeEpoch(epoch)), ..waiting.clone() };
        assert_eq!(asks(LEASE, &by(first)), []);
        assert_eq!(asks(LEASE, &by(other)), [], "it has asked");
        assert_eq!(asks(LEASE, &by(9)), [Call::Ask(shard)], "who asked is dead");
        // The peer is gone.
        let gone = asks(LEASE * 20, &by(other));
        assert_eq!(gone, [], "it is bound");
        let mut known = held(other, LEASE * 20, &by(other));
        known.reach.changed(Instant(1_000_000_000), BTreeSet::new(), BTreeSet::new());
        assert_eq!(known.plan(other, &nodes, &[by(other)]).calls, [Call::Withdraw(shard)]);
    }

    #[test]
    fn a_peer_that_only_its_owner_has_an_association_with_is_not_given_to_the_first() {
        let (first, other, shard) = ranked();
        let nodes = [node(1, 4), node(2, 4)];
        let asked = ShardRow { asked_by: Some(NodeEpoch(first)), ..row(shard.0, Some(other)) };
        let leaves = |mut known: Known| {
            known.shards = [shard].into();
            known.plan(other, &nodes, std::slice::from_ref(&asked)).leave
        };
        assert_eq!(leaves(held(other, LEASE, &asked)), []);
        assert_eq!(leaves(Known { draining: true, ..held(other, LEASE, &asked) }), [shard]);
        assert_eq!(leaves(Known::default()), [shard], "the peer has none");
        // The node has called it too.
        let mut known = held(other, LEASE, &asked);
        known.reach.changed(known.now, [shard].into(), BTreeSet::new());
        assert_eq!(leaves(known), [shard]);
        // It has hung up: it may call again, but perhaps another node.
        let hung_up = |after| {
            let mut known = held(other, LEASE, &asked);
            known.reach.changed(known.now, BTreeSet::new(), BTreeSet::new());
            known.now = known.now + after;
            known
        };
        assert_eq!(leaves(hung_up(LEASE)), []);
        assert_eq!(leaves(hung_up(Duration::from_secs(60))), [shard]);
        let mut known = hung_up(LEASE);
        known.reach.called_elsewhere(shard);
        assert_eq!(leaves(known), [shard]);
    }

    #[test]
    fn an_owner_that_cannot_send_gives_a_peer_to_the_node_that_it_has_called() {
        let (first, other, shard) = ranked();
        let nodes = [node(1, 4), node(2, 4)];
        let asked_by = Some(NodeEpoch(other));
        let idle = ShardRow { asked_by, ..row(shard.0, Some(first)) };
        let asked = ShardRow { waits: Some(Precedence::Flash), ..idle.clone() };
        let mut known = Known { shards: [shard].into(), ..Known::default() };
        // Looks at the store after this time.
        let leaves = |known: &mut Known, after, nodes: &[NodeRow], row: &ShardRow| {
            known.now = known.now + after;
            let (own, rows) = ((NodeEpoch(first), LEASE), std::slice::from_ref(row));
            known.reach.looked(known.now, own, (nodes, rows), |_| None);
            known.plan(first, nodes, rows).leave
        };
        let quarter = LEASE / 4;
        for expected in [&[][..], &[], &[shard]] {
            assert_eq!(leaves(&mut known, quarter, &nodes, &asked), expected);
        }
        assert_eq!(leaves(&mut known, quarter, &nodes[..1], &asked), [], "who asked is gone");
        assert_eq!(leaves(&mut known, quarter, &nodes, &idle), [], "nothing waits");
        for expected in [&[][..], &[], &[shard]] {
            assert_eq!(leaves(&mut known, quarter, &nodes, &asked), expected);
        }
        // It has an association, and then between two.
        known.reach.changed(known.now, [shard].into(), BTreeSet::new());
        assert_eq!(leaves(&mut known, LEASE, &nodes, &asked), []);
        known.reach.changed(known.now, BTreeSet::new(), BTreeSet::new());
        for expected in [&[][..], &[], &[shard]] {
            assert_eq!(leaves(&mut known, quarter, &nodes, &asked), expected);
        }
    }

    #[test]
    fn who_has_given_a_peer_away_leaves_it_to_who_asked() {
        let (first, other, shard) = ranked();
        let nodes = [node(1, 4), node(2, 4)];
        let asked = ShardRow { asked_by: Some(NodeEpoch(other)), ..row(shard.0, Some(first)) };
        let takes = |own: u32, owner: u32, since| {
            let (now, mut reach) = (Instant(1_000_000_000), Reach::default());
            let free = ShardRow { since, ..row(shard.0, None) };
            for row in [&asked, &free] {
                let before = |_| Some(NodeEpoch(owner));
                reach.looked(
                    now,
                    (NodeEpoch(own), LEASE),
                    (&nodes, std::slice::from_ref(row)),
                    before,
                );
            }
            let peers = [(shard, String::new())].into();
            let known = Known { reach, peers, now, ..Known::default() };
            known.plan(own, &nodes, &[free]).calls.len()
        };
        assert_eq!(takes(first, first, Duration::ZERO), 0);
        assert_eq!(takes(other, first, Duration::ZERO), 1);
        assert_eq!(takes(first, first, LEASE / 2), 1, "the other did not take it");
        assert_eq!(takes(first, 9, Duration::ZERO), 1, "its owner died, and gave nothing away");
    }

    #[test]
    fn a_peer_that_its_owner_keeps_does_not_keep_others_from_moving() {
        let peers: BTreeMap<QueueId, String> =
            (0..60).map(|shard| (QueueId(shard), String::new())).collect();
        let nodes = [node(1, 4), node(2, 4)];
        let mut rows: Vec<ShardRow> = (0..60).map(|shard| row(shard, Some(1))).collect();
        let mine = rows.iter_mut().find(|row| first_of(&nodes, row.shard) == Some(NodeEpoch(2)));
        mine.unwrap().asked_by = Some(NodeEpoch(2));
        let mut known = Known { peers, ..Known::default() };
        known.reach.looked(known.now, (NodeEpoch(2), LEASE), (&nodes, &rows), |_| None);
        assert_eq!(known.plan(2, &nodes, &rows).calls, []);
        known.now = known.now + LEASE;
        let next = known.plan(2, &nodes, &rows).calls;
        assert!(matches!(next[..], [Call::Ask(_)]), "{next:?}");
    }
}
