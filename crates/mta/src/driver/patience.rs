//! How long TCP waits for a peer that takes little.
//!
//! The kernel ends a connection when octets stayed unacknowledged for the user timeout. While the
//! peer's window is shut it counts from the first probe on, and begins anew only once the window has
//! room for a whole buffer: a peer that reads slowly, a little all the time, would be given up in the
//! midst of it. So while a connection makes progress in this way, the kernel is told to wait.

use base::Instant;
use std::time::Duration;
use tokio::net::TcpStream;

/// Between two looks at all connections.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// The user timeout while there is progress: longer than any look is late.
const LONG: Duration = Duration::from_hours(24);

/// With segments on their way, the kernel takes the time without an answer itself, and has to know
/// the true limit soon enough for its last retransmissions: after this part of it.
const EARLY: u32 = 8;

/// What is known of one connection.
pub(super) struct Patience {
    /// The user timeout it was made with; `None` where it has none.
    limit: Option<Duration>,
    taken: u64,
    /// When more was taken, or nothing waited.
    since: Option<Instant>,
    long: bool,
}

impl Patience {
    pub(super) fn of(stream: &TcpStream) -> Patience {
        let limit = socket2::SockRef::from(stream).tcp_user_timeout().ok().flatten();
        Patience { limit, taken: 0, since: None, long: false }
    }

    /// Sets the user timeout by what the peer took since the last look.
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
