//! Whatever can be brought into the form of 1984 is read again, equal but for what 1984 has no form for.

use super::*;
use p1::envelope::PerRecipientFields;
use p1::red_book::names::has_form;
use p1::trace::TraceElement;
use p1::{ORName, Report, ReportType, testing};
use proptest::prelude::*;

/// All elements of these contents: tag, and contents.
fn elements(mut rest: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let [tag, length, ..] = *rest {
        let (start, length) = match length {
            0..0x80 => (2, usize::from(length)),
            long => {
                let start = 2 + usize::from(long & 0x7f);
                (start, rest[2..start].iter().fold(0, |n, o| n << 8 | usize::from(*o)))
            }
        };
        all.push((tag, &rest[start..start + length]));
        rest = &rest[start + length..];
    }
    all
}

/// That each member of a SET has a tag that 1984 has there.
fn only(set: &[u8], tags: &[u8]) {
    for (tag, _) in elements(set) {
        assert!(tags.contains(&tag), "{tag:02X} in {set:02X?}");
    }
}

/// The elements of this tag in a SET.
fn of_tag(set: &[u8], wanted: u8) -> Vec<&[u8]> {
    elements(set).into_iter().filter(|(tag, _)| *tag == wanted).map(|(_, inner)| inner).collect()
}

/// The tags of an O/R name: standard and domain-defined attributes, which are both a SEQUENCE.
fn only_names(names: &[&[u8]]) {
    names.iter().for_each(|name| only(name, &[0x30]));
}

fn only_trace(set: &[u8]) {
    for trace in of_tag(set, 0x69) {
        for (_, element) in elements(trace) {
            only(element, &[0x63, 0x31]);
            of_tag(element, 0x31).iter().for_each(|s| only(s, &[0x80, 0x81, 0x82, 0x65, 0x63]));
        }
    }
}

const ENVELOPE: [u8; 11] = [0x64, 0x60, 0x65, 0x46, 0x4a, 0x47, 0x48, 0x80, 0xa1, 0xa2, 0x69];

/// That an APDU has nothing but the members of 1984, as its octets show.
fn assert_of_1984(octets: &[u8]) {
    let [(kind, apdu)] = elements(octets)[..] else { panic!("{octets:02X?}") };
    let parts = elements(apdu);
    match kind {
        0xa0 | 0xa2 => {
            let envelope = if kind == 0xa0 { parts[0].1 } else { apdu };
            only(envelope, &ENVELOPE);
            only_names(&of_tag(envelope, 0x60));
            only_trace(envelope);
            for (_, recipient) in of_tag(envelope, 0xa2).into_iter().flat_map(elements) {
                only(recipient, &[0x60, 0x80, 0x81, 0x82]);
                only_names(&of_tag(recipient, 0x60));
            }
        }
        _ => {
            let [(0x31, envelope), (0x31, content)] = parts[..] else { panic!("{parts:?}") };
            only(envelope, &[0x64, 0x60, 0x69]);
            only_names(&of_tag(envelope, 0x60));
            only(content, &[0x64, 0x69, 0x4a, 0xa0, 0x81, 0xa2]);
            only_trace(envelope);
            only_trace(content);
            for (_, recipient) in of_tag(content, 0xa0).into_iter().flat_map(elements) {
                only(recipient, &[0xa0, 0x81, 0x82, 0xa3, 0xa4, 0x85]);
                only_names(&[of_tag(recipient, 0xa0), of_tag(recipient, 0xa4)].concat());
                let last = of_tag(recipient, 0xa3)[0];
                only(last, &[0x80, 0x65, 0xa1]);
            }
        }
    }
}

/// That this is what is left of a name that has a form.
fn assert_name(left: &ORName, before: &ORName) {
    assert_eq!((&left.directory_name, left.address.extensions.len()), (&None, 0));
    let mut again = left.address.clone();
    if let Some(common) = before.address.common_name() {
        let pair = again.domain_defined.pop().unwrap_or_default();
        assert_eq!((pair.kind.as_str(), pair.value), ("Common", common));
    }
    again.extensions.clone_from(&before.address.extensions);
    assert_eq!(again, before.address);
}

fn assert_trace(left: &[TraceElement], before: &[TraceElement]) {
    let passed = |all: &[TraceElement]| -> Vec<_> {
        let of = |t: &TraceElement| {
            let times = (t.arrival_time.clone(), t.additional.deferred_time.clone());
            (t.domain.clone(), times, t.routing_action, t.attempted_domain.clone())
        };
        all.iter().map(of).collect()
    };
    assert_eq!(passed(left), passed(before));
}

fn assert_recipients(left: &[PerRecipientFields], before: &[PerRecipientFields]) {
    let stays = |r: &&PerRecipientFields| {
        r.indicators.responsible() || has_form(&r.recipient, CommonName::DomainDefined).is_ok()
    };
    let kept: Vec<_> = before.iter().filter(stays).collect();
    assert_eq!(left.len(), kept.len());
    for (left, before) in left.iter().zip(kept) {
        assert_name(&left.recipient, &before.recipient);
        assert_eq!((left.number, left.indicators), (before.number, before.indicators));
        assert_eq!(left.explicit_conversion, before.explicit_conversion);
    }
}

fn goes(name: &ORName) -> bool {
    has_form(name, CommonName::DomainDefined).is_ok()
}

/// Whether those the receiver is responsible for have a form, and there is one.
fn all_go(recipients: &[PerRecipientFields]) -> bool {
    let mut mine = recipients.iter().filter(|r| r.indicators.responsible()).peekable();
    mine.peek().is_some() && mine.all(|r| goes(&r.recipient))
}

