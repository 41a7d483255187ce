//! The durable queue of a site with several nodes: PostgreSQL behind the trait of the store.
//!
//! ```text
//!  receiving threads              committer's thread           sending threads       nodes
//!       │ append, sync, note           │ commit                      ▲ entry, body     │ join, acquire
//!       ▼                              ▼                             │                 ▼
//!    Spools ─────claimed by──────▶ Committing ── Stage, Plan, Call  reads, bodies   Cluster, Watching
//!       │ parts of 512 KiB             │ Lane                        │                 │
//!       ▼ Pool (writers)               ▼ one connection              ▼ Pool (readers)  ▼ Pool (control)
//!    content, part, note           commit_group(): one round trip, one transaction, in schema `mta`
//! ```
//!
//! **A commit** is one call of a function in autocommit, so a client that is stopped in the middle leaves no
//! transaction open. The batches of a group are merged first (`group/plan.rs`): of each key the last change
//! is sent. If the server refuses it for what one batch wants, nothing was made, that batch is answered, and
//! the others are sent anew; savepoints, which cost each commit, are not needed. A batch that forgets keys is
//! a transaction of its own, since what it forgets depends on all before it.
//!
//! **A lost answer**: `group/lane.rs`. The row of this run has the number of its last commit, which is the
//! truth once the row refuses whatever still comes. That is instead of a row for each batch.
//!
//! **Contents** up to 1 MiB travel in the commit. Longer ones are written part by part while they are
//! received, each part durable on its own, and the commit binds them. A part is never changed: what a sync or
//! a note finds is a part, a shorter one. A body names a content, and copies name the same one. Each 64 KiB
//! have a checksum that is made and checked here.
//!
//! **Bodies and entries**: alone, `DeleteBody` deletes. In a site it deletes what no entry names, and the last
//! entry that names a body takes it along: no node knows what the others have. An entry row has the number of
//! the body that its record names; whether there is another one is looked up in an index, under the lock of
//! the body. So there is no count that could be wrong, and a database can begin alone and become a site's.
//!
//! **One process or a site**: the connection of commits has an advisory lock, which a process that is alone
//! takes for itself and the nodes of a site share; leases count besides, for a node that is away. Whoever
//! opens the store alone removes the rows of all other runs, and with them their right to commit. This takes a
//! session: a pooler that gives connections to others between transactions (PgBouncer) must not be between.
//!
//! **Numbers of 64 bits** have their highest bit turned over in the database (`numbers.rs`).
//!
//! The accounts: [`prepare()`] makes the tables with the account that owns them, and the account that runs may
//! read and write rows and call functions. What the database promises is in [`Durability`].

mod accounts;
mod bodies;
mod cluster;
mod connection;
mod durability;
mod group;
mod numbers;
mod options;
mod prepare;
mod queue;
mod reads;
mod spools;
mod sums;
mod survey;
mod tracked;
mod verify;
mod watch;

pub use accounts::PostgresAccounts;
pub use connection::target::role;
pub use durability::{Durability, Settings, Standby};
pub use options::{Options, Place, SCHEMA, Site};
pub use prepare::{Prepared, VERSION, prepare};
pub use queue::PostgresStore;
pub use survey::{
    FaultKind, Holder, NodeState, ServerAnswer, ServerFault, ServerState, ShardState, StandbyRow,
    Survey, Surveyor,
};
pub use tracked::{Own, TrackedArchive, TrackedEvents, site_events, track};
