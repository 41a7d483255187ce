use super::*;
use crate::config::section::store::engine::ClusterNode;
use crate::example::example_site;
use base::{BodyId, EntryId, Precedence, Utc};
use database::{Server, server_or_skip};
use engine::journal::{Batch, BodySource, Digest, ItemId};
use engine::{Brief, NextHop, RecordKind};
use node::mailbox::{Registrations, Totals, item, machine::shared_number};
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;
use store::cluster::{Cluster as _, NodeEpoch};
use store::migrate::MARK;

const USERS: [&str; 2] = ["/C=IT/S=A", "/C=IT/S=B"];

fn embedded(directory: &Path) -> Site {
    let mut site = example_site();
    site.paths.data_dir = directory.to_owned();
    site.engine = StoreEngine::Embedded;
    site
}

/// An account that runs, and tables in this schema.
fn in_database(server: &Server, directory: &Path, schema: &str) -> Site {
    let mut site = embedded(directory);
    let node = Some(ClusterNode { name: "n1".to_owned(), lease: Duration::from_secs(1) });
    site.engine = StoreEngine::Postgres(Postgres {
        url: server.url("runs"),
        password: None,
        schema: schema.to_owned(),
        connections: 2,
        node,
    });
    let StoreEngine::Postgres(database) = &site.engine else { unreachable!() };
    let options = database_options(database);
    postgres_store::prepare(&server.url("postgres"), "runs", &options).unwrap();
    site
}

fn put(name: &str, value: impl Into<Bytes>) -> Op {
    Op::PutMeta { name: name.to_owned(), value: value.into() }
}

fn totals(last: u32) -> Bytes {
    let mut totals = Totals::default();
    totals.last = last;
    totals.encode()
}

/// The numbers of both mailboxes, as a process that is alone gives them.
fn names() -> Bytes {
    let numbers: BTreeMap<_, _> = USERS.map(str::to_owned).into_iter().zip([0_u32, 1]).collect();
    postcard::to_extend(&numbers, vec![1]).unwrap().into()
}

fn fill(site: &Site, epoch: u32) {
    std::fs::create_dir_all(&site.paths.data_dir).unwrap();
    let store = store::open(&site.paths.data_dir.join("queue"), STORE).unwrap();
    let brief = Brief {
        kind: RecordKind::Message,
        next_hop: Cow::Owned(NextHop::Mailbox(USERS[0].to_owned())),
        message: Cow::Borrowed("a message"),
        precedence: Precedence::Flash,
        accepted: Utc(1),
        first_arrival: Utc(1),
        not_before: None,
        size: 4,
        body: Some(BodyId(3)),
        latest: None,
    };
    let fields = (None::<Utc>, None::<[u8; 32]>, (brief, &b"envelope"[..]));
    let record = postcard::to_extend(&fields, vec![3]).unwrap().into();
    let queue = NextHop::Mailbox(USERS[0].to_owned()).queue();
    let octets = |text: &'static str| BodySource::Octets(Bytes::from_static(text.as_bytes()));
    let item = ItemId { mailbox: MailboxId(1), number: 5 };
    let batch: Batch = vec![
        Op::PutBody { id: BodyId(3), source: octets("text") },
        Op::PutEntry { precedence: Precedence::Flash, id: EntryId(9), queue, record },
        Op::PutBody { id: item.body(), source: octets("of an item") },
        item::put(item, Precedence::Routine, Bytes::from_static(b"item")),
        Op::PutSeen { key: Digest([1; 32]), until: Utc(7), record: Bytes::new(), absent: true },
        put(SITE, site.node.mta.0.clone()),
        put(EPOCH, epoch.to_be_bytes().to_vec()),
        put(node::SENDING, &b"sends"[..]),
        put(NAMES, names()),
        put(&Totals::name(MailboxId(0)), totals(4)),
        put(&Totals::name(MailboxId(1)), totals(5)),
        put(&Registrations::name(MailboxId(1)), &b"registered"[..]),
        put("registered//C=IT/S=A", &b"of a user"[..]),
    ];
    commit_one(&*store, BatchId(0), batch).unwrap();
}

/// The item of the second user, where his mailbox has this number.
fn check_item(store: &dyn QueueStore, mailbox: MailboxId) {
    let items = store.items(mailbox, Precedence::Routine, 0, 9).unwrap();
    assert_eq!(items.iter().map(|item| &item.record[..]).collect::<Vec<_>>(), [b"item"]);
    let content = ItemId { mailbox, number: 5 }.body();
    assert_eq!(store.body(content, 0, 99).unwrap().unwrap(), "of an item");
    let listed = store.queue_entries(mailbox.queue(), Precedence::Routine, None, 9).unwrap();
    assert_eq!(listed, items);
    assert_eq!(store.meta(&Totals::name(mailbox)).unwrap().unwrap(), totals(5));
    assert_eq!(store.meta(&Registrations::name(mailbox)).unwrap().unwrap(), "registered");
    assert_eq!(store.meta("registered//C=IT/S=A").unwrap().unwrap(), "of a user");
    let mut mailboxes = Mailboxes::default();
    mailboxes.recovered(&store.meta(NAMES).unwrap().unwrap()).unwrap();
    assert_eq!(mailboxes.numbers().count(), 2);
    assert!(mailboxes.numbers().any(|id| id == mailbox));
}

