//! A disk in memory that loses power, fills up and fails on request. It is here and not in testkit,
//! because unit tests of this crate use it on private parts; other builds do not contain it (feature
//! `testing`).
//!
//! Written octets are durable only after a sync, names only after a sync of their directory, as
//! POSIX permits at worst. [`FaultyDisk::crash`] removes everything not synced.

mod disk;
mod file;
mod state;

pub use disk::FaultyDisk;
pub use state::{Loss, Unreadable};
