//! How fast the peer's transport takes what is sent to it.

use base::{EntryId, Instant};
use std::time::Duration;

/// What the peer's transport has taken.
#[derive(Debug, Default)]
pub struct ProgressLooks {
    /// When to ask how much it has taken.
    pub at: Option<Instant>,
    /// How much it had taken at an earlier time. Since then something was outstanding without a break.
    pub last: Option<(Instant, u64)>,
    /// How much it had taken when that was last progress.
    pub progressed: u64,
}

/// What follows from octets that the peer's transport took.
#[derive(Debug, Default)]
pub struct TakenOctets {
    /// The entry whose transfer made progress.
    pub progressed: Option<EntryId>,
    /// The rate, once it was measured for long enough.
    pub sample: Option<LineSample>,
}

/// Octets that a line carried in a time.
#[derive(Clone, Copy, Debug)]
pub struct LineSample {
    /// Octets that the peer took.
    pub octets: u64,
    /// The time that took.
    pub took: Duration,
    /// Nothing is outstanding at the end: the line may have been idle then.
    pub may_be_idle: bool,
}
