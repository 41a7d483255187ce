//! Work that grows with the recipients of a message is done in slices; other work is done between
//! them.

use base::{AssociationId, Utc};
use engine::{Config, Content, Engine, Route, RouteTarget};
use node::config::Limits;
use node::event::Kind;
use osi::api::{Payload, Request};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use std::time::Duration;
use testkit::bench::{ACT_FLASH, ROME, two_peers, user_address};
use testkit::{Bench, Events};

const ACT: &str = "192.0.2.10";
const IN_ROME: &str = "198.51.100.7";

fn name(address: &str) -> ORName {
    ORName { address: address.parse::<ORAddress>().unwrap(), directory_name: None }
}

/// A message as a peer sends it, to this number of unknown recipients in the domain of the bench.
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
        alternate_recipient: None,
        content_max: Default::default(),
        accepted_max: u64::MAX,
        returned_max: 10 << 20,
        forms: Default::default(),
        expire: engine::Periods::default(),
        classify: Default::default(),
        clearances: Default::default(),
        epoch: 1,
        salt: 0,
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
    let payload = there.transfer_payload(&entry.record, p1::Dialect::Modern.into());
    Payload { head: payload.head, content_length: 0, tail: payload.tail }
}

fn send(bench: &mut Bench, id: AssociationId, payload: Payload) {
    bench.request(id, Request::Transfer { payload, resume: None });
    bench.settle();
}

fn received(bench: &Bench) -> Vec<AssociationId> {
    let received = bench.of_kind(Kind::Received);
    received.filter_map(|e| e.association).collect()
}

fn both_bound() -> (Bench, AssociationId, AssociationId) {
    let mut bench = two_peers(Limits::default(), |_| {});
    let many = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    let few = bench.mta(ROME, IN_ROME, "MTA-ROME", "theirs");
    (bench, many, few)
}

#[test]
fn a_message_to_few_is_not_delayed_by_one_to_thousands() {
    let (mut bench, many, few) = both_bound();
    send(&mut bench, many, message("ACT", 4_500));
    assert_eq!(received(&bench), [], "one slice is done");
    send(&mut bench, few, message("ROME", 3));
    assert_eq!(received(&bench), [few], "between two slices of the other");
    // The rest is due at once, without a wait: four more slices.
    for _ in 0..3 {
        assert!(bench.node.deadline().is_some_and(|at| at <= bench.now));
        bench.feed(node::Input::Tick);
        assert_eq!(received(&bench), [few]);
    }
    bench.pass(Duration::ZERO);
    assert_eq!(received(&bench), [few, many]);
    assert!(bench.node.deadline().is_none_or(|at| at > bench.now));
    let details = bench.details(Kind::NonDelivery);
    assert!(details.iter().any(|d| d.contains("4500 recipients")), "{details:?}");
}

#[test]
fn work_in_slices_continues_after_its_association_ends_and_a_stop_waits_for_it() {
    let (mut bench, many, few) = both_bound();
    send(&mut bench, many, message("ACT", 2_500));
    for id in [many, few] {
        bench.close(id);
    }
    bench.feed(node::Input::Stop);
    assert_eq!(received(&bench), []);
    bench.pass(Duration::ZERO);
    assert_eq!(received(&bench), [many], "it is durable, so a repetition is recognised");
    assert_eq!(bench.node.holds(), status::Holds::default());
}

#[test]
fn results_are_logged_after_the_commit_and_not_if_it_fails() {
    let (mut bench, _, few) = both_bound();
    let logged = |bench: &Bench, kind| bench.of_kind(kind).count();
    let counts =
        |bench: &Bench| [Kind::NonDelivery, Kind::ReportMade].map(|kind| logged(bench, kind));
    bench.store.withholds = true;
    for (result, expected) in [(Err("the disk is full".to_owned()), [0, 0]), (Ok(()), [1, 1])] {
        send(&mut bench, few, message("ROME", 3));
        let commit = bench.store.take_commit().expect("a commit");
        assert_eq!(counts(&bench), [0, 0], "before the commit");
        bench.finish_commit(commit, result);
        bench.settle();
        assert_eq!(counts(&bench), expected);
    }
}
