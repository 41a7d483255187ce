use crate::onward::transfer::strict::{Edition, walk};
use crate::outcome::NoteKind;
use crate::record::{NextHop, Record};
use crate::testing::{
    BAKER, CARTER, Codes, JONES, SMITH, address, at, content, engine, engine_of, failures, message,
    name, received, report, submission, submit,
};
use crate::{Arrival, Engine, Submitted, canonical};
use base::{PeerId, Precedence};
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::extension::{CommonName, Criticality, Dialect, ExtensionField, Extensions, number as n};
use p1::flags::{PerMessageIndicators, Priority, ReportRequest};
use p1::grade::PriorityLevelQualifier;
use p1::names::ExtensionAttribute;
use p1::p3::{MessageSubmissionEnvelope, ProbeSubmissionEnvelope};
use p1::parser::{ApduParser, Event};

mod reports;

const BETA: PeerId = PeerId(0);
const GAMMA: PeerId = PeerId(1);
const OF_1984: Dialect = Dialect::RedBook1984(CommonName::NoForm);
const WITH_COMMON: Dialect = Dialect::RedBook1984(CommonName::DomainDefined);
/// unable-to-transfer, unable-to-downgrade.
const UNABLE: Codes = Some((1, Some(47)));
const NONE: Criticality =
    Criticality { for_submission: false, for_transfer: false, for_delivery: false };

/// As [`engine`]: beta has P1 of 1984, gamma the modern one, Smith and Jones are here.
fn beside(dialect: Dialect) -> Engine {
    let mut alpha = engine();
    alpha.forms.insert(BETA, dialect.into());
    alpha
}

fn p2(to: &[&str]) -> MessageSubmissionEnvelope {
    MessageSubmissionEnvelope { content_type: ContentType::P2, ..submission(to) }
}

/// The octets that the next hop of a copy receives, which nothing but 1984 is in.
fn of_1984(engine: &Engine, record: &Record, dialect: Dialect) -> Vec<u8> {
    let record = Record::decode(&record.encode()).unwrap();
    let payload = engine.transfer_payload(&record, dialect.into());
    let mut octets = payload.head.to_vec();
    octets.resize(octets.len() + payload.content_length as usize, b'x');
    assert_eq!(walk(&octets, Edition::Of1984), Ok(vec![]));
    octets
}

fn read(octets: &[u8]) -> MtsApduHead {
    let (mut parser, mut head) = (ApduParser::default(), None);
    let mut sink = |event: Event<'_>| {
        if let Event::Head(found) = event {
            head = Some(found);
        }
    };
    parser.push(octets, &mut sink).unwrap();
    head.unwrap()
}

/// The copies for peers with the numbers of their recipients, and the failures that are reported.
type Outcome = (Vec<(PeerId, Vec<u32>)>, Vec<(u32, Codes)>);

fn outcome(done: &Submitted) -> Outcome {
    let (mut copies, mut failed) = (Vec::new(), Vec::new());
    for entry in &done.accepted.entries {
        match (&entry.record.head, &entry.record.next_hop) {
            (MtsApduHead::Message(e), NextHop::Peer(peer)) => {
                let mine = e.recipients.iter().filter(|r| r.indicators.responsible());
                copies.push((*peer, mine.map(|r| r.number).collect()));
            }
            (MtsApduHead::Report(of), _) => failed.extend(failures(of)),
            _ => {}
        }
    }
    (copies, failed)
}

fn critical(number: i64, criticality: Criticality) -> Extensions {
    Extensions(vec![ExtensionField::standard(number, criticality, |w| {
        w.constructed(base::ber::universal::SET, |_| {});
    })])
}

