//! A store that answers what it must not: every case ends in a typed error, and none without end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

mod common;

use base::Precedence::Routine;
use common::{Fault, TestStore};
use p7::operation::{DELETE, FETCH, LIST, SUMMARIZE};
use std::time::Duration;
use tokio::time::timeout;
use ua::store::{BadAnswer, Find, Order, Pages, StoreError};

/// A store with an entry, and one fault.
async fn store(operation: i64, fault: Fault) -> TestStore {
    let server = TestStore::start().await;
    server.deliver(Routine, "Exercise", 100);
    server.fault(operation, fault);
    server
}

async fn list(server: &TestStore) -> StoreError {
    let mut store = server.bind().await;
    let listed = timeout(Duration::from_secs(20), store.list(Default::default())).await;
    listed.expect("a list without end").unwrap_err()
}

#[tokio::test]
async fn an_answer_to_another_invocation_is_named() {
    let error = list(&store(LIST, Fault::InvokeId).await).await;
    let named = matches!(&error, StoreError::Answer(BadAnswer::Apdu(_) | BadAnswer::InvokeId(99)));
    assert!(named && error.is_final(), "{error:?}");
}

#[tokio::test]
async fn results_that_are_cut_or_of_another_type_are_malformed() {
    let malformed = |error: &StoreError| {
        matches!(error, StoreError::Answer(BadAnswer::Malformed { .. } | BadAnswer::Apdu(_)))
    };
    for fault in [
        Fault::Cut,
        Fault::Octets(vec![5, 0]),
        Fault::Octets(vec![0x31, 5, 0xa1, 3, 0x30, 1, 0]),
        Fault::Octets(vec![0x30, 0]),
    ] {
        let shown = format!("{fault:?}");
        let error = list(&store(LIST, fault).await).await;
        let over = matches!(error, StoreError::Lost(_)) && shown == "Cut";
        assert!(malformed(&error) || over, "{shown}: {error:?}");
    }
    let server = store(FETCH, Fault::Octets(vec![0x31, 2, 0xa0, 0])).await;
    let error = server.bind().await.open(1).await.unwrap_err();
    assert!(malformed(&error), "{error:?}");
    for operation in [DELETE, SUMMARIZE] {
        let server = store(operation, Fault::Octets(vec![0x30, 0])).await;
        let mut store = server.bind().await;
        let error = match operation {
            DELETE => store.delete(&[1]).await.unwrap_err(),
            _ => store.summarize(&Find::new(), &[]).await.unwrap_err(),
        };
        assert!(malformed(&error), "{error:?}");
    }
}

#[tokio::test]
async fn a_result_without_end_is_not_held() {
    let error = list(&store(LIST, Fault::Flood).await).await;
    let long = matches!(error, StoreError::Answer(BadAnswer::TooLong { operation: "list", .. }));
    assert!(long, "{error:?}");
}

#[tokio::test]
async fn a_content_without_end_is_not_written() {
    let server = store(FETCH, Fault::Endless(1 << 36)).await;
    let mut store = server.bind().await;
    let mut content = Vec::new();
    let fetched = timeout(Duration::from_secs(20), store.fetch(1, &mut content, 1 << 20)).await;
    let error = fetched.expect("a content without end").unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Answer(BadAnswer::Malformed { .. } | BadAnswer::TooLong { .. })
        ),
        "{error:?}"
    );
    assert!(content.len() <= 1 << 20);
}

#[tokio::test]
async fn another_entry_than_asked_for_is_no_answer() {
    let server = store(FETCH, Fault::Endless(10)).await;
    let error = server.bind().await.open(2).await.unwrap_err();
    // Content that was not asked for is not taken either.
    let long = matches!(error, StoreError::Answer(BadAnswer::TooLong { .. }));
    assert!(long, "{error:?}");
    let server = store(FETCH, Fault::Endless(10)).await;
    let mut store = server.bind().await;
    let error = store.fetch(2, &mut std::io::sink(), 99).await.unwrap_err();
    let other = BadAnswer::OtherEntry { asked: 2, got: Some(1) };
    assert!(matches!(&error, StoreError::Answer(e) if *e == other), "{error:?}");
}

#[tokio::test]
async fn a_list_out_of_order_ends() {
    // requested { 3, 3 }; and next 0 after nothing.
    for (octets, last) in [
        (vec![0x31, 14, 0xa1, 12, 0x30, 10, 0x30, 3, 2, 1, 3, 0x30, 3, 2, 1, 3], 3),
        (vec![0x31, 12, 0xa0, 3, 2, 1, 1, 0xa1, 5, 0x30, 3, 0x30, 1, 0], 0),
    ] {
        let server = store(LIST, Fault::Octets(octets)).await;
        let mut store = server.bind().await;
        let error = store.next_page(&mut Pages::new(&Find::new(), Order::Arrival, 5)).await;
        let error = error.unwrap_err();
        match &error {
            StoreError::Answer(BadAnswer::NotAscending(n)) => assert_eq!(*n, last),
            StoreError::Answer(BadAnswer::Malformed { .. }) => assert_eq!(last, 0),
            _ => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_store_that_aborts_or_is_silent_is_lost() {
    let error = list(&store(LIST, Fault::Abort).await).await;
    assert!(matches!(error, StoreError::Lost(_)) && error.is_final(), "{error:?}");
    let error = list(&store(LIST, Fault::Silence).await).await;
    assert!(matches!(error, StoreError::Lost(_)), "{error:?}");
}

#[tokio::test]
async fn alerts_without_end_are_not_held() {
    // More at once than the stack takes without an answer.
    let error = list(&store(LIST, Fault::Alerts(5_000)).await).await;
    let refused =
        matches!(error, StoreError::Answer(BadAnswer::Apdu(_) | BadAnswer::TooManyAlerts(_)));
    assert!(refused, "{error:?}");
    let server = TestStore::start().await;
    let mut store = server.bind().await;
    for taken in 0.. {
        server.fault(LIST, Fault::Alerts(250));
        match store.list(Default::default()).await {
            Ok(_) => assert!(taken < 17),
            Err(StoreError::Answer(BadAnswer::TooManyAlerts(4_096))) => return,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn what_a_store_must_not_invoke_is_rejected_and_the_rest_goes_on() {
    let server = store(LIST, Fault::Invoke(5, vec![5, 0])).await;
    let mut store = server.bind().await;
    assert_eq!(store.list(Default::default()).await.unwrap().entries.len(), 1);
    assert_eq!(store.list(Default::default()).await.unwrap().entries.len(), 1);
    let server = self::store(LIST, Fault::Invoke(25, vec![0x31, 2, 0xa0, 0])).await;
    let error = list(&server).await;
    let alert =
        matches!(error, StoreError::Answer(BadAnswer::Malformed { operation: "alert", .. }));
    assert!(alert, "{error:?}");
}
