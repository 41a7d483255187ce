//! The simulation: whole MTAs with their users, bulk transfers and UDP loads on the hosts of a
//! simulated network, in virtual time: hours in seconds. The same scenario with the same seed gives the
//! same results, to the nanosecond.
//!
//! ```text
//!  user ═ P3 ═ node::Node ═ Connection ═ smoltcp ── mark ──▶ network::Network ──▶ smoltcp ═ ...
//!              store            │ as the daemon's driver        lines, routers,
//!              in memory        │ holds and stops                gateways
//! ```
//!
//! The nodes, the routers and the network are those of the daemon and of `lab`. Disks, clocks and the
//! TCP of the hosts are simulated. A user's P3 passes over a pipe inside the host. P1 passes over TCP, one
//! connection for each association; its packets have the mark of the channel in both directions.
//!
//! # Differences from real hosts
//! The crate `virtual_tcp` lists the differences of TCP. Their effect: a single transfer whose window is
//! longer than a FIFO of 100 packets at 512 kbit/s gets 92 % of the line with reno and 71 % with cubic;
//! Linux gets nearly all. With a window that fits it gets 99.8 % (`tests/traffic.rs`). So
//! [`TcpSettings`] has 64 KiB. Results that schedulers decide are those of the testbed. Of results that
//! loss decides, the study `tcp-models` has measured by what factor they differ.
//!
//! Computing takes no time, and memory has no limit within the limits of scenarios. Each sync and commit
//! takes [`Scenario::disk`]; reading and appending take no time. Passwords are not verified.
//!
//! The congestion control and the settings of hosts in a topology are for real hosts.
//! [`Scenario::tcp`] is for all simulated ones.

mod load;
mod outcome;
mod path;
mod scenario;
mod sim;
mod station;

pub use outcome::probe::{ProbeRow, ProbeSeries};
pub use outcome::spread::Spread;
pub use outcome::{
    DelaySum, LOAD_INTERVAL, LoadCount, MAX_SAMPLES, SimulatedTimes, SimulationOutcome,
    TrafficCount,
};
pub use scenario::sites::{ChannelSetup, SitePlacement, sites};
pub use scenario::{
    BulkLoad, InterfaceProbe, MessageStage, ReceiverClock, Scenario, ScenarioError, SimulatedLoad,
    SimulatedMessage, SimulatedSite, SiteUser, SubmissionStart, UdpLoad, UserId,
};
pub use sim::simulated_hosts::SimulatedCapture;
pub use sim::{Sim, run};
pub use station::store::{Store, Unsound};
pub use station::user::{SimulatedUser, UserEvent, UserSubmission};
pub use virtual_tcp::{Congestion, ConnectionCount, TcpSettings, TcpUsage};
