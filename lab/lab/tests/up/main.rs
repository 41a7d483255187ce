//! `lab up` and the verbs that speak to it, on networks in namespaces of their own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helper may fail as the test itself"
)]

mod files;
mod imported;
mod life;
mod shares;
mod shipped;
mod support;
mod traffic;
