//! The durable queue of a site with several nodes: PostgreSQL behind the trait of the store.
mod bodies;
mod cluster;
mod durability;
mod edge;
mod failure;
mod group;
mod link;
mod numbers;
mod options;
mod pool;
mod prepare;
mod queue;
mod reads;
mod spools;

mod sums;
mod target;
mod tls;
mod verify;
mod watch;

pub use durability::{Durability, Settings, Standby};
pub use options::{Options, SCHEMA, Site};
pub use prepare::{Prepared, VERSION, prepare};
pub use queue::PostgresStore;
pub use target::role;
