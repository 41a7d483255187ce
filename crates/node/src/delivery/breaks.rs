//! Deliveries that broke off more than once, or that the user could not take: they wait, until he
//! binds again.
//!
//! A wait keeps a message that a peer cannot take from being sent to it over and over. A user's
//! connection breaks off for other reasons, his disk is full for a while, and who binds again is there
//! for what waits. Only what failed time after time waits all the same, for it may be what his client
//! fails at: others go before it.

use base::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// What waits, by mailbox.
#[derive(Debug, Default)]
pub(crate) struct Breaks(pub(crate) BTreeMap<u32, BTreeSet<EntryId>>);
