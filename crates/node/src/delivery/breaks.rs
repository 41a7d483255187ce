//! Deliveries that broke off more than once, or that the user could not take. They wait until he binds
//! again.
//!
//! The wait prevents that a message is sent again and again to a client that cannot take it. But a user's
//! connection may break off for other reasons, or his disk may be full for a while. So a new bind ends
//! the wait. A delivery that failed too often waits all the same, because it may be what the client
//! fails at: others go first.

use base::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// What waits, by mailbox.
#[derive(Debug, Default)]
pub(crate) struct Breaks(pub(crate) BTreeMap<u32, BTreeSet<EntryId>>);
