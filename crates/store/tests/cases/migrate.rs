//! A store with something of everything, and the copy of it.

use crate::common::*;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, ItemId, MailboxId, Op, QueueId};

use engine::{Brief, NextHop, RecordKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use store::QueueStore;
use store::migrate::{MigrateError, Migration, Plan, Sums};

pub(crate) const ENTRIES: u64 = 700;
pub(crate) const BODIES: u64 = 302;
pub(crate) const ITEMS: u64 = 2 * 300 + 2;
pub(crate) const KEYS: u64 = 900;

/// Long ones are read in parts, and take a spool.
const LONG: usize = 3 << 20;
const MIDDLE: usize = (256 << 10) + 1;

fn level(n: u64) -> Precedence {
    Precedence::ALL[n as usize % Precedence::ALL.len()]
}

fn hop(n: u64) -> NextHop {
    match n % 3 {
        0 => NextHop::Mailbox(format!("/C=IT/S=U{n}")),
        n => NextHop::Peer(base::PeerId(n as u32)),
    }
}

fn key(n: u64) -> Digest {
    let mut key = [n as u8; 32];
    key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    Digest(key)
}

fn item(mailbox: u32, number: u32) -> ItemId {
    ItemId { mailbox: MailboxId(mailbox), number }
}

pub(crate) fn item_queue(mailbox: MailboxId) -> QueueId {
    QueueId(1 << 62 | u64::from(mailbox.0))
}

/// The items of both mailboxes: Routine, and one that is long, of another level.
fn items() -> impl Iterator<Item = (Precedence, ItemId, Bytes)> {
    (0..2).flat_map(|mailbox| {
        let routine = (1..=300).map(move |number| {
            (Precedence::Routine, item(mailbox, number), octets(number as usize, 4))
        });
        routine.chain([(Precedence::Flash, item(mailbox, 301), octets(LONG, mailbox as u8))])
    })
}

fn record(n: u64) -> Bytes {
    let brief = Brief {
        kind: RecordKind::Message,
        next_hop: Cow::Owned(hop(n)),
        message: Cow::Borrowed("a message"),
        precedence: level(n),
        accepted: Utc(n),
        first_arrival: Utc(n),
        not_before: None,
        size: n,
        body: Some(BodyId(n % 300)),
        latest: None,
    };
    // Version 3: latest delivery time, digest, and the envelope, which nobody reads here.
    let fields = (None::<Utc>, None::<[u8; 32]>, (brief, &b"envelope"[..]));
    postcard::to_extend(&fields, vec![3]).unwrap().into()
}

pub(crate) fn fill(store: &dyn QueueStore) {
    let ok = |batch| commit(store, batch).into_result().unwrap();
    ok((0..300).map(|n| body(n, octets(n as usize, 2))).collect());
    ok(vec![body(300, octets(LONG, 1)), body(301, octets(MIDDLE, 1))]);
    for from in [0, 350] {
        let put = |n| Op::PutEntry {
            precedence: level(n),
            // Some have the long form.
            id: EntryId(if n % 2 == 0 { n } else { 7 << 40 | n }),
            queue: hop(n).queue(),
            record: record(n),
        };
        ok((from..from + 350).map(put).collect());
    }
    for (precedence, id, content) in items() {
        let record = Bytes::from(format!("item {}", id.number));
        let queue = item_queue(id.mailbox);
        let content = body(id.body().0, content);
        ok(vec![content, Op::PutEntry { precedence, id: id.entry(), queue, record }]);
    }
    for n in 0..KEYS {
        let record = Bytes::from(n.to_string());
        ok(vec![Op::PutSeen { key: key(n), until: Utc(n), record, absent: true }]);
        if n % 50 == 0 {
            store.tidy().unwrap();
        }
    }
    ok(vec![
        meta("epoch", b"own"),
        meta("site", b"mta"),
        meta("held", b"holds"),
        meta("mailbox/0/totals", b"of 0"),
        meta("mailbox/1/totals", b"of 1"),
    ]);
}

pub(crate) fn same_numbers() -> BTreeMap<MailboxId, MailboxId> {
    [0, 1].map(|id| (MailboxId(id), MailboxId(id))).into()
}

pub(crate) fn plan<'a>(
    from: &'a dyn QueueStore,
    to: &'a dyn QueueStore,
    mailboxes: &'a BTreeMap<MailboxId, MailboxId>,
    source: &'a str,
) -> Plan<'a> {
    Plan { from, to, source, mailboxes, item_queue, value: &value, written_at_start: "site" }
}

