//! The transport layer: class 0 of X.224 over TCP (RFC 1006).

mod machine;
pub mod pdu;
pub(crate) mod table;

pub use machine::{Machine, Output};
