//! What a node of a site owns, as a pure state machine between the membership of the process and its node.
//!
//! ```text
//!   the store they share              Ownership                      node
//!   ┌─────────────────┐  calls   ┌──────────────────┐   inputs   ┌──────────┐
//!   │ leases, fences  │◀────────▶│ Membership       │───────────▶│          │
//!   │ entries         │  pages   │ entries of shards│            │          │
//!   │ values          │─────────▶│ users who wait   │◀───────────│          │
//!   └─────────────────┘          └──────────────────┘ batches,   └──────────┘
//!                                                     shards left
//! ```
//!
//! Whoever drives it makes the calls, reads the pages and values, and passes the node what [`Output::Node`] has, in
//! that order and never within a step of the node: so the inputs of a node are a sequence, and a recording of them
//! is a run.

mod batches;
mod callers;
mod machine;
pub mod reading;
mod users;

pub use batches::{BatchEnd, EntryChange, changes_of};
pub use machine::{Input, Notice, Output, Ownership, site_values};