fn epoch_in(store: &dyn QueueStore) -> u32 {
    u32::from_be_bytes(store.meta(EPOCH).unwrap().unwrap().as_ref().try_into().unwrap())
}

#[test]
fn a_queue_goes_into_a_site_and_back() {
    let options = database::Options::new();
    let Some(server) = server_or_skip("mta", options) else { return };
    server.role("runs").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [first, second, third] = ["first", "second", "third"].map(|of| directory.path().join(of));
    let (from, to) = (embedded(&first), in_database(&server, &second, "queue"));
    fill(&from, 470_000);
    let users = Directory::File(first);
    users.add(USERS[0], b"vesuvio", Some(users::DeliveryWay::Store)).unwrap();
    users.add(USERS[1], b"etna", None).unwrap();
    let users = users.read().unwrap();
    let there = migrate(&from, &to, &mut |_| ()).unwrap();
    assert_eq!(there.all().map(|(_, sum)| sum.count), [1, 1, 1, 1, 6, 2]);
    let opened = open_to(&to).unwrap();
    check_item(&*opened.store, shared_number(USERS[1]));
    assert_eq!(item::queue_at(USERS[1]), shared_number(USERS[1]).queue());
    assert_eq!(opened.store.meta(node::SENDING).unwrap(), None);
    assert!(opened.users.read().unwrap() == users);
    drop(opened);
    // A node has a higher epoch than the process that was alone.
    let StoreEngine::Postgres(database) = &to.engine else { unreachable!() };
    let site = postgres_store::Site {
        node: "n1".to_owned(),
        own_values: Vec::new(),
        ..Default::default()
    };
    let options = postgres_store::Options { site: Some(site), ..database_options(database) };
    let node = PostgresStore::open(&database.url, options).unwrap();
    let epoch = node.join("n1", Duration::from_secs(600)).unwrap().0;
    assert!(epoch > 470_000, "{epoch}");
    assert!(matches!(migrate(&from, &to, &mut |_| ()), Err(Error::To(StoreError::Locked { .. }))));
    // It ends in order.
    node.bury(&[NodeEpoch(epoch)]).unwrap();
    node.close();
    drop(node);
    // The numbers of the mailboxes stay, and the next start has a higher epoch than the node.
    let back = embedded(&third);
    let values = migrate(&to, &back, &mut |_| ()).unwrap();
    assert_eq!((values.queue.entries, values.users), (there.queue.entries, there.users));
    let store = open_from(&back).unwrap();
    assert!(store.users.read().unwrap() == users);
    check_item(&*store.store, shared_number(USERS[1]));
    assert!(epoch_in(&*store.store) >= epoch);
    drop(store);
    assert_eq!(migrate(&to, &back, &mut |_| ()).unwrap(), values, "once more");
    let others = Directory::File(third);
    others.remove(USERS[1]).unwrap();
    let error = migrate(&to, &back, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("has users who are not those of the source"), "{error}");
}

#[test]
fn no_daemon_starts_on_an_unfinished_copy() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|of| directory.path().join(of));
    let (from, to) = (embedded(&first), embedded(&second));
    fill(&from, 7);
    migrate(&from, &to, &mut |_| ()).unwrap();
    assert!(crate::driver::open_store(&to).is_ok());
    let opened = open_to(&to).unwrap();
    assert_eq!(epoch_in(&*opened.store), 7);
    check_item(&*opened.store, MailboxId(1));
    commit_one(&*opened.store, BatchId(1), vec![put(MARK, &b"\xff"[..])]).unwrap();
    drop(opened);
    let error = crate::driver::open_store(&to).err().unwrap().to_string();
    assert!(error.contains("run `mta store migrate` again"), "{error}");
}

#[test]
fn a_queue_is_that_of_one_mta() {
    let directory = tempfile::tempdir().unwrap();
    let (from, mut to) = (embedded(directory.path()), embedded(&directory.path().join("to")));
    assert!(matches!(migrate(&from, &to, &mut |_| ()), Err(Error::NoQueue(_))));
    fill(&from, 7);
    to.node.mta.0 = "OTHER".to_owned();
    assert!(matches!(migrate(&from, &to, &mut |_| ()), Err(Error::OtherMta { .. })));
    assert!(matches!(migrate(&to, &from, &mut |_| ()), Err(Error::OtherMta { .. })));
    assert!(!directory.path().join("to").exists());
}

#[test]
fn own_values_are_those_of_each_process() {
    for own in ["epoch", "n1/epoch", "sending", "n1/clock"] {
        assert!(is_own(own), "{own}");
    }
    for other in ["site", "entries/0", "mailbox/3/totals", "registered//C=IT/S=A", "mailboxes"] {
        assert!(!is_own(other), "{other}");
    }
    let numbers = BTreeMap::from([(MailboxId(3), MailboxId(70))]);
    assert_eq!(renamed("mailbox/3/totals", &numbers).unwrap(), "mailbox/70/totals");
    assert_eq!(renamed("mailboxes", &numbers), None);
}
