use super::*;
use crate::outcome::SubmitError;
use crate::record::RecordKind;
use crate::testing::{
    BAKER, CARTER, Codes, JONES, SMITH, address, at, content, engine, engine_of, failures, message,
    name, received, report, submission,
};
use crate::{Content, NewEntry, Record, canonical};
use base::ber::{Writer, universal as u};
use p1::SecurityLabel;
use p1::apdu::MtsApduHead;
use p1::extension::{Criticality, ExtensionField, number};
use p1::p3::{AccessError, MessageSubmissionEnvelope, ProbeSubmissionEnvelope, SecurityProblem};

/// transfer-failure-for-security-reason, security-policy-violation.
const VIOLATION: Codes = Some((8, Some(53)));

fn label(text: &str) -> ExtensionField {
    let label: SecurityLabel = text.parse().unwrap();
    let delivery = Criticality { for_delivery: true, ..Criticality::default() };
    let kind = number::MESSAGE_SECURITY_LABEL;
    ExtensionField::standard(kind, delivery, |w| label.write(w, u::SET))
}

fn labelled(to: &[&str], text: &str) -> MessageSubmissionEnvelope {
    let mut envelope = submission(to);
    envelope.extensions.set(label(text));
    envelope
}

fn cleared(entries: &[&str]) -> Clearance {
    Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
}

/// `alpha`: beta is cleared for secret, gamma for restricted and what has no label, Jones for
/// restricted, Smith for secret and what has no label.
fn alpha() -> Engine {
    let mut alpha = engine();
    let peers = [
        (PeerId(0), cleared(&["1.2.3/secret"])),
        (PeerId(1), cleared(&["1.2.3/restricted", "unlabelled"])),
    ];
    let users = [
        ("C=XX;ADMD=;PRMD=alpha", cleared(&["1.2.3/secret", "unlabelled"])),
        (JONES, cleared(&["1.2.3/restricted"])),
    ];
    let users = users.map(|(prefix, clearance)| (address(prefix), clearance));
    alpha.cleared =
        Clearances { peers: peers.into(), users: users.into(), open_contents: false }.into();
    alpha
}

fn submit(
    alpha: &mut Engine,
    from: &str,
    envelope: &MessageSubmissionEnvelope,
) -> Result<Vec<NewEntry>, SubmitError> {
    submit_content(alpha, from, envelope, ContentLabels::default())
}

/// The content has these labels inside.
fn submit_content(
    alpha: &mut Engine,
    from: &str,
    envelope: &MessageSubmissionEnvelope,
    labels: ContentLabels,
) -> Result<Vec<NewEntry>, SubmitError> {
    let envelope = MessageSubmissionEnvelope { originator: name(from), ..envelope.clone() };
    let content = Content { labels, ..content(9) };
    let done = alpha.submit(at(0), &canonical(&address(from)), &envelope, &content, &[])?;
    Ok(done.accepted.entries)
}

/// A content that is signed with this label.
fn inside(text: &str) -> ContentLabels {
    let mut w = Writer::new();
    text.parse::<SecurityLabel>().unwrap().write(&mut w, u::SET);
    ContentLabels { labels: vec![w.into_vec().into()], unreadable: false }
}

const UNREADABLE: ContentLabels = ContentLabels { labels: Vec::new(), unreadable: true };

fn served(entries: &[NewEntry]) -> Vec<u32> {
    let messages = entries.iter().filter(|e| e.record.kind() == RecordKind::Message);
    let recipients = messages.flat_map(|e| &message(&e.record.head).recipients);
    let mut served: Vec<u32> =
        recipients.filter(|r| r.indicators.responsible()).map(|r| r.number).collect();
    served.sort_unstable();
    served
}

fn failed(entries: &[NewEntry]) -> Vec<(u32, Codes)> {
    let reports = entries.iter().filter(|e| e.record.kind() == RecordKind::Report);
    reports.flat_map(|e| failures(report(e))).collect()
}

#[test]
fn each_recipient_is_served_whose_next_hop_is_cleared() {
    for (text, expected, violated) in [
        ("1.2.3/restricted", &[1, 2, 3][..], &[][..]),
        ("1.2.3/confidential", &[1], &[2, 3]),
        ("1.2.3/secret", &[1], &[2, 3]),
    ] {
        let done = submit(&mut alpha(), SMITH, &labelled(&[BAKER, CARTER, JONES], text)).unwrap();
        assert_eq!(served(&done), expected, "{text}");
        let violated: Vec<_> = violated.iter().map(|n| (*n, VIOLATION)).collect();
        assert_eq!(failed(&done), violated, "{text}");
    }
    // Without a label.
    let done = submit(&mut alpha(), SMITH, &submission(&[BAKER, CARTER, JONES])).unwrap();
    assert_eq!((served(&done), failed(&done)), (vec![2], vec![(1, VIOLATION), (3, VIOLATION)]));
    let reported = report(done.iter().find(|e| e.record.body.is_none()).unwrap());
    let texts = reported.content.recipients.iter().map(|r| r.supplementary_information.clone());
    let texts: Vec<String> = texts.flatten().collect();
    assert_eq!(
        texts,
        [
            "the next MTA is not cleared for messages without a security label",
            "the user is not cleared for messages without a security label",
        ]
    );
}

