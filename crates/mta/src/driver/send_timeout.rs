//! The TCP user timeout of connections whose peer reads slowly.
//!
//! The kernel ends a connection when octets stay unacknowledged for the user timeout. With a
//! closed window it counts from the first window probe, and starts again only when the window has
//! room for a whole buffer. It would therefore end a connection whose peer reads slowly but
//! steadily. While such a connection makes progress, the user timeout is raised.

use base::Instant;
use std::time::Duration;
use tokio::net::TcpStream;

/// Interval between two checks of all connections.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// The user timeout during progress: longer than any delay of a check.
const LONG: Duration = Duration::from_hours(24);

/// With segments in flight, the kernel itself measures the time without an acknowledgement, and
/// must have the true limit in time for its last retransmissions: after this fraction of the
/// limit.
const EARLY: u32 = 8;

/// The state of one connection.
pub(super) struct SendTimeout {
    /// The configured user timeout; `None` where there is none.
    limit: Option<Duration>,
    taken: u64,
    /// When progress was last seen, or nothing was waiting.
    since: Option<Instant>,
    long: bool,
}

impl SendTimeout {
    pub(super) fn new(stream: &TcpStream) -> SendTimeout {
        let limit = socket2::SockRef::from(stream).tcp_user_timeout().ok().flatten();
        SendTimeout { limit, taken: 0, since: None, long: false }
    }

    /// Sets the user timeout by the progress since the last check.
    pub(super) fn look(&mut self, now: Instant, stream: &TcpStream) {
        let Some(limit) = self.limit else { return };
        let Some(sending) = dscp::socket::sending(stream) else { return };
        let waits = sending.in_flight > 0 || sending.unsent > 0;
        if self.since.is_none() || sending.taken != self.taken || !waits {
            (self.taken, self.since) = (sending.taken, Some(now));
        }
        let without = self.since.map_or(Duration::ZERO, |since| now.since(since));
        let most = if sending.in_flight > 0 { limit / EARLY } else { limit };
        let long = waits && without < most;
        if long == self.long {
            return;
        }
        let timeout = if long { LONG } else { limit };
        match socket2::SockRef::from(stream).set_tcp_user_timeout(Some(timeout)) {
            Ok(()) => self.long = long,
            Err(error) => tracing::debug!(%error, "the user timeout cannot be set"),
        }
    }
}
