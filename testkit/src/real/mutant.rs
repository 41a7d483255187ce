//! What is left out or done wrong, one thing at a time: a checker must notice each of them.

use store::safeguard::Safeguard;

/// A change that breaks a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The store does without this.
    Without(Safeguard),
    /// These syncs report success and do nothing.
    NoSync(SyncOf, When),
    /// The edge does this.
    Lies(Lie),
}

/// What is not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOf {
    /// Open files whose names end so.
    Files(&'static str),
    /// The names in a directory.
    Names(&'static str),
}

/// During which part of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// While it opens its store.
    Opening,
    /// Afterwards.
    Running,
    /// In both.
    Always,
}

/// What a wrong edge does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Answers commits as durable before they are made.
    AnswersEarly,
    /// Takes an end that is unknown for not made, and goes on.
    UnknownIsNotDone,
    /// Takes it for durable.
    UnknownIsDurable,
    /// Takes what was not made for durable.
    NotDoneIsDurable,
    /// Finds no key, and commits whatever is remembered.
    FindsNoKey,
    /// Has the same epoch at each start.
    SameEpoch,
    /// Does not hand over what operators hold.
    ForgetsHolds,
    /// Hands over the first entries only.
    ReadsFirstEntries,
    /// Hands over no contents at a start.
    ReadsNoContents,
    /// Makes each change of a batch by itself.
    SplitsBatches,
    /// Leaves out deletes.
    DropsDeletes,
    /// Leaves out the deletes of contents.
    DropsContentDeletes,
    /// Forgets keys as soon as they are remembered.
    RemembersNothing,
    /// Takes more octets into a spool whose write failed.
    IgnoresFailedWrites,
    /// Does not read again what a failed sync may have left in memory only.
    KeepsCached,
}
