//! What others can make an MTA hold or do: limits in numbers, memory that is charged to whom it is held for,
//! and binds that are checked slowly.
//!
//! Pure: no clock, socket, file or randomness.

pub mod access;
pub mod limits;
pub mod memory;
mod names;
mod share;

pub use limits::{Limit, Limits};
pub use names::{NameDigest, Secret};
pub use share::kept;
