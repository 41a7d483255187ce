//! What happened to messages: an indexed store of events, a message's way through this MTA, and figures
//! over many messages.
//!
//! Events are appended to *segments*, files of frames with checksums. A full segment gets an *index*: a
//! sorted run of hashes of what an event can be found by (MTS identifier, subject or report, originator,
//! recipients, content identifier, queue entry) with the place of its frame. A question reads one block of
//! some 3 kB from the index of each segment; it needs no lock and no daemon. When all segments have more
//! octets than the limit, the oldest is removed whole.
//!
//! | Part | What it is |
//! |---|---|
//! | [`Tracker`] | the daemon's end: a bounded queue and the thread that writes |
//! | [`writer::Writer`] | appends, seals, removes and repairs segments |
//! | [`Reader`] | finds events, while the daemon runs or not |
//! | [`way`] | a message's way and outcome, from its events |
//! | [`figures`] | counts and percentiles by precedence and peer |

pub mod event;
pub mod figures;
mod frame;
mod index;
pub mod lines;
pub mod moment;
mod names;
pub mod page;
mod reader;
pub mod ship;
pub mod source;
mod tracker;
pub mod way;
pub mod writer;

pub use event::Event;
pub use names::Key;
pub use reader::{Damage, Gone, Reader};
pub use source::Source;
pub use tracker::Tracker;
