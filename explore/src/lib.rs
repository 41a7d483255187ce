//! Two connected machines of each layer, explored state by state.
//!
//! ```text
//!   user A ─▶ machine A ═ octets in flight ═▶ machine B ◀─ user B        one state: all of it
//!              │   ▲                            │   ▲
//!              └───┴── a move: a primitive, the next packet delivered, a deadline, a cut, garbage
//! ```
//!
//! [`search::explore`] visits every state that the moves lead to, breadth first, and checks each
//! ([`pair::Pair`]): so the path to a broken promise is a shortest one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

pub mod fingerprint;
pub mod operations;
pub mod pair;
pub mod reliable;
pub mod search;
pub mod session;
