//! Settings of a host's TCP.

use std::time::Duration;

/// Settings of a host's TCP, for all its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// The congestion control.
    pub congestion: Congestion,
    /// Octets that may be unacknowledged or wait to be sent, 4 KiB to 16 MiB.
    pub send_buffer: usize,
    /// Octets that may arrive before they are read, 4 KiB to 16 MiB: the largest window.
    pub receive_buffer: usize,
    /// Nagle's algorithm (RFC 896): less than a full segment waits until all that was sent is
    /// acknowledged.
    pub nagle: bool,
    /// How long an acknowledgement may wait for another segment; `None`: it does not wait.
    pub delayed_ack: Option<Duration>,
    /// Whether segments have timestamps, 12 octets each.
    pub timestamps: bool,
    /// The longest time for the handshake.
    pub connect_timeout: Duration,
    /// The longest silence of a peer that must acknowledge something; then the connection is lost. An
    /// idle peer is asked after a quarter of it.
    pub dead_after: Duration,
    /// Octets that TCP takes beyond those it has sent (TCP_NOTSENT_LOWAT). All others wait above it,
    /// where a transfer of higher precedence can still go first.
    pub not_sent: usize,
}

impl TcpSettings {
    /// The first congestion window of every connection in octets, as smoltcp has it: two segments of
    /// 1,024 octets. It cannot be set.
    pub const INITIAL_WINDOW: usize = 2_048;
}

impl Default for TcpSettings {
    /// As on Linux and in the daemon, as far as smoltcp has it. The window is smaller: smoltcp repairs
    /// slowly what is lost because a larger window fills the queue.
    fn default() -> TcpSettings {
        TcpSettings {
            congestion: Congestion::Cubic,
            send_buffer: 512 << 10,
            receive_buffer: 64 << 10,
            nagle: false,
            delayed_ack: Some(Duration::from_millis(40)),
            timestamps: true,
            connect_timeout: Duration::from_secs(10),
            dead_after: Duration::from_secs(60),
            not_sent: 32 << 10,
        }
    }
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
}
