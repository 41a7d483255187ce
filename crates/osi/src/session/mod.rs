//! The session layer (X.225 version 2): kernel with duplex, and kernel with half-duplex, minor
//! synchronize, activity management and exceptions.

mod actions;
mod limits;
mod machine;
pub mod pdu;
mod predicates;
mod segments;
pub mod service;
pub(crate) mod table;
pub mod tsdu;
mod variables;

pub(crate) use actions::{is_congestion, refusal};
pub use machine::{Machine, Output, SUPPORTED};
