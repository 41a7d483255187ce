//! Sites with a channel for each code point to each other: the setting of the published study, for
//! scenarios that ask for no other.

use crate::scenario::{ScenarioError, SimulatedSite, SiteUser};
use base::Precedence;
use bytes::Bytes;
use dscp::{Dscp, Plan};
use node::config::{
    Channel, Connection, HoldPolicy, Limits, Listener, ListenerService, NodeConfig, Peer, Reopen,
    Route, Target,
};
use node::{ChannelId, ListenerId, Secret};
use osi::api::{Dialogue, RtseParameters, Selectors};
use p1::names::{GlobalDomainId, MtaName, ORAddress};
use router::policy::{KeyFault, Name};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The listener of P3; those of P1 have the numbers after it.
const P3: ListenerId = ListenerId(0);
/// Ports for the channels of one peer.
const PORTS_EACH: u16 = 10;

/// The host of a site, and its users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePlacement {
    /// Its name, in letters, digits and hyphens: `naples` is the MTA NAPLES of the private domain
    /// NAPLES.
    pub name: String,
    /// The host.
    pub host: Name,
    /// The address of the host it uses.
    pub address: IpAddr,
    /// Surnames of its users, who all take deliveries.
    pub users: Vec<String>,
}

impl SitePlacement {
    /// The O/R address of the user of this surname.
    pub fn user(&self, surname: &str) -> String {
        format!("{}/S={surname}", self.prefix())
    }

    fn prefix(&self) -> String {
        format!("/C=XX/ADMD=NATO/PRMD={}", self.name.to_uppercase())
    }
}

/// The properties that the channels have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSetup {
    /// The code point of each precedence; those that share one share a channel.
    pub plan: Plan,
    /// The port of the first channel to the first peer; the next channel has the next, the next
    /// peer's begin ten later.
    pub port: u16,
    /// Kept open, or opened by traffic.
    pub connection: Connection,
    /// Most associations of a channel.
    pub associations: u32,
    /// A further one for so many that wait.
    pub grow_at: u32,
    /// Checkpoints and window.
    pub rts: RtseParameters,
    /// Whether the checkpoint follows the rate measured.
    pub checkpoint_adapts: bool,
    /// What a higher message does to lower ones.
    pub hold: HoldPolicy,
}

impl Default for ChannelSetup {
    /// The defaults of the daemon's configuration.
    fn default() -> ChannelSetup {
        ChannelSetup {
            plan: Plan::Paper,
            port: 5_000,
            connection: Connection::Permanent,
            associations: 1,
            grow_at: 8,
            rts: RtseParameters {
                checkpoint_size: 64,
                window: 16,
                dialogue: Dialogue::TwoWayAlternate,
                indefinite_lengths: false,
                transfer_timeout: Duration::from_secs(120),
                longest_pause: Duration::ZERO,
            },
            checkpoint_adapts: true,
            hold: HoldPolicy::default(),
        }
    }
}

/// The sites at these places, each with channels to all others.
///
/// # Errors
/// A name that is none of an MTA or of a domain; more code points than there are ports for.
pub fn sites(
    places: &[SitePlacement],
    setup: &ChannelSetup,
) -> Result<Vec<SimulatedSite>, ScenarioError> {
    places.iter().enumerate().map(|(place, here)| site(places, place, here, setup)).collect()
}

/// Precedences that share a code point, the lowest first.
fn schedules(plan: Plan) -> Vec<(Dscp, Vec<Precedence>)> {
    let mut schedules: Vec<(Dscp, Vec<Precedence>)> = Vec::new();
    for precedence in Precedence::ALL {
        let dscp = plan.dscp(precedence);
        match schedules.iter_mut().find(|(one, _)| *one == dscp) {
            Some((_, schedule)) => schedule.push(precedence),
            None => schedules.push((dscp, vec![precedence])),
        }
    }
    schedules
}

/// The port at a site for a channel from a peer: peers are counted in the order of places, without
/// the site itself.
fn port(setup: &ChannelSetup, at: usize, from: usize, index: u32) -> Option<u16> {
    let peer = u16::try_from(if from > at { from - 1 } else { from }).ok()?;
    let index = u16::try_from(index).ok().filter(|index| *index < PORTS_EACH)?;
    setup.port.checked_add(peer.checked_mul(PORTS_EACH)?)?.checked_add(index)
}

fn address(text: &str, path: &str) -> Result<ORAddress, ScenarioError> {
    text.parse().map_err(|error| {
        ScenarioError::Scenario(KeyFault::at(
            path,
            format!("invalid O/R address {text:?}: {error}"),
        ))
    })
}

