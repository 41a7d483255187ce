//! X.410 mode between two MTAs: configured by peer, recognised by the mode-selector of what arrives.

use base::Precedence;
use node::config::{NodeConfig, X410};
use node::event::Kind;
use osi::api::Dialogue;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Delivered, Events, NAPLES, Network, Setup, address};

const P1_1988: X410 = X410 { protocol: 12, swapped: false };

fn both(config: &mut NodeConfig) {
    config.peers[0].x410 = Some(P1_1988);
}

/// Naples calls in X.410 mode, Act in normal mode.
fn one(config: &mut NodeConfig) {
    config.peers[0].x410 = Some(P1_1988).filter(|_| config.mta.0 == "NAPLES");
}

/// Naples sends the two octets of the number the other way round.
fn swapped(config: &mut NodeConfig) {
    let protocol = if config.mta.0 == "NAPLES" { 3072 } else { 12 };
    config.peers[0].x410 = Some(X410 { protocol, swapped: false });
}

fn swapped_and_taken(config: &mut NodeConfig) {
    swapped(config);
    if let Some(x410) = &mut config.peers[0].x410 {
        x410.swapped = true;
    }
}

/// Messages of all precedences both ways, and a report. How many arrive at each end, and the network.
fn exchange(node: fn(&mut NodeConfig), opener: Option<usize>) -> ([usize; 2], Network) {
    let mut network =
        Network::pair(7, Setup { node, rts: |rts| rts.dialogue = Dialogue::TwoWayAlternate });
    for (number, site) in network.sites.iter_mut().enumerate() {
        site.may_connect = opener.is_none_or(|opener| opener == number);
    }
    let users = [NAPLES, ACT].map(|site| network.user(site, "OPS", true));
    users.iter().zip([NAPLES, ACT]).for_each(|(user, site)| network.bind(*user, site));
    for (n, precedence) in Precedence::ALL.into_iter().enumerate() {
        for (site, user) in users.into_iter().enumerate() {
            let to = [address(1 - site, "OPS"), address(1 - site, "NOBODY")];
            let (text, id) = (content(n, 10 + 20_000 * n), format!("MESSAGE {site} {n}"));
            let report = ReportRequest::NonDelivery;
            network.submit(user, &to, precedence, &text, &id, report);
        }
    }
    network.run_for(Duration::from_secs(120));
    let messages = users.map(|user| {
        let delivered = network.users[user].delivered.iter();
        let (messages, reports): (Vec<_>, Vec<_>) =
            delivered.partition(|delivered| matches!(delivered, Delivered::Message { .. }));
        assert_eq!(messages.len(), reports.len(), "a report on each: {reports:?}");
        for message in &messages {
            let Delivered::Message { content: octets, .. } = message else { continue };
            assert!((0..6).any(|n| *octets == content(n, 10 + 20_000 * n)));
        }
        messages.len()
    });
    (messages, network)
}

#[test]
fn messages_of_all_precedences_and_reports_go_both_ways() {
    for opener in [None, Some(NAPLES), Some(ACT)] {
        let (messages, mut network) = exchange(both, opener);
        assert_eq!(messages, [6, 6], "{opener:?}");
        network.run_for(Duration::from_secs(700));
        network.assert_empty();
    }
}

#[test]
fn a_peer_in_x410_mode_may_call_in_normal_mode() {
    let (messages, _) = exchange(one, Some(ACT));
    assert_eq!(messages, [6, 6]);
}

#[test]
fn a_call_in_x410_mode_that_is_not_configured_is_refused_by_name() {
    let (messages, network) = exchange(one, Some(NAPLES));
    assert_eq!(messages, [0, 0]);
    let events = |site: usize| {
        let all = network.sites[site].events.iter().map(|(_, event)| event.detail.clone());
        all.collect::<Vec<_>>().join("\n")
    };
    assert!(events(ACT).contains("X.410 mode"), "{}", events(ACT));
    let refused = "refused: rtse: RTORJ, validationFailure (2) (X.228 9.1); we bind as";
    assert!(events(NAPLES).contains(refused), "{}", events(NAPLES));
    assert!(events(NAPLES).contains("; they refused at rtse; next try in "));
}

#[test]
fn an_application_protocol_that_is_swapped_is_taken_where_that_is_configured() {
    let (messages, network) = exchange(swapped, Some(NAPLES));
    assert_eq!(messages, [0, 0]);
    let refused = network.sites[ACT].details(Kind::AssociationRefused).join("\n");
    assert!(refused.contains("applicationProtocol of the RTORQ: 3072, where 12"), "{refused}");
    let (messages, _) = exchange(swapped_and_taken, None);
    assert_eq!(messages, [6, 6]);
}
