//! Keys whose time is over are forgotten a few at a time, so that no commit waits long for that.

use crate::rig::Rig;
use base::Instant;
use node::Input;
use node::config::Limits;
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(600);

#[test]
fn what_is_to_be_forgotten_goes_in_slices_with_pauses_between() {
    let mut rig = Rig::new(Limits::default());
    rig.forgettable = 10_000;
    rig.pass(MINUTES - Duration::from_secs(1));
    assert_eq!(rig.forgets, [], "not before it is due");
    rig.pass(Duration::from_secs(30));
    assert!(rig.forgets.iter().all(|(_, most)| *most <= 500), "{:?}", rig.forgets);
    let asked: usize = rig.forgets.iter().map(|(_, most)| most).sum();
    assert_eq!((rig.forgettable, asked), (0, 10_000));
    let pauses = rig.forgets.windows(2).map(|two| two[1].0.since(two[0].0));
    assert!(pauses.min().unwrap() >= Duration::from_millis(20), "others commit between them");
    // All are gone: the next time is a while off.
    let slices = rig.forgets.len();
    rig.pass(MINUTES - Duration::from_secs(60));
    assert_eq!(rig.forgets.len(), slices);
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.forgets.len(), slices + 1);
}

#[test]
fn a_stop_does_not_wait_for_it() {
    let mut rig = Rig::new(Limits::default());
    // It is asked for, and not answered.
    rig.now = Instant(0) + MINUTES;
    rig.node.handle(rig.clock(), Input::Tick);
    let said = drained(&mut rig);
    let asked = said.iter().filter(|o| matches!(o, node::Output::ForgetSeen { .. })).count();
    assert_eq!(asked, 1);
    rig.node.handle(rig.clock(), Input::Stop);
    // The time of the stop is made durable first.
    let said = drained(&mut rig);
    assert!(matches!(said.last(), Some(node::Output::Stopped)), "{said:?}");
}

/// What the node asks for, until it asks for nothing more; commits are made.
fn drained(rig: &mut Rig) -> Vec<node::Output> {
    let mut said = Vec::new();
    while let Some(output) = rig.node.poll() {
        if let node::Output::Commit { token, .. } = &output {
            let token = *token;
            rig.node.handle(rig.clock(), Input::Committed { token, result: Ok(()) });
        }
        said.push(output);
    }
    said
}
