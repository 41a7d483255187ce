//! Messages that the store forwards by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

use base::ber::universal;
use base::{EntryId, Precedence};
use engine::journal::{ItemId, MailboxId};
use mailbox::forward::{Forwards, NotForwarded, Original};
use mailbox::testing::{Copies, Copy, at};
use mailbox::{Item, item::Kind};
use p1::extension::number::MESSAGE_SECURITY_LABEL;
use p1::extension::{Criticality, ExtensionField, ExtensionType};
use p1::flags::ReportRequest;
use p1::names::ORName;
use p1::p3::PerRecipientSubmissionFields;
use p7::auto_forward::{AutoForward, AutoForwardArguments};
use p772::{
    ContentBuilder, ContentEvent, ContentParser, Heading, IpmIdentifier, Military, MmhsPrecedence,
    NonReceiptReason, Notification, NotificationOutcome, RecipientSpecifier,
};

const JONES: &str = "/C=XX/PRMD=alpha/S=Jones";

fn name(text: &str) -> ORName {
    text.parse().unwrap()
}

fn auto(delete_after: bool) -> AutoForward {
    let arguments = AutoForwardArguments {
        originator: name(JONES),
        recipients: vec![PerRecipientSubmissionFields {
            recipient: name("/C=XX/PRMD=alpha/S=Deputy"),
            ..PerRecipientSubmissionFields::default()
        }],
        ..AutoForwardArguments::default()
    };
    AutoForward { arguments, delete_after, ..AutoForward::default() }
}

fn item(copy: &Copy) -> Item {
    let id = ItemId { mailbox: MailboxId(1), number: 4 };
    Item::new(id, at(1), &copy.record, &copy.delivery, &copy.content).unwrap()
}

fn forward(copy: &Copy, auto: &AutoForward) -> Result<Forwards, NotForwarded> {
    let original = Original { entry: EntryId(7), item: &item(copy), first: &copy.content };
    original.forward(at(2), (3, auto))
}

fn heading() -> Heading {
    let mut me = RecipientSpecifier::from(name(JONES));
    me.notification_requests.non_receipt = true;
    Heading {
        this_ipm: IpmIdentifier { user: None, local: "M1".to_owned() },
        originator: Some(name("/C=XX/PRMD=alpha/S=Smith").into()),
        primary_recipients: vec![me],
        subject: Some("Convoy".to_owned()),
        military: Military {
            primary_precedence: Some(MmhsPrecedence::from(Precedence::Flash)),
            authorised_at: Some(at(0)),
            ..Military::default()
        },
        ..Heading::default()
    }
}

fn copy_of(content: Vec<u8>) -> Copy {
    Copies::default().message_of(at(1), Precedence::Flash, content.into()).unwrap()
}

/// Heading of a content, and the octets of its body parts.
fn read(content: &[u8]) -> (Heading, Vec<Vec<u8>>) {
    let (mut parser, mut rest) = (ContentParser::new(), content);
    let (mut found, mut parts) = (None, Vec::new());
    while let Some(event) = parser.next(&mut rest).unwrap() {
        match event {
            ContentEvent::Heading(heading) => found = Some(*heading),
            ContentEvent::PartBegin(_) => parts.push(Vec::new()),
            ContentEvent::Data(data) => parts.last_mut().unwrap().extend_from_slice(&data),
            _ => {}
        }
    }
    assert!(parser.is_done());
    (found.unwrap(), parts)
}

