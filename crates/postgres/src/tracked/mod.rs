//! What the nodes of a site tracked of messages: copied here from their files, and found by all.
//! The tables are in `migrations/0005_tracking.sql`; what events and pages are is in the crate `tracking`.
//!
//! Both ends have connections of their own: neither a commit nor a lease waits for them.

mod archive;
mod events;
mod view;

pub use archive::TrackedArchive;
pub use events::{Own, TrackedEvents};
pub use view::{site_events, track};

use crate::connection::edge::Edge;
use crate::connection::pool::Pool;
use crate::connection::target::Target;
use crate::options::Options;
use std::sync::Arc;
use store::StoreError;

/// A connection of its own to a store, made when it is needed.
fn connection(url: &str, options: &Options) -> Result<(Pool, Arc<Edge>), StoreError> {
    let target = Arc::new(Target::parse(url, options)?);
    let io = |e| StoreError::Io { doing: "opening what was tracked", source: Arc::new(e) };
    let edge = Arc::new(Edge::start().map_err(io)?);
    Ok((Pool::new(&edge, &target, 1), edge))
}
