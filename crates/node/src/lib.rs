//! A whole MTA as one pure machine: engine, queue, associations and channel policy.
//!
//! The edge hands in [`Input`]s with the time and carries out [`Output`]s; see [`api`] for the
//! contract. Nothing here reads a clock, a socket, a file or a source of randomness, so the very
//! same node runs in the daemon, in virtual time and under crash tests.
//!
//! [`Node`] composes machines that own their state: admission (connections and binds), arrivals
//! (reception to commit), outbound (channels, transfers and what is queued), delivery (users),
//! stores (the mailboxes of the message store) and operations (what an operator orders). What all of them read is the context. A machine calls no
//! other: what one gives to another, and what concerns several, goes through the node.

mod admission;
mod arrivals;
mod commits;
mod context;
mod delivery;
mod node;
mod operations;
mod outbound;
mod queue;
mod stores;
mod views;

pub(crate) use ::association;
pub use ::association::kept_sends::SENDING;
pub use ::settings as config;
pub use ::status;
pub use api::{Input, Output, channel_order, connect, event, lists, operator, shards, site_orders};
pub use config::changes;
pub use engine::space::DiskSpace;
pub use error::{CommitError, EdgeError, PasswordProblem, ReadError};
pub use guard::Secret;
pub use ids::{ListenerId, Principal, Token};
pub use mailbox;
pub use node::Node;
pub use node_api::api;
pub use node_api::api::mailbox_view;
pub use node_api::queue::filter;
pub(crate) use node_api::{error, ids, log};
pub use scheduler::ChannelId;
pub use scheduler::wall;
pub use views::{listing, metrics, minimize, names};
