//! The routes that a message can take, or not: among three sites, within one, to nobody, over connections
//! that are closed between two messages, and over a line that loses most packets.

use crate::setting::*;
use base::Precedence;
use network::Topology;
use node::config::Connection;
use node::event::Kind;
use sim::{
    ChannelSetup, MessageStage, SimulatedMessage, SitePlacement, SubmissionStart, UserId, run,
    sites,
};
use std::time::Duration;

#[test]
fn three_sites_send_to_each_other_and_to_themselves() {
    let text = include_str!("../../../../config/lab/topologies/nato.toml");
    let mut topology = Topology::read(text).unwrap();
    topology.routers.get_mut("naples-sar").unwrap().policy = None;
    let mut scenario = scenario(topology, &[], [("naples", "10.10.64.10"), ("act", "10.10.65.10")]);
    let hosts = [("naples", "10.10.64.10"), ("act", "10.10.65.10"), ("aco", "10.10.66.10")];
    let places = hosts.map(|(name, address)| SitePlacement {
        name: name.into(),
        host: name.into(),
        address: address.parse().unwrap(),
        users: vec!["OPS".into(), "LOG".into()],
    });
    scenario.sites = sites(&places, &ChannelSetup::default()).unwrap();
    for from in 0..3 {
        for (to, place) in places.iter().enumerate() {
            let start = SubmissionStart::At(Duration::from_millis(3_000 + 10 * to as u64));
            let from = UserId { site: from, user: 1 };
            let one = message(Precedence::Immediate, 20_000 + to as u64, start);
            scenario.messages.push(SimulatedMessage { from, to: place.user("OPS"), ..one });
        }
    }
    let outcome = run(&scenario).unwrap();
    assert!(outcome.complete, "{:?}", outcome.messages);
    for (message, times) in scenario.messages.iter().zip(&outcome.messages) {
        assert!(times.intact && times.deliveries == 1, "{times:?}");
        let is_local = message.to.contains(&places[message.from.site].name.to_uppercase());
        assert_eq!(times.started.is_none(), is_local, "{message:?} {times:?}");
        assert_eq!(times.confirmed.is_none(), is_local);
    }
}

#[test]
fn a_message_to_nobody_ends_and_what_waits_for_it_never_starts() {
    let mut scenario = pair("512kbit", 5);
    let to = "/C=XX/ADMD=NATO/PRMD=ACT/S=NOBODY".to_owned();
    let one = message(Precedence::Flash, 1_000, SubmissionStart::At(seconds(1)));
    scenario.messages.push(SimulatedMessage { to, ..one });
    let after = |stage| SubmissionStart::After { message: 0, stage, delay: seconds(1) };
    scenario.messages.push(message(Precedence::Flash, 1_000, after(MessageStage::Delivered)));
    scenario.messages.push(message(Precedence::Flash, 1_000, after(MessageStage::Accepted)));
    let outcome = run(&scenario).unwrap();
    let [nobody, never, later] = &outcome.messages[..] else { panic!() };
    assert!(outcome.complete && outcome.ended < seconds(10), "{outcome:?}");
    assert!(nobody.accepted.is_some() && nobody.confirmed.is_some(), "{nobody:?}");
    assert!(nobody.refused.is_some() && nobody.delivered.is_none(), "{nobody:?}");
    assert_eq!(never, &sim::SimulatedTimes::default());
    assert_eq!(later.submitted.unwrap(), nobody.accepted.unwrap() + seconds(1));
    assert!(later.intact);
}

#[test]
fn connections_opened_by_traffic_are_closed_and_made_again() {
    let mut scenario = pair("512kbit", 5);
    for site in &mut scenario.sites {
        for channel in &mut site.config.peers[0].channels {
            channel.connection = Connection::OnDemand { idle_close: seconds(5) };
        }
    }
    scenario.messages.push(message(Precedence::Flash, 1_000, SubmissionStart::At(seconds(1))));
    scenario.messages.push(message(Precedence::Flash, 1_000, SubmissionStart::At(seconds(60))));
    let outcome = run(&scenario).unwrap();
    assert!(outcome.complete && outcome.messages.iter().all(|one| one.intact));
    let made: Vec<_> = outcome.tcp.iter().filter(|one| one.initiator).collect();
    let opened: Vec<u64> = made.iter().map(|one| one.opened.as_secs()).collect();
    assert_eq!(opened, [1, 60], "{made:?}");
    let count = |kind| outcome.events.iter().filter(|(_, _, event)| event.kind == kind).count();
    // At both ends, and each user's.
    assert_eq!(count(Kind::AssociationOpened), 2 * 2 + 2);
    assert_eq!((count(Kind::AssociationReleased), count(Kind::AssociationLost)), (2, 0));
}

#[test]
fn a_line_that_loses_most_packets_ends_associations_and_delivers_nothing_twice() {
    let mut scenario = pair("512kbit", 5);
    scenario.tcp.dead_after = seconds(20);
    scenario.topology.links[1].loss = 0.6;
    scenario.until = seconds(2 * 3_600);
    scenario.messages.push(message(Precedence::Flash, 20_000, SubmissionStart::At(seconds(1))));
    let outcome = run(&scenario).unwrap();
    let times = &outcome.messages[0];
    let lost = outcome.events.iter().any(|(_, _, event)| event.kind == Kind::AssociationLost);
    assert!(lost && times.deliveries <= 1, "{times:?}");
    assert_eq!(times.delivered.is_some(), times.intact);
    let per_second = outcome.steps / outcome.ended.as_secs();
    assert!(per_second < 100, "nobody is woken for nothing: {per_second}");
}
