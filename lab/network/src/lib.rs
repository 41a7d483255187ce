//! A laboratory network as one machine without a clock: ports of hosts, lines, routers and IP
//! crypto gateways, built from a [`Topology`].
//!
//! ```text
//!  host ─▶ queue ─▶ line ─▶ router ─▶ line ─▶ gateway ─▶ line ─▶ ... ─▶ line ─▶ host
//!                   rate, delay, jitter,      encapsulates,
//!                   loss, half duplex         marks outward
//! ```
//!
//! A [`NetworkPlan`] is a topology checked and computed: indexes instead of names, and the routes of every
//! node. Time and seeds are arguments.

mod agenda;
mod api;
pub mod gateway;
pub mod line;
mod machine;
pub mod plan;
pub mod topology;

pub use api::{HostId, Input, Output, TapDirection};
pub use machine::NetworkMachine;
pub use plan::{NetworkPlan, NodeKind, PortId, Tunnel};
pub use topology::Topology;
