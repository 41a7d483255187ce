//! The configurations and the network of a world.

use crate::line::{Line, LineWire, Shared};
use crate::world::{Kept, Layout, Link, Profile, Reads, World};
use base::{Precedence, Windows};
use dscp::Dscp;
use engine::registered::Registration;
use node::config::{
    Channel, Connection, Minimize, NodeConfig, Peer, Release, Resume, Target, X410,
};
use osi::api::{Dialogue, Mode};
use p1::Dialect;
use p1::extension::{CommonName, Form, Qualifier};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use testkit::real::{Mutant, RealStore};
use testkit::{Delays, Network, listen, route, site_config};

/// Long enough for the set-up on the slowest line.
const SETUP: Duration = Duration::from_secs(120);

/// Room for the largest batch.
const SEGMENT: u64 = 32 << 10;

const SLOW_DISK: Delays = Delays {
    commit: Duration::from_millis(30),
    slow: Duration::from_millis(1_500),
    read: Duration::from_millis(5),
};

fn channels(link: &Link, model: &Channel) -> Vec<Channel> {
    let all = Precedence::ALL;
    let layout: &[(&str, &[Precedence], &[Precedence])] = match link.layout {
        Layout::One => &[("all", &all, &[])],
        Layout::Two => &[("lower", &all[..4], &all[4..]), ("urgent", &all[4..], &[])],
        Layout::Five => &[
            ("routine", &all[..2], &[]),
            ("priority", &all[2..3], &[]),
            ("immediate", &all[3..4], &[]),
            ("flash", &all[4..5], &[]),
            ("override", &all[5..], &[]),
        ],
    };
    let channels = (0..).zip(layout).map(|(index, (name, precedences, fallback))| {
        let mut channel = model.clone();
        channel.index = index;
        channel.name = (*name).to_owned();
        // One mark for each channel, so that a connection for another one is noticed.
        channel.dscp = Dscp::new(8 * (index as u8 + 1)).expect("a class selector");
        channel.precedences = precedences.to_vec();
        channel.fallback = fallback.to_vec();
        channel.connection = match link.kept {
            Kept::Permanent => Connection::Permanent,
            Kept::OnDemand(seconds) => {
                Connection::OnDemand { idle_close: Duration::from_secs(seconds) }
            }
            Kept::Scheduled(minute) => {
                let after = format!("00:{:02}-24:00", minute + 2);
                let before = format!("00:00-00:{minute:02}");
                let windows = if minute == 0 { vec![after] } else { vec![before, after] };
                Connection::Scheduled { windows: hours(&windows) }
            }
        };
        (channel.associations_max, channel.grow_at) = (link.associations, 2);
        channel.rts.checkpoint_size = link.checkpoint;
        channel.rts.window = link.window;
        channel.rts.dialogue =
            if link.two_way { Dialogue::TwoWayAlternate } else { Dialogue::Monologue };
        channel.setup_timeout = SETUP;
        channel
    });
    channels.collect()
}

fn hours(windows: &[String]) -> Windows {
    let windows = windows.iter().map(|window| window.parse().expect("hours"));
    Windows::new(windows.collect()).expect("not too many hours")
}

fn set_peer(peer: &mut Peer, link: &Link) {
    peer.channels = channels(link, &peer.channels[0]);
    peer.resume = if link.either { Resume::Either } else { Resume::Initiator };
    peer.octet_credentials = matches!(link.profile, Profile::X410 | Profile::P1Of1984);
    let dialect;
    (dialect, peer.x410) = match link.profile {
        Profile::Modern => (Dialect::Modern, None),
        Profile::X400Of1988 => (Dialect::BlueBook1988, None),
        Profile::X410 => {
            (Dialect::BlueBook1988, Some(X410 { protocol: Mode::P1_1988, swapped: true }))
        }
        Profile::P1Of1984 => {
            let dialect = Dialect::RedBook1984(CommonName::DomainDefined);
            (dialect, Some(X410 { protocol: Mode::P1_1984, swapped: true }))
        }
    };
    peer.form = Form {
        dialect,
        qualifier: if link.omits_qualifier { Qualifier::Omit } else { Qualifier::Private },
        explicit_defaults: !link.omits_defaults,
    };
    peer.release = if link.closes { Release::Close } else { Release::Release };
}

