//! Opening, accounts, contents that are received over several runs, damage.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use base::BodyId;
use bytes::Bytes;
use common::*;
use engine::journal::SpoolId;
use postgres_store::{Options, PostgresStore, VERSION, prepare};
use store::{Committed, MAX_RECORD, QueueStore, StoreError};

#[test]
fn the_tables_are_made_once_and_checked_at_each_open() {
    let Some(server) = server() else { return };
    let options = options(&fresh_schema());
    let open = || PostgresStore::open(&server.url(RUNS), options.clone());
    let error = open().unwrap_err();
    assert!(matches!(&error, StoreError::NotPrepared { found: 0, .. }), "{error}");
    assert!(error.to_string().contains("mta store prepare"), "{error}");
    let owner = server.url("postgres");
    let prepared = |before| postgres_store::Prepared { before, now: VERSION };
    assert_eq!(prepare(&owner, RUNS, &options).unwrap(), prepared(0));
    assert_eq!(prepare(&owner, RUNS, &options).unwrap(), prepared(VERSION));
    drop(open().unwrap());
    let schema = &options.schema;
    let last = format!("update {schema}.version set number = 90 where number = {VERSION}");
    server.psql(&last).unwrap();
    let newer = StoreError::Newer { found: 90, known: VERSION }.to_string();
    assert_eq!(open().unwrap_err().to_string(), newer);
    assert_eq!(prepare(&owner, RUNS, &options).unwrap_err().to_string(), newer);
    server.psql(&format!("delete from {schema}.version where number = 90")).unwrap();
    let found = VERSION - 1;
    assert!(matches!(open().unwrap_err(), StoreError::NotPrepared { found: f, .. } if f == found));
}

#[test]
fn the_account_that_runs_changes_no_table() {
    let Some(site) = Site::if_installed() else { return };
    let schema = &site.options.schema;
    for refused in ["create table x (y int)", "drop table entry", "update version set number = 9"] {
        let text = format!("set role {RUNS}; set search_path = {schema}; {refused}");
        let error = site.server.unwrap().psql(&text).unwrap_err().to_string();
        assert!(error.contains("permission denied") || error.contains("must be owner"), "{error}");
    }
}

#[test]
fn one_process_has_the_store() {
    let Some(mut site) = Site::if_installed() else { return };
    let first = site.open();
    let error = site.try_open().unwrap_err();
    assert!(matches!(&error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&site.options.schema), "{error}");
    // Another schema is another store.
    let other = Site::if_installed().unwrap();
    drop(other.try_open().unwrap());
    // The server ends its connections: it locks the store again, and commits.
    let end = "select count(pg_terminate_backend(a.pid)) from pg_stat_activity a \
               join pg_locks l on l.pid = a.pid and locktype = 'advisory' and classid = 1836343600 \
               and objid = (select oid from pg_namespace where nspname = current_schema())";
    assert_eq!(site.sql(end), "1");
    assert!(commit(&*first, vec![put(1, b"x")]).is_durable());
    assert!(matches!(site.try_open().unwrap_err(), StoreError::Locked { .. }));
    // Commits of another connection of the same run are refused: it looks, and goes on.
    site.sql("update run set connection = connection + 7");
    assert!(commit(&*first, vec![put(2, b"x")]).is_durable());
    // Of another run: it is over.
    site.sql("delete from run");
    let ended = commit(&*first, vec![put(3, b"x")]);
    assert!(matches!(&ended, Committed::NotDone(error) if error.is_final()), "{ended:?}");
    first.close();
    assert!(matches!(commit(&*first, vec![put(3, b"x")]), Committed::NotDone(StoreError::Closed)));
    assert!(matches!(first.entry_count(), Err(StoreError::Closed)));
    assert_eq!(site.open().entry_count().unwrap(), 2);
}

