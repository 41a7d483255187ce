//! How the kit offers a node a connection: the one place that does.

use crate::tape::Tape;
use base::{AssociationId, Now};
use node::event::LogEvent;
use node::{Input, ListenerId, Node, Output};
use std::net::IpAddr;

/// Offers a connection: the association that the node gives it, or `None` if no socket is free, and the events before
/// the answer. The caller drains the outputs that follow.
///
/// # Panics
/// If other outputs of an earlier input were not drained.
pub(crate) fn accept(
    node: &mut Node,
    tape: Option<&mut Tape>,
    now: Now,
    listener: ListenerId,
    remote: IpAddr,
) -> (Option<AssociationId>, Vec<LogEvent>) {
    let input = Input::Accepted { connection: 0, listener, remote };
    let mut tape = tape;
    if let Some(tape) = &mut tape {
        tape.input(now, &input);
    }
    node.handle(now, input);
    let mut events = Vec::new();
    loop {
        let output = node.poll();
        if let Some((tape, output)) = tape.as_mut().zip(output.as_ref()) {
            tape.output(output);
        }
        match output {
            Some(Output::Admitted { association, .. }) => return (association, events),
            // A clock that was set is noticed at any input.
            Some(Output::Event(event)) => events.push(*event),
            other => panic!("the answer to Accepted comes first: {other:?}"),
        }
    }
}
