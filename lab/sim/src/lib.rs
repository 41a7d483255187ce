//! The simulation: whole MTAs with their users, bulk transfers and UDP loads on the hosts of a
//! simulated network, in virtual time, hours in seconds. The same scenario with the same seed gives
//! the same outcome, to the nanosecond.
//!
//! ```text
//!  user ═ P3 ═ node::Node ═ Connection ═ smoltcp ── mark ──▶ network::Network ──▶ smoltcp ═ ...
//!              store            │ as the daemon's driver        lines, routers,
//!              in memory        │ holds and stops                gateways
//! ```
//!
//! The nodes, the routers and the network are those of the daemon and of `lab`; what is simulated
//! are disks, clocks, and the hosts' TCP. A user's P3 goes over a pipe inside the host; P1 goes over
//! TCP, one connection for each association, marked as its channel says, both ways.
//!
//! # What differs from real hosts
//! TCP is smoltcp's, which congests and recovers as follows:
//! - **No selective acknowledgement at the sender.** One lost segment is repaired by fast retransmit
//!   (RFC 5681); of several lost in one window, the second waits for the retransmission timer, and
//!   then everything from there is sent again. A lone transfer whose window is longer than a FIFO of
//!   100 packets at 512 kbit/s has 92 % of the line with reno and 71 % with cubic, where Linux has
//!   nearly all; with a window that fits, 99.8 % (`tests/traffic.rs`). So [`Tcp`] has 64 KiB.
//! - **The retransmission timer is at least 1 s** (RFC 6298 2.4); Linux has 200 ms.
//! - **The initial window is 2,048 octets** and cannot be set; Linux has ten segments (RFC 6928).
//!   On an idle line of 512 kbit/s that costs about three round trips for each new connection.
//! - There is reno and cubic (RFC 9438), no bbr; no explicit congestion notification, no pacing, no
//!   tail loss probes. The window is not validated after idle times, as with Linux's
//!   `tcp_slow_start_after_idle = 0`.
//! - Timestamps (RFC 7323) are in the packets for their length, and say nothing.
//! - The maximum segment size follows from the whole path's MTU at once, as path MTU discovery would
//!   have it after the first loss.
//!
//! So what schedulers decide comes out as on the testbed, and what loss decides within a factor of
//! about two. Computing takes no time, and memory is without limits, as far as scenarios go.
//!
//! What a topology says of its hosts' congestion control and settings is for real hosts;
//! [`Scenario::tcp`] holds for all simulated ones.
//!
//! Disks: each sync and commit takes [`Scenario::disk`]; reading and appending take none. Passwords
//! are believed.

mod host;
mod load;
mod outcome;
mod path;
mod scenario;
mod sim;
mod station;

pub use host::tcp::{ConnectionCount, Usage};
pub use outcome::probe::{ProbeRow, Series};
pub use outcome::spread::Spread;
pub use outcome::{LOAD_INTERVAL, LoadCount, MAX_SAMPLES, Outcome, Sum, Times, Traffic};
pub use scenario::sites::{ChannelSetup, Place, sites};
pub use scenario::{
    Bulk, Clock, Congestion, Error, Load, Message, Probe, Scenario, Site, SiteUser, Stage, Start,
    Tcp, Udp, UserId,
};
pub use sim::simulated_hosts::Captured;
pub use sim::{Sim, run};
pub use station::store::{Store, Unsound};
pub use station::user::{Submission, User, UserEvent};
