//! A disk in memory that loses power, fills up and fails on request: for tests and simulations.
//!
//! What is written counts as durable only after a sync, a name only after its directory's sync,
//! as POSIX allows at worst. [`FaultyDisk::crash`] then takes away what was never synced.

mod disk;
mod file;
mod state;

pub use disk::FaultyDisk;
pub use state::Loss;
