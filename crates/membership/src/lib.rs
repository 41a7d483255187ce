//! Several nodes of one site: leases, and which node owns which shard, as a pure state machine.
//!
//! ```text
//!   the store they share                 a node of the site
//!   ┌─────────────────┐   calls    ┌────────────┐  gained, lost, leave  ┌──────┐
//!   │ node  lease     │◀───────────│ Membership │──────────────────────▶│ node │
//!   │ shard owner,    │   answers  │            │◀──────────────────────│      │
//!   │       fence     │───────────▶│            │   left, stays, wanted └──────┘
//!   └─────────────────┘            └────────────┘
//! ```
//!
//! The store decides: a commit of a node that does not own a shard is not made. The machine keeps what a node
//! believes on the safe side of it: it counts its lease from before the call that renewed it, less an eighth for
//! clocks that differ, and gives everything up when that is over, answer or no answer.
//!
//! Who owns what is not agreed upon by messages. All nodes rank the nodes that live for each shard by a hash of
//! both names; the first takes it, or any other if it stays free for longer than a lease. After a node has joined,
//! shards move to it one by one; the others stay where they are. So does a peer that has called a node and that
//! perhaps no other one can reach; and a node that such a peer has called asks for it (`reach`).

mod machine;
#[cfg(any(test, feature = "testing"))]
pub mod model;
mod plan;
mod reach;
pub mod rows;

pub use machine::{Answer, Call, Input, Membership, Output, Settings};
pub use plan::first_of;
pub use rows::{Acquired, Fence, NodeEpoch, NodeRow, Renewal, ShardRow};
