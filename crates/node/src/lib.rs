//! A whole MTA as one pure machine: engine, queue, associations and channel policy.
//!
//! The edge hands in [`Input`]s with the time and carries out [`Output`]s; see [`api`] for the
//! contract. Nothing here reads a clock, a socket, a file or a source of randomness, so the very
//! same node runs in the daemon, in virtual time and under crash tests.

mod access;
mod address_prefix;
mod admission;
mod agenda;
pub mod api;
mod arrival;
mod association;
mod blame;
mod breaks;
pub mod changes;
mod channel;
mod commits;
pub mod config;
mod configured;
pub mod connect;
mod connection_table;
mod context;
mod dispatch;
mod enqueue;
pub mod event;
mod event_draft;
mod faults;
mod initiator;
mod issued;
mod key_reservations;
mod late;
mod level;
mod levels;
mod lifecycle;
mod limits;
pub mod listing;
mod log_rate;
mod machines;
mod marks;
mod memory;
mod meter;
pub mod metrics;
pub mod minimize;
mod node;
mod numbers;
mod opening;
pub mod operator;
mod pace;
mod pending;
mod preempt;
mod queue;
mod receiving;
mod recovery;
mod refused;
mod reload;
mod reroute;
mod responder;
mod resuming;
mod schedule;
mod slices;
mod snapshot;
pub mod status;
mod tally;
mod user;
pub mod wall;
mod work;

pub use api::{ChannelId, Input, ListenerId, Output, Principal, Secret, Token};
pub use node::Node;
