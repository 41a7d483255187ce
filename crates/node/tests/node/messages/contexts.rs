//! Associations that are bound with a security-context (X.411 8.1.1.1.1.3, 12.1.1.1.1.3) carry nothing else.

use base::ber::{Tag, Writer, universal as u};
use base::{AssociationId, EntryId, Precedence, Utc};
use engine::{Content, Engine, Route, RouteTarget};
use node::config::Limits;
use node::event::Kind;
use node::listing::QueueRequest;
use osi::api::{Payload, Request};
use osi::profiles::abstract_syntax;
use p1::bind::{Credentials, MtaAuthentication};
use p1::extension::{Criticality, ExtensionField, number};
use p1::names::{GlobalDomainId, MtaName};
use p1::p3::{
    AccessError, MessageSubmissionEnvelope, MtsBind, ObjectName, ProbeSubmissionEnvelope,
    SecurityProblem, operation,
};
use p1::{Clearance, ORName, SecurityLabel};
use std::time::Duration;
use testkit::bench::{
    ACT_FLASH, ClientAnswer, Outcome, P3, envelope, message_store, two_peers, user_address,
};
use testkit::{Bench, Events};

const ACT: &str = "192.0.2.10";
const USER: &str = "192.0.2.77";

fn clearance(entries: &[&str]) -> Clearance {
    Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
}

/// Peer act is cleared for secret and what has no label, and so are all users.
fn cleared(config: &mut node::config::NodeConfig) {
    let secret = || clearance(&["1.2.3/secret", "unlabelled"]);
    config.clearances.peers.insert(config.peers[0].id(), secret());
    config.clearances.users = vec![("/C=XX/ADMD=NATO/PRMD=HERE".parse().unwrap(), secret())];
}

/// The member of a bind: `tag` SET OF SecurityLabel; an empty text is an empty label.
fn context(tag: u32, labels: &[&str]) -> bytes::Bytes {
    let mut w = Writer::new();
    w.constructed(Tag::context(tag), |w| {
        for text in labels {
            let label =
                if text.is_empty() { SecurityLabel::default() } else { text.parse().unwrap() };
            label.write(w, u::SET);
        }
    });
    w.into_vec().into()
}

fn bind_user(
    bench: &mut Bench,
    surname: &str,
    password: &'static str,
    labels: Option<&[&str]>,
) -> AssociationId {
    let id = bench.connect(P3, USER);
    let name = ORName::from(user_address(surname).parse::<p1::ORAddress>().unwrap());
    let mut bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple(password));
    bind.security_context = labels.map(|labels| context(3, labels));
    bench.user_with(id, &bind);
    id
}

fn bind_peer(bench: &mut Bench, labels: Option<&[&str]>) -> AssociationId {
    let mut bind = MtaAuthentication::new("MTA-ACT", Credentials::simple("theirs"));
    bind.security_context = labels.map(|labels| context(2, labels));
    bench.mta_with(ACT_FLASH, ACT, bind)
}

fn label(text: &str) -> ExtensionField {
    let label: SecurityLabel = text.parse().unwrap();
    let kind = number::MESSAGE_SECURITY_LABEL;
    ExtensionField::standard(kind, Criticality::default(), |w| label.write(w, u::SET))
}

fn labelled(from: &str, to: &str, text: Option<&str>) -> MessageSubmissionEnvelope {
    let mut envelope = envelope(from, &[to], Precedence::Routine);
    envelope.extensions.0.extend(text.map(label));
    envelope
}

#[test]
fn a_context_within_the_clearance_is_accepted_once_the_password_is_right() {
    let refused = || Outcome::Refused("unacceptable-security-context".to_owned());
    for (labels, expected) in [
        (&["1.2.3/secret"][..], Outcome::Open),
        (&["1.2.3/secret", "1.2.3/restricted", ""], Outcome::Open),
        (&["1.2.3/top-secret"], refused()),
        (&["1.2.3/secret", "1.2.4/unmarked"], refused()),
        (&["/restricted"], refused()),
        // X.411: SIZE (1..ub-security-labels).
        (&[], refused()),
    ] {
        let mut bench = two_peers(Limits::default(), cleared);
        let peer = bind_peer(&mut bench, Some(labels));
        assert_eq!(bench.outcome(peer), expected, "{labels:?}");
        let user = bind_user(&mut bench, "OPS", "secret", Some(labels));
        assert_eq!(bench.outcome(user), expected, "{labels:?}");
        // Nobody else learns what a user is cleared for.
        let stranger = bind_user(&mut bench, "OPS", "guess", Some(labels));
        assert_eq!(bench.outcome(stranger), Outcome::Refused("authentication-error".to_owned()));
    }
}

