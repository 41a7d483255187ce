//! Expired keys are deleted in slices, so that no commit waits long for it.

use base::Instant;
use engine::journal::Digest;
use node::Input;
use node::config::Limits;
use std::time::Duration;
use testkit::Bench;
use testkit::bench::two_peers;

const MINUTES: Duration = Duration::from_secs(600);

#[test]
fn expired_keys_are_deleted_in_slices_with_pauses_between() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let begun = bench.clock().utc;
    let expired = |n: u16| {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&n.to_be_bytes());
        (Digest(key), (begun, bytes::Bytes::new()))
    };
    bench.store.seen.extend((0..10_000).map(expired));
    bench.pass(MINUTES - Duration::from_secs(1));
    assert_eq!(bench.store.forgets, [], "not before it is due");
    bench.pass(Duration::from_secs(30));
    assert!(bench.store.forgets.iter().all(|(_, most)| *most <= 500), "{:?}", bench.store.forgets);
    let asked: usize = bench.store.forgets.iter().map(|(_, most)| most).sum();
    assert_eq!((bench.store.seen.len(), asked), (0, 10_000));
    let pauses = bench.store.forgets.windows(2).map(|two| two[1].0.since(two[0].0));
    assert!(pauses.min().unwrap() >= Duration::from_millis(20), "others commit between them");
    // All are deleted: the next slice is due after the usual interval.
    let slices = bench.store.forgets.len();
    bench.pass(MINUTES - Duration::from_secs(60));
    assert_eq!(bench.store.forgets.len(), slices);
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.store.forgets.len(), slices + 1);
}

#[test]
fn a_stop_does_not_wait_for_the_deletion_of_keys() {
    let mut bench = two_peers(Limits::default(), |_| {});
    bench.leave_unrecorded();
    // The deletion is requested, and not answered.
    bench.now = Instant(0) + MINUTES;
    bench.node.handle(bench.clock(), Input::Tick);
    let outputs = drained(&mut bench);
    let asked = outputs.iter().filter(|o| matches!(o, node::Output::ForgetSeen { .. })).count();
    assert_eq!(asked, 1);
    bench.node.handle(bench.clock(), Input::Stop);
    // The time of the stop is made durable first.
    let outputs = drained(&mut bench);
    assert!(matches!(outputs.last(), Some(node::Output::Stopped)), "{outputs:?}");
}

/// All outputs of the node. Its commits succeed.
fn drained(bench: &mut Bench) -> Vec<node::Output> {
    let mut outputs = Vec::new();
    while let Some(output) = bench.node.poll() {
        if let node::Output::Commit { token, .. } = &output {
            let token = *token;
            bench.node.handle(bench.clock(), Input::Committed { token, result: Ok(()) });
        }
        outputs.push(output);
    }
    outputs
}
