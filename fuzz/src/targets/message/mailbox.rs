//! What a mailbox has on the disk: records of items, registrations and totals.

use base::{Precedence, Utc};
use engine::journal::{ItemId, MailboxId};
use mailbox::attributes::{AVAILABLE, Attributes, Selected};
use mailbox::item::with_status;
use mailbox::testing::{Copies, Copy};
use mailbox::totals::Totals;
use mailbox::{Item, Registrations, Status};
use std::sync::OnceLock;

const ID: ItemId = ItemId { mailbox: MailboxId(1), number: 7 };

/// A record that is read is written to the same, has a value for every attribute or none, and keeps all but its
/// status where that changes.
pub(crate) fn run(octets: &[u8]) {
    let level = Precedence::Flash;
    match Item::decode(ID, level, octets) {
        Ok(item) => {
            let record = item.encode();
            assert_eq!(Item::decode(ID, level, &record).as_ref(), Ok(&item));
            let read = with_status(&record, Status::Processed).expect("a record of ours");
            let read = Item::decode(ID, level, &read).expect("a record of ours");
            assert_eq!(read, Item { status: Status::Processed, ..item });
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(attributes) = Attributes::new(ID.number, level, octets) {
        let all: Vec<Selected> = AVAILABLE.iter().map(Selected::new).collect();
        let entry = attributes.select(&all, true);
        assert!(entry.attributes.iter().all(|attribute| !attribute.values.is_empty()));
        if let Ok(registrations) = Registrations::decode(Some(octets)) {
            assert!(registrations.alerts(&attributes).len() <= 65_536);
        }
    }
    if let Ok(registrations) = Registrations::decode(Some(octets)) {
        let again = Registrations::decode(Some(&registrations.encode()));
        assert_eq!(again.ok(), Some(registrations));
    }
    if let Ok(totals) = Totals::decode(octets) {
        assert_eq!(Totals::decode(&totals.encode()).ok(), Some(totals));
    }
    // As the first octets of a content.
    let (copy, now) = COPY.get_or_init(message);
    let item = Item::new(ID, *now, &copy.record, &copy.delivery, octets).expect("an item");
    assert_eq!(Item::decode(ID, item.precedence, &item.encode()), Ok(item));
}

/// A copy that is delivered.
static COPY: OnceLock<(Copy, Utc)> = OnceLock::new();

fn message() -> (Copy, Utc) {
    let now = Utc(1_767_323_045_000_000);
    let copy = Copies::default().message(now, Precedence::Flash, "MOVEMENT ORDER", 100);
    (copy.expect("a copy"), now)
}

/// A message, a report, a content, registrations and totals.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (message, now) = message();
    let report = Copies::default().report(now, Precedence::Routine).expect("a copy");
    let item = |copy: &Copy| {
        let item = Item::new(ID, now, &copy.record, &copy.delivery, &copy.content);
        item.expect("an item").encode().to_vec()
    };
    vec![
        ("message", item(&message)),
        ("report", item(&report)),
        ("content", message.content.to_vec()),
        ("registrations", Registrations::default().encode().to_vec()),
        ("totals", Totals::default().encode().to_vec()),
    ]
}
