//! Which message goes next on which association, and how many associations there should be: one
//! pure machine.
//!
//! The scheduler knows identifiers, peers, channels, precedences, sizes and times, never PDUs or
//! sockets. Its rules (`docs/scheduler.md` has them in prose):
//!
//! | Rule | | File |
//! |---|---|---|
//! | 1, 2 | a higher message for a peer holds the lower ones, as long as it can go itself | `hold.rs` |
//! | 3 | within a precedence first in, first out | `queue.rs` |
//! | 4 | when a further association opens and when one closes | `growth.rs` |
//! | 5 | a channel may stand in for one that is down | `fallback.rs` |
//!
//! An item is *waiting* (ready, delayed until its time, or held by an operator), or *in transfer*
//! after [`Scheduler::next`] named it. It leaves with [`Scheduler::finished`], or goes back to
//! waiting with [`Scheduler::retry`] (after growing delays) or [`Scheduler::put_back`] (at once).
//! Mailboxes are plain queues: no rule but the order.

mod backoff;
mod fallback;
mod growth;
mod hold;
mod machine;
mod peer;
mod queue;
mod rules;

pub use backoff::{FIRST_DELAY, LONGEST_DELAY, delay};
pub use growth::Open;
pub use hold::Reason;
pub use machine::{Destination, Item, Licence, Scheduler, Start};
pub use queue::QueueStatus;
pub use rules::{Associations, ChannelId, ChannelRules, Hold, Policy};

#[cfg(test)]
mod tests;
