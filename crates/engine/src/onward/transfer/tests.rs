use super::strict::{Edition, Found, walk};
use crate::record::{NextHop, Record, RecordKind};
use crate::testing::{
    BAKER, CARTER, Codes, JONES, SMITH, at, content, engine, engine_of, failures, private,
    received, report, submission, submit,
};
use crate::{Engine, canonical};
use base::PeerId;
use base::ber::{Element, Writer, universal as u};
use p1::MtsApduHead;
use p1::envelope::MessageTransferEnvelope;
use p1::extension::{
    Criticality, Dialect, ExtensionField, ExtensionType, Extensions, Form, Qualifier, number as n,
    standard_name,
};
use p1::grade::PriorityLevelQualifier;
use p1::p3::ProbeSubmissionEnvelope;
use p1::time::Time;

const BETA: PeerId = PeerId(0);
const NONE: Criticality =
    Criticality { for_submission: false, for_transfer: false, for_delivery: false };
/// unable-to-transfer, unsupported-critical-function.
const UNSUPPORTED: Codes = Some((1, Some(18)));

/// As [`engine`]; the peer beta uses the dialect of 1988.
fn engine_beside_1988() -> Engine {
    let mut alpha = engine();
    alpha.forms.insert(BETA, Dialect::BlueBook1988.into());
    alpha
}

/// The APDU that the next hop receives, with its content.
fn apdu(engine: &Engine, record: &Record, dialect: Dialect) -> Vec<u8> {
    let payload = engine.transfer_payload(record, dialect.into());
    // A transfer that is resumed has the same octets, though its record comes from the store.
    let record = Record::decode(&record.encode()).unwrap();
    assert_eq!(engine.transfer_payload(&record, dialect.into()), payload);
    let mut octets = payload.head.to_vec();
    octets.resize(octets.len() + payload.content_length as usize, b'x');
    octets
}

/// A field as another MTA sends it: this standard number in either form, with long-form lengths.
fn relayed(number: u8, modern: bool) -> ExtensionField {
    let value = [0x30, 3, 2, 1, number];
    let octets = if modern {
        [&[0x30, 0x80, 0x80, 1, number, 0x81, 2, 5, 0, 0xa2, 5][..], &value, &[0, 0]].concat()
    } else {
        [&[0x30, 0x80, 0xa0, 0x80, 2, 1, number, 0, 0, 0xa2, 5][..], &value, &[0, 0]].concat()
    };
    ExtensionField::read(&Element::parse(&octets).unwrap()).unwrap()
}

/// Every extension number of X.411, an undefined one and private ones: in both forms as others
/// send them, and as this MTA makes them.
fn everything() -> Vec<ExtensionField> {
    let numbers = (1..=127).filter(|n| standard_name(i64::from(*n)).is_some()).chain([99]);
    let numbers: Vec<u8> = numbers.collect();
    let made = |number: &u8| {
        ExtensionField::standard(i64::from(*number), Criticality::TRANSFER, |w| {
            w.integer(u::INTEGER, i64::from(*number));
        })
    };
    let mut all: Vec<_> = numbers.iter().map(made).collect();
    all.extend(numbers.iter().flat_map(|n| [relayed(*n, true), relayed(*n, false)]));
    all.extend(PriorityLevelQualifier::High.extension(Dialect::Modern));
    for octets in [&[0x30, 4, 0x83, 2, 0x51, 1][..], &[0x30, 6, 0xa0, 4, 6, 2, 0x51, 1]] {
        all.push(ExtensionField::read(&Element::parse(octets).unwrap()).unwrap());
    }
    all
}

/// Type and value of each standard extension, in order; of all where `private` is set.
fn expected(all: &[ExtensionField], private: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let kind = |kind: &ExtensionType| match kind {
        ExtensionType::Standard(number) => Some(vec![*number as u8]),
        ExtensionType::Private(oid) => private.then(|| oid.content().to_vec()),
    };
    all.iter().filter_map(|f| Some((kind(&f.kind)?, f.value.to_vec()))).collect()
}

/// The extensions found at this place.
fn at_place(found: &[Found], place: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let here = found.iter().filter(|(at, ..)| *at == place);
    here.map(|(_, kind, value)| (kind.clone(), value.clone())).collect()
}