fn value(name: &str, value: &Bytes) -> Option<(String, Bytes)> {
    (name != "epoch").then(|| (name.to_owned(), value.clone()))
}

pub(crate) fn begin<'a>(
    from: &'a dyn QueueStore,
    to: &'a dyn QueueStore,
    mailboxes: &'a BTreeMap<MailboxId, MailboxId>,
    source: &'a str,
) -> Result<Migration<'a>, MigrateError> {
    Migration::begin(plan(from, to, mailboxes, source))
}

/// `limit`: batches, after which it ends.
pub(crate) fn migrate(
    from: &dyn QueueStore,
    to: &dyn QueueStore,
    mailboxes: &BTreeMap<MailboxId, MailboxId>,
    limit: Option<u64>,
) -> Result<Option<Sums>, MigrateError> {
    let mut migration = begin(from, to, mailboxes, "a queue")?;
    if let Some(limit) = limit {
        migration = migration.limited(limit);
    }
    let mut read = 0;
    let ended = migration.run(&mut |octets| read += octets)?;
    assert!(ended.is_none() || read > 1 << 20, "it shows its progress");
    Ok(ended)
}

/// Looks at everything, also at the queues of entries, which no digest has.
pub(crate) fn check_copy(store: &dyn QueueStore, numbers: &BTreeMap<MailboxId, MailboxId>) {
    assert_eq!(store.entry_count().unwrap(), ENTRIES);
    let listed = |queue, precedence| {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = store.queue_entries(queue, precedence, after, 1000).unwrap();
            let Some(last) = page.last() else { return ids };
            after = Some(last.id);
            ids.extend(page.into_iter().map(|entry| entry.id));
        }
    };
    for n in 0..ENTRIES {
        let id = EntryId(if n % 2 == 0 { n } else { 7 << 40 | n });
        assert_eq!(store.entry((level(n), id)).unwrap().unwrap(), record(n));
        if n % 13 == 0 {
            assert!(listed(hop(n).queue(), level(n)).contains(&id), "{n}");
        }
    }
    let content = |id| store.body(BodyId(id), 0, usize::MAX).unwrap().unwrap();
    for n in 0..300 {
        assert_eq!(content(n), octets(n as usize, 2));
    }
    assert!(content(300) == octets(LONG, 1) && content(301) == octets(MIDDLE, 1));
    for (precedence, from, octets) in items() {
        let id = ItemId { mailbox: numbers[&from.mailbox], number: from.number };
        let record = store.entry((precedence, id.entry())).unwrap().unwrap();
        assert_eq!(record, format!("item {}", id.number));
        assert!(content(id.body().0) == octets);
    }
    for id in numbers.values() {
        let flash = listed(item_queue(*id), Precedence::Flash);
        assert_eq!(flash, [ItemId { mailbox: *id, number: 301 }.entry()]);
        assert_eq!(listed(item_queue(*id), Precedence::Routine).len(), 300);
    }
    let mut keys: Vec<(Digest, Utc, Bytes)> = Vec::new();
    while let page @ [_, ..] = &*store.keys(keys.last().map(|(key, ..)| key), 500).unwrap() {
        keys.extend(page.iter().map(|row| (row.key, row.until, row.record.clone())));
    }
    let mut expected: Vec<_> =
        (0..KEYS).map(|n| (key(n), Utc(n), Bytes::from(n.to_string()))).collect();
    expected.sort_unstable_by_key(|(key, ..)| *key);
    assert_eq!(keys, expected);
    assert_eq!(store.meta("mailbox/1/totals").unwrap().unwrap(), "of 1");
    assert_ne!(store.meta("epoch").unwrap().as_deref(), Some(&b"own"[..]));
}
