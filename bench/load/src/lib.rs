//! Load for the benches: many P3 users in one thread, each a real association to a real MTA, that
//! submit canned messages as fast as they are accepted, and receive and keep what is delivered.
//!
//! Submission and delivery are stamped by one clock. Every content that arrives is compared with
//! what was sent; every delivery is on the disk before it is confirmed.

mod delivery_file;
mod login;
mod relay;
mod summary;

pub use login::Login;
pub use relay::{Outcome, Plan, run};
pub use summary::Summary;