#[test]
fn without_a_clearance_nobody_is_restricted() {
    let top = labelled(&[BAKER, CARTER, JONES], "1.2.9/top-secret");
    let done = submit(&mut engine(), SMITH, &top).unwrap();
    assert_eq!((served(&done), failed(&done)), (vec![1, 2, 3], vec![]));
}

#[test]
fn a_user_submits_only_what_he_is_cleared_for() {
    let mut alpha = alpha();
    for (from, text) in [(SMITH, "1.2.3/top-secret"), (SMITH, "/0"), (JONES, "1.2.3/secret")] {
        let refused = submit(&mut alpha, from, &labelled(&[BAKER], text)).unwrap_err();
        let expected = AccessError::Security(SecurityProblem::SECURITY_POLICY_VIOLATION);
        assert_eq!(refused.access_error(), expected, "{text}");
        assert_eq!(expected.code(), 12);
    }
    let unlabelled = submit(&mut alpha, JONES, &submission(&[BAKER])).unwrap_err();
    assert_eq!(unlabelled, SubmitError::NotCleared(NotCleared::Unlabelled));
    assert!(submit(&mut alpha, JONES, &labelled(&[BAKER], "1.2.3/restricted")).is_ok());
    let like = labelled(&[BAKER], "1.2.3/secret");
    let probe = ProbeSubmissionEnvelope {
        originator: name(JONES),
        original_eits: None,
        content_type: like.content_type,
        content_identifier: None,
        content_length: None,
        indicators: like.indicators,
        recipients: like.recipients,
        extensions: like.extensions,
        unknown: Vec::new(),
    };
    let refused = alpha.submit_probe(at(0), &canonical(&address(JONES)), &probe).unwrap_err();
    assert_eq!(refused.access_error().code(), 12);
}

/// A message from beta for Smith and Jones of alpha, as it arrives.
fn from_beta(text: &str) -> MtsApduHead {
    let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]);
    let envelope = labelled(&[SMITH, JONES], text);
    let done = submit(&mut beta, BAKER, &envelope).unwrap();
    received(&beta, &done[0])
}

fn accept(alpha: &mut Engine, head: &MtsApduHead, source: PeerId) -> Vec<NewEntry> {
    let mut prepared = alpha.begin(head).from_peer(Some(source));
    alpha.prepare(&mut prepared, head, usize::MAX);
    alpha.accept_prepared(at(1), head.clone(), &content(9), prepared, &[]).accepted.entries
}

#[test]
fn what_a_peer_is_not_cleared_for_is_reported_and_not_kept() {
    let secret = from_beta("1.2.3/secret");
    let cleared = accept(&mut alpha(), &secret, PeerId(0));
    assert_eq!((served(&cleared), failed(&cleared)), (vec![1], vec![(2, VIOLATION)]));
    // The same from gamma, for whom both users' clearance does not matter.
    let refused = accept(&mut alpha(), &secret, PeerId(1));
    assert_eq!(
        (served(&refused), failed(&refused)),
        (vec![], vec![(1, VIOLATION), (2, VIOLATION)])
    );
    // The report goes back, although its way is through one that is not cleared.
    assert_eq!(refused[0].record.next_hop, NextHop::Peer(PeerId(0)));
    let text = report(&refused[0]).content.recipients[0].supplementary_information.clone();
    assert_eq!(text.as_deref(), Some("the MTA it came from is not cleared for secret"));
    // A peer without a clearance.
    assert_eq!(served(&accept(&mut alpha(), &secret, PeerId(7))), [1]);
}

#[test]
fn the_source_counts_after_a_change_of_tables_too() {
    let mut alpha = alpha();
    let secret = from_beta("1.2.3/secret");
    let mut prepared = alpha.begin(&secret).from_peer(Some(PeerId(1)));
    alpha.prepare(&mut prepared, &secret, usize::MAX);
    alpha.set_mailboxes([canonical(&address(SMITH))].into());
    let done = alpha.accept_prepared(at(1), secret, &content(9), prepared, &[]).accepted.entries;
    assert_eq!((served(&done), failed(&done).len()), (vec![], 2));
}

