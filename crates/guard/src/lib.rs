//! What others can make an MTA hold or do: limits in numbers, memory that is charged to whom it is held for,
//! binds that are checked slowly, and whose
//! fault it is that associations end.
//!
//! Pure: no clock, socket, file or randomness.

pub mod access;
pub mod blame;
pub mod guesses;
pub mod limits;
pub mod memory;
mod names;
mod share;

pub use limits::{Limit, Limits};
pub use names::{MASK, NameDigest, Secret};
pub use share::kept;