/// The configuration of a site.
pub(crate) fn config(world: &World, number: usize) -> NodeConfig {
    let site = &world.sites[number];
    let links: Vec<(usize, usize)> = world.links_of(number).collect();
    let others: Vec<usize> = links.iter().map(|(_, other)| *other).collect();
    let mut config = site_config(number, &others);
    for (peer, (link, _)) in config.peers.iter_mut().zip(&links) {
        set_peer(peer, &world.links[*link]);
    }
    let ids: BTreeMap<usize, _> =
        links.iter().zip(&config.peers).map(|((link, _), peer)| (*link, peer.id())).collect();
    config.routes = vec![route(number, Target::Local)];
    for there in (0..world.sites.len()).filter(|there| *there != number) {
        let first = world.ways_to(there)[number].and_then(|link| ids.get(&link));
        config.routes.extend(first.map(|peer| route(there, Target::Peer(*peer))));
    }
    config.hold.hold = site.hold;
    config.hold.preempt = site.preempt;
    config.hold.share = site.share;
    config.minimize = site.minimize.map(|minute| Minimize {
        floor: Precedence::Immediate,
        windows: hours(&[format!("00:{minute:02}-00:{:02}", minute + 2)]),
    });
    if site.has_mailbox {
        let stored = config.mailboxes.iter().filter(|address| address.ends_with("s=log"));
        config.store.users = stored.cloned().collect();
    }
    config.seed = world.seed;
    listen(&mut config);
    config
}

/// What the users of a site have registered.
fn registrations(world: &World, site: usize) -> Vec<(String, Registration)> {
    let of_site = world.redirected.iter().filter(|(from, _)| world.site_of(*from) == site);
    let register = |(from, to): &(usize, usize)| {
        let alternate = Some(testkit::build::name(&world.address(*to)));
        let registration = Registration { alternate, ..Registration::default() };
        (testkit::build::canonical(&world.address(*from)), registration)
    };
    of_site.map(register).collect()
}

/// The network of a world, and the line of each link.
pub(crate) fn network(world: &World, mutant: Option<Mutant>) -> (Network<RealStore>, Vec<Shared>) {
    let sites = (0..world.sites.len())
        .map(|site| {
            let store = RealStore::new(Vec::new(), mutant).with_segments(SEGMENT);
            (config(world, site), store.with_registrations(registrations(world, site)))
        })
        .collect();
    let mut network = Network::with_sites(sites, world.seed);
    network.latency = Duration::from_millis(1);
    network.sees_marks = true;
    for (site, drawn) in network.sites.iter_mut().zip(&world.sites) {
        site.delays = drawn.slow_disk.then_some(SLOW_DISK);
    }
    let line = |link: &Link| Rc::new(RefCell::new(Line::new(link.latency, link.rate)));
    let lines: Vec<Shared> = world.links.iter().map(line).collect();
    let mut by_ends = BTreeMap::new();
    for (link, line) in world.links.iter().zip(&lines) {
        let (a, b) = link.ends;
        by_ends.insert((a, b), line.clone());
        by_ends.insert((b, a), line.clone());
        if let Some(caller) = link.only_caller {
            network.never_calls.insert(if caller == a { (b, a) } else { (a, b) });
        }
    }
    network.lines = Some(Box::new(move |from, to| match by_ends.get(&(from, to)) {
        Some(line) => Box::new(LineWire::new(line.clone())),
        None => Box::<testkit::Direct>::default(),
    }));
    for user in 0..world.users() {
        network.user(user / 2, crate::world::NAMES[user % 2], true);
        match world.sites[user / 2].reads {
            Reads::Fetches(page) if world.reads(user) => network.read_over_p7(user, false, page),
            Reads::Deletes(page) if world.reads(user) => network.read_over_p7(user, true, page),
            _ => {}
        }
    }
    (network, lines)
}
