//! A disk in memory that loses power, fills up and fails on request, for tests and simulations.
//!
//! Written octets are durable only after a sync, names only after a sync of their directory, as
//! POSIX permits at worst. [`FaultyDisk::crash`] removes everything not synced.

mod disk;
mod file;
mod state;

pub use disk::FaultyDisk;
pub use state::Loss;