#[test]
fn an_alternate_does_not_get_around_it_and_must_be_cleared_itself() {
    let alternate = |to: &str, other: &str, text: &str| {
        let mut envelope = labelled(&[to], text);
        let kind = number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
        let field =
            ExtensionField::standard(kind, Criticality::default(), |w| name(other).write(w));
        envelope.recipients[0].extensions.set(field);
        envelope
    };
    let done = submit(&mut alpha(), SMITH, &alternate(CARTER, BAKER, "1.2.3/secret")).unwrap();
    assert_eq!((served(&done), failed(&done)), (vec![], vec![(1, VIOLATION)]));
    let nobody = "C=XX;ADMD=;PRMD=alpha;S=Nobody";
    // forbidden-alternate-recipient.
    let done = submit(&mut alpha(), SMITH, &alternate(nobody, CARTER, "1.2.3/secret")).unwrap();
    assert_eq!((served(&done), failed(&done)), (vec![], vec![(1, Some((8, Some(52))))]));
    let done = submit(&mut alpha(), SMITH, &alternate(nobody, BAKER, "1.2.3/secret")).unwrap();
    assert_eq!((served(&done), failed(&done)), (vec![1], vec![]));
}

#[test]
fn another_way_takes_a_clearance_too() {
    let done = submit(&mut alpha(), SMITH, &labelled(&[BAKER], "1.2.3/secret")).unwrap();
    let refused =
        alpha().reroute_by_order(at(2), &done[0].record, Some(PeerId(1)), &[]).unwrap_err();
    assert!(refused.contains("the next MTA is not cleared for secret"), "{refused}");
    // The routes lead to gamma now: it is reported.
    let peers = [("beta", 1), ("gamma", 0)];
    let mut changed = engine_of("alpha", "mta1", &["Smith", "Jones"], &peers);
    changed.cleared = alpha().cleared;
    assert_eq!(failed(&changed.reroute(at(2), &done[0].record, &[]).entries), [(1, VIOLATION)]);
}

#[test]
fn the_label_inside_the_content_is_compared_as_that_of_the_envelope() {
    let to = [BAKER, CARTER, JONES];
    for (outer, inner, expected) in [
        // The label inside is one: the message is labelled.
        (None, inside("1.2.3/restricted"), &[1, 2, 3][..]),
        (None, inside("1.2.3/secret"), &[1]),
        // It must be cleared for both.
        (Some("1.2.3/restricted"), inside("1.2.3/secret"), &[1]),
        (Some("1.2.3/secret"), inside("1.2.3/restricted"), &[1]),
        (Some("1.2.3/restricted"), inside("1.2.4/restricted"), &[]),
        (Some("1.2.3/restricted"), UNREADABLE, &[]),
    ] {
        let envelope = outer.map_or_else(|| submission(&to), |text| labelled(&to, text));
        let mut alpha = alpha();
        // Jones alone has a clearance: Smith may submit all of it.
        let (jones, restricted) = (address(JONES), cleared(&["1.2.3/restricted"]));
        alpha.cleared.users = Prefixes::new([(&jones, restricted)]);
        let done = submit_content(&mut alpha, SMITH, &envelope, inner.clone()).unwrap();
        assert_eq!(served(&done), expected, "{outer:?} {inner:?}");
        let copies = done.iter().filter(|e| e.record.kind() == RecordKind::Message);
        copies.for_each(|copy| assert_eq!(copy.record.content_labels, inner));
    }
    let refused = |inner| submit_content(&mut alpha(), SMITH, &submission(&to), inner).unwrap_err();
    for inner in [inside("1.2.3/top-secret"), inside("1.2.9/0"), UNREADABLE] {
        assert_eq!(refused(inner).access_error().code(), 12);
    }
}

#[test]
fn a_queued_copy_keeps_the_labels_of_its_content() {
    let mut alpha = alpha();
    let done =
        submit_content(&mut alpha, SMITH, &submission(&[BAKER]), inside("1.2.3/secret")).unwrap();
    let record = Record::decode(&done[0].record.encode()).unwrap();
    assert_eq!(record.content_labels, inside("1.2.3/secret"));
    let refused = alpha.reroute_by_order(at(2), &record, Some(PeerId(1)), &[]).unwrap_err();
    assert!(refused.contains("the next MTA is not cleared for secret"), "{refused}");
    // The release before writes and reads what has no such label.
    let plain = Record { content_labels: ContentLabels::default(), ..record };
    assert_eq!(plain.encode()[0], 3);
    assert_eq!(Record::decode(&plain.encode()), Ok(plain));
}

#[test]
fn what_a_peer_is_not_cleared_for_by_its_content_is_reported() {
    let head = from_beta("1.2.3/restricted");
    for (inner, expected) in [
        (inside("1.2.3/secret"), vec![(2, VIOLATION)]),
        (inside("1.2.9/0"), vec![(1, VIOLATION), (2, VIOLATION)]),
        (UNREADABLE, vec![(1, VIOLATION), (2, VIOLATION)]),
    ] {
        let mut alpha = alpha();
        let mut prepared = alpha.begin(&head).from_peer(Some(PeerId(0)));
        alpha.prepare(&mut prepared, &head, usize::MAX);
        let content = Content { labels: inner, ..content(9) };
        let done = alpha.accept_prepared(at(1), head.clone(), &content, prepared, &[]);
        assert_eq!(failed(&done.accepted.entries), expected);
    }
}
