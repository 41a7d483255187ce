//! The suite of every store, on PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

#[path = "../../store/tests/cases/mod.rs"]
mod cases;
mod common;

use cases::*;
use common::*;
use proptest::prelude::*;

/// Makes a test of each function, for a process that is alone and for a node of a site.
macro_rules! for_postgres {
    ($($name:ident),* $(,)?) => {
        mod postgres {
            $(#[test] fn $name() {
                if super::server().is_some() {
                    super::$name(super::Engine::Postgres);
                }
            })*
        }
        mod node {
            $(#[test] fn $name() {
                if super::server().is_some() {
                    super::$name(super::Engine::Node);
                }
            })*
        }
    };
}

for_postgres!(
    entries_come_in_order_by_page,
    bodies_come_in_order_by_page,
    a_bad_batch_fails_alone_and_returns_its_spool,
    readers_beside_the_committer_see_whole_batches,
    a_key_that_must_be_absent_conflicts_if_it_is_remembered,
    keys_of_many_recipients_conflict_too,
    a_queue_is_listed_by_precedence_in_pages,
    a_content_is_received_part_by_part,
    items_of_mailboxes_are_listed_apart,
    a_content_is_copied_and_outlives_the_first,
    a_part_of_a_content_is_framed,
    keys_and_named_values_are_listed_in_pages,
);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_store_is_its_model(
        groups in prop::collection::vec(
            (prop::collection::vec(prop::collection::vec(op(), 0..6), 0..4), 0usize..4), 0..9),
    ) {
        if server().is_some() {
            a_store_is_its_model(Engine::Postgres, 4 << 20, &groups)?;
            a_store_is_its_model(Engine::Node, 4 << 20, &groups)?;
        }
    }
}
