//! Sites on this machine: real daemons with their own configuration, users and ports, started,
//! watched and stopped. The demo and the end-to-end tests stand on it.
//!
//! A [`Site`] is one `mta` with its directory; a [`Pair`] is two of them that are each other's peer.
//! Every site has a loopback address of its own and ports that were free when it was made, so that
//! any number of them run side by side, whatever else listens on the machine. A site's processes
//! end with it, by their id.

pub mod answer;
pub mod child;
pub mod clock;
mod config;
mod memory;
mod pair;
mod place;
mod programs;
mod site;

pub use config::{Connection, Link};
pub use memory::Memory;
pub use pair::{Pair, PairBuilder};
pub use place::Place;
pub use programs::Programs;
pub use site::{Run, Site, SiteBuilder};
