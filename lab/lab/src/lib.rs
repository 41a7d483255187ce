//! Sites on this machine: real daemons with their own configuration, users and ports, started,
//! watched and stopped. The demo and the end-to-end tests stand on it.
//!
//! A [`Site`] is one `mta` with its directory; a [`Pair`] is two of them that are each other's peer.
//! Every site has a loopback address of its own and ports that were free when it was made, so that
//! any number of them run side by side, whatever else listens on the machine. A site's processes
//! end with it, by their id.
//!
//! Sites can also stand in [`Namespace`]s of their own, joined by a [`Cable`] that can be shaped,
//! cut, listened to ([`Capture`]) or led over something that spoils what passes. What has to run
//! inside is the program `lab`.

pub mod analyse;
pub mod answer;
mod batch;
mod cable;
pub mod capture;
pub mod cells;
pub mod child;
pub mod client;
pub mod clock;
mod config;
mod event;
pub mod frame;
pub mod inside;
pub mod ios;
pub mod load;
mod memory;
pub mod middle;
pub mod netns;
mod ns;
mod packet_socket;
mod pair;
mod pcapng;
mod place;
pub mod policy_file;
pub mod probe;
mod programs;
#[cfg(feature = "studies")]
pub mod run;
mod site;
pub mod tc_export;
pub mod toml_file;
pub mod tool;
pub mod tun;
pub mod up;
mod usage;

pub use cable::{Addresses, Cable, End};
pub use capture::{Capture, Packet};
pub use config::{Connection, Link};
pub use event::Event;
pub use frame::Segment;
pub use memory::{Memory, processor_time};
pub use netns::{Netns, Rights};
pub use ns::{Entrance, Namespace, Unavailable};
pub use packet_socket::PacketSocket;
pub use pair::{Pair, PairBuilder};
pub use place::Place;
pub use probe::Probe;
pub use programs::Programs;
pub use site::{Client, Run, Site, SiteBuilder};
pub use usage::Usage;