fn site(
    places: &[SitePlacement],
    at: usize,
    here: &SitePlacement,
    setup: &ChannelSetup,
) -> Result<SimulatedSite, ScenarioError> {
    let (mut peers, mut routes) = (Vec::new(), Vec::new());
    let (mut connects, mut listens) = (BTreeMap::new(), BTreeMap::new());
    let mut listeners =
        vec![Listener { id: P3, service: ListenerService::P3 { local: Selectors::default() } }];
    for (place, there) in places.iter().enumerate() {
        let prefix = address(&there.prefix(), &format!("sites[{place}].name"))?;
        if place == at {
            routes.push(Route { prefix, to: Target::Local });
            continue;
        }
        let peer = peer(here, there, setup);
        routes.push(Route { prefix, to: Target::Peer(peer.id()) });
        for (id, channel) in peer.channels() {
            let ports =
                (port(setup, at, place, channel.index), port(setup, place, at, channel.index));
            let (Some(ours), Some(theirs)) = ports else {
                let what = format!("no port is left for channel {} of its peers", channel.name);
                return Err(ScenarioError::Scenario(KeyFault::at(format!("sites[{at}]"), what)));
            };
            let number = u32::try_from(listeners.len()).unwrap_or(u32::MAX);
            let listener = ListenerId(P3.0.saturating_add(number));
            let service = ListenerService::P1 { peer: id.peer, channel: id.index };
            listeners.push(Listener { id: listener, service });
            listens.insert(listener, ours);
            connects.insert(id, SocketAddr::new(there.address, theirs));
        }
        peers.push(peer);
    }
    let users: Vec<String> = here.users.iter().map(|surname| here.user(surname)).collect();
    let mut mailboxes = Vec::new();
    for (number, user) in users.iter().enumerate() {
        let path = format!("sites[{at}].users[{number}]");
        mailboxes.push(engine::canonical(&address(user, &path)?));
    }
    let config = NodeConfig {
        mta: MtaName(here.name.to_uppercase()),
        domain: GlobalDomainId::new("XX", "NATO", Some(&here.name.to_uppercase())),
        peers,
        listeners,
        routes,
        mailboxes,
        alternate_recipient: None,
        store: node::config::StoreConfig::default(),
        classify: engine::classify::Policy::default(),
        clearances: Default::default(),
        hold: setup.hold,
        times: Default::default(),
        minimize: None,
        limits: Limits::default(),
        seed: at as u64,
        epoch: 1,
        salt: 0,
    };
    let user = |address| SiteUser { address, delivery: true };
    Ok(SimulatedSite {
        host: here.host.clone(),
        address: here.address,
        config,
        connects,
        listens,
        users: users.into_iter().map(user).collect(),
    })
}

fn peer(here: &SitePlacement, there: &SitePlacement, setup: &ChannelSetup) -> Peer {
    let channels = (0..).zip(schedules(setup.plan)).map(|(index, (dscp, precedences))| Channel {
        index,
        name: precedences.last().map_or_else(String::new, ToString::to_string),
        precedences,
        fallback: Vec::new(),
        dscp,
        connection: setup.connection.clone(),
        reopen: Reopen::default(),
        associations_max: setup.associations,
        grow_at: setup.grow_at,
        associations_keep: Duration::from_secs(10),
        minimize: None,
        rts: setup.rts.clone(),
        checkpoint_adapts: setup.checkpoint_adapts,
        setup_timeout: Duration::from_secs(30),
    });
    Peer {
        name: there.name.clone(),
        mta: MtaName(there.name.to_uppercase()),
        own_name: MtaName(here.name.to_uppercase()),
        own_password: Secret(Bytes::from_static(b"secret")),
        octet_credentials: false,
        from: Vec::new(),
        addresses: vec![there.address],
        form: p1::Form::default(),
        x410: None,
        local: Selectors::default(),
        remote: Selectors::default(),
        tpdu_size: None,
        resume: node::config::Resume::Initiator,
        release: node::config::Release::Release,
        content_max: None,
        message_aborts: node::config::MESSAGE_ABORTS,
        channels: channels.collect(),
    }
}

impl SimulatedSite {
    /// The channel that carries this precedence to the peer of this name.
    pub fn channel(&self, peer: &str, precedence: Precedence) -> Option<ChannelId> {
        let peer = self.config.peers.iter().find(|one| one.name == peer)?;
        let has = |(_, channel): &(ChannelId, &Channel)| channel.precedences.contains(&precedence);
        peer.channels().find(has).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_connects_to_the_listener_of_its_peers_channel() {
        let place = |name: &str, host: u8| SitePlacement {
            name: name.into(),
            host: name.into(),
            address: [10, 0, 0, host].into(),
            users: vec!["OPS".into()],
        };
        let places = [place("naples", 1), place("act", 2), place("aco", 3)];
        for plan in Plan::ALL {
            let all = sites(&places, &ChannelSetup { plan, ..<_>::default() }).unwrap();
            let count = if plan == Plan::Paper { 5 } else { 6 };
            for (here, site) in places.iter().zip(&all) {
                assert_eq!((site.connects.len(), site.listens.len()), (2 * count, 2 * count));
                for (id, to) in &site.connects {
                    let (_, ours) = site.config.channel(*id).unwrap();
                    let there = all.iter().find(|one| one.address == to.ip()).unwrap();
                    let listener = there.listens.iter().find(|(_, port)| **port == to.port());
                    let listener = there.config.listener(*listener.unwrap().0).unwrap();
                    let ListenerService::P1 { peer, channel } = listener.service else {
                        panic!("{listener:?}")
                    };
                    let id = ChannelId { peer, index: channel };
                    let (peer, theirs) = there.config.channel(id).unwrap();
                    assert_eq!(peer.name, here.name);
                    assert_eq!((&theirs.name, theirs.dscp), (&ours.name, ours.dscp));
                }
            }
            let flash = all[0].channel("act", Precedence::Flash).unwrap();
            assert_eq!(all[0].config.channel(flash).unwrap().1.dscp, plan.dscp(Precedence::Flash));
        }
    }
}
