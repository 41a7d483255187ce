use super::*;
use crate::item::Item;
use crate::testing::{Copies, at};
use base::Utc;
use engine::journal::{ItemId, MailboxId};
use p772::{
    DistributionCodes, Heading, Importance, IpmIdentifier, Military, OrDescriptor, Sensitivity,
};

fn heading() -> Heading {
    let name: p1::ORName = p1::ORName {
        address: "C=XX;ADMD=;PRMD=alpha;S=Smith".parse().unwrap(),
        directory_name: None,
    };
    let descriptor = OrDescriptor::from(name.clone());
    Heading {
        this_ipm: IpmIdentifier { user: None, local: "7".to_owned() },
        originator: Some(descriptor.clone()),
        authorizing_users: vec![descriptor],
        primary_recipients: vec![name.clone().into(), name.clone().into()],
        copy_recipients: vec![name.into()],
        replied_to: Some(IpmIdentifier { user: None, local: "6".to_owned() }),
        subject: Some("Convoy".to_owned()),
        expiry_time: Some(at(500)),
        importance: Importance::High,
        sensitivity: Some(Sensitivity::Private),
        military: Military {
            primary_precedence: Some(Precedence::Flash.into()),
            copy_precedence: Some(Precedence::Routine.into()),
            authorised_at: Some(at(2)),
            distribution_codes: DistributionCodes {
                sics: vec!["ABC".to_owned(), "DEF".to_owned()],
                extensions: Vec::new(),
            },
            handling_instructions: vec!["FOR COMMANDER".to_owned()],
            originator_reference: Some("REF 1".to_owned()),
            ..Military::default()
        },
        ..Heading::default()
    }
}

fn record(report: bool) -> bytes::Bytes {
    let mut copies = Copies::default();
    let copy = match report {
        false => copies.message(at(5), Precedence::Flash, "Convoy", 1000),
        true => copies.report(at(5), Precedence::Flash),
    };
    let copy = copy.unwrap();
    let id = ItemId { mailbox: MailboxId(3), number: 8 };
    let mut item = Item::new(id, at(9), &copy.record, &copy.delivery, &copy.content).unwrap();
    if !report {
        let mut w = base::ber::Writer::new();
        heading().encode(&mut w);
        item.heading = Some(w.into_vec().into());
    }
    item.encode()
}

fn attributes(record: &[u8]) -> Attributes<'_> {
    Attributes::new(8, Precedence::Flash, record).unwrap()
}

fn one(item: &Attributes<'_>, kind: &AttributeType) -> Value {
    let mut values = item.values(kind);
    assert_eq!(values.len(), 1, "{}", kind.name);
    values.remove(0)
}

#[test]
fn every_type_is_available_once_and_has_values_of_its_syntax() {
    let (message, report) = (record(false), record(true));
    let (message, report) = (attributes(&message), attributes(&report));
    for (at, kind) in AVAILABLE.iter().enumerate() {
        assert_eq!(available(&kind.oid()), Some(&AVAILABLE[at]));
        for value in [&message, &report].into_iter().flat_map(|item| item.values(kind)) {
            let tag = value.element().unwrap().tag;
            let own = a::Syntax::of_tag(tag);
            assert!([own, a::Syntax::Other].contains(&kind.syntax), "{}: {tag:?}", kind.name);
        }
    }
}

#[test]
fn a_message_has_the_attributes_of_its_record_and_envelope() {
    let record = record(false);
    let item = attributes(&record);
    assert_eq!(one(&item, &a::SEQUENCE_NUMBER).integer(), Ok(8));
    assert_eq!(one(&item, &a::CREATION_TIME).time().unwrap().utc, Some(at(9)));
    assert_eq!(one(&item, &a::RETRIEVAL_STATUS).integer(), Ok(0));
    assert_eq!(one(&item, &a::ENTRY_TYPE).integer(), Ok(0));
    assert_eq!(one(&item, &a::CONTENT_TYPE).oid().unwrap().to_string(), "1.3.26.0.4406.0.4.1");
    assert_eq!(one(&item, &a::PRIMARY_PRECEDENCE).integer(), Ok(4));
    assert_eq!(one(&item, &a::PRIORITY).integer(), Ok(2));
    assert_eq!(one(&item, &a::SUBJECT).text().unwrap(), "Convoy");
    assert_eq!(one(&item, &a::MESSAGE_SUBMISSION_TIME).time().unwrap().utc, Some(at(5)));
    let name = one(&item, &a::ORIGINATOR_NAME).or_name().unwrap();
    assert_eq!(name.to_string(), "/S=Smith/PRMD=alpha/ADMD= /C=XX");
    let identifier = one(&item, &a::MESSAGE_IDENTIFIER).mts_identifier().unwrap();
    assert_eq!(identifier.to_string(), item.brief().identifier);
    let envelope = one(&item, &a::MESSAGE_DELIVERY_ENVELOPE);
    let mut members = envelope.element().unwrap().children().unwrap();
    assert_eq!(members.next().unwrap().unwrap().raw, identifier_octets(&item));
    assert!(members.next().unwrap().is_some() && members.next().unwrap().is_some());
    members.finish().unwrap();
    for absent in [a::CONTENT, a::OTHER_RECIPIENT_NAMES, a::SUBJECT_SUBMISSION_IDENTIFIER] {
        assert_eq!(item.values(&absent), []);
    }
}

