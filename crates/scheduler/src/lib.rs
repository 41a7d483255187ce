//! The scheduler: selects the next message for each association, and the number of associations.
//! One pure machine.
//!
//! The scheduler knows identifiers, peers, channels, precedences, sizes and times, never PDUs or
//! sockets. Its rules (`docs/scheduler.md` explains them):
//!
//! | Rule | | File |
//! |---|---|---|
//! | 1, 2 | a higher message for a peer holds the lower ones while it has a channel itself |
//! `hold.rs` |
//! | 3 | within a precedence first in, first out | `queue.rs` |
//! | 4 | when a further association opens and when one closes | `growth.rs` |
//! | 5 | a channel may carry the precedences of one that is down | `fallback.rs` |
//! | 6 | MINIMIZE: nothing below a floor starts | `minimize.rs` |
//! | 7 | a minimum share for messages that rule 1 holds | `share.rs` |
//! | 8 | a transfer pauses while a higher one makes progress | `preempt.rs` |
//! | 9 | delays after failures; overdue alerts and expiry | `retry.rs`, `expiry.rs` |
//!
//! An item is *waiting* (ready, delayed until its time, or held by an operator), *in transfer*
//! after [`Scheduler::next`] returned it, or *expired*. It leaves with [`Scheduler::finished`], or
//! returns from transfer to waiting with [`Scheduler::retry`] (after growing delays) or
//! [`Scheduler::put_back`] (at once). Mailboxes are plain queues: only the order applies, and
//! expiry if the caller gave a time.
//!
//! `machine.rs` has the verbs and the indices, `items.rs` the items, `peer.rs` the state of a peer
//! and its channels, `configure.rs` the configuration at run time, `status.rs` the status for
//! operators.

pub mod agenda;
mod configure;
pub mod deferred;
mod items;
mod machine;
mod peer;
mod queue;
mod rules;
mod status;
pub mod wall;
#[doc(hidden)]
pub use items::{Destination, Item, NEVER};
pub use machine::{Scheduler, Start, StartReason};
pub use rules::growth::Open;
pub use rules::hold::Reason;
pub use rules::minimize::{Floor, Scope};
pub use rules::retry::Retry;
pub use rules::shift::Shift;
pub use rules::{Associations, ChannelId, ChannelRules, Hold, Policy};
pub use status::{ItemState, LevelStatus, Listed, MAX_LISTED, QueueStatus};

#[cfg(test)]
mod tests;
