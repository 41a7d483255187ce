//! Messages that an earlier version accepted, with identifiers that are refused today: queued ones are
//! transferred, delivered or reported unchanged.

use base::Precedence;
use engine::Record;
use node::event::Kind;
use p1::apdu::MtsApduHead;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::{ACT, Death, Delivered, Events, NAPLES, NOTHING, Network, Setup, address};

/// Local identifiers that the queued message gets.
const IDENTIFIERS: [&str; 2] = ["123456789012345678901234567890123", "x\n\u{1b}[2J"];

/// One message of Naples to this site, queued under this identifier when the MTA starts again.
fn queued(to: usize, local: &str) -> (Network, usize) {
    let node = |config: &mut node::config::NodeConfig| {
        *config.times.expire.0.get_mut(Precedence::Flash) = Duration::from_secs(120);
    };
    let mut network = Network::pair(5, Setup { node, ..NOTHING });
    network.line_up = false;
    network.cut();
    let sender = network.user(NAPLES, "OPS", true);
    network.bind(sender, NAPLES);
    network.run_for(Duration::from_secs(1));
    let (to, report) = ([address(to, "LOG")], ReportRequest::NonDelivery);
    network.submit(sender, &to, Precedence::Flash, &[1; 1_000], "MESSAGE", report);
    network.run_for(Duration::from_secs(1));
    for octets in network.sites[NAPLES].store.entries.values_mut() {
        let mut record = Record::decode(octets).unwrap();
        let MtsApduHead::Message(envelope) = &mut record.head else { panic!("a message") };
        envelope.message_identifier.local = local.to_owned();
        *octets = record.encode();
    }
    assert_eq!(network.sites[NAPLES].store.entries.len(), 1);
    network.crash_as(NAPLES, Death::Process, 0);
    (network, sender)
}

fn failures(network: &Network) -> Vec<&str> {
    network.sites[NAPLES].details(Kind::StoreFailed)
}

#[test]
fn a_message_with_an_old_identifier_is_delivered_from_the_mailbox() {
    for local in IDENTIFIERS {
        let (mut network, _) = queued(NAPLES, local);
        let reader = network.user(NAPLES, "LOG", true);
        network.bind(reader, NAPLES);
        network.run_for(Duration::from_secs(10));
        assert_eq!(failures(&network), [""; 0]);
        let [Delivered::Message { content, .. }] = &network.users[reader].delivered[..] else {
            panic!("{local:?}: {:?}", network.users[reader].delivered.len());
        };
        assert_eq!(content[..], [1; 1_000]);
        assert!(network.sites[NAPLES].store.entries.is_empty());
    }
}

#[test]
fn a_message_with_an_old_identifier_is_reported_when_it_expires() {
    for local in IDENTIFIERS {
        let (mut network, sender) = queued(ACT, local);
        network.bind(sender, NAPLES);
        network.run_for(Duration::from_secs(900));
        assert_eq!(failures(&network), [""; 0]);
        let [Delivered::Report { delivered: false, .. }] = &network.users[sender].delivered[..]
        else {
            panic!("{local:?}: {:?}", network.users[sender].delivered.len());
        };
        assert!(network.sites[NAPLES].store.entries.is_empty());
    }
}
