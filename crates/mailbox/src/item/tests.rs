use super::*;
use crate::testing::{Copies, Copy, at};
use engine::journal::MailboxId;

const ID: ItemId = ItemId { mailbox: MailboxId(3), number: 8 };

fn item(copy: &Copy) -> Item {
    Item::new(ID, at(9), &copy.record, &copy.delivery, &copy.content).unwrap()
}

#[test]
fn a_message_is_an_item_with_what_its_envelope_and_heading_have() {
    let copy = Copies::default().message(at(5), Precedence::Flash, "Convoy", 1000).unwrap();
    let item = item(&copy);
    assert_eq!((item.kind, item.status), (Kind::Message, Status::New));
    assert_eq!(item.identifier, copy.record.message);
    assert_eq!((item.created, item.delivered, item.submitted), (at(9), at(5), Some(at(5))));
    assert_eq!(item.content_type, Some(ContentType::p772()));
    assert_eq!(item.originator, "/S=Smith/PRMD=alpha/ADMD= /C=XX");
    assert_eq!(item.subject.as_deref(), Some("Convoy"));
    assert_eq!(item.size, copy.content.len() as u64);
    assert_eq!(item.digest, copy.record.digest);
    assert_eq!(item.heading.as_deref(), heading::find(&copy.content));
    assert!(item.heading.is_some());
    let argument = envelope(&item.argument).unwrap();
    assert_eq!(argument.argument_head(item.size), copy.delivery.payload.head);
    assert_eq!(item.key(), (Precedence::Flash, ID.entry()));
}

#[test]
fn a_report_is_an_item_named_by_its_subject() {
    let copy = Copies::default().report(at(5), Precedence::Routine).unwrap();
    let item = item(&copy);
    assert_eq!((item.kind, item.size, item.submitted), (Kind::Report, 0, None));
    assert_eq!(item.argument, copy.delivery.payload.head);
    assert_eq!(item.content_type, Some(ContentType::p772()));
    assert!(!item.identifier.is_empty());
}

#[test]
fn an_item_is_read_back_and_its_status_replaced() {
    let mut copies = Copies::default();
    let message = copies.message(at(5), Precedence::Flash, "Convoy", 10).unwrap();
    let report = copies.report(at(5), Precedence::Routine).unwrap();
    for copy in [message, report] {
        let item = item(&copy);
        let record = item.encode();
        let read = |record: &[u8]| Item::decode(ID, item.precedence, record);
        assert_eq!(read(&record), Ok(item.clone()));
        let listed = with_status(&record, Status::Listed).unwrap();
        assert_eq!(listed.len(), record.len());
        assert_eq!(read(&listed), Ok(Item { status: Status::Listed, ..item.clone() }));
        for cut in 0..record.len() {
            assert!(Brief::read(&record[..cut]).is_err(), "cut at {cut}");
        }
        let newer = [&[9], &record[1..]].concat();
        assert_eq!(read(&newer), Err(ItemError::Version(9)));
    }
}

#[test]
fn a_long_heading_and_long_texts_are_left_to_the_content() {
    assert_eq!(bounded("ab".to_owned()), "ab");
    let long = bounded("\u{e9}".repeat(MAX_TEXT));
    assert!(long.len() <= MAX_TEXT && long.len() > MAX_TEXT - 4);
    let copy = Copies::default().message(at(5), Precedence::Flash, "Convoy", 10).unwrap();
    let found = heading::find(&copy.content).unwrap().len();
    let cut = Copy { content: copy.content.slice(..found), ..copy };
    assert_eq!((item(&cut).heading, item(&cut).subject), (None, None));
}

#[test]
fn a_delivery_that_is_not_whole_makes_no_item() {
    let copy = Copies::default().message(at(5), Precedence::Flash, "Convoy", 10).unwrap();
    let mut broken = copy.clone();
    broken.delivery.payload.head = copy.delivery.payload.head.slice(..9);
    let made = Item::new(ID, at(9), &broken.record, &broken.delivery, &[]);
    assert_eq!(made, Err(ItemError::Short));
}