/// The extensions that are left out.
fn count(head: &MtsApduHead) -> usize {
    let of = |recipients: &[PerRecipientFields]| -> usize {
        let stays = |r: &&PerRecipientFields| r.indicators.responsible() || goes(&r.recipient);
        recipients.iter().filter(stays).map(|r| r.extensions.0.len()).sum()
    };
    match head {
        MtsApduHead::Message(e) => e.extensions.0.len() + of(&e.recipients),
        MtsApduHead::Probe(e) => e.extensions.0.len() + of(&e.recipients),
        MtsApduHead::Report(report) => {
            let recipients = report.content.recipients.iter().map(|r| r.extensions.0.len());
            let others = report.envelope.extensions.0.len() + report.content.extensions.0.len();
            others + recipients.sum::<usize>()
        }
    }
}

/// Brought into the form of 1984, written, and read again.
fn there(head: &MtsApduHead) -> MtsApduHead {
    let mut left = head.clone();
    assert_eq!(left.set_form(WITH_COMMON.into()), count(head));
    let octets = write(&left, b"content");
    assert_of_1984(&octets);
    let (found, _) = read(&octets);
    assert_eq!(found, left);
    // What has the form keeps it.
    assert_eq!((left.set_form(WITH_COMMON.into()), &left), (0, &found));
    found
}

/// An address with few attributes, so that many have a form.
fn plain(name: ORName) -> ORName {
    let mut name = name;
    let is_common = |a: &p1::names::ExtensionAttribute| a.number == 1;
    name.address.extensions.retain(is_common);
    name.address.numeric_user_identifier = None;
    name.address.domain_defined.truncate(3);
    name
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 10_000, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn messages_are_read_equal_but_for_what_has_no_form(mut e in testing::message()) {
        e.content_type = p1::ContentType::P2;
        e.originator = plain(e.originator);
        if let Some(first) = e.recipients.first_mut() {
            first.recipient = plain(first.recipient.clone());
            first.indicators = first.indicators.with_responsibility(true);
        }
        prop_assume!(goes(&e.originator) && all_go(&e.recipients));
        let found = there(&MtsApduHead::Message(Box::new(e.clone())));
        let MtsApduHead::Message(left) = found else { panic!() };
        assert_name(&left.originator, &e.originator);
        assert_recipients(&left.recipients, &e.recipients);
        assert_trace(&left.trace, &e.trace);
        prop_assert_eq!(left.indicators.0, e.indicators.0 & 15);
        let same = |e: &p1::MessageTransferEnvelope| {
            let ids = (e.message_identifier.clone(), e.content_identifier.clone());
            (ids, e.content_type.clone(), e.priority, e.deferred_delivery_time.clone())
        };
        prop_assert_eq!(same(&left), same(&e));
        let (types, before) = (left.original_eits, e.original_eits);
        prop_assert_eq!(types.as_ref().map(|t| t.built_in | 1), before.map(|t| t.built_in | 1));
    }

    #[test]
    fn probes_are_read_equal_but_for_what_has_no_form(mut e in testing::probe()) {
        e.content_type = p1::ContentType::P2;
        e.originator = plain(e.originator);
        for recipient in &mut e.recipients {
            recipient.recipient = plain(recipient.recipient.clone());
        }
        prop_assume!(goes(&e.originator) && all_go(&e.recipients));
        let found = there(&MtsApduHead::Probe(Box::new(e.clone())));
        let MtsApduHead::Probe(left) = found else { panic!() };
        assert_name(&left.originator, &e.originator);
        assert_recipients(&left.recipients, &e.recipients);
        assert_trace(&left.trace, &e.trace);
        prop_assert_eq!((left.content_length, left.indicators.0), (e.content_length, e.indicators.0 & 15));
        prop_assert_eq!(left.probe_identifier, e.probe_identifier);
    }

    #[test]
    fn reports_are_read_equal_but_for_what_has_no_form(mut report in testing::report()) {
        report.envelope.destination = plain(report.envelope.destination);
        prop_assume!(goes(&report.envelope.destination));
        let found = there(&MtsApduHead::Report(Box::new(report.clone())));
        let MtsApduHead::Report(left) = found else { panic!() };
        let same = |report: &Report| {
            let ids = (report.envelope.report_identifier.clone(), report.content.subject_identifier.clone());
            (ids, report.content.content_identifier.clone(), report.content.returned_content.clone())
        };
        prop_assert_eq!(same(&left), same(&report));
        assert_name(&left.envelope.destination, &report.envelope.destination);
        assert_trace(&left.envelope.trace, &report.envelope.trace);
        assert_trace(&left.content.subject_trace, &report.content.subject_trace);
        for (left, before) in left.content.recipients.iter().zip(&report.content.recipients) {
            prop_assert_eq!((left.number, left.indicators), (before.number, before.indicators));
            prop_assert_eq!(&left.supplementary_information, &before.supplementary_information);
            if goes(&before.actual_recipient) {
                assert_name(&left.actual_recipient, &before.actual_recipient);
            }
            match (&left.last_trace.report, &before.last_trace.report) {
                (ReportType::Delivery { time: a, mts_user }, ReportType::Delivery { time: b, .. }) => {
                    prop_assert_eq!((a, (0..=1).contains(mts_user)), (b, true));
                }
                (ReportType::NonDelivery { reason: a, .. }, ReportType::NonDelivery { reason: b, .. }) => {
                    prop_assert_eq!(a.0, if b.0 > 2 { 1 } else { b.0 });
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
