//! TCP in virtual time: a [`TcpHost`] takes and gives IP packets, and drives each of its connections as
//! the daemon drives its own. The simulation joins hosts by a network, a test by one line.
//!
//! ```text
//!  write, close ─▶ connection ─▶ smoltcp ─▶ mark, count ─▶ packets
//!  events       ◀─            ◀─         ◀─ segment size ◀─ receive
//! ```
//!
//! Time and the seed of the sequence numbers are arguments.
//!
//! # Differences from the TCP of Linux
//! The study `tcp-models` measures what they come to (docs/studies.md).
//!
//! - **No selective acknowledgement at the sender.** Fast retransmit (RFC 5681) repairs one lost
//!   segment. Of several segments lost in one window, the second waits for the retransmission timer, and
//!   then TCP sends everything from there again.
//! - **The retransmission timer is at least 1 s** (RFC 6298 2.4); on Linux 200 ms.
//! - **The initial window is 2,048 octets** and cannot be set, one full segment and a part; on Linux ten
//!   segments (RFC 6928). On an idle line of 512 kbit/s this costs about three round trips for each new
//!   connection. So a host with an initial window of two segments, as of 2007, is what every simulation has.
//! - Congestion control is reno or cubic (RFC 9438). There is no bbr, no explicit congestion
//!   notification, no pacing, no tail loss probe. The window is not validated after idle times, as with
//!   Linux's `tcp_slow_start_after_idle = 0`.
//! - Packets have timestamps (RFC 7323) for their length only; all have the same value.
//! - The maximum segment size follows from the whole path's MTU at once. Path MTU discovery would
//!   find it after the first loss.

mod connection;
mod device;
mod host;
mod segment;
mod settings;
#[cfg(test)]
mod tests;

pub use connection::MAX_UNSENT;
pub use host::{ConnectionId, HostEvent, TcpHost};
pub use segment::{ConnectionCount, TcpUsage};
pub use settings::{Congestion, TcpSettings};