/// Each kind of APDU with all extensions at each place, and the names of its places.
fn full_records(alpha: &mut Engine) -> Vec<(Record, &'static [&'static str])> {
    let all = || Extensions(everything());
    let mut sent = submit(alpha, &submission(&[BAKER, CARTER])).accepted.entries.remove(0).record;
    let MtsApduHead::Message(envelope) = &mut sent.head else { panic!() };
    envelope.extensions = all();
    for recipient in &mut envelope.recipients {
        recipient.extensions = all();
    }
    let envelope = submission(&[BAKER]);
    let probe = ProbeSubmissionEnvelope {
        originator: envelope.originator.clone(),
        original_eits: None,
        content_type: envelope.content_type.clone(),
        content_identifier: None,
        content_length: Some(1),
        indicators: envelope.indicators,
        recipients: envelope.recipients,
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    let mailbox = canonical(&crate::testing::address(SMITH));
    let done = alpha.submit_probe(at(0), &mailbox, &probe).unwrap();
    let mut probe = done.accepted.entries.into_iter().next().unwrap().record;
    let MtsApduHead::Probe(envelope) = &mut probe.head else { panic!() };
    envelope.extensions = all();
    envelope.recipients[0].extensions = all();
    let expired = alpha.expire(at(100_000), &sent);
    let mut reported = expired.entries.into_iter().next().unwrap().record;
    let MtsApduHead::Report(of) = &mut reported.head else { panic!() };
    of.envelope.extensions = all();
    of.content.extensions = all();
    for recipient in &mut of.content.recipients {
        recipient.extensions = all();
    }
    vec![
        (sent, &["message", "message recipient"]),
        (probe, &["probe", "probe recipient"]),
        (reported, &["report", "report content", "report recipient"]),
    ]
}

#[test]
fn a_strict_decoder_of_either_edition_reads_all_that_is_sent_to_it() {
    let mut alpha = engine();
    for (record, places) in full_records(&mut alpha) {
        let kind = record.kind();
        for (dialect, edition, other) in [
            (Dialect::BlueBook1988, Edition::Of1988, Edition::Of1994),
            (Dialect::Modern, Edition::Of1994, Edition::Of1988),
        ] {
            let octets = apdu(&alpha, &record, dialect);
            let found = walk(&octets, edition).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
            let modern = dialect == Dialect::Modern;
            for place in places {
                let each = expected(&everything(), modern);
                // Each recipient of a message or report has all of them.
                let there = at_place(&found, place);
                let mut sets = there.chunks(each.len());
                assert!(sets.len() > 0 && sets.all(|set| set == each), "{place} {dialect:?}");
            }
            assert!(walk(&octets, other).is_err(), "{kind:?}: the decoder is strict");
            let copies = found.len() / expected(&everything(), modern).len();
            let left_out = alpha.transfer_payload(&record, dialect.into()).left_out;
            assert_eq!(left_out, if modern { 0 } else { copies * 3 }, "{kind:?}");
        }
    }
}

/// All extensions made here: internal trace, a deferral in it, the qualifier, extensions of a
/// submission, also per recipient; histories made by others; reports on it, with its correlator.
#[test]
fn what_is_made_here_and_relayed_has_the_form_of_1988() {
    let mut alpha = engine_beside_1988();
    let mut envelope = submission(&[BAKER]);
    envelope.deferred_delivery_time = Some(Time::from(at(60)));
    let label = |number| ExtensionField::standard(number, NONE, |w| w.constructed(u::SET, |_| {}));
    envelope.extensions = Extensions(vec![label(n::MESSAGE_SECURITY_LABEL)]);
    envelope.extensions.0.extend(PriorityLevelQualifier::High.extension(Dialect::Modern));
    envelope.extensions.set(ExtensionField::standard(n::CONTENT_CORRELATOR, NONE, |w| {
        w.string(u::IA5_STRING, b"mine");
    }));
    envelope.recipients[0].extensions = Extensions(vec![label(n::MESSAGE_TOKEN)]);
    let done = submit(&mut alpha, &envelope);
    let record = &done.accepted.entries[0].record;
    let kinds = |found: &[Found]| -> Vec<_> {
        found.iter().map(|(place, kind, _)| (*place, kind[0])).collect::<Vec<_>>()
    };
    let found = walk(&apdu(&alpha, record, Dialect::BlueBook1988), Edition::Of1988).unwrap();
    let sent = [("message", 20), ("message", 23), ("message", 38), ("message recipient", 16)];
    assert_eq!(kinds(&found), sent);
    // The wire format of 1988, octet for octet.
    let octets = apdu(&alpha, record, Dialect::BlueBook1988);
    let has = |part: &[u8]| octets.windows(part.len()).any(|w| w == part);
    assert!(has(&[0x30, 13, 0xa0, 3, 2, 1, 20, 0x81, 2, 5, 0, 0xa2, 2, 0x31, 0]));
    assert!(has(&[0x30, 13, 0xa0, 3, 2, 1, 16, 0x81, 2, 5, 0, 0xa2, 2, 0x31, 0]));
    let form = Form { explicit_defaults: false, ..Dialect::BlueBook1988.into() };
    let octets = [octets, alpha.transfer_payload(record, form).head.to_vec()].concat();
    let has = |part: &[u8]| octets.windows(part.len()).any(|w| w == part);
    assert!(has(&[0x30, 9, 0xa0, 3, 2, 1, 20, 0xa2, 2, 0x31, 0]));
    // The qualifier's object identifier is absent; the priority carries what it can.
    assert!(!has(&[0x2b, 26, 0, 0xa2, 0x36]), "{octets:02X?}");

    // Relayed with a redirection and an expansion history; and its report.
    let MtsApduHead::Message(mut e) = received(&alpha, &done.accepted.entries[0]) else { panic!() };
    e.extensions.0.push(label(n::DL_EXPANSION_HISTORY));
    e.recipients[0].extensions.0.push(label(n::REDIRECTION_HISTORY));
    let mut zeta = engine_of("zeta", "m", &[], &[("beta", 0), ("alpha", 0)]);
    zeta.forms.insert(BETA, Dialect::BlueBook1988.into());
    let on = zeta.accept(at(1), MtsApduHead::Message(e), &content(10), &[]).accepted;
    let found =
        walk(&apdu(&zeta, &on.entries[0].record, Dialect::BlueBook1988), Edition::Of1988).unwrap();
    assert!(kinds(&found).contains(&("message", 26)), "{found:?}");
    assert!(kinds(&found).contains(&("message recipient", 25)), "{found:?}");
    let reported = zeta.expire(at(200_000), &on.entries[0].record);
    let octets = apdu(&zeta, &reported.entries[0].record, Dialect::BlueBook1988);
    let found = walk(&octets, Edition::Of1988).unwrap();
    assert_eq!(kinds(&found), [("report", 38), ("report content", 23)]);
}

#[test]
fn a_critical_extension_without_a_form_is_reported_and_no_other_is() {
    let qualifier = |criticality| {
        let mut field = PriorityLevelQualifier::High.extension(Dialect::Modern).unwrap();
        field.criticality = criticality;
        Extensions(vec![field])
    };
    for (criticality, lost) in [
        (NONE, false),
        (Criticality { for_submission: true, ..NONE }, false),
        (Criticality { for_transfer: true, ..NONE }, true),
        (Criticality { for_delivery: true, ..NONE }, true),
    ] {
        let mut alpha = engine_beside_1988();
        // Beta uses the dialect of 1988, gamma does not, Jones is local.
        let mut envelope = submission(&[BAKER, CARTER, JONES]);
        envelope.extensions = qualifier(criticality);
        let done = submit(&mut alpha, &envelope);
        let hops: Vec<_> =
            done.accepted.entries.iter().map(|e| (e.record.kind(), &e.record.next_hop)).collect();
        let to_beta = hops.contains(&(RecordKind::Message, &NextHop::Peer(BETA)));
        assert_eq!(to_beta, !lost, "{criticality:?}");
        assert!(
            hops.contains(&(RecordKind::Message, &NextHop::Peer(PeerId(1)))),
            "{criticality:?}"
        );
        let reported: Vec<_> =
            done.accepted.entries.iter().filter(|e| e.record.body.is_none()).collect();
        let failed: Vec<_> = reported.iter().flat_map(|e| failures(report(e))).collect();
        assert_eq!(failed, if lost { vec![(1, UNSUPPORTED)] } else { vec![] }, "{criticality:?}");
        if lost {
            let text = &report(reported[0]).content.recipients[0].supplementary_information;
            let text = text.as_deref().unwrap();
            assert!(
                text.ends_with("1.3.26.0.4406.0.8.0 has no form in the 1988 dialect"),
                "{text}"
            );
        }
    }
    // Critical for one recipient: that one is reported.
    let mut alpha = engine_beside_1988();
    let mut envelope = submission(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Other"]);
    envelope.recipients[1].extensions = private(Criticality { for_delivery: true, ..NONE });
    let done = submit(&mut alpha, &envelope);
    let [copy, reported] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert_eq!(failures(report(reported)), [(2, UNSUPPORTED)]);
    assert!(walk(&apdu(&alpha, &copy.record, Dialect::BlueBook1988), Edition::Of1988).is_ok());
}

#[test]
fn a_qualifier_that_the_peer_does_not_get_is_left_out_and_a_critical_one_is_reported() {
    for (critical, sent) in [(false, 1), (true, 0)] {
        let mut alpha = engine();
        let form = Form { qualifier: Qualifier::Omit, ..Form::default() };
        alpha.forms.insert(BETA, form);
        let mut envelope = submission(&[BAKER]);
        let mut qualifier = PriorityLevelQualifier::High.extension(Dialect::Modern).unwrap();
        qualifier.criticality.for_transfer = critical;
        envelope.extensions = Extensions(vec![qualifier]);
        // Another private one goes.
        envelope.recipients[0].extensions = private(Criticality { for_delivery: true, ..NONE });
        envelope.recipients[0].extensions.0.retain(|field| !field.is_priority_level_qualifier());
        let done = submit(&mut alpha, &envelope);
        let copies =
            done.accepted.entries.iter().filter(|e| e.record.next_hop == NextHop::Peer(BETA));
        let records: Vec<_> = copies.map(|e| &e.record).collect();
        assert_eq!(records.len(), sent, "{critical}");
        for record in records {
            let payload = alpha.transfer_payload(record, form);
            assert_eq!(payload.left_out, 1);
            let has = |part: &[u8]| payload.head.windows(part.len()).any(|w| w == part);
            assert!(!has(&[0x2b, 26, 0, 0xa2, 0x36, 0, 8, 0]));
            assert!(alpha.transfer_payload(record, Form::default()).left_out == 0);
        }
        let reported =
            done.accepted.entries.iter().find(|e| e.record.next_hop != NextHop::Peer(BETA));
        assert_eq!(reported.map(|e| failures(report(e))), critical.then(|| vec![(1, UNSUPPORTED)]));
    }
}

#[test]
fn a_copy_queued_before_its_peer_was_of_1988_is_routed_again() {
    let mut alpha = engine();
    let mut envelope = submission(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Other"]);
    envelope.recipients[1].extensions = private(Criticality { for_delivery: true, ..NONE });
    let done = submit(&mut alpha, &envelope);
    let [copy] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert!(!alpha.would_lose_critical(&copy.record));
    alpha.forms.insert(BETA, Dialect::BlueBook1988.into());
    assert!(alpha.would_lose_critical(&copy.record));
    let again = alpha.reroute(at(9), &copy.record, &[]);
    let [copy, reported] = &again.entries[..] else { panic!("{again:?}") };
    assert_eq!(failures(report(reported)), [(2, UNSUPPORTED)]);
    assert!(!alpha.would_lose_critical(&copy.record), "it is the other recipient's");
    let MtsApduHead::Message(e) = &copy.record.head else { panic!() };
    let mine = |e: &MessageTransferEnvelope| -> Vec<u32> {
        e.recipients.iter().filter(|r| r.indicators.responsible()).map(|r| r.number).collect()
    };
    assert_eq!(mine(e), [1]);
    // A report may lose extensions, critical or not; it is not discarded for that.
    assert!(!alpha.would_lose_critical(&reported.record));
}

#[test]
fn the_strict_decoder_takes_nothing_else() {
    let message = |field: &[u8]| {
        let mut w = Writer::new();
        w.constructed(base::ber::Tag::context(0), |w| {
            w.constructed(u::SET, |w| w.constructed(base::ber::Tag::context(3), |w| w.raw(field)));
            w.string(u::OCTET_STRING, b"x");
        });
        w.into_vec()
    };
    let of_1988 = |field: &[u8]| walk(&message(field), Edition::Of1988);
    assert_eq!(
        of_1988(&[0x30, 9, 0xa0, 3, 2, 1, 38, 0xa2, 2, 0x30, 0]),
        Ok(vec![("message", vec![38], vec![0x30, 0])])
    );
    for refused in [
        &[0x30, 7, 0x80, 1, 38, 0xa2, 2, 0x30, 0][..],
        &[0x30, 6, 0xa0, 4, 6, 2, 0x51, 1],
        &[0x30, 4, 0x83, 2, 0x51, 1],
        &[0x30, 7, 0xa0, 3, 2, 1, 38, 0x83, 0],
    ] {
        assert!(of_1988(refused).is_err(), "{refused:02X?}");
    }
}