fn identifier_octets<'a>(item: &'a Attributes<'_>) -> &'a [u8] {
    let element = Element::parse(item.brief().argument).unwrap();
    element.children().unwrap().next().unwrap().unwrap().raw
}

#[test]
fn a_heading_has_its_members_as_attributes() {
    let record = record(false);
    let item = attributes(&record);
    assert_eq!(one(&item, &a::HEADING).octets().as_ref(), item.brief().heading.unwrap());
    assert_eq!(one(&item, &a::THIS_IPM).octets().as_ref(), [0x6b, 3, 0x13, 1, b'7']);
    assert_eq!(one(&item, &a::REPLIED_TO_IPM).octets().as_ref(), [0x6b, 3, 0x13, 1, b'6']);
    let time = |kind: &AttributeType| -> Option<Utc> { one(&item, kind).time().unwrap().utc };
    assert_eq!(time(&a::EXPIRY_TIME), Some(at(500)));
    assert_eq!(time(&a::EXTENDED_AUTHORISATION_INFO), Some(at(2)));
    assert_eq!(one(&item, &a::IMPORTANCE).integer(), Ok(2));
    assert_eq!(one(&item, &a::SENSITIVITY).integer(), Ok(2));
    assert_eq!(one(&item, &a::AUTO_FORWARDED).boolean(), Ok(false));
    assert_eq!(one(&item, &a::COPY_PRECEDENCE).integer(), Ok(1));
    assert_eq!(one(&item, &a::ORIGINATOR_REFERENCE).text().unwrap(), "REF 1");
    assert_eq!(one(&item, &a::HANDLING_INSTRUCTIONS).text().unwrap(), "FOR COMMANDER");
    let codes: Vec<_> =
        item.values(&a::SUBJECT_INDICATOR_CODE).iter().map(|code| code.text().unwrap()).collect();
    assert_eq!(codes, ["ABC", "DEF"]);
    assert_eq!(item.values(&a::PRIMARY_RECIPIENTS).len(), 2);
    assert_eq!(item.values(&a::REPLY_TIME), []);
}

#[test]
fn a_report_has_the_attributes_of_its_argument() {
    let record = record(true);
    let item = attributes(&record);
    assert_eq!(one(&item, &a::ENTRY_TYPE).integer(), Ok(1));
    let subject = one(&item, &a::SUBJECT_SUBMISSION_IDENTIFIER).mts_identifier().unwrap();
    assert_eq!(subject.to_string(), item.brief().identifier);
    assert_eq!(one(&item, &a::CONTENT_RETURNED).boolean(), Ok(false));
    assert_eq!(item.values(&a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS).len(), 1);
    assert_eq!(one(&item, &a::REPORT_DELIVERY_ENVELOPE).octets(), item.brief().argument);
    assert_eq!(item.values(&a::MESSAGE_IDENTIFIER), []);
    assert_eq!(item.values(&a::CONTENT_LENGTH), []);
}

#[test]
fn a_selection_takes_some_of_the_values() {
    let record = record(false);
    let item = attributes(&record);
    let code = a::SUBJECT_INDICATOR_CODE.oid();
    let selection = |from, count| AttributeSelection { attribute_type: code.clone(), from, count };
    let texts = |selection: AttributeSelection| {
        let entry = item.select(&Selected::all(&[selection]).unwrap(), true);
        let values = entry.attributes.iter().flat_map(|attribute| &attribute.values);
        let texts: Vec<_> = values.map(|value| value.text().unwrap()).collect();
        (texts, entry.value_count_exceeded.first().map(|count| count.total))
    };
    let both = vec!["ABC".to_owned(), "DEF".to_owned()];
    assert_eq!(texts(selection(None, None)), (both.clone(), None));
    assert_eq!(texts(selection(Some(2), Some(5))), (both[1..].to_vec(), Some(2)));
    assert_eq!(texts(selection(None, Some(1))), (both[..1].to_vec(), Some(2)));
    assert_eq!(texts(selection(Some(i64::MIN), Some(-1))), (vec![], Some(2)));
    let unknown = AttributeSelection::new(a::CHILD_SEQUENCE_NUMBERS.oid());
    let problems = Selected::all(&[unknown]).unwrap_err();
    assert_eq!(problems[0].problem, AttributeProblem::UNAVAILABLE_ATTRIBUTE_TYPE);
}

#[test]
fn a_heading_of_nonsense_has_no_attributes() {
    for octets in [&[][..], b"nonsense", &[0x31, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x31, 2, 0xaf, 5]]
    {
        let members = heading::Members::read(octets);
        AVAILABLE.iter().for_each(|kind| drop(members.values(kind)));
    }
}
