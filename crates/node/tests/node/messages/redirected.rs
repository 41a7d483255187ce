//! Recipients who are redirected, in virtual time: to whom the message goes, once, and what ends a loop.
//! Three MTAs, each of which has the others for peers.

use base::Precedence;
use node::changes::EdgeChanges;
use node::config::{NodeConfig, Target};
use node::event::Kind;
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use std::time::Duration;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, RELAY, address, route};

/// The redirections of the ring: the site's alternate is nobody at the next site.
fn next_of(site: usize) -> usize {
    (site + 1) % 3
}

fn name(site: usize, surname: &str) -> ORName {
    ORName { address: address(site, surname).parse().unwrap(), directory_name: None }
}

/// Three sites; OPS of each is bound, and submits what alternates are allowed for.
fn ring(seed: u64) -> (Network, [usize; 3]) {
    let mut network = Network::with_relay(seed, NOTHING);
    let users = [NAPLES, ACT, RELAY].map(|site| network.user(site, "OPS", true));
    for (site, user) in users.into_iter().enumerate() {
        network.users[user].indicators = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
        network.bind(user, site);
    }
    network.run_for(Duration::from_secs(1));
    (network, users)
}

fn configure(network: &mut Network, site: usize, change: impl FnOnce(&mut NodeConfig)) {
    network.configure(site, change, EdgeChanges::default());
}

fn submit(network: &mut Network, user: usize, to: &str) {
    let to = [to.to_owned()];
    network.submit(user, &to, Precedence::Flash, b"text", "MESSAGE", ReportRequest::NonDelivery);
}

fn messages(network: &Network, user: usize) -> usize {
    let taken = network.users[user].delivered.iter();
    taken.filter(|d| matches!(d, Delivered::Message { .. })).count()
}

fn reports(network: &Network, user: usize) -> usize {
    network.users[user].delivered.len() - messages(network, user)
}

#[test]
fn three_sites_that_redirect_in_a_ring_end_in_one_report() {
    for seed in 0..4 {
        let (mut network, users) = ring(seed);
        for site in [NAPLES, ACT, RELAY] {
            let next = name(next_of(site), "NOBODY");
            configure(&mut network, site, |config| config.alternate_recipient = Some(next));
        }
        submit(&mut network, users[NAPLES], &address(NAPLES, "NOBODY"));
        network.run_for(Duration::from_secs(120));
        let redirected =
            [NAPLES, ACT, RELAY].map(|site| network.sites[site].count(Kind::Redirected));
        assert_eq!(redirected, [1, 1, 0]);
        // The third finds the first name in the history.
        let failed = network.sites[RELAY].details(Kind::NonDelivery);
        assert_eq!(failed.len(), 1);
        assert!(failed[0].starts_with("the alternate had the message before: "), "{failed:?}");
        assert_eq!(users.map(|user| messages(&network, user)), [0, 0, 0]);
        assert_eq!(users.map(|user| reports(&network, user)), [1, 0, 0]);
        // The report names whom it was for, and whom it went to last.
        let reported = &network.users[users[NAPLES]].reported;
        assert_eq!(reported[..], [Some(name(RELAY, "NOBODY").to_string())]);
        let intended = &network.users[users[NAPLES]].intended;
        assert_eq!(intended[..], [Some(name(NAPLES, "NOBODY").to_string())]);
        network.assert_empty();
    }
}

#[test]
fn a_site_s_alternate_gets_it_with_the_name_it_was_for() {
    let (mut network, users) = ring(5);
    let log = name(RELAY, "OPS");
    configure(&mut network, ACT, |config| config.alternate_recipient = Some(log));
    submit(&mut network, users[NAPLES], &address(ACT, "NOBODY"));
    network.run_for(Duration::from_secs(60));
    assert_eq!(users.map(|user| messages(&network, user)), [0, 0, 1]);
    assert_eq!(users.map(|user| reports(&network, user)), [0, 0, 0]);
    let intended = &network.users[users[RELAY]].intended;
    assert_eq!(intended[..], [Some(name(ACT, "NOBODY").to_string())]);
    // Where it is not allowed, it is reported.
    network.users[users[NAPLES]].indicators = PerMessageIndicators::default();
    submit(&mut network, users[NAPLES], &address(ACT, "NOBODY"));
    network.run_for(Duration::from_secs(60));
    assert_eq!(users.map(|user| messages(&network, user)), [0, 0, 1]);
    assert_eq!(users.map(|user| reports(&network, user)), [1, 0, 0]);
    network.assert_empty();
}

