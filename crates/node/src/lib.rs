//! A whole MTA as one pure machine: engine, queue, associations and channel policy.
//!
//! The edge hands in [`Input`]s with the time and carries out [`Output`]s; see [`api`] for the
//! contract. Nothing here reads a clock, a socket, a file or a source of randomness, so the very
//! same node runs in the daemon, in virtual time and under crash tests.

pub mod api;
mod arrival;
mod channel;
pub mod config;
pub mod event;
mod initiator;
mod link;
mod node;
mod pending;
mod queue;
mod receiving;
mod recovery;
mod report;
mod responder;
pub mod status;
mod user;

pub use api::{ChannelId, Input, ListenerId, Output, Principal, Secret, Token};
pub use node::Node;
