//! A queue copied from the directory of an MTA to PostgreSQL, and back.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod common;
#[path = "../../store/tests/cases/migrate.rs"]
mod filled;

use common::*;
use engine::journal::MailboxId;
use filled::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::cluster::Cluster;
use store::migrate::{MARK, MigrateError, is_unfinished};
use store::{QueueStore, StoreError};

fn log_store(directory: &Path) -> Arc<dyn QueueStore> {
    store::open(directory, store::Options::default()).unwrap()
}

#[test]
fn a_queue_goes_to_the_database_and_back() {
    let Some(mut site) = Site::if_installed() else { return };
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let numbers = same_numbers();
    let from = log_store(directories[0].path());
    fill(&*from);
    let database = site.open();
    let there = migrate(&*from, &*database, &numbers, None).unwrap().unwrap();
    let counts = there.all().map(|(_, sum)| sum.count);
    assert_eq!(counts, [ENTRIES, BODIES, ITEMS, KEYS, 4]);
    check_copy(&*database, &numbers);
    assert_eq!(migrate(&*from, &*database, &numbers, None).unwrap(), Some(there), "once more");
    // Each entry names its content: a node of a site would remove that with the last of them.
    assert_eq!(site.sql("select count(*) from entry where body is not null"), ENTRIES.to_string());
    database.close();
    let database = site.open();
    check_copy(&*database, &numbers);
    let back = log_store(directories[1].path());
    assert_eq!(migrate(&*database, &*back, &numbers, None).unwrap().unwrap(), there);
    check_copy(&*back, &numbers);
    let again = migrate(&*from, &*database, &numbers, None).unwrap();
    assert_eq!(again, Some(there), "the source of a copy stays as it is");
}

#[test]
fn an_interrupted_copy_into_the_database_goes_on() {
    let Some(mut site) = Site::if_installed() else { return };
    let directory = tempfile::tempdir().unwrap();
    let from = log_store(directory.path());
    fill(&*from);
    // As into a site: other numbers.
    let numbers: BTreeMap<_, _> =
        [(0, 0x7fff_0000), (1, 5)].map(|(from, to)| (MailboxId(from), MailboxId(to))).into();
    let mut rounds = 0;
    loop {
        let database = site.open();
        let ended = migrate(&*from, &*database, &numbers, Some(3)).unwrap();
        assert_eq!(is_unfinished(&database.meta(MARK).unwrap().unwrap()), ended.is_none());
        database.close();
        rounds += 1;
        if ended.is_some() {
            break;
        }
        assert!(rounds < 50);
    }
    assert!(rounds > 2);
    let database = site.open();
    check_copy(&*database, &numbers);
    while database.tidy().unwrap() > 0 {}
    assert_eq!(site.sql("select count(*) from content where refs = 0"), "0");
    assert_eq!(site.body_files(), 3, "what is long, of the queue and of each mailbox");
}

#[test]
fn a_database_with_anything_is_refused() {
    let Some(mut site) = Site::if_installed() else { return };
    let directory = tempfile::tempdir().unwrap();
    let from = log_store(directory.path());
    let database = site.open();
    commit(&*database, vec![seen(1, 9, b"x")]).into_result().unwrap();
    let error = migrate(&*from, &*database, &same_numbers(), None).unwrap_err();
    assert!(matches!(&error, MigrateError::NotEmpty(what) if what == "remembered keys"), "{error}");
    assert_eq!(database.meta(MARK).unwrap(), None);
}

#[test]
fn epochs_that_another_store_used_are_passed() {
    let Some(site) = Site::if_installed() else { return };
    let alone = site.try_open().unwrap();
    let before = alone.last_epoch().unwrap();
    // More than once at once.
    alone.pass_epochs(before + 450_001).unwrap();
    assert_eq!(alone.last_epoch().unwrap(), before + 450_001);
    alone.pass_epochs(7).unwrap();
    assert_eq!(alone.last_epoch().unwrap(), before + 450_001, "they never descend");
    alone.close();
    drop(alone);
    let mut site = site;
    let node = "one".to_owned();
    site.options.site =
        Some(postgres_store::Site { node, own_values: vec![], ..Default::default() });
    let store = site.try_open().unwrap();
    let epoch = store.join("one", Duration::from_secs(600)).unwrap();
    assert!(epoch.0 > before + 450_001);
    // A node has a lease: nobody has the database alone.
    site.options.site = None;
    assert!(matches!(site.try_open().unwrap_err(), StoreError::Locked { .. }));
}
