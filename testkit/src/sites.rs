//! The sites of a network: their names, addresses and configurations.

use crate::build::{canonical, channel, node, p3_listener, p7_listener, peer};
use base::Precedence;
use node::config::{Connection, Listener, ListenerService, NodeConfig, Peer, Route, Target};
use node::{ChannelId, ListenerId};
use osi::api::RtseParameters;
use p1::names::MtaName;

/// The first site.
pub const NAPLES: usize = 0;
/// The second site.
pub const ACT: usize = 1;
/// The third site.
pub const RELAY: usize = 2;

pub(crate) const NAMES: [&str; 6] = ["naples", "act", "relay", "rome", "oslo", "izmir"];

/// The listener of P3; channel `n` of a pair has the one after it.
pub const P3: ListenerId = ListenerId(0);

/// The listener of P7, where there is a mailbox in the message store; no channel has its number.
pub(crate) const P7: ListenerId = ListenerId(900);

/// What a test changes of the configurations of all sites.
#[derive(Clone, Copy)]
pub struct Setup {
    /// Of each channel.
    pub rts: fn(&mut RtseParameters),
    /// Of each node; listeners follow the channels.
    pub node: fn(&mut NodeConfig),
}

/// Changes nothing.
pub const NOTHING: Setup = Setup { rts: |_| {}, node: |_| {} };

/// The address of a user at a site.
pub fn address(site: usize, surname: &str) -> String {
    format!("/C=XX/ADMD=NATO/PRMD={}/S={surname}", NAMES[site].to_uppercase())
}

/// All addresses of a site lead there.
pub fn route(site: usize, to: Target) -> Route {
    let prefix = format!("/C=XX/ADMD=NATO/PRMD={}", NAMES[site].to_uppercase());
    Route { prefix: prefix.parse().expect("an address"), to }
}

/// The password by which peers know a site.
pub(crate) fn password(site: usize) -> String {
    format!("from-{}", NAMES[site])
}

/// The site of this name.
pub(crate) fn site_of(mta: &MtaName) -> usize {
    NAMES.iter().position(|name| name.to_uppercase() == mta.0).expect("a site")
}

/// Another site, as one of the peers of this one.
fn peer_at(site: usize, other: usize, setup: Setup, suffix: &str) -> Peer {
    let mut all = channel(0, "all", &Precedence::ALL);
    (all.associations_max, all.grow_at) = (2, 3);
    (setup.rts)(&mut all.rts);
    let (mta, own) = (NAMES[other].to_uppercase(), NAMES[site].to_uppercase());
    let name = format!("{}{suffix}", NAMES[other]);
    let mut peer = peer(&name, &mta, &own, &password(site), vec![all]);
    peer.octet_credentials = site == ACT;
    peer
}

/// The configuration of a site that has links to these others.
pub(crate) fn config(
    site: usize,
    epoch: u32,
    setup: Setup,
    suffix: &str,
    others: &[usize],
) -> NodeConfig {
    let upper = NAMES[site].to_uppercase();
    let peers = others.iter().map(|other| peer_at(site, *other, setup, suffix)).collect();
    let mut config = node(&upper, &upper, peers);
    let to = others.iter().zip(&config.peers);
    let to = to.map(|(other, peer)| route(*other, Target::Peer(peer.id())));
    config.routes = std::iter::once(route(site, Target::Local)).chain(to).collect();
    config.mailboxes = ["OPS", "LOG"].map(|name| canonical(&address(site, name))).to_vec();
    config.epoch = epoch;
    (setup.node)(&mut config);
    listen(&mut config);
    config
}

/// The configuration of a site that has links to these others: two users, and a channel for all to each.
pub fn site_config(site: usize, others: &[usize]) -> NodeConfig {
    config(site, 1, NOTHING, "", others)
}

/// Has a listener of P3, one for each channel, and one of P7 if a user has a mailbox in the message store.
pub fn listen(config: &mut NodeConfig) {
    let own = site_of(&config.mta);
    config.listeners.clear();
    config.listeners.push(p3_listener(P3));
    if !config.store.users.is_empty() {
        config.listeners.push(p7_listener(P7));
    }
    for peer in &config.peers {
        // The other one of the first two sites has the first numbers.
        let other = site_of(&peer.mta);
        let from = if own + other == 1 { 0 } else { 1_000 * (1 + other as u32) };
        config.listeners.extend(peer.channels().map(|(ChannelId { peer, index }, _)| Listener {
            id: ListenerId(P3.0 + 1 + from + index),
            service: ListenerService::P1 { peer, channel: index },
        }));
    }
}

/// The configuration of a site of a pair, changed so.
pub fn node_config(site: usize, node: fn(&mut NodeConfig)) -> NodeConfig {
    config(site, 1, Setup { node, ..NOTHING }, "", &[1 - site])
}

/// The channels of the published study: one for each precedence, Deferred with Routine.
pub fn five_channels(config: &mut NodeConfig) {
    let precedences: [&[Precedence]; 5] = [
        &Precedence::ALL[..2],
        &Precedence::ALL[2..3],
        &Precedence::ALL[3..4],
        &Precedence::ALL[4..5],
        &Precedence::ALL[5..],
    ];
    let names = ["routine", "priority", "immediate", "flash", "override"];
    let model = config.peers[0].channels[0].clone();
    let channels = (0..).zip(precedences.iter().zip(names)).map(|(index, (precedences, name))| {
        let mut channel = model.clone();
        channel.index = index;
        channel.name = name.to_owned();
        channel.precedences = precedences.to_vec();
        channel.connection = Connection::Permanent;
        channel.associations_max = 1;
        channel
    });
    config.peers[0].channels = channels.collect();
}
