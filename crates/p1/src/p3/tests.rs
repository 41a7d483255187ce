//! Operations written and read, against octets set down by hand.

use super::*;
use crate::bind::{Credentials, Password, PasswordForm};
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::envelope::ReportType;
use crate::extension::{Criticality, Dialect, ExtensionField, ExtensionType, Extensions};
use crate::flags::{PerMessageIndicators, Priority, ReportRequest};
use crate::names::{GlobalDomainId, MtaName, MtsIdentifier, ORAddress, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::wire::Kept;
use base::Utc;
use base::ber::{Element, Error, Limits, Writer};
use bytes::Bytes;
use proptest::prelude::*;

/// Octets of hexadecimal digits, blanks ignored; text in quotes stands for itself.
fn hex(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, part) in text.split('"').enumerate() {
        if n % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(u8::is_ascii_hexdigit).collect();
        for pair in digits.chunks(2) {
            out.push(u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
        }
    }
    out
}

fn name(organization: &str) -> ORName {
    let address = ORAddress { organization: Some(organization.to_owned()), ..ORAddress::default() };
    ORName { address, directory_name: None }
}

/// `60 09 30 07 83 05 "ALPHA"` in hexadecimal.
const ALPHA: &str = r#"60 09 30 07 83 05 "ALPHA""#;
const BRAVO: &str = r#"60 09 30 07 83 05 "BRAVO""#;

fn time(text: &'static [u8]) -> Time {
    Time { raw: Bytes::from_static(text), utc: Utc::from_utc_time(text) }
}

/// The field `30 06 80 01 04 A2 01 ..`: standard extension 4 with an ENUMERATED value.
fn extensions() -> Extensions {
    Extensions(vec![ExtensionField {
        kind: ExtensionType::Standard(4),
        dialect: Dialect::Modern,
        criticality: Criticality::default(),
        value: Bytes::from_static(&[10, 1, 1]),
        raw: None,
    }])
}

/// The same extensions, as they compare after a transfer: without the octets they came in.
fn plain(extensions: &mut Extensions) {
    extensions.0.iter_mut().for_each(|field| field.raw = None);
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

/// Envelope, content and whether the end was seen.
type Seen<T> = (Option<T>, Vec<u8>, bool);

fn read<T: ArgumentHead + PartialEq>(pieces: &[&[u8]]) -> Result<Seen<T>, Error> {
    let mut parser = ArgumentParser::<T>::new(Limits::default());
    let (mut envelope, mut content) = (None, Vec::new());
    for piece in pieces {
        let mut input = *piece;
        while let Some(event) = parser.next(&mut input)? {
            assert!(!parser.is_done() || event == ArgumentEvent::End);
            match event {
                ArgumentEvent::Envelope(head) => assert!(envelope.replace(*head).is_none()),
                ArgumentEvent::Content(octets) => {
                    assert!(!octets.is_empty() && envelope.is_some());
                    content.extend_from_slice(octets);
                }
                ArgumentEvent::End => {}
            }
        }
        assert!(input.is_empty() || parser.is_done());
    }
    Ok((envelope, content, parser.is_done()))
}

fn every_cut<T: ArgumentHead + PartialEq + std::fmt::Debug>(argument: &[u8]) -> Seen<T> {
    let whole = read::<T>(&[argument]).unwrap();
    assert!(whole.2);
    for cut in 0..argument.len() {
        let (a, b) = argument.split_at(cut);
        assert!(!read::<T>(&[a]).unwrap().2, "ended at {cut}");
        assert_eq!(read::<T>(&[a, b]).unwrap(), whole, "cut at {cut}");
    }
    let octets: Vec<&[u8]> = argument.chunks(1).collect();
    assert_eq!(read::<T>(&octets).unwrap(), whole);
    whole
}

/// A submission as a peer may send it: indefinite lengths, a constructed content, members in
/// another order than ours, the default priority present, an unknown member.
fn foreign_submission() -> Vec<u8> {
    hex(&format!(
        r#"30 80
             31 80
               9F 63 01 2A
               A1 80
                 31 13 80 02 03 10 {BRAVO} 81 02 00 08
                 31 0F {ALPHA} 80 02 03 08
               00 00
               47 01 00
               46 01 16
               {ALPHA}
               4A 04 "REF1"
               48 02 00 A0
               80 0D "261120230000Z"
             00 00
             24 80 04 03 "abc" 24 80 04 02 "de" 00 00 04 00 00 00
           00 00"#
    ))
}

#[test]
fn a_deferral_to_no_day_of_the_calendar_is_named() {
    let mut envelope = every_cut::<MessageSubmissionEnvelope>(&foreign_submission()).0.unwrap();
    for (text, right) in [
        (&b"280229000000Z"[..], true),
        (b"260229000000Z", false),
        (b"260231235959Z", false),
        (b"260431000000Z", false),
        (b"260100000000Z", false),
        (b"261301000000Z", false),
        (b"260101240000Z", false),
    ] {
        let raw = Bytes::copy_from_slice(text);
        envelope.deferred_delivery_time = Some(Time { raw, utc: None });
        let mut w = Writer::new();
        envelope.write(&mut w);
        let read = Element::parse(w.as_slice()).and_then(|e| MessageSubmissionEnvelope::read(&e));
        match read {
            Ok(_) => assert!(right, "{text:?}"),
            Err(e) => {
                assert!(!right, "{text:?}");
                assert_eq!(e.to_string(), "deferred-delivery-time: invalid UTCTime");
            }
        }
    }
}

#[test]
fn a_foreign_submission_is_understood_at_any_cut() {
    let (envelope, content, _) = every_cut::<MessageSubmissionEnvelope>(&foreign_submission());
    let envelope = envelope.unwrap();
    assert_eq!(content, b"abcde");
    assert_eq!(envelope.originator, name("ALPHA"));
    assert_eq!(envelope.content_type, ContentType::P22);
    assert_eq!(envelope.content_identifier.as_deref(), Some("REF1"));
    assert_eq!(envelope.priority, Priority::Normal);
    assert_eq!(envelope.indicators, PerMessageIndicators(0b101));
    assert_eq!(envelope.deferred_delivery_time, Some(time(b"261120230000Z")));
    assert_eq!(envelope.unknown, [hex("9F 63 01 2A")]);
    let recipients: Vec<_> = envelope
        .recipients
        .iter()
        .map(|r| (r.recipient.clone(), r.report_request, r.explicit_conversion))
        .collect();
    assert_eq!(
        recipients,
        [
            (name("BRAVO"), ReportRequest::Report, Some(8)),
            (name("ALPHA"), ReportRequest::NonDelivery, None)
        ]
    );
}

fn submission() -> MessageSubmissionEnvelope {
    MessageSubmissionEnvelope {
        originator: name("ALPHA"),
        original_eits: None,
        content_type: ContentType::p772(),
        content_identifier: Some("REF1".into()),
        priority: Priority::Urgent,
        indicators: PerMessageIndicators::default(),
        deferred_delivery_time: None,
        recipients: vec![PerRecipientSubmissionFields {
            recipient: name("BRAVO"),
            report_request: ReportRequest::NonDelivery,
            ..PerRecipientSubmissionFields::default()
        }],
        extensions: Extensions::default(),
        unknown: vec![],
    }
}

#[test]
fn a_submission_is_these_octets() {
    let mut argument = submission().argument_head(5);
    argument.extend_from_slice(b"hello");
    let expected = hex(&format!(
        r#"30 3A
             31 31
               {ALPHA}
               06 08 2B 1A 00 A2 36 00 04 01
               4A 04 "REF1"
               47 01 02
               A1 11 31 0F {BRAVO} 80 02 03 08
             04 05 "hello""#
    ));
    assert_eq!(argument, expected);
}

#[test]
fn every_field_of_a_submission_comes_back() {
    let mut envelope = MessageSubmissionEnvelope {
        original_eits: Some(EncodedInformationTypes { built_in: 0b100, ..Default::default() }),
        indicators: PerMessageIndicators(0b1000_0010),
        deferred_delivery_time: Some(time(b"261120230000Z")),
        extensions: extensions(),
        unknown: vec![Bytes::from_static(&[0x9f, 0x63, 1, 0x2a])],
        ..submission()
    };
    envelope.recipients.push(PerRecipientSubmissionFields {
        recipient: name("CHARLIE"),
        report_request: ReportRequest::None,
        explicit_conversion: Some(16),
        extensions: extensions(),
        unknown: vec![Bytes::from_static(&[0x9f, 0x63, 1, 0x2a])],
    });
    let mut argument = envelope.argument_head(3);
    argument.extend_from_slice(b"abc");
    let (mut back, content, _) = every_cut::<MessageSubmissionEnvelope>(&argument);
    let read = back.as_mut().unwrap();
    plain(&mut read.extensions);
    read.recipients.iter_mut().for_each(|r| plain(&mut r.extensions));
    assert_eq!((back.unwrap(), content.as_slice()), (envelope, &b"abc"[..]));
}

#[test]
fn what_is_no_submission_is_refused_by_name() {
    for (argument, message) in [
        ("31 00".into(), "argument: unexpected [UNIVERSAL 17]"),
        ("30 00".into(), "content: missing [UNIVERSAL 4]"),
        ("30 02 04 00".into(), "MessageSubmissionEnvelope: missing [UNIVERSAL 17]"),
        ("30 04 31 00 04 00".into(), "originator-name: missing [APPLICATION 0]"),
        (format!("30 80 31 0B {ALPHA} 04 00"), "content-type: missing [APPLICATION 6]"),
        (format!("30 80 31 0E {ALPHA} 46 01 16 04 00"), "per-recipient-fields: invalid"),
        (
            format!("30 80 31 14 {ALPHA} 46 01 16 A1 04 31 02 31 00 04 00"),
            "recipient-name: missing [APPLICATION 0]",
        ),
        (
            format!("30 80 31 1D {ALPHA} 46 01 16 A1 0D 31 0B {BRAVO} 04 01 41 05 00"),
            "argument: unexpected",
        ),
        (format!("30 80 31 1D {ALPHA} 46 01 16 A1 0D 31 0B {BRAVO} 24 80 30"), ""),
        (
            format!("30 80 31 1D {ALPHA} 46 01 16 A1 0D 31 0B {BRAVO} 24 80 30 80"),
            "content: unexpected [UNIVERSAL 16]",
        ),
    ] {
        let answer = read::<MessageSubmissionEnvelope>(&[&hex(&argument)]);
        let outcome = answer.map_or_else(|e| e.to_string(), |seen| format!("{}", seen.2));
        if message.is_empty() {
            assert_eq!(outcome, "false", "{argument}");
        } else {
            assert!(outcome.starts_with(message), "{argument}: {outcome}");
        }
    }
}

#[test]
fn an_envelope_beyond_the_limit_is_refused() {
    let mut argument = hex("30 80 31 84 00 20 00 00 9F 63 84 00 1F FF 00");
    argument.resize((1 << 20) + 100, 0);
    let error = read::<MessageSubmissionEnvelope>(&[&argument]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MessageSubmissionEnvelope: longer than the limit of 1048576 octets"
    );
}

#[test]
fn a_content_beyond_the_limit_is_refused() {
    let limits = Limits { octets: 1000, ..Limits::default() };
    let mut parser = SubmissionParser::new(limits);
    let head = submission().argument_head(1000);
    let error = parser.next(&mut head.as_slice()).unwrap_err();
    assert_eq!(error.to_string(), "longer than the limit of 1000 octets");
}

fn delivery() -> MessageDeliveryEnvelope {
    MessageDeliveryEnvelope {
        identifier: identifier(),
        delivery_time: time(b"261120220001Z"),
        content_type: ContentType::P22,
        originator: name("ALPHA"),
        original_eits: None,
        priority: Priority::NonUrgent,
        implicit_conversion_prohibited: false,
        other_recipients: vec![],
        this_recipient: name("BRAVO"),
        intended_recipient: None,
        converted_eits: None,
        submission_time: time(b"261120220000Z"),
        content_identifier: Some("REF1".into()),
        extensions: Extensions::default(),
        unknown: vec![],
    }
}

fn identifier() -> MtsIdentifier {
    let domain = GlobalDomainId { country: "NO".into(), admd: " ".into(), prmd: None };
    MtsIdentifier { domain, local: "M1".into() }
}

/// [`identifier`] on the wire.
const IDENTIFIER: &str = r#"64 11 63 0B 61 04 13 02 "NO" 62 03 13 01 20 16 02 "M1""#;

#[test]
fn a_delivery_is_these_octets() {
    let mut argument = delivery().argument_head(2);
    argument.extend_from_slice(b"hi");
    let expected = hex(&format!(
        r#"30 59
             {IDENTIFIER}
             17 0D "261120220001Z"
             31 31
               80 01 16
               {ALPHA}
               47 01 01
               A4 09 30 07 83 05 "BRAVO"
               87 0D "261120220000Z"
               88 04 "REF1"
             04 02 "hi""#
    ));
    assert_eq!(argument, expected);
    let (back, content, _) = every_cut::<MessageDeliveryEnvelope>(&expected);
    assert_eq!((back.unwrap(), content.as_slice()), (delivery(), &b"hi"[..]));
}

#[test]
fn every_field_of_a_delivery_comes_back() {
    let envelope = MessageDeliveryEnvelope {
        content_type: ContentType::p772(),
        original_eits: Some(EncodedInformationTypes { built_in: 0b100, ..Default::default() }),
        implicit_conversion_prohibited: true,
        other_recipients: vec![name("CHARLIE"), name("DELTA")],
        intended_recipient: Some(name("ECHO")),
        converted_eits: Some(EncodedInformationTypes { built_in: 0b1000, ..Default::default() }),
        extensions: extensions(),
        unknown: vec![Bytes::from_static(&[0x9f, 0x63, 1, 0x2a])],
        ..delivery()
    };
    let argument = envelope.argument_head(0);
    let (back, content, _) = every_cut::<MessageDeliveryEnvelope>(&argument);
    let mut back = back.unwrap();
    plain(&mut back.extensions);
    assert_eq!((back, content.len()), (envelope, 0));
}

#[test]
fn a_gigabyte_passes_in_pieces() {
    let length = 1_000_000_000u64;
    let head = delivery().argument_head(length);
    let mut parser = DeliveryParser::default();
    let (piece, mut sent, mut received) = (vec![0u8; 1_000_000], 0, 0);
    let mut input = head.as_slice();
    loop {
        match parser.next(&mut input).unwrap() {
            Some(ArgumentEvent::End) => break,
            Some(ArgumentEvent::Content(octets)) => received += octets.len() as u64,
            Some(ArgumentEvent::Envelope(_)) => {}
            None => {
                assert!(sent < length);
                sent += piece.len() as u64;
                input = &piece;
            }
        }
    }
    assert_eq!((sent, received, input.len()), (length, length, 0));
}

#[test]
fn a_submission_result_is_these_octets() {
    let result = SubmissionResult {
        identifier: identifier(),
        time: time(b"261120220000Z"),
        content_identifier: Some("REF1".into()),
        extensions: Extensions::default(),
        unknown: vec![],
    };
    let octets = written(|w| result.write(w));
    let expected = hex(&format!(r#"31 28 {IDENTIFIER} 80 0D "261120220000Z" 4A 04 "REF1""#));
    assert_eq!(octets, expected);
    assert_eq!(SubmissionResult::read(&Element::parse(&octets).unwrap()), Ok(result));
    let no_time = hex(&format!("31 13 {IDENTIFIER}"));
    let error = SubmissionResult::read(&Element::parse(&no_time).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "message-submission-time: missing [0]");
}

#[test]
fn a_probe_comes_back() {
    let probe = ProbeSubmissionEnvelope {
        originator: name("ALPHA"),
        original_eits: None,
        content_type: ContentType::P22,
        content_identifier: None,
        content_length: Some(10_000_000),
        indicators: PerMessageIndicators::default(),
        recipients: submission().recipients,
        extensions: Extensions::default(),
        unknown: vec![],
    };
    let octets = written(|w| probe.write(w));
    let expected =
        hex(&format!("31 27 {ALPHA} 46 01 16 80 04 00 98 96 80 A3 11 31 0F {BRAVO} 80 02 03 08"));
    assert_eq!(octets, expected);
    assert_eq!(ProbeSubmissionEnvelope::read(&Element::parse(&octets).unwrap()), Ok(probe));
}

#[test]
fn a_report_delivery_is_these_octets() {
    let not_delivered = PerRecipientReportDelivery {
        actual_recipient: name("BRAVO"),
        report: ReportType::NonDelivery {
            reason: NonDeliveryReason(1),
            diagnostic: Some(Diagnostic(0)),
        },
        converted_eits: None,
        intended_recipient: None,
        supplementary_information: Some("no such user".into()),
        extensions: Extensions::default(),
        unknown: vec![],
    };
    let delivered = PerRecipientReportDelivery {
        actual_recipient: name("ALPHA"),
        report: ReportType::Delivery { time: time(b"261120220000Z"), mts_user: 2 },
        intended_recipient: Some(name("BRAVO")),
        supplementary_information: None,
        ..not_delivered.clone()
    };
    let report = ReportDelivery {
        subject_identifier: identifier(),
        content_identifier: Some("REF1".into()),
        content_type: Some(ContentType::P22),
        original_eits: None,
        extensions: Extensions::default(),
        recipients: vec![not_delivered, delivered],
        returned_content: Some(Bytes::from_static(b"hello")),
        unknown: vec![],
    };
    let octets = written(|w| report.write(w));
    let expected = hex(&format!(
        r#"31 78
             {IDENTIFIER}
             4A 04 "REF1"
             46 01 16
             30 53
               31 23
                 A0 09 30 07 83 05 "BRAVO"
                 A1 08 A1 06 80 01 01 81 01 00
                 83 0C "no such user"
               31 2C
                 A0 09 30 07 83 05 "ALPHA"
                 A1 14 A0 12 80 0D "261120220000Z" 81 01 02
                 A2 09 30 07 83 05 "BRAVO"
             80 05 "hello""#
    ));
    assert_eq!(octets, expected);
    assert_eq!(ReportDelivery::read(&Element::parse(&octets).unwrap()), Ok(report));
}

#[test]
fn a_bind_is_these_octets() {
    let password = Password::new(&b"secret"[..], PasswordForm::Ia5);
    let bind = MtsBind {
        messages_waiting: Some(MessagesWaiting {
            urgent: DeliveryQueue { messages: 1, octets: Some(1000) },
            ..MessagesWaiting::default()
        }),
        ..MtsBind::new(ObjectName::UserAgent(name("ALPHA")), Credentials::Simple(password))
    };
    let octets = written(|w| bind.write(w));
    let expected = hex(&format!(
        r#"31 2C
             {ALPHA}
             A1 15 31 13 A0 07 80 01 01 81 02 03 E8 A1 03 80 01 00 A2 03 80 01 00
             A2 08 16 06 "secret""#
    ));
    assert_eq!(octets, expected);
    assert_eq!(MtsBind::read(&Element::parse(&octets).unwrap()), Ok(bind));
}

#[test]
fn binds_of_every_name_and_either_password_come_back() {
    for name in [
        ObjectName::UserAgent(name("ALPHA")),
        ObjectName::Mta(MtaName("mta-1".into())),
        ObjectName::MessageStore(name("ALPHA")),
    ] {
        for form in [PasswordForm::Ia5, PasswordForm::Octets] {
            let credentials = Credentials::Simple(Password::new(&b"secret"[..], form));
            let bind = MtsBind::new(name.clone(), credentials);
            let octets = written(|w| bind.write(w));
            assert_eq!(MtsBind::read(&Element::parse(&octets).unwrap()), Ok(bind));
        }
    }
    for (octets, message) in [
        (hex(r#"31 0A A2 08 16 06 "secret""#), "initiator-name: missing [APPLICATION 0]"),
        (hex(&format!("31 0B {ALPHA}")), "credentials: missing [2]"),
        (hex("05 00"), "MTSBindArgument: unexpected [UNIVERSAL 5]"),
    ] {
        let error = MtsBind::read(&Element::parse(&octets).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn bind_errors_have_the_numbers_of_x411() {
    for (error, number) in [
        (MtsBindError::Busy, 0),
        (MtsBindError::AuthenticationError, 2),
        (MtsBindError::UnacceptableDialogueMode, 3),
        (MtsBindError::UnacceptableSecurityContext, 4),
        (MtsBindError::InadequateAssociationConfidentiality, 5),
        (MtsBindError::Other(9), 9),
    ] {
        let octets = written(|w| error.write(w));
        assert_eq!(octets, [2, 1, number]);
        assert_eq!(MtsBindError::read(&Element::parse(&octets).unwrap()), Ok(error));
    }
}

#[test]
fn errors_have_the_codes_and_parameters_of_x419() {
    let null = "05 00".to_owned();
    for (error, code, parameter) in [
        (AccessError::ControlViolated, 1, null.clone()),
        (AccessError::OriginatorInvalid, 2, null.clone()),
        (
            AccessError::RecipientImproperlySpecified(vec![name("ALPHA"), name("BRAVO")]),
            3,
            format!("30 16 {ALPHA} {BRAVO}"),
        ),
        (AccessError::ElementOfServiceNotSubscribed, 4, null.clone()),
        (AccessError::OldCredentialsIncorrectlySpecified, 5, null.clone()),
        (AccessError::NewCredentialsUnacceptable, 6, null.clone()),
        (AccessError::MessageSubmissionIdentifierInvalid, 7, null.clone()),
        (AccessError::DeferredDeliveryCancellationRejected, 8, null.clone()),
        (AccessError::RegisterRejected, 10, null.clone()),
        (AccessError::InconsistentRequest, 11, null.clone()),
        (
            AccessError::Security(SecurityProblem::UNAUTHORISED_ORIGINATOR_NAME),
            12,
            "02 01 1D".into(),
        ),
        (AccessError::UnsupportedCriticalFunction, 13, null.clone()),
        (AccessError::ControlViolatesRegistration, 14, null.clone()),
        (AccessError::RemoteBind, 15, null),
        (
            AccessError::OperationRefused { argument: RefusedArgument::BuiltIn(1), reason: 0 },
            16,
            "31 06 81 01 01 82 01 00".into(),
        ),
        (
            AccessError::OperationRefused {
                argument: RefusedArgument::Extension(Kept(Bytes::from_static(&[0x80, 1, 4]))),
                reason: 2,
            },
            16,
            "31 06 80 01 04 82 01 02".into(),
        ),
        (
            AccessError::Other { code: 99, parameter: Some(Bytes::from_static(&[2, 1, 7])) },
            99,
            "02 01 07".into(),
        ),
    ] {
        assert_eq!(error.code(), code);
        let octets = written(|w| error.write_parameter(w));
        assert_eq!(octets, hex(&parameter), "{}", error.name());
        let element = Element::parse(&octets).unwrap();
        assert_eq!(AccessError::read(code, Some(&element)), Ok(error));
    }
    assert_eq!(AccessError::read(1, None), Ok(AccessError::ControlViolated));
    for code in [3, 12, 16] {
        assert!(AccessError::read(code, None).is_err());
    }
}

#[test]
fn controls_and_credentials_come_back() {
    let controls = Controls {
        restrict: true,
        probes_or_reports: Some(false),
        messages: Some(true),
        max_content_length: Some(1000),
        lowest_priority: Some(Priority::Urgent),
        content_types: Some(vec![ContentType::P22]),
        ..Controls::default()
    };
    let octets = written(|w| controls.write(w));
    assert_eq!(octets, hex("31 10 81 02 06 40 82 02 03 E8 47 01 02 A4 03 46 01 16"));
    assert_eq!(Controls::read(&Element::parse(&octets).unwrap()), Ok(controls));
    let lifted = Controls::read(&Element::parse(&hex("31 03 80 01 00")).unwrap()).unwrap();
    assert!(!lifted.restrict && lifted.messages.is_none());
    assert_eq!(written(|w| Waiting::default().write(w)), [0x31, 0]);
    let waiting = Waiting {
        messages: true,
        long_content: true,
        low_priority: true,
        content_types: vec![ContentType::P22],
        ..Waiting::default()
    };
    let octets = written(|w| waiting.write(w));
    assert_eq!(octets, hex("31 0D 80 02 06 40 81 02 05 C0 A2 03 46 01 16"));
    assert_eq!(Waiting::read(&Element::parse(&octets).unwrap()), Ok(waiting));

    let secret = |text: &'static str| Credentials::Simple(Password::new(text, PasswordForm::Ia5));
    let change = ChangeCredentials { old: secret("old"), new: secret("new") };
    let octets = written(|w| change.write(w));
    assert_eq!(octets, hex(r#"31 0E A0 05 16 03 "old" A1 05 16 03 "new""#));
    assert_eq!(ChangeCredentials::read(&Element::parse(&octets).unwrap()), Ok(change));

    let accepted = DeliveryResult::default();
    assert_eq!(written(|w| accepted.write(w)), [0x31, 0]);
    let with_proof = hex("31 05 A1 03 02 01 01");
    let result = DeliveryResult::read(&Element::parse(&with_proof).unwrap()).unwrap();
    assert_eq!(result.other, [&with_proof[2..]]);
}

fn registered(text: &str) -> Result<RegisterArgument, Error> {
    RegisterArgument::read(&Element::parse(&hex(text)).unwrap())
}

#[test]
fn registrations_are_read_in_the_forms_of_both_editions() {
    let argument = RegisterArgument {
        max_content_length: Some(Some(1000)),
        content_types: Some(Some(vec![ContentType::P22])),
        default_controls: Some(Controls::default()),
        alternate: Some(Some(name("BRAVO"))),
        undone: None,
    };
    let of_1988 = written(|w| argument.write(w));
    let alternate = r#"31 0B A1 09 30 07 83 05 "BRAVO""#;
    let expected = format!("31 1E A1 04 02 02 03 E8 A2 02 31 00 A3 03 46 01 16 A4 0D {alternate}");
    assert_eq!(of_1988, hex(&expected));
    assert_eq!(RegisterArgument::read(&Element::parse(&of_1988).unwrap()), Ok(argument.clone()));
    let of_1994 = written(|w| argument.write_1994(w));
    let class = "31 0B 31 09 A0 03 46 01 16 81 02 03 E8";
    assert_eq!(of_1994, hex(&format!("31 20 {class} A2 02 31 00 A3 0D {alternate}")));
    assert_eq!(RegisterArgument::read(&Element::parse(&of_1994).unwrap()), Ok(argument));

    // All is lifted.
    let nothing = RegisterArgument {
        max_content_length: Some(None),
        content_types: Some(None),
        alternate: Some(None),
        ..RegisterArgument::default()
    };
    let octets = written(|w| nothing.write(w));
    assert_eq!(octets, hex("31 08 31 02 31 00 A4 02 31 00"));
    assert_eq!(RegisterArgument::read(&Element::parse(&octets).unwrap()), Ok(nothing));
    assert_eq!(registered("31 00"), Ok(RegisterArgument::default()));
}

#[test]
fn what_is_not_registered_here_is_named() {
    let undone = |text: &str| match registered(text).unwrap().undone {
        Some(RefusedArgument::BuiltIn(number)) => number,
        other => panic!("{other:?}"),
    };
    assert_eq!(undone(&format!("31 0B {ALPHA}")), 0);
    assert_eq!(undone("31 04 A0 02 A1 00"), 1);
    // Two classes; a class with EITs; one with labels; EITs of 1988.
    assert_eq!(undone("31 06 31 04 31 00 31 00"), 2);
    assert_eq!(undone("31 06 31 04 31 02 A2 00"), 4);
    assert_eq!(undone("31 06 31 04 31 02 A3 00"), 5);
    assert_eq!(undone("31 06 65 04 80 02 05 20"), 4);
    // A label; two redirections of 1994; a restriction; retrieval.
    assert_eq!(undone("31 06 A4 04 31 02 A0 00"), 5);
    assert_eq!(undone("31 06 A3 04 31 00 31 00"), 6);
    assert_eq!(undone("31 07 A4 05 31 03 01 01 00"), 7);
    assert_eq!(undone("31 02 A5 00"), 8);
    // EITs and a security context of the default controls.
    assert_eq!(undone("31 06 A2 04 31 02 30 00"), 13);
    assert_eq!(undone("31 06 A2 04 31 02 A5 00"), 16);
    // An extension counts if it is critical: 80 01 63 is its number.
    let extension = |critical: &str, size: u8| {
        format!(
            "31 {:02X} A6 {:02X} 30 {size:02X} 80 01 63 {critical} A2 02 05 00",
            size + 4,
            size + 2
        )
    };
    assert_eq!(registered(&extension("", 7)).unwrap().undone, None);
    let refused = registered(&extension("81 02 05 20", 11)).unwrap().undone;
    assert_eq!(refused, Some(RefusedArgument::Extension(Kept(hex("80 01 63").into()))));
}

#[test]
fn a_malformed_registration_is_refused() {
    for text in [
        "30 00",                         // no SET
        "31 02 A7 00",                   // a member of neither edition
        "31 02 A4 00",                   // no redirection at all
        "31 06 A4 04 31 02 A2 00",       // no member of a redirection
        "31 08 A1 03 02 01 01 A1 01 02", // cut short, and twice
        "31 02 A1 00",                   // no length
        "31 04 A3 02 04 00",             // no content type
        "31 04 A2 02 31 02",             // the controls run over
    ] {
        let e = hex(text);
        let read = Element::parse(&e).and_then(|e| RegisterArgument::read(&e));
        assert!(read.is_err(), "{text}: {read:?}");
    }
    let classes = 257;
    let mut w = Writer::new();
    w.constructed(base::ber::universal::SET, |w| {
        w.constructed(base::ber::universal::SET, |w| {
            (0..classes).for_each(|_| w.constructed(base::ber::universal::SET, |_| {}));
        });
    });
    let octets = w.into_vec();
    RegisterArgument::read(&Element::parse(&octets).unwrap()).unwrap_err();
}

#[test]
fn a_member_comes_once() {
    for (tag, octets) in
        [("[0]", "31 06 80 01 00 80 01 FF"), ("[APPLICATION 7]", "31 06 47 01 02 47 01 02")]
    {
        let error = Controls::read(&Element::parse(&hex(octets)).unwrap()).unwrap_err();
        assert!(error.to_string().contains(tag), "{error}");
    }
    let envelope = |more: &str| {
        let size = 0x21 + if more.is_empty() { 0 } else { 3 };
        let octets =
            hex(&format!("31 {size:02X} {ALPHA} 46 01 16 A1 11 31 0F {ALPHA} 80 02 03 08 {more}"));
        MessageSubmissionEnvelope::read(&Element::parse(&octets).unwrap())
    };
    envelope("").unwrap();
    let error = envelope("46 01 16").unwrap_err().to_string();
    assert!(error.contains("[APPLICATION 6]"), "{error}");
}

proptest! {
    #[test]
    fn damaged_arguments_are_answered_alike_at_any_cut(
        at in any::<prop::sample::Index>(), octet: u8, cut in any::<prop::sample::Index>(),
    ) {
        let deliver = [delivery().argument_head(2), b"hi".to_vec()].concat();
        let mut arguments = [foreign_submission(), deliver];
        for argument in &mut arguments {
            let length = argument.len();
            argument[at.index(length)] = octet;
            let (a, b) = argument.split_at(cut.index(length));
            prop_assert_eq!(
                read::<MessageSubmissionEnvelope>(&[argument]),
                read::<MessageSubmissionEnvelope>(&[a, b])
            );
            prop_assert_eq!(
                read::<MessageDeliveryEnvelope>(&[argument]),
                read::<MessageDeliveryEnvelope>(&[a, b])
            );
        }
    }

    #[test]
    fn any_octets_are_answered(octets in proptest::collection::vec(any::<u8>(), 0..200), code in 0i64..20) {
        let _ = read::<MessageSubmissionEnvelope>(&[&octets]);
        let _ = read::<MessageDeliveryEnvelope>(&[&octets]);
        if let Ok(e) = Element::parse(&octets) {
            let _ = (MtsBind::read(&e), MtsBindError::read(&e), SubmissionResult::read(&e));
            let _ = (ProbeSubmissionEnvelope::read(&e), ReportDelivery::read(&e));
            let _ = (Controls::read(&e), ChangeCredentials::read(&e), RegisterArgument::read(&e));
            let _ = Waiting::read(&e);
            let _ = (DeliveryResult::read(&e), AccessError::read(code, Some(&e)));
        }
    }
}
