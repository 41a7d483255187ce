//! A queue copied from one store to another one.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod common;
#[path = "cases/migrate.rs"]
mod filled;

use base::{EntryId, Precedence};
use bytes::Bytes;
use common::*;
use engine::journal::{ItemId, MailboxId};
use filled::*;
use std::collections::BTreeMap;
use store::migrate::{MARK, MigrateError, Migration, is_unfinished};
use store::{ModelStore, Options, QueueStore};

fn log_store(directory: &std::path::Path) -> std::sync::Arc<dyn QueueStore> {
    // Small enough for several segments and runs.
    let options = Options { run_keys: 50, spool_memory: 1 << 20, ..Options::default() };
    store::open(directory, options).unwrap()
}

#[test]
fn a_copy_of_a_log_is_equal_also_after_it_is_opened_again() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [from, to] = [&directories[0], &directories[1]].map(|of| log_store(of.path()));
    fill(&*from);
    let numbers = same_numbers();
    let sums = migrate(&*from, &*to, &numbers, None).unwrap().unwrap();
    let counts = sums.all().map(|(_, sum)| sum.count);
    assert_eq!(counts, [ENTRIES, BODIES, ITEMS, KEYS, 4]);
    assert!(sums.bodies.octets > 3 << 20);
    check_copy(&*to, &numbers);
    drop(to);
    let to = log_store(directories[1].path());
    check_copy(&*to, &numbers);
    assert_eq!(migrate(&*from, &*to, &numbers, None).unwrap(), Some(sums), "once more");
    assert!(!is_unfinished(&to.meta(MARK).unwrap().unwrap()));
    commit(&*to, vec![put(4_000, b"new")]).into_result().unwrap();
    let error = migrate(&*from, &*to, &numbers, None).unwrap_err();
    assert!(
        matches!(&error, MigrateError::NotEmpty(what) if what.contains("used since")),
        "{error}"
    );
}

#[test]
fn an_interrupted_copy_goes_on_wherever_it_ended() {
    let from = ModelStore::default();
    fill(&from);
    let numbers = same_numbers();
    let directory = tempfile::tempdir().unwrap();
    for batches in [0, 1, 2, 3, 5, 8] {
        let directory = directory.path().join(batches.to_string());
        std::fs::create_dir(&directory).unwrap();
        let (mut ended, mut rounds) = (None, 0);
        while ended.is_none() {
            let to = log_store(&directory);
            // The first round ends early, and some of the later ones.
            let limit = (rounds < 4).then_some(batches);
            ended = migrate(&from, &*to, &numbers, limit).unwrap();
            let mark = to.meta(MARK).unwrap().unwrap();
            assert_eq!(is_unfinished(&mark), ended.is_none());
            if ended.is_none() {
                let error = begin(&from, &*to, &numbers, "another queue").unwrap_err();
                assert!(matches!(&error, MigrateError::OtherSource(_)), "{error}");
                let error = migrate(&*to, &ModelStore::default(), &numbers, None).unwrap_err();
                assert!(matches!(&error, MigrateError::Unfinished), "{error}");
            }
            rounds += 1;
            to.close();
        }
        assert!(rounds > 1, "{batches}");
        check_copy(&*log_store(&directory), &numbers);
    }
}

#[test]
fn what_is_not_empty_is_refused_and_stays() {
    let from = ModelStore::default();
    fill(&from);
    for batch in [
        vec![put(1, b"x")],
        vec![body(1, octets(9, 1))],
        vec![seen(1, 9, b"x")],
        vec![meta("held", b"x")],
    ] {
        let to = ModelStore::default();
        commit(&to, batch).into_result().unwrap();
        let before = to.state();
        let error = migrate(&from, &to, &same_numbers(), None).unwrap_err();
        assert!(matches!(error, MigrateError::NotEmpty(_)), "{error}");
        assert_eq!(to.state(), before);
    }
    let to = ModelStore::default();
    commit(&to, vec![meta("site", b"x"), meta("epoch", b"9")]).into_result().unwrap();
    migrate(&from, &to, &same_numbers(), None).unwrap().unwrap();
    assert_eq!(to.meta("epoch").unwrap().unwrap(), "9", "a process's own");
}

#[test]
fn a_source_that_was_used_since_the_copy_began_is_noticed() {
    let (from, to) = (ModelStore::default(), ModelStore::default());
    fill(&from);
    let numbers = same_numbers();
    assert_eq!(migrate(&from, &to, &numbers, Some(9)).unwrap(), None);
    commit(&from, vec![drop_body(1)]).into_result().unwrap();
    let error = migrate(&from, &to, &numbers, None).unwrap_err();
    assert!(matches!(error, MigrateError::Differs("contents")), "{error}");
    assert!(is_unfinished(&to.meta(MARK).unwrap().unwrap()));
}

#[test]
fn mailboxes_get_other_numbers() {
    let (from, to) = (ModelStore::default(), ModelStore::default());
    fill(&from);
    // Also in another order.
    let numbers: BTreeMap<_, _> =
        [(0, 70), (1, 9)].map(|(from, to)| (MailboxId(from), MailboxId(to))).into();
    migrate(&from, &to, &numbers, None).unwrap().unwrap();
    check_copy(&to, &numbers);
    let old = ItemId { mailbox: MailboxId(0), number: 1 };
    assert_eq!(to.entry((Precedence::Routine, old.entry())).unwrap(), None);
}

#[test]
fn a_record_that_cannot_be_read_ends_the_copy() {
    let (from, to) = (ModelStore::default(), ModelStore::default());
    commit(&from, vec![put(7, b"\xff")]).into_result().unwrap();
    let error = migrate(&from, &to, &same_numbers(), None).unwrap_err();
    assert!(matches!(error, MigrateError::Record(EntryId(7))), "{error}");
    commit(&to, vec![meta(MARK, b"\xff")]).into_result().unwrap();
    let error = Migration::begin(plan(&from, &to, &same_numbers(), "s")).unwrap_err();
    assert!(matches!(error, MigrateError::Mark), "{error}");
    assert!(is_unfinished(&Bytes::from_static(b"\xff")));
}
