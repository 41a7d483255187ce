//! The mailboxes of a message store (X.413): items, quotas, and the operations on them.
//!
//! An item is an entry of the durable queue beside those that wait: its key is its level and
//! [`engine::journal::ItemId::entry`], its record an [`Item`], its content a body of its own. A delivery copies the
//! content in the commit that deletes the queue's entry ([`Mailbox::deliver`]), so it is durable before it is
//! reported.
//!
//! Nothing here reads or writes: a machine asks, and its caller answers.

pub mod attributes;
mod bound;
pub mod delivery;
pub mod forward;
pub mod heading;
pub mod item;
pub mod machine;
pub mod query;
pub mod quota;
pub mod registrations;
pub mod retention;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod totals;

pub use bound::bind_result;
pub use delivery::{Arriving, Delivered, Mailbox, NotDelivered};
pub use item::{Brief, Item, ItemError, Kind, Status};
pub use machine::{Mailboxes, Settings};
pub use query::{Access, Answer, Ask, Fetched, Outcome, Query, Row, Step};
pub use quota::{Full, Quota};
pub use registrations::Registrations;
pub use retention::{Rule, Rules};
pub use totals::{Level, Totals, ValueError};