#[test]
fn a_user_submits_only_what_is_in_the_context_of_his_bind() {
    let mut bench = message_store(cleared);
    let id = bind_user(&mut bench, "PLANS", "secret", Some(&["1.2.3/secret", "1.2.3/0"]));
    for (text, expected) in [
        (Some("1.2.3/secret"), ClientAnswer::Result),
        (Some("1.2.3/unmarked/MARK"), ClientAnswer::Result),
        (Some("1.2.3/restricted"), ClientAnswer::Error(12)),
        (None, ClientAnswer::Error(12)),
    ] {
        let content = format!("{text:?}");
        let invoke = bench.submit_whole(id, &labelled("PLANS", "LOG", text), content.as_bytes());
        bench.settle();
        assert_eq!(bench.answer_to(id, invoke), Some(expected), "{text:?}");
        if expected != ClientAnswer::Result {
            let mut w = Writer::new();
            AccessError::Security(SecurityProblem::SECURITY_CONTEXT_FAILURE)
                .write_parameter(&mut w);
            assert_eq!(bench.result_of(id, invoke), Some(w.as_slice()));
        }
    }
    for (text, expected) in
        [("1.2.3/secret", ClientAnswer::Result), ("1.2.3/restricted", ClientAnswer::Error(12))]
    {
        let like = labelled("PLANS", "LOG", Some(text));
        let probe = ProbeSubmissionEnvelope {
            originator: like.originator,
            original_eits: None,
            content_type: like.content_type,
            content_identifier: None,
            content_length: None,
            indicators: like.indicators,
            recipients: like.recipients,
            extensions: like.extensions,
            unknown: Vec::new(),
        };
        let mut w = Writer::new();
        probe.write(&mut w);
        let what = (abstract_syntax::msse(), operation::PROBE_SUBMISSION);
        let invoke = bench.invoke(id, what, w.into_vec());
        assert_eq!(bench.answer_to(id, invoke), Some(expected), "{text}");
    }
    let refused = bench.details(Kind::SubmissionRefused);
    let outside = "outside the security-context of the association: 1.2.3/restricted";
    assert!(refused.contains(&outside), "{refused:?}");
    // Without a context the clearance alone counts.
    let other = bind_user(&mut bench, "PLANS", "secret", None);
    let invoke =
        bench.submit_whole(other, &labelled("PLANS", "LOG", Some("1.2.3/restricted")), b"x");
    assert_eq!(bench.answer_to(other, invoke), Some(ClientAnswer::Result));
}

#[test]
fn what_is_outside_the_context_waits_until_its_user_binds_otherwise() {
    let mut bench = message_store(cleared);
    let sender = bench.reader("OPS");
    for text in [Some("1.2.3/secret"), Some("1.2.3/restricted"), None] {
        let content = format!("{text:?}");
        bench.submit_whole(sender, &labelled("OPS", "PLANS", text), content.as_bytes());
    }
    for (labels, delivered, left) in [
        (Some(&["1.2.3/restricted"][..]), 1, 2),
        // Nothing more.
        (Some(&["1.2.3/restricted"]), 1, 2),
        (Some(&["1.2.3/unmarked", ""]), 2, 1),
        (None, 3, 0),
    ] {
        let reader = bind_user(&mut bench, "PLANS", "secret", labels);
        bench.pass(Duration::from_secs(5));
        assert_eq!(bench.script.delivered, delivered, "{labels:?}");
        let asked = QueueRequest { limit: 9, ..QueueRequest::default() };
        let page = bench.node.queue_page(bench.clock(), &asked).unwrap();
        let page = page.describe(|key| bench.store.entries.get(&key).cloned());
        assert_eq!(page.entries.len(), left);
        let why = "it is outside the security-context with which its user is bound";
        let waits = page.entries.iter().flat_map(|row| &row.waits_for);
        assert_eq!(waits.filter(|line| line.contains(why)).count(), left, "{:?}", page.entries);
        bench.close(reader);
        bench.settle();
    }
}

#[test]
fn an_association_with_a_context_holds_nothing_back_once_it_is_gone() {
    let mut bench = message_store(cleared);
    let narrow = bind_user(&mut bench, "PLANS", "secret", Some(&["1.2.3/restricted"]));
    let sender = bench.reader("OPS");
    bench.submit_whole(sender, &labelled("OPS", "PLANS", Some("1.2.3/secret")), b"1");
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.script.delivered, 0);
    // It waits for the end of the association that has the context, on which it was tried.
    let wide = bind_user(&mut bench, "PLANS", "secret", None);
    bench.pass(Duration::from_secs(5));
    bench.close(narrow);
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.script.delivered, 1);
    assert_eq!(bench.outcome(wide), Outcome::Open);
}