#[test]
fn a_server_that_is_away_is_named_without_the_password() {
    let url = "postgresql://runs:secret@127.0.0.1:1/mta";
    let error = PostgresStore::open(url, Options::default()).unwrap_err();
    assert!(error.is_away() && error.to_string().contains("127.0.0.1:1"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

/// A server that is there is not called away.
#[test]
fn an_account_that_is_not_let_in_and_tables_that_are_not_there_are_named() {
    let Some(site) = Site::if_installed() else { return };
    let open = |url: &str, options: Options| PostgresStore::open(url, options).unwrap_err();
    let stranger = site.url().replace(RUNS, "stranger");
    let error = open(&stranger, site.options.clone());
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("does not let this account in"), "{error}");
    let elsewhere = Options { schema: "nothing_here".to_owned(), ..site.options.clone() };
    let error = open(&site.url(), elsewhere);
    assert!(matches!(error, StoreError::NotPrepared { found: 0, .. }), "{error}");
}

#[test]
fn it_is_reached_with_a_password_over_tls_that_is_checked() {
    let secure = database::Options::new().tls().password("a long secret");
    let Some(server) = database::server_or_skip("tls", secure) else { return };
    server.role(RUNS).unwrap();
    let options = options("secure");
    prepare(&server.url_with_password("postgres"), RUNS, &options).unwrap();
    let open = |url: &str| PostgresStore::open(url, options.clone());
    let url = server.url_with_password(RUNS).replace(" sslmode=require", "");
    let roots = server.root_certificate().unwrap().display();
    for how in ["sslmode=require".to_owned(), format!("sslmode=verify-full sslrootcert={roots}")] {
        let store = open(&format!("{url} {how}")).unwrap();
        assert!(commit(&store, vec![put(1, how.into_bytes().leak())]).is_durable());
    }
    // By the socket, where there is no TLS.
    let (socket, port) = (server.socket().display(), server.address().port());
    let local = format!("host={socket} port={port} dbname=mta user={RUNS}");
    drop(open(&local).unwrap());
    // An authority that did not sign it, and no TLS at all.
    let other = database::server_or_skip("tls", database::Options::new().tls()).unwrap();
    let wrong = other.root_certificate().unwrap().display();
    for how in [format!("sslmode=verify-full sslrootcert={wrong}"), "sslmode=disable".to_owned()] {
        let error = open(&format!("{url} {how}")).unwrap_err();
        assert!(!error.to_string().contains("a long secret"), "{error}");
    }
}

/// It is there, and a promotion would not help.
#[test]
fn a_server_without_the_tls_that_is_asked_for_is_not_away() {
    let Some(site) = Site::if_installed() else { return };
    let address = site.server.unwrap().address();
    let url =
        format!("host=127.0.0.1 port={} dbname=mta user={RUNS} sslmode=require", address.port());
    let error = PostgresStore::open(&url, site.options).unwrap_err();
    assert!(matches!(error, StoreError::Untrusted { .. }), "{error}");
}

fn receive(store: &dyn QueueStore, id: SpoolId, part: usize) {
    let contents = store.contents();
    for piece in content().slice(part * PART..(part + 1) * PART).chunks(150_000) {
        contents.append(id, Bytes::copy_from_slice(piece)).unwrap();
    }
    contents.note(id, format!("note {part}").as_bytes()).unwrap();
    assert_eq!(contents.sync(id).unwrap(), ((part + 1) * PART) as u64);
}

const PART: usize = 700_000;

fn content() -> Bytes {
    octets(4 * PART, 3)
}

#[test]
fn a_content_is_received_over_several_runs() {
    let Some(mut site) = Site::if_installed() else { return };
    let store = site.open();
    store.contents().open(SpoolId(5)).unwrap();
    receive(&*store, SpoolId(5), 0);
    // A note alone, and a content without one.
    store.contents().open(SpoolId(6)).unwrap();
    store.contents().append(SpoolId(6), octets(2 << 20, 1)).unwrap();
    store.contents().open(SpoolId(7)).unwrap();
    store.contents().note(SpoolId(7), b"first").unwrap();
    store.contents().sync(SpoolId(7)).unwrap();
    drop(store);
    for part in 1..4 {
        drop(site.open());
        let store = site.open();
        let mut kept = store.contents().take_kept();
        assert!(store.contents().take_kept().is_empty(), "once");
        kept.sort_by_key(|kept| kept.length);
        assert_eq!((kept[0].length, kept[0].notes.len()), (0, 1));
        assert_eq!((kept[1].length, kept[1].notes.len()), ((part * PART) as u64, part));
        assert_eq!(kept[1].notes[part - 1], format!("note {}", part - 1));
        receive(&*store, kept[1].id, part);
        // Behind the last note: it is not kept.
        store.contents().append(kept[1].id, octets(600_000, 9)).unwrap();
        store.contents().sync(kept[1].id).unwrap();
    }
    let store = site.open();
    while store.tidy().unwrap() > 0 {}
    assert_eq!(site.sql("select count(*) from content"), "2", "what had no note is swept");
    let kept = store.contents().take_kept();
    let [long, short] = &kept[..] else { panic!("{kept:?}") };
    let (long, short) = if long.length > 0 { (long, short) } else { (short, long) };
    store.contents().discard(short.id);
    assert!(commit(&*store, vec![spooled(7, long.id.0)]).is_durable());
    assert_eq!(store.contents().memory_held(), 0);
    while store.tidy().unwrap() > 0 {}
    drop(store);
    let store = site.open();
    assert!(store.contents().take_kept().is_empty());
    assert_eq!(store.body(BodyId(7), 0, usize::MAX).unwrap(), Some(content()));
    assert_eq!(
        site.sql("select (select count(*) from content), (select count(*) from note)"),
        "1|0"
    );
}

#[test]
fn what_was_kept_and_is_damaged_is_not_received_further() {
    let Some(mut site) = Site::if_installed() else { return };
    let store = site.open();
    store.contents().open(SpoolId(1)).unwrap();
    receive(&*store, SpoolId(1), 0);
    receive(&*store, SpoolId(1), 1);
    drop(store);
    site.sql("update part set octets = set_byte(octets, 5, 77) where at = 700000");
    let store = site.open();
    let kept = store.contents().take_kept();
    assert_eq!((kept[0].length, kept[0].notes.len()), (PART as u64, 1));
    drop(store);
    site.sql("update part set octets = set_byte(octets, 5, 77) where at = 0");
    let store = site.open();
    assert!(store.contents().take_kept().is_empty());
    while store.tidy().unwrap() > 0 {}
    assert_eq!(site.sql("select count(*) from content"), "0");
}

#[test]
fn a_long_content_needs_little_memory_and_is_removed_in_pieces() {
    let Some(mut site) = Site::if_installed() else { return };
    site.options.spool_memory = 100;
    let store = site.open();
    let whole = octets(40 << 20, 5);
    store.contents().open(SpoolId(1)).unwrap();
    for chunk in whole.chunks(64 << 10) {
        if !store.contents().append_in_memory(SpoolId(1), chunk) {
            store.contents().append(SpoolId(1), Bytes::copy_from_slice(chunk)).unwrap();
        }
        assert!(store.contents().memory_held() <= 512 << 10);
    }
    let head = octets(9, 1);
    assert!(commit(&*store, vec![spooled(1, 1)]).is_durable());
    let framed = frame(head.clone(), 1, (3, (40 << 20) - 10), 2);
    assert!(commit(&*store, vec![framed, drop_body(1)]).is_durable());
    let read = store.body(BodyId(2), 7, usize::MAX).unwrap().unwrap();
    assert!(read == [&head[7..], &whole[3..whole.len() - 7]].concat(), "the octets differ");
    assert_eq!(store.body(BodyId(2), u64::MAX, 1).unwrap(), Some(Bytes::new()));
    assert!(commit(&*store, vec![drop_body(2)]).is_durable());
    let mut pieces = 0;
    while store.tidy().unwrap() > 0 {
        pieces += 1;
    }
    assert!(pieces >= 4, "{pieces}");
    assert_eq!(
        site.sql("select (select count(*) from content), (select count(*) from part)"),
        "0|0"
    );
}

#[test]
fn a_changed_octet_is_noticed() {
    let Some(mut site) = Site::if_installed() else { return };
    let store = site.open();
    let contents = [(1, octets(900_000, 1)), (2, octets(3 << 20, 2)), (3, octets(5, 3))];
    for (id, content) in &contents {
        assert!(commit(&*store, vec![put(*id, b"x"), body(*id, content.clone())]).is_durable());
    }
    store.verify(&mut |_| true).unwrap();
    assert!(store.damage().is_none());
    site.sql("update content set octets = set_byte(octets, 300000, 99) where length = 900000");
    site.sql("update part set octets = set_byte(octets, 70000, 99) where at = 524288");
    let damaged =
        |id| matches!(store.body(BodyId(id), 0, usize::MAX), Err(StoreError::BodyDamaged { .. }));
    assert!(damaged(1) && damaged(2) && !damaged(3));
    // Other blocks are read as they are.
    assert_eq!(store.body(BodyId(1), 0, 1000).unwrap(), Some(contents[0].1.slice(..1000)));
    assert_eq!(
        store.body(BodyId(2), 1 << 20, 9).unwrap(),
        Some(contents[1].1.slice(1 << 20..).slice(..9))
    );
    drop(store);
    site.sql("delete from part where at = 1048576");
    let store = site.open();
    let mut read = 0;
    store
        .verify(&mut |octets| {
            read += octets;
            true
        })
        .unwrap();
    assert_eq!(store.damage().bodies, [1, 2].map(BodyId).into());
    assert!(read > 0);
    let error = store.back_up(std::path::Path::new("/nowhere"), &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("pg_basebackup"), "{error}");
}

/// The disk lost the pages of a long record.
#[test]
fn a_record_that_cannot_be_read_is_named() {
    let Some(mut server) = database::server_or_skip("damage", database::Options::new()) else {
        return;
    };
    server.role(RUNS).unwrap();
    let options = options("damaged");
    prepare(&server.url("postgres"), RUNS, &options).unwrap();
    let store = PostgresStore::open(&server.url(RUNS), options).unwrap();
    let long = octets(100_000, 1).to_vec().leak();
    assert!(commit(&store, vec![put(1, b"x"), put(2, long), put(3, b"y")]).is_durable());
    let file = "select pg_relation_filepath(reltoastrelid) from pg_class \
                where oid = 'damaged.entry'::regclass";
    let file = server.data().join(server.psql(file).unwrap());
    server.stop().unwrap();
    let length = std::fs::metadata(&file).unwrap().len();
    std::fs::write(&file, vec![0; usize::try_from(length).unwrap()]).unwrap();
    server.launch().unwrap();
    // It is left out, also where it is all that is left of a page.
    let ids = |page: Vec<store::Entry>| page.iter().map(|entry| entry.id.0).collect::<Vec<_>>();
    assert_eq!(ids(store.entries(None, 9).unwrap()), [1, 3]);
    let after = Some((base::Precedence::Routine, base::EntryId(1)));
    assert_eq!(ids(store.entries(after, 1).unwrap()), [3]);
    let routine = base::Precedence::Routine;
    assert_eq!(ids(store.queue_entries(QUEUE, routine, None, 9).unwrap()), [1, 3]);
    store.verify(&mut |_| true).unwrap();
    let key = |id| (base::Precedence::Routine, base::EntryId(id));
    assert_eq!(store.damage().entries, [key(2)].into());
    assert!(store.entry(key(2)).unwrap_err().is_damage());
    assert_eq!(store.entry(key(3)).unwrap().unwrap(), "y");
    assert!(commit(&store, vec![delete(2)]).is_durable());
    assert_eq!(store.entries(None, 9).unwrap().len(), 2);
}

#[test]
fn a_long_listing_is_bounded_by_its_octets() {
    let Some(mut site) = Site::if_installed() else { return };
    let store = site.open();
    let record = octets(3 << 20, 1).to_vec().leak();
    for id in 0..5 {
        assert!(commit(&*store, vec![put(id, record)]).is_durable());
    }
    let pages = |after: Option<u64>| {
        store
            .entries(after.map(|id| (base::Precedence::Routine, base::EntryId(id))), usize::MAX)
            .unwrap()
            .len()
    };
    assert_eq!((pages(None), pages(Some(2)), pages(Some(4))), (3, 2, 0));
    let limit = MAX_RECORD;
    let long = commit(&*store, vec![put(9, vec![0; limit + 1].leak())]);
    assert!(matches!(long, Committed::NotDone(e) if e.record_limit() == Some(limit)));
    assert_eq!(store.entry_count().unwrap(), 5);
}

#[test]
fn one_server_alone_promises_little() {
    let Some(site) = Site::if_installed() else { return };
    let found = site.try_open().unwrap().durability().unwrap();
    assert_eq!((found.may_be_lost, found.may_be_away), (0, 0));
    assert!(found.warnings[0].contains("synchronous_standby_names is empty"), "{found:?}");
}

#[test]
fn what_was_committed_lately_needs_no_server() {
    let Some(mut site) = Site::if_installed() else { return };
    let store = site.open();
    let key = |n| (base::Precedence::Routine, base::EntryId(n));
    assert!(commit(&*store, vec![put(1, b"x"), put(2, b"y"), body(1, octets(9, 7))]).is_durable());
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"x"[..]));
    assert_eq!(store.recent_body(BodyId(1), 3, 400), Some(octets(9, 7).slice(3..)));
    assert!(commit(&*store, vec![put(1, b"new"), delete(2), drop_body(1)]).is_durable());
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"new"[..]));
    assert_eq!((store.recent_entry(key(2)), store.recent_body(BodyId(1), 0, 1)), (None, None));
    assert!(!commit(&*store, vec![put(1, b"lost"), copy(9, 8)]).is_durable());
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"new"[..]));
}