#[test]
fn the_forwarded_message_has_the_one_delivered_as_its_body() {
    let content = ContentBuilder::new(&heading()).unwrap().text("the text").finish();
    let copy = copy_of(content.clone());
    let made = forward(&copy, &auto(false)).unwrap();
    assert!(!made.delete_after && made.all.len() == 1);
    let forwarding = &made.all[0];
    let (from, length) = forwarding.part.unwrap();
    let inner = &content[from as usize..(from + length) as usize];
    assert_eq!(from + length, content.len() as u64);
    let whole = [&forwarding.head[..], inner].concat();
    let (outer, parts) = read(&whole);
    assert!(outer.auto_forwarded && parts.len() == 1 && parts[0].ends_with(inner));
    assert_eq!(outer.subject.as_deref(), Some("Fwd: Convoy"));
    assert_eq!(outer.military.primary_precedence, Some(MmhsPrecedence::from(Precedence::Flash)));
    let envelope = &forwarding.envelope;
    assert_eq!((&envelope.originator, envelope.recipients.len()), (&name(JONES), 1));
    assert_eq!(p1::grade::split(Precedence::Flash).0, envelope.priority);
    assert_eq!(envelope.content_type, p1::content_type::ContentType::p772());
}

#[test]
fn nobody_loses_a_message_that_is_deleted_and_its_label_goes_with_it() {
    let content = ContentBuilder::new(&heading()).unwrap().text("x").finish();
    let label = |class| {
        ExtensionField::standard(MESSAGE_SECURITY_LABEL, Criticality::default(), |w| {
            w.constructed(universal::SET, |w| w.integer(universal::INTEGER, class));
        })
    };
    let labels = [label(0), label(5)];
    let mut copies = Copies::default();
    copies.labels = labels.to_vec();
    let copy = copies.message_of(at(1), Precedence::Flash, content.into()).unwrap();
    for (deletes, report) in [(false, ReportRequest::None), (true, ReportRequest::NonDelivery)] {
        let envelope = &forward(&copy, &auto(deletes)).unwrap().all[0].envelope;
        assert_eq!(envelope.recipients[0].report_request, report);
        let kind = ExtensionType::Standard(MESSAGE_SECURITY_LABEL);
        let found = envelope.extensions.0.iter().filter(|field| field.kind == kind);
        assert!(found.map(|field| &field.value).eq(labels.iter().map(|label| &label.value)));
    }
}

#[test]
fn what_was_forwarded_before_is_not_forwarded_again() {
    let forwarded = Heading { auto_forwarded: true, ..heading() };
    let content = ContentBuilder::new(&forwarded).unwrap().text("x").finish();
    assert_eq!(forward(&copy_of(content), &auto(false)), Err(NotForwarded::Loop));
}

#[test]
fn its_originator_is_notified_where_the_item_is_deleted() {
    let content = ContentBuilder::new(&heading()).unwrap().text("x").finish();
    let made = forward(&copy_of(content), &auto(true)).unwrap();
    assert!(made.delete_after);
    let [_, notice] = made.all.as_slice() else { panic!("{made:?}") };
    let notification = Notification::parse(&notice.head).unwrap();
    assert_eq!(notification.subject_ipm.local, "M1");
    let NotificationOutcome::NonReceipt(fields) = notification.outcome else { panic!() };
    assert_eq!(fields.reason, NonReceiptReason::AUTO_FORWARDED);
    assert_eq!(notice.envelope.recipients[0].recipient, name("/C=XX/PRMD=alpha/S=Smith"));
    assert_eq!(notice.part, None);
}

#[test]
fn other_contents_and_reports_are_not_forwarded() {
    for (content, why) in
        [(&b"text"[..], NotForwarded::Heading), (&[0xa1, 2, 0x31, 0], NotForwarded::Heading)]
    {
        assert_eq!(forward(&copy_of(content.to_vec()), &auto(false)), Err(why));
    }
    let mut short = ContentBuilder::new(&heading()).unwrap().text("x").finish();
    short.push(0);
    assert_eq!(forward(&copy_of(short), &auto(false)), Err(NotForwarded::Malformed));
    let report = Copies::default().report(at(1), Precedence::Flash).unwrap();
    assert_eq!(item(&report).kind, Kind::Report);
    assert_eq!(forward(&report, &auto(false)), Err(NotForwarded::Report));
}