/// Baker is behind the peer of 1984, Carter behind the modern one.
#[test]
fn what_has_no_form_is_reported_for_whom_it_concerns_and_no_other() {
    type Change = fn(&mut MessageSubmissionEnvelope);
    let transfer = |e: &mut MessageSubmissionEnvelope| {
        e.extensions = critical(n::MESSAGE_SECURITY_LABEL, Criticality::TRANSFER);
    };
    let of_all: [(&str, Change); 6] = [
        ("content type 1.3.26.0.4406.0.4.1", |e| e.content_type = ContentType::p772()),
        ("content type 22", |e| e.content_type = ContentType::P22),
        ("content type 0", |e| e.content_type = ContentType::UNIDENTIFIED),
        ("critical extension message-security-label", transfer),
        ("critical extension latest-delivery-time", |e| {
            let late = Criticality { for_delivery: true, ..NONE };
            let time = |w: &mut base::ber::Writer| {
                w.string(base::ber::universal::UTC_TIME, b"260202030405Z");
            };
            let field = ExtensionField::standard(n::LATEST_DELIVERY_TIME, late, time);
            e.extensions = Extensions(vec![field]);
        }),
        ("critical extension priority", |e| {
            let mut field = PriorityLevelQualifier::High.extension(Dialect::Modern).unwrap();
            field.criticality = Criticality::TRANSFER;
            e.extensions = Extensions(vec![field]);
        }),
    ];
    for (text, change) in of_all {
        let mut envelope = p2(&[BAKER, CARTER]);
        change(&mut envelope);
        let done = submit(&mut beside(OF_1984), &envelope);
        assert_eq!(outcome(&done), (vec![(GAMMA, vec![2])], vec![(1, UNABLE)]), "{text}");
        let made = done.accepted.entries.iter().find(|e| e.record.body.is_none()).unwrap();
        let words = &report(made).content.recipients[0].supplementary_information;
        let words = words.as_deref().unwrap();
        assert!(words.ends_with(" has no form in the 1984 dialect"), "{words}");
        if text != "critical extension priority" {
            assert!(words.starts_with(text), "{words}");
        }
    }
    let of_one: [(&str, Change); 4] = [
        ("an address with a common name", |e| {
            e.recipients[1].recipient.address.set_common_name("Duty");
        }),
        ("an address with a numeric user identifier and a private domain", |e| {
            e.recipients[1].recipient.address.numeric_user_identifier = Some("12".to_owned());
        }),
        ("an address with extension attribute 9", |e| {
            let value = bytes::Bytes::from_static(&[0x13, 1, b'1']);
            let attribute = ExtensionAttribute { number: 9, value };
            e.recipients[1].recipient.address.extensions.push(attribute);
        }),
        ("critical extension message-token", |e| {
            let late = Criticality { for_delivery: true, ..NONE };
            e.recipients[1].extensions = critical(n::MESSAGE_TOKEN, late);
        }),
    ];
    for (text, change) in of_one {
        let mut envelope = p2(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Other", CARTER]);
        change(&mut envelope);
        let mut alpha = beside(OF_1984);
        let done = submit(&mut alpha, &envelope);
        let copies = vec![(BETA, vec![1]), (GAMMA, vec![3])];
        assert_eq!(outcome(&done), (copies, vec![(2, UNABLE)]), "{text}");
        let made = done.accepted.entries.iter().find(|e| e.record.body.is_none()).unwrap();
        let words = &report(made).content.recipients[0].supplementary_information;
        assert!(words.as_deref().unwrap().contains(text), "{words:?}");
        // Nor does it hinder the copy of the others.
        of_1984(&alpha, &done.accepted.entries[0].record, OF_1984);
    }
}

#[test]
fn p2_by_its_object_identifier_goes_with_its_number() {
    let by_oid = |last: &str| ContentType::Extended(format!("2.6.1.10.{last}").parse().unwrap());
    let mut envelope = p2(&[BAKER]);
    envelope.content_type = by_oid("0");
    let mut alpha = beside(OF_1984);
    let done = submit(&mut alpha, &envelope);
    assert_eq!(outcome(&done), (vec![(BETA, vec![1])], vec![]));
    let there = read(&of_1984(&alpha, &done.accepted.entries[0].record, OF_1984));
    let MtsApduHead::Message(there) = there else { panic!() };
    assert_eq!(there.content_type, ContentType::P2);
    // Its sister is P22.
    envelope.content_type = by_oid("1");
    assert_eq!(outcome(&submit(&mut beside(OF_1984), &envelope)).1, [(1, UNABLE)]);
}

#[test]
fn what_is_not_critical_is_left_out_and_counted() {
    let mut alpha = beside(OF_1984);
    let mut envelope = p2(&[BAKER, CARTER]);
    envelope.priority = Priority::Urgent;
    envelope.extensions = critical(n::MESSAGE_SECURITY_LABEL, NONE);
    envelope.extensions.0.extend(PriorityLevelQualifier::Low.extension(Dialect::Modern));
    let submission = Criticality { for_submission: true, ..NONE };
    envelope.recipients[0].extensions = critical(n::CONTENT_INTEGRITY_CHECK, submission);
    let done = submit(&mut alpha, &envelope);
    assert_eq!(outcome(&done).1, vec![]);
    let [earlier, later] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert_eq!(earlier.record.precedence, Precedence::Flash, "here it has its six");
    let payload = alpha.transfer_payload(&earlier.record, OF_1984.into());
    assert_eq!(payload.left_out, 3);
    let MtsApduHead::Message(there) = read(&of_1984(&alpha, &earlier.record, OF_1984)) else {
        panic!()
    };
    assert_eq!((there.priority, there.recipients.len()), (Priority::Urgent, 2));
    // The copy for the modern peer has lost nothing.
    let there = received(&alpha, later);
    assert_eq!(message(&there).extensions.0.len(), 3);
    assert_eq!(alpha.transfer_payload(&later.record, Dialect::Modern.into()).left_out, 0);
}

/// The internal trace, which some make critical for transfer, has no form and hinders nothing.
#[test]
fn a_relayed_message_goes_without_its_internal_trace() {
    let mut elsewhere = engine_of("zeta", "mta9", &[], &[("", 0)]);
    let mut from = p2(&[BAKER]);
    from.originator = name("C=XX;ADMD=;PRMD=zeta;S=Smith");
    elsewhere.set_mailboxes([canonical(&from.originator.address)].into());
    let mailbox = canonical(&from.originator.address);
    let sent = elsewhere.submit(at(0), &mailbox, &from, &content(9), &[]).unwrap().accepted;
    let mut head = received(&elsewhere, &sent.entries[0]);
    let MtsApduHead::Message(e) = &mut head else { panic!() };
    for field in &mut e.extensions.0 {
        (field.criticality, field.raw) = (Criticality::TRANSFER, None);
    }
    let mut alpha = engine_of("alpha", "mta1", &[], &[("beta", 0), ("zeta", 1)]);
    alpha.forms.insert(BETA, OF_1984.into());
    let on = alpha.accept(at(1), head, &content(9), &[]).accepted;
    let MtsApduHead::Message(there) = read(&of_1984(&alpha, &on.entries[0].record, OF_1984)) else {
        panic!()
    };
    assert_eq!((there.trace.len(), there.extensions.0.len()), (2, 0));
    // Back here, the domain trace shows the loop.
    let mut beta = engine_of("other", "mta2", &[], &[("", 3)]);
    let there = beta.accept(at(2), MtsApduHead::Message(there), &content(9), &[]).accepted;
    let back = received(&beta, &there.entries[0]);
    let again = alpha.accept(at(3), back, &content(9), &[]).accepted;
    assert_eq!(failures(report(&again.entries[0])), [(1, Some((0, Some(3))))]);
}

fn probe(to: &[&str], content_type: ContentType) -> ProbeSubmissionEnvelope {
    let envelope = submission(to);
    ProbeSubmissionEnvelope {
        originator: envelope.originator,
        original_eits: None,
        content_type,
        content_identifier: None,
        content_length: Some(1),
        indicators: PerMessageIndicators::default(),
        recipients: envelope.recipients,
        extensions: Extensions::default(),
        unknown: Vec::new(),
    }
}

#[test]
fn a_probe_goes_or_is_reported_as_its_message_would_be() {
    let mailbox = canonical(&address(SMITH));
    let mut alpha = beside(OF_1984);
    let done = alpha.submit_probe(at(0), &mailbox, &probe(&[BAKER], ContentType::P2)).unwrap();
    let MtsApduHead::Probe(_) = read(&of_1984(&alpha, &done.accepted.entries[0].record, OF_1984))
    else {
        panic!()
    };
    let done = alpha.submit_probe(at(0), &mailbox, &probe(&[BAKER], ContentType::P22)).unwrap();
    assert_eq!(failures(report(&done.accepted.entries[0])), [(1, UNABLE)]);
}

#[test]
fn a_copy_queued_before_its_peer_was_of_1984_is_routed_again() {
    let mut alpha = engine();
    let mut envelope = p2(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Other"]);
    envelope.recipients[1].recipient.address.set_common_name("Duty");
    let done = submit(&mut alpha, &envelope);
    let [copy] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert!(!alpha.would_lose_critical(&copy.record));
    alpha.forms.insert(BETA, WITH_COMMON.into());
    assert!(!alpha.would_lose_critical(&copy.record), "it has a form");
    alpha.forms.insert(BETA, OF_1984.into());
    assert!(alpha.would_lose_critical(&copy.record));
    let again = alpha.reroute(at(9), &copy.record, &[]);
    let [copy, reported] = &again.entries[..] else { panic!("{again:?}") };
    assert_eq!(failures(report(reported)), [(2, UNABLE)]);
    assert!(!alpha.would_lose_critical(&copy.record));
    let MtsApduHead::Message(there) = read(&of_1984(&alpha, &copy.record, OF_1984)) else {
        panic!()
    };
    let numbers: Vec<u32> = there.recipients.iter().map(|r| r.number).collect();
    assert_eq!(numbers, [1], "the other has no form");
}

/// A message of 1984 from Baker, behind beta, as alpha receives it.
fn arriving(alpha: &mut Engine, to: &[&str], change: fn(&mut MtsApduHead)) -> Arrival {
    let mut beta = engine_of("beta", "mta2", &["Baker"], &[("", 3)]);
    let mut envelope = p2(to);
    envelope.originator = name(BAKER);
    for recipient in &mut envelope.recipients {
        recipient.report_request = ReportRequest::Report;
    }
    let mailbox = canonical(&address(BAKER));
    let sent = beta.submit(at(0), &mailbox, &envelope, &content(1000), &[]).unwrap().accepted;
    let mut head = read(&of_1984(&beta, &sent.entries[0].record, WITH_COMMON));
    change(&mut head);
    alpha.restore_common_names(Some(BETA), &mut head);
    alpha.accept(at(1), head, &content(1000), &[])
}

/// Three priorities arrive, and each has the precedence of the policy for messages without the qualifier.
#[test]
fn what_arrives_from_1984_has_the_precedence_of_its_priority_alone() {
    let mut alpha = beside(OF_1984);
    alpha.policy.no_qualifier.urgent = Precedence::Override;
    let level = |done: &Arrival| done.accepted.entries[0].record.precedence;
    let urgent = arriving(&mut alpha, &[JONES], |head| {
        let MtsApduHead::Message(e) = head else { panic!() };
        e.priority = Priority::Urgent;
    });
    let normal = arriving(&mut alpha, &[JONES], |_| {});
    let low = arriving(&mut alpha, &[CARTER], |head| {
        let MtsApduHead::Message(e) = head else { panic!() };
        e.priority = Priority::NonUrgent;
    });
    assert_eq!(level(&urgent), Precedence::Override);
    assert_eq!((level(&normal), level(&low)), (Precedence::Priority, Precedence::Routine));
}

#[test]
fn a_common_name_goes_as_an_attribute_and_is_one_again() {
    let duty = "C=XX;ADMD=;PRMD=beta;CN=Duty";
    let mut alpha = beside(WITH_COMMON);
    let done = submit(&mut alpha, &p2(&[duty]));
    assert_eq!(outcome(&done), (vec![(BETA, vec![1])], vec![]));
    let head = read(&of_1984(&alpha, &done.accepted.entries[0].record, WITH_COMMON));
    let there = &message(&head).recipients[0].recipient.address;
    assert_eq!(there.common_name(), None);
    // The other end has the same agreement: its mailbox has a common name.
    let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 3)]);
    beta.forms.insert(PeerId(3), WITH_COMMON.into());
    beta.set_mailboxes([canonical(&address(duty))].into());
    let mut restored = head.clone();
    beta.restore_common_names(Some(PeerId(3)), &mut restored);
    let there = beta.accept(at(1), restored, &content(1000), &[]).accepted;
    assert_eq!(there.entries[0].record.next_hop, NextHop::Mailbox(canonical(&address(duty))));
    // Without it, nobody has that address.
    beta.forms.insert(PeerId(3), OF_1984.into());
    let mut same = head.clone();
    beta.restore_common_names(Some(PeerId(3)), &mut same);
    assert_eq!(same, head);
    let there = beta.accept(at(1), same, &content(1000), &[]).accepted;
    assert_eq!(failures(report(&there.entries[0])), [(1, Some((1, Some(0))))]);
}
