//! How an edge asks a node for the identifier of a connection that comes in. All of the kit asks
//! here, and nowhere else.

use base::{AssociationId, Now};
use node::{Input, ListenerId, Node};
use std::net::IpAddr;

/// Somebody connects: the identifier that the node gives, or `None` where it has no socket left.
pub(crate) fn admit(node: &mut Node, now: Now, remote: IpAddr) -> Option<AssociationId> {
    node.admit(now, remote)
}

/// Somebody connects whom no limit of sockets concerns.
pub(crate) fn admit_always(node: &mut Node) -> AssociationId {
    node.next_association()
}

/// Tells the node who connected where.
pub(crate) fn accepted(association: AssociationId, listener: ListenerId, remote: IpAddr) -> Input {
    Input::Accepted { association, listener, remote }
}
