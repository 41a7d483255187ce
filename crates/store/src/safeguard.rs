//! Safeguards of the store that a test leaves out, one at a time, to see that something notices it: the
//! crash matrix of the testkit does. A build without the feature `testing` contains all of them, and no
//! switch.

#![cfg_attr(
    not(any(test, feature = "testing")),
    expect(unreachable_pub, reason = "tests of other crates leave safeguards out")
)]

/// A safeguard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguard {
    /// The checksum of a frame of the log, over its head.
    FrameSum,
    /// That of a record in the log.
    RecordSum,
    /// That of a content in the log.
    ContentSum,
    /// Those of the blocks of a content in a file.
    BlockSums,
    /// Those of a footer.
    FooterSums,
    /// Those of the blocks of a run of keys, and of its index.
    RunSums,
    /// Of the last group only batches count whose data are all there.
    WholeGroups,
    /// With each open, frames get numbers far above those of an interrupted write.
    FreshNumbers,
    /// What a segment holds that was given up, and is there still, does not live again.
    GivenUp,
    /// The reserve of spare segments.
    Reserve,
    /// Deletes may take the reserve.
    RoomToDelete,
    /// The highest precedences may take a part of the reserve.
    RoomForUrgent,
    /// A key that had to be absent and is remembered refuses its batch.
    Conflicts,
    /// An open removes the files of contents that nothing names.
    Sweep,
    /// A content whose sync failed is not committed.
    FailedContent,
    /// After a failed write or sync of the log the store stops.
    Stop,
}

#[cfg(any(test, feature = "testing"))]
mod switch {
    use super::Safeguard;
    use std::cell::Cell;

    thread_local! {
        static LEFT_OUT: Cell<Option<Safeguard>> = const { Cell::new(None) };
    }

    /// From now on the stores of this thread do without this safeguard; with `None` they have all.
    pub fn leave_out(safeguard: Option<Safeguard>) {
        LEFT_OUT.set(safeguard);
    }

    pub(crate) fn stands(safeguard: Safeguard) -> bool {
        LEFT_OUT.get() != Some(safeguard)
    }
}

#[cfg(any(test, feature = "testing"))]
pub use switch::leave_out;
#[cfg(any(test, feature = "testing"))]
pub(crate) use switch::stands;

/// Whether a safeguard is there.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) const fn stands(_: Safeguard) -> bool {
    true
}
