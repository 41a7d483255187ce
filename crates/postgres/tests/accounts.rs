//! The users of a site, as rows.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use common::*;
use postgres_store::{PostgresAccounts, PostgresStore};
use std::time::Duration;
use store::accounts::{Account, Accounts};
use store::cluster::{Changes, Cluster};
use store::{QueueStore, StoreError};

const ANNA: &str = "/c=it/s=anna";
const BEA: &str = "/c=it/s=bea";

fn accounts(site: &Site) -> PostgresAccounts {
    PostgresAccounts::open(&site.url(), &site.options).unwrap()
}

fn account(address: &str, hash: &str, is_stored: bool) -> Account {
    Account { address: address.to_owned(), hash: hash.to_owned(), is_stored }
}

#[test]
fn users_are_rows() {
    let Some(site) = Site::if_installed() else { return };
    let users = accounts(&site);
    assert_eq!(users.accounts().unwrap(), []);
    assert!(users.put_account(BEA, "one", None).unwrap());
    assert!(users.put_account(ANNA, "two", Some(true)).unwrap());
    // A password is set, and the way of delivery stays.
    assert!(!users.put_account(ANNA, "three", None).unwrap());
    assert_eq!(
        users.accounts().unwrap(),
        [account(ANNA, "three", true), account(BEA, "one", false)]
    );
    assert!(!users.put_account(ANNA, "three", Some(false)).unwrap());
    assert!(users.set_stored(BEA, true).unwrap());
    assert_eq!(
        users.accounts().unwrap(),
        [account(ANNA, "three", false), account(BEA, "one", true)]
    );
    assert!(users.remove_account(ANNA).unwrap());
    assert!(!users.remove_account(ANNA).unwrap() && !users.set_stored(ANNA, true).unwrap());
    assert!(!users.replace_hash(ANNA, "three", "four").unwrap());
    assert_eq!(users.accounts().unwrap().len(), 1);
}

#[test]
fn of_two_changes_of_one_password_the_second_knows_it() {
    let Some(site) = Site::if_installed() else { return };
    let (one, other) = (accounts(&site), accounts(&site));
    one.put_account(ANNA, "old", None).unwrap();
    assert!(one.replace_hash(ANNA, "old", "new").unwrap());
    assert!(!other.replace_hash(ANNA, "old", "newer").unwrap());
    assert!(one.replace_hash(ANNA, "old", "new").unwrap(), "the same call once more");
    // The way of delivery and the password are changed at the same time: both hold.
    std::thread::scope(|scope| {
        let set = scope.spawn(|| one.set_stored(ANNA, true).unwrap());
        assert!(other.replace_hash(ANNA, "new", "last").unwrap());
        assert!(set.join().unwrap());
    });
    assert_eq!(one.accounts().unwrap(), [account(ANNA, "last", true)]);
}

#[test]
fn who_is_there_stays_as_he_is() {
    let Some(site) = Site::if_installed() else { return };
    let users = accounts(&site);
    users.put_account(ANNA, "mine", None).unwrap();
    let theirs = [account(ANNA, "other", true), account(BEA, "one", true)];
    assert_eq!(users.add_missing(&theirs).unwrap(), 1);
    assert_eq!(
        users.accounts().unwrap(),
        [account(ANNA, "mine", false), account(BEA, "one", true)]
    );
    assert_eq!(users.add_missing(&theirs).unwrap(), 0);
}

#[test]
fn every_change_is_noticed() {
    let Some(mut site) = Site::if_installed() else { return };
    let users = accounts(&site);
    let node = "one".to_owned();
    site.options.site =
        Some(postgres_store::Site { node, own_values: Vec::new(), ..Default::default() });
    let store = PostgresStore::open(&site.url(), site.options.clone()).unwrap();
    store.join("one", Duration::from_secs(30)).unwrap();
    assert!(store.watch(Duration::from_secs(5)).unwrap().all);
    let noticed = || {
        let changes = store.watch(Duration::from_secs(5)).unwrap();
        assert_eq!(changes, Changes { users: true, ..Changes::default() });
    };
    users.put_account(ANNA, "one", None).unwrap();
    noticed();
    users.set_stored(ANNA, true).unwrap();
    noticed();
    // By hand, as the owner and without a search path.
    let sql = format!("delete from {}.account", site.options.schema);
    site.server.unwrap().psql(&sql).unwrap();
    noticed();
    // Beside a store that is open, on the same database.
    assert_eq!(store.users().accounts().unwrap(), []);
    store.close();
}

#[test]
fn what_is_not_prepared_has_no_users() {
    let Some(mut site) = Site::if_installed() else { return };
    site.options.schema = "of_nobody".to_owned();
    let opened = PostgresAccounts::open(&site.url(), &site.options);
    assert!(matches!(opened, Err(StoreError::NotPrepared { .. })), "{opened:?}");
}

/// Two addresses whose mailboxes would have one number.
const FIRST: &str = "/c=it/admd=net/s=u23966";
const SECOND: &str = "/c=it/admd=net/s=u56218";

#[test]
fn no_two_users_have_one_number_of_a_mailbox() {
    let Some(site) = Site::if_installed() else { return };
    let users = accounts(&site);
    users.put_account(FIRST, "one", Some(true)).unwrap();
    let refused = users.put_account(SECOND, "two", None).unwrap_err();
    assert!(
        matches!(&refused, StoreError::NumberTaken { address, by } if address == SECOND && by == FIRST)
    );
    let all = [account(BEA, "one", true), account(SECOND, "two", true)];
    assert!(users.add_missing(&all).unwrap_err().to_string().contains(FIRST));
    assert_eq!(users.accounts().unwrap().len(), 1, "nobody of them was added");
    users.put_account(FIRST, "three", None).unwrap();
    users.remove_account(FIRST).unwrap();
    assert!(users.add_missing(&[account(FIRST, "1", true), account(SECOND, "2", true)]).is_err());
    assert!(users.put_account(SECOND, "two", None).unwrap());
    // The number is the one that the nodes give.
    let number = site.sql(&format!("select mailbox_number('{SECOND}')"));
    assert_eq!(number, "702869960");
}

/// Within what one statement may take.
#[test]
fn thousands_of_users_are_added_at_once() {
    let Some(site) = Site::if_installed() else { return };
    let users = accounts(&site);
    let names: Vec<String> = (0..5_000).map(|n| format!("/c=it/admd=net/s=x{n}")).collect();
    let all: Vec<Account> = names.iter().map(|name| account(name, "hash", true)).collect();
    assert_eq!(users.add_missing(&all).unwrap(), all.len());
    assert_eq!(users.add_missing(&all).unwrap(), 0);
    assert_eq!(users.accounts().unwrap().len(), all.len());
}
