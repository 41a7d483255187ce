//! How the kit offers a node a connection: the one place that does.

use base::{AssociationId, Now};
use node::{Input, ListenerId, Node, Output};
use std::net::IpAddr;

/// Offers a connection: the association that the node gives it, or `None` if no socket is free.
/// The caller drains the outputs that follow.
///
/// # Panics
/// If the outputs of an earlier input were not drained.
pub(crate) fn accept(
    node: &mut Node,
    now: Now,
    listener: ListenerId,
    remote: IpAddr,
) -> Option<AssociationId> {
    node.handle(now, Input::Accepted { connection: 0, listener, remote });
    match node.poll() {
        Some(Output::Admitted { association, .. }) => association,
        other => panic!("the answer to Accepted comes first: {other:?}"),
    }
}
