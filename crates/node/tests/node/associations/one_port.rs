//! A peer that opens all its associations to one port, sends messages of any precedence there and marks nothing, while we
//! have a channel for each precedence to send.

use base::{AssociationId, Precedence};
use dscp::Dscp;
use node::config::{Channel, Connection, NodeConfig};
use node::event::{Kind, LogLevel};
use node::{Input, ListenerId};
use osi::api::Dialogue;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Bench, Events, NAPLES, Network, Setup, address};

const MARKS: [Dscp; 6] = [Dscp::CS1, Dscp::CS2, Dscp::CS3, Dscp::CS4, Dscp::CS5, Dscp::CS6];

/// Naples has six channels to send, and receives on the first; Act has one, and several associations.
fn six_to_one(config: &mut NodeConfig) {
    let only = config.peers[0].channels.remove(0);
    let on_demand = Connection::OnDemand { idle_close: Duration::from_secs(60) };
    let one = |(index, precedence): (usize, Precedence)| Channel {
        name: if index == 0 { only.name.clone() } else { format!("channel-{index}") },
        precedences: vec![precedence],
        fallback: Vec::new(),
        dscp: MARKS[index],
        connection: on_demand.clone(),
        ..only.clone()
    };
    config.peers[0].channels = match config.mta.0 == "NAPLES" {
        true => Precedence::ALL.into_iter().enumerate().map(one).collect(),
        false => vec![Channel { associations_max: 6, connection: on_demand, ..only }],
    };
}

#[test]
fn all_that_comes_to_one_port_is_accepted_and_the_missing_mark_is_logged_once() {
    let rts = |rts: &mut osi::api::RtseParameters| rts.dialogue = Dialogue::TwoWayAlternate;
    let mut network = Network::pair(3, Setup { node: six_to_one, rts });
    network.sites[NAPLES].may_connect = false;
    let (reader, sender) = (network.user(NAPLES, "OPS", true), network.user(ACT, "OPS", true));
    network.bind(reader, NAPLES);
    network.bind(sender, ACT);
    for round in 0..3 {
        for (n, precedence) in Precedence::ALL.into_iter().enumerate() {
            let (text, id) = (content(n, 10 + 20_000 * n), format!("MESSAGE {round} {n}"));
            let to = [address(NAPLES, "OPS")];
            network.submit(sender, &to, precedence, &text, &id, ReportRequest::NonDelivery);
        }
        network.run_for(Duration::from_secs(1));
        for association in 0..40 {
            let association = AssociationId(association);
            network.feed(NAPLES, Input::MarkSeen { association, dscp: Dscp::CS0 });
        }
        network.run_for(Duration::from_secs(300));
    }
    assert_eq!(network.users[reader].delivered.len(), 18);
    let loud = network.sites[NAPLES].events.iter().filter(|(_, e)| e.level != LogLevel::Info);
    let loud: Vec<_> = loud.map(|(_, e)| (e.kind, e.detail.as_str())).collect();
    assert!(matches!(loud[..], [(Kind::MarkMismatch, _)]), "{loud:#?}");
}

/// Associations that it holds open at once are none too many for a channel of a low precedence.
#[test]
fn six_associations_to_one_port_of_a_low_channel_are_open_at_once() {
    let channels = (0..).zip(Precedence::ALL);
    let on_demand = Connection::OnDemand { idle_close: Duration::from_secs(60) };
    let channels = channels.map(|(index, precedence)| Channel {
        connection: on_demand.clone(),
        dscp: MARKS[index as usize],
        ..testkit::build::permanent(index, &[precedence])
    });
    let mut bench: Bench = testkit::bench::facing(channels.collect(), Default::default());
    bench.start();
    for _ in 0..6 {
        let association = bench.mta(ListenerId(0), "192.0.2.10", "MTA-ACT", "theirs");
        bench.feed(Input::MarkSeen { association, dscp: Dscp::CS0 });
    }
    let status = bench.node.status(bench.clock());
    let associations = &status.peers[0].channels[0].associations;
    assert_eq!(associations.iter().filter(|a| a.state == "idle").count(), 6);
    assert_eq!(bench.count(Kind::MarkMismatch), 1);
}
