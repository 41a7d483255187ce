//! Sites on this machine: real daemons with their own configuration, users and ports, started,
//! watched and stopped. The demo, the end-to-end tests and the benchmarks use it.
//!
//! A [`Site`] is one `mta` with its directory; a [`Pair`] is two of them that are each other's peer.
//! Every site has its own loopback address, and ports that were free when it was made. So any number
//! of sites run side by side, whatever else listens on the machine. The processes of a site end with
//! it, by their id.
//!
//! Sites can also have their own [`Namespace`]s, joined by a [`Cable`]. A cable can be shaped, cut,
//! captured ([`Capture`]), or led over a device that clears marks. The program `lab` runs inside the
//! namespaces.

pub mod clock;
mod net;
mod process;
mod site;

pub use net::cable::{Addresses, Cable, CableEnd};
pub use net::capture::{Capture, CapturedSegment};
pub use net::frame::TcpSegment;
pub use net::location::SiteLocation;
pub use net::netns::{Netns, Rights};
pub use net::ns::{Entrance, Namespace, Unavailable};
pub use net::packet_socket::PacketSocket;
pub use net::probe::MachineProbe;
pub use net::{batch, capture, frame, middle, netns, ns, packet_socket, probe, tun};
pub use process::programs::Programs;
pub use process::{child, tool};
pub use site::config::{ChannelAddresses, ConnectionPolicy, PeerConfig, PeerSettings};
pub use site::event::DaemonEvent;
pub use site::memory::{ProcessMemory, processor_time};
pub use site::pair::{Pair, PairBuilder};
pub use site::status_reader::StatusReader;
pub use site::{ProgramOutput, RunningClient, Site, SiteBuilder};
pub use site::{answer, config, password};