/// The confirm of the transfer is lost, and the message comes again through the third site.
#[test]
fn a_redirected_message_that_arrives_by_two_routes_is_delivered_once() {
    for seed in 0..8 {
        let (mut network, users) = ring(seed);
        let ops = name(ACT, "OPS");
        configure(&mut network, ACT, |config| config.alternate_recipient = Some(ops));
        submit(&mut network, users[NAPLES], &address(ACT, "NOBODY"));
        for _ in 0..100_000 {
            if network.sites[ACT].count(Kind::Received) >= 1 {
                break;
            }
            network.run_for(Duration::from_micros(500));
        }
        network.cut();
        assert_eq!(network.sites[NAPLES].count(Kind::TransferConfirmed), 0, "it is in doubt");
        configure(&mut network, NAPLES, |config| {
            config.peers.remove(0);
            let relay = Target::Peer(config.peers[0].id());
            config.routes.truncate(1);
            config.routes.push(route(ACT, relay));
        });
        network.run_for(Duration::from_secs(120));
        assert_eq!(network.sites[RELAY].count(Kind::TransferConfirmed), 1);
        assert_eq!(network.sites[ACT].count(Kind::DuplicateDropped), 1);
        assert_eq!(messages(&network, users[ACT]), 1);
        assert_eq!(network.sites[ACT].count(Kind::Redirected), 1);
        network.assert_empty();
    }
}

/// The peer is away until the message expires: it goes to the alternate that the originator requested,
/// with its content.
#[test]
fn an_expired_message_goes_to_the_alternate_requested() {
    let (mut network, users) = ring(9);
    network.users[users[NAPLES]].alternate = Some(address(RELAY, "OPS"));
    network.line_up = false;
    network.cut();
    let to = [address(ACT, "OPS")];
    let content = testkit::build::content(1, 3_000_000);
    let report = ReportRequest::NonDelivery;
    network.submit(users[NAPLES], &to, Precedence::Flash, &content, "MESSAGE", report);
    network.run_for(Duration::from_secs(4 * 3_600 + 60));
    assert_eq!(network.sites[NAPLES].count(Kind::Expired), 1);
    // Its time counts anew: it does not expire again at once.
    network.line_up = true;
    if !network.is_bound(users[RELAY]) {
        network.bind(users[RELAY], RELAY);
    }
    network.run_for(Duration::from_secs(3_600));
    assert_eq!(network.sites[NAPLES].count(Kind::Expired), 1);
    assert_eq!(network.sites[NAPLES].count(Kind::Redirected), 1);
    assert_eq!(users.map(|user| reports(&network, user)), [0, 0, 0]);
    let taken = &network.users[users[RELAY]].delivered;
    let [Delivered::Message { content: got, .. }] = &taken[..] else { panic!("{taken:?}") };
    assert!(*got == content, "the whole content");
    network.assert_empty();
}

/// The report is relayed in a circle: it ends there, and causes no report.
#[test]
fn a_report_that_loops_is_discarded() {
    let (mut network, users) = ring(11);
    let other = |config: &NodeConfig, name: &str| {
        let peer = config.peers.iter().find(|peer| peer.name == name).unwrap();
        Target::Peer(peer.id())
    };
    for (site, via) in [(ACT, "relay"), (RELAY, "act")] {
        configure(&mut network, site, |config| {
            let via = other(config, via);
            config.routes.retain(|r| r.prefix != route(NAPLES, Target::Local).prefix);
            config.routes.push(route(NAPLES, via));
        });
    }
    submit(&mut network, users[NAPLES], &address(ACT, "NOBODY"));
    network.run_for(Duration::from_secs(120));
    assert_eq!(users.map(|user| reports(&network, user)), [0, 0, 0]);
    assert_eq!(network.sites[ACT].count(Kind::ReportMade), 1);
    assert_eq!(network.sites[RELAY].count(Kind::Received), 1);
    let discarded = network.sites[ACT].details(Kind::Discarded);
    assert_eq!(discarded.len(), 1);
    assert!(discarded[0].ends_with("loop detected"), "{discarded:?}");
    network.assert_empty();
}
