//! What a node shows of its site in its own status.

use crate::watcher::Figures;
use base::{Instant, PeerId};
use engine::NextHop;
use membership::{Membership, NodeRow};
use status::{ELSEWHERE, OtherNode, SiteStatus, Status};

/// Adds to a status what the node cannot know of its site: the owners of peers, the node itself and the others.
/// `figures`: what is known of the database.
pub fn add_site(
    status: &mut Status,
    machine: &Membership,
    now: Instant,
    figures: Option<&Figures>,
) {
    for peer in &mut status.peers {
        let shard = NextHop::Peer(PeerId::of_name(&peer.name)).queue();
        let owner = machine.owner_of(shard).filter(|owner| Some(*owner) != machine.epoch());
        peer.owner = owner.and_then(|owner| machine.name_of(owner)).map(str::to_owned);
        let Some(owner) = &peer.owner else { continue };
        let elsewhere = peer.channels.iter_mut().filter(|c| c.closed.as_deref() == Some(ELSEWHERE));
        elsewhere.for_each(|channel| channel.closed = Some(format!("node {owner} has this peer")));
    }
    let others = machine.nodes().iter().filter(|node| Some(node.epoch) != machine.epoch());
    let other = |node: &NodeRow| OtherNode {
        node: node.name.clone(),
        lease_holds: !node.lease_left.is_zero(),
        draining: node.draining,
    };
    let away = figures.map(|figures| figures.away).filter(|away| !away.is_zero());
    status.site = Some(SiteStatus {
        node: machine.name().to_owned(),
        epoch: machine.epoch().map(|epoch| epoch.0),
        lease_holds: machine.is_member(now),
        lease_left_seconds: machine.lease_left(now).as_secs_f64(),
        draining: machine.is_draining(),
        drained: machine.is_drained(),
        shards: machine.owned().map(|(_, name, _)| name.to_owned()).collect(),
        others: others.map(other).collect(),
        database_away_seconds: away.map(|away| away.as_secs_f64()),
        no_commits: figures.and_then(Figures::no_commits),
    });
}
