//! Work that grows with the recipients of a message is done in slices, and others have their turn
//! between them.

use crate::rig::{ACT_FLASH, ROME, Rig, user_address};
use base::{AssociationId, Utc};
use engine::{Config, Content, Engine, Route, RouteTarget};
use node::config::Limits;
use node::event::Kind;
use osi::api::{Payload, Request};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use std::time::Duration;

const ACT: &str = "192.0.2.10";
const IN_ROME: &str = "198.51.100.7";

fn name(address: &str) -> ORName {
    ORName { address: address.parse::<ORAddress>().unwrap(), directory_name: None }
}

/// A message to so many recipients of the rig's domain who do not exist, as a peer sends it.
fn message(from: &str, recipients: usize) -> Payload {
    let user = format!("/C=XX/ADMD=NATO/PRMD={from}/S=OPS");
    let mailbox = engine::canonical(&user.parse().unwrap());
    let to_here =
        Route { prefix: "/C=XX".parse().unwrap(), to: RouteTarget::Peer(base::PeerId(1)) };
    let mut there = Engine::new(Config {
        mta: MtaName(format!("MTA-{from}")),
        domain: GlobalDomainId::new("XX", "NATO", Some(from)),
        routes: vec![to_here],
        mailboxes: [mailbox.clone()].into(),
        content_max: Default::default(),
        dialects: Default::default(),
        expire: engine::Periods::default(),
        classify: Default::default(),
        epoch: 1,
    });
    let to = |n| PerRecipientSubmissionFields {
        recipient: name(&user_address(&format!("NOBODY{n}"))),
        ..Default::default()
    };
    let envelope = MessageSubmissionEnvelope {
        originator: name(&user),
        original_eits: None,
        content_type: p1::content_type::ContentType::p772(),
        content_identifier: None,
        priority: p1::flags::Priority::Normal,
        indicators: Default::default(),
        deferred_delivery_time: None,
        recipients: (0..recipients).map(to).collect(),
        extensions: Default::default(),
        unknown: Vec::new(),
    };
    let content = Content { length: 0, ..Content::default() };
    let now = Utc(1_767_225_600_000_000);
    let done = there.submit(now, &mailbox, &envelope, &content, &[]).unwrap();
    let entry = &done.accepted.entries[0];
    let payload = there.transfer_payload(&entry.record, p1::Dialect::Modern);
    Payload { head: payload.head, content_length: 0, tail: payload.tail }
}

fn send(rig: &mut Rig, id: AssociationId, payload: Payload) {
    rig.request(id, Request::Transfer { payload, resume: None });
    rig.run();
}

fn received(rig: &Rig) -> Vec<AssociationId> {
    let received = rig.events.iter().filter(|e| e.kind == Kind::Received);
    received.filter_map(|e| e.association).collect()
}

fn two_peers() -> (Rig, AssociationId, AssociationId) {
    let mut rig = Rig::new(Limits::default());
    let many = rig.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    let few = rig.mta(ROME, IN_ROME, "MTA-ROME", "theirs");
    (rig, many, few)
}

#[test]
fn one_to_a_few_is_not_delayed_by_one_to_thousands() {
    let (mut rig, many, few) = two_peers();
    send(&mut rig, many, message("ACT", 4_500));
    assert_eq!(received(&rig), [], "a slice of it is done");
    send(&mut rig, few, message("ROME", 3));
    assert_eq!(received(&rig), [few], "the other had its turn");
    // It is due at once: no time has to pass. Four more slices.
    for _ in 0..3 {
        assert!(rig.node.deadline().is_some_and(|at| at <= rig.now));
        rig.feed(node::Input::Tick);
        assert_eq!(received(&rig), [few]);
    }
    rig.pass(Duration::ZERO);
    assert_eq!(received(&rig), [few, many]);
    assert!(rig.node.deadline().is_none_or(|at| at > rig.now));
    let detail = |kind| rig.events.iter().filter(move |e| e.kind == kind).map(|e| &*e.detail);
    let told: Vec<&str> = detail(Kind::NonDelivery).collect();
    assert!(told.iter().any(|d| d.contains("4500 recipients")), "{told:?}");
}

#[test]
fn what_is_half_done_outlives_its_association_and_a_stop_waits_for_it() {
    let (mut rig, many, few) = two_peers();
    send(&mut rig, many, message("ACT", 2_500));
    for id in [many, few] {
        rig.feed(node::Input::Closed { association: id, error: None });
    }
    rig.feed(node::Input::Stop);
    assert_eq!(received(&rig), []);
    rig.pass(Duration::ZERO);
    assert_eq!(received(&rig), [many], "durable, and known again when it is repeated");
    assert_eq!(rig.node.holds(), node::status::Holds::default());
}

#[test]
fn what_came_of_a_message_is_logged_once_it_is_durable_and_not_where_the_commit_fails() {
    let (mut rig, _, few) = two_peers();
    let logged = |rig: &Rig, kind| rig.events.iter().filter(|e| e.kind == kind).count();
    let counts = |rig: &Rig| [Kind::NonDelivery, Kind::ReportMade].map(|kind| logged(rig, kind));
    rig.commits = false;
    for (result, expected) in
        [(Err("the disk is full".to_owned().into()), [0, 0]), (Ok(()), [1, 1])]
    {
        send(&mut rig, few, message("ROME", 3));
        let token = rig.uncommitted.pop().expect("a commit");
        assert_eq!(counts(&rig), [0, 0], "before the commit");
        rig.feed(node::Input::Committed { token, result });
        rig.run();
        assert_eq!(counts(&rig), expected);
    }
}
