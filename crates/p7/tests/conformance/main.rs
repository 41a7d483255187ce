//! P7 against what is not ours: the vectors of `tests/vectors/p7`, and tshark as an independent reader.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod association;
mod decoded;
mod operations;
mod shown;
mod tshark;
mod vector;
