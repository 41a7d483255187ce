//! A report of non-delivery returns the content of its subject to an originator who asked for it, octet for octet,
//! through other MTAs, and nothing of it stays behind.

use base::Precedence;
use bytes::Bytes;
use node::event::Kind;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, address, route};

/// Beyond what is kept in memory.
const LONG: usize = 3 << 20;

/// Naples reaches Act through the relay; OPS in Naples is bound, and wants contents returned.
fn relayed(seed: u64) -> (Network, usize) {
    let mut network = Network::with_relay(seed, NOTHING);
    let sender = network.user(NAPLES, "OPS", true);
    network.users[sender].wants_content = true;
    network.bind(sender, NAPLES);
    for site in [NAPLES, ACT] {
        let change = |config: &mut node::config::NodeConfig| {
            config.peers.remove(0);
            let relay = node::config::Target::Peer(config.peers[0].id());
            config.routes.truncate(1);
            config.routes.push(route(1 - site, relay));
        };
        network.configure(site, change, node::changes::EdgeChanges::default());
    }
    network.run_for(Duration::from_secs(1));
    (network, sender)
}

fn submit(network: &mut Network, user: usize, to: &str, octets: &[u8]) {
    let to = [to.to_owned()];
    let asks = ReportRequest::Report;
    network.submit(user, &to, Precedence::Routine, octets, "MESSAGE", asks);
}

/// What reports returned to the user, once as many as these have come.
fn returned(network: &mut Network, user: usize, count: usize) -> Vec<Option<Bytes>> {
    for _ in 0..1_000 {
        if network.users[user].returned.len() >= count {
            break;
        }
        network.run_for(Duration::from_secs(1));
    }
    network.users[user].returned.clone()
}

fn at_rest(network: &mut Network) {
    network.run_for(Duration::from_secs(120));
    network.assert_empty();
}

#[test]
fn through_a_relay_it_comes_back_octet_for_octet() {
    let (mut network, sender) = relayed(1);
    for (n, length) in [0, 1_000, LONG].into_iter().enumerate() {
        let octets = if length == 0 { Vec::new() } else { content(n, length) };
        submit(&mut network, sender, &address(ACT, "NOBODY"), &octets);
        let found = returned(&mut network, sender, n + 1);
        assert_eq!(found.len(), n + 1);
        assert!(found[n].as_deref() == Some(&octets[..]), "{length} octets");
    }
    let reports = |d: &Delivered| matches!(d, Delivered::Report { delivered: false, .. });
    assert!(network.users[sender].delivered.iter().all(reports));
    at_rest(&mut network);
}

#[test]
fn a_delivery_and_a_sender_who_did_not_ask_get_none() {
    let (mut network, sender) = relayed(2);
    let reader = network.user(ACT, "OPS", true);
    network.bind(reader, ACT);
    submit(&mut network, sender, &address(ACT, "OPS"), &content(1, 1_000));
    assert_eq!(returned(&mut network, sender, 1), [None]);
    network.users[sender].wants_content = false;
    submit(&mut network, sender, &address(ACT, "NOBODY"), &content(2, 1_000));
    assert_eq!(returned(&mut network, sender, 2), [None, None]);
    at_rest(&mut network);
}

#[test]
fn a_local_failure_and_one_that_expires_return_it_too() {
    let (mut network, sender) = relayed(3);
    let octets = content(1, LONG);
    submit(&mut network, sender, &address(NAPLES, "NOBODY"), &octets);
    let found = returned(&mut network, sender, 1);
    assert!(found[0].as_deref() == Some(&octets[..]));

    network.users[sender].latest = Some(network.clock().utc + Duration::from_secs(30));
    network.line_up = false;
    submit(&mut network, sender, &address(ACT, "OPS"), &octets);
    let found = returned(&mut network, sender, 2);
    assert!(found.len() == 2 && found[1].as_deref() == Some(&octets[..]));
    assert_eq!(network.sites[NAPLES].count(Kind::Expired), 1);
    network.line_up = true;
    at_rest(&mut network);
}

#[test]
fn what_is_longer_than_the_limit_is_not_returned_and_the_log_names_the_limit() {
    let (mut network, sender) = relayed(4);
    let change = |config: &mut node::config::NodeConfig| config.limits.returned_content = 999;
    network.configure(ACT, change, node::changes::EdgeChanges::default());
    submit(&mut network, sender, &address(ACT, "NOBODY"), &content(1, 1_000));
    assert_eq!(returned(&mut network, sender, 1), [None]);
    let details = network.sites[ACT].details(Kind::ContentNotReturned);
    let [detail] = &details[..] else { panic!("{details:?}") };
    assert!(detail.ends_with("1000 octets, and returned_content of limits is 999"), "{detail}");
    at_rest(&mut network);
}