/// A message of the user OPS of act with this label, as act transfers it.
fn transferred(text: Option<&str>) -> Payload {
    let user = "/C=XX/ADMD=NATO/PRMD=ACT/S=OPS";
    let mailbox = engine::canonical(&user.parse().unwrap());
    let to_here =
        Route { prefix: "/C=XX".parse().unwrap(), to: RouteTarget::Peer(base::PeerId(1)) };
    let mut there = Engine::new(engine::Config {
        mta: MtaName("MTA-ACT".to_owned()),
        domain: GlobalDomainId::new("XX", "NATO", Some("ACT")),
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
        epoch: text.map_or(9, |text| text.len() as u32),
        salt: 0,
    });
    let mut envelope = labelled("OPS", "OPS", text);
    envelope.originator = ORName::from(user.parse::<p1::ORAddress>().unwrap());
    let content = Content { length: 0, ..Content::default() };
    let done =
        there.submit(Utc(1_767_225_600_000_000), &mailbox, &envelope, &content, &[]).unwrap();
    let payload =
        there.transfer_payload(&done.accepted.entries[0].record, p1::Dialect::Modern.into());
    Payload { head: payload.head, content_length: 0, tail: payload.tail }
}

#[test]
fn a_transfer_outside_the_context_is_reported_and_one_inside_is_delivered() {
    let mut bench = two_peers(Limits::default(), cleared);
    let id = bind_peer(&mut bench, Some(&["1.2.3/secret"]));
    let reported = |bench: &Bench| bench.details(Kind::NonDelivery).len();
    for (text, expected) in [(Some("1.2.3/secret"), 0), (Some("1.2.3/restricted"), 1), (None, 2)] {
        bench.request(id, Request::Transfer { payload: transferred(text), resume: None });
        bench.settle();
        assert!(!bench.has_failed(id), "it is dealt with");
        assert_eq!(reported(&bench), expected, "{text:?}");
    }
    let why = bench.details(Kind::NonDelivery);
    assert!(
        why[0].starts_with("outside the security-context of its association: 1.2.3/restricted")
    );
    assert!(why[1].starts_with("outside the security-context of its association: it has no"));
    // Another association of the peer has its clearance alone.
    let other = bind_peer(&mut bench, None);
    bench.request(
        other,
        Request::Transfer { payload: transferred(Some("1.2.3/confidential")), resume: None },
    );
    bench.settle();
    assert_eq!(reported(&bench), 2);
}

#[test]
fn nothing_goes_out_on_an_association_that_the_peer_bound_with_a_context() {
    for labels in [None, Some(&["1.2.3/secret"][..])] {
        let mut bench = two_peers(Limits::default(), cleared);
        bench.store.unread = false;
        let id = bind_peer(&mut bench, labels);
        assert_eq!(bench.outcome(id), Outcome::Open);
        bench.queue_for("act", 100);
        bench.queue(EntryId(1), Precedence::Routine);
        bench.request(id, Request::TurnGive);
        bench.pass(Duration::from_secs(5));
        let started = bench.of_kind(Kind::TransferStarted).filter(|e| e.association == Some(id));
        assert_eq!(started.count(), usize::from(labels.is_none()), "{labels:?}");
    }
}

#[test]
fn what_was_cut_off_in_a_context_is_not_recovered() {
    for labels in [None, Some(&["1.2.3/secret"][..])] {
        let mut bench = two_peers(Limits::default(), cleared);
        let id = bind_peer(&mut bench, labels);
        // A message of 140,000 octets whose envelope has an unknown member, and more than a checkpoint of it.
        let mut begun = Vec::new();
        for (tag, length) in
            [(&[0xa0][..], 140_000u32 - 5), (&[0x31], 140_000 - 10), (&[0x9f, 0x7f], 140_000 - 16)]
        {
            begun.extend_from_slice(tag);
            begun.push(0x83);
            begun.extend_from_slice(&length.to_be_bytes()[1..]);
        }
        begun.resize(70_000, 0);
        let tail = bytes::Bytes::new();
        let payload = Payload { head: begun.into(), content_length: 70_000, tail };
        bench.request(id, Request::Transfer { payload, resume: None });
        bench.settle();
        assert_eq!(bench.node.holds().arrivals, 1);
        bench.feed(node::Input::Closed { association: id, error: Some("reset".to_owned()) });
        assert_eq!(bench.node.holds().arrivals, usize::from(labels.is_none()), "{labels:?}");
    }
}
