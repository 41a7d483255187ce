//! What others may make us hold, in numbers. The names are the keys of `[limits]` in the
//! configuration, and refusals name them.

use std::time::Duration;

/// Bounds on what others can make us hold or do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Most octets of an envelope, or of a report or probe as a whole.
    pub envelope: usize,
    /// Most octets of a content.
    pub content: u64,
    /// Most octets of a content that a report made here returns; 0: none is returned.
    pub returned_content: u64,
    /// Most associations at once, of peers and users. Those we open count, but are not refused:
    /// each channel has its own bound. Users get three quarters.
    pub associations: usize,
    /// Most associations of one peer. Those we open count, but are not refused.
    pub associations_per_peer: usize,
    /// Most associations a peer may open on one channel.
    pub associations_per_channel: usize,
    /// Most associations of one user.
    pub associations_per_user: usize,
    /// Most connections from one address: IPv4, or the /64 of IPv6.
    pub associations_per_address: usize,
    /// Most connections on which nobody has bound yet. A quarter, and at least one
    /// of two or more, is kept for addresses that stand in the configuration.
    pub half_open: usize,
    /// Most of those from one address.
    pub half_open_per_address: usize,
    /// Longest time from the TCP connection to the open association, in both directions.
    pub bind_timeout: Duration,
    /// Most octets held in memory for all peers and users. Users get three quarters. Of this and the
    /// next, each higher level of messages keeps a sixteenth.
    pub memory: usize,
    /// Most octets held in memory for one peer, for the users at one address, or for one mailbox.
    pub memory_per_peer: usize,
    /// Most associations being opened by us at once, 1 or more. Of two or more, one place is for
    /// channels whose last try did not fail.
    pub opening: usize,
    /// Binds that may fail in a row from one address under one name.
    pub failures: u32,
    /// After so long one more may fail.
    pub failure_refill: Duration,
    /// Password hashes computed at once.
    pub verifications: usize,
    /// Most sockets, refusals in progress included. Not a key: the edge knows how many descriptors
    /// it has.
    pub sockets: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            envelope: 1 << 20,
            content: 4 << 30,
            returned_content: 10 << 20,
            associations: 1024,
            associations_per_peer: 256,
            associations_per_channel: 64,
            associations_per_user: 16,
            associations_per_address: 512,
            half_open: 256,
            half_open_per_address: 128,
            bind_timeout: Duration::from_secs(30),
            memory: 256 << 20,
            memory_per_peer: 64 << 20,
            opening: 8,
            failures: 5,
            failure_refill: Duration::from_secs(30),
            verifications: 2,
            sockets: usize::MAX,
        }
    }
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Of all associations.
    Associations,
    /// Of those of one peer.
    PerPeer,
    /// The places left are kept for higher levels.
    Kept,
    /// The same, of those of one peer.
    KeptOfPeer,
    /// Of those on one channel.
    PerChannel,
    /// Of those of one user.
    PerUser,
    /// Of those from one address.
    PerAddress,
    /// Of those on which nobody has bound yet.
    HalfOpen,
    /// Of these from one address.
    HalfOpenPerAddress,
    /// Of sockets.
    Sockets,
}

impl Limits {
    /// The limit in words for the log: what, how many, and the key.
    pub fn describe(&self, limit: Limit) -> String {
        let (what, most, key) = match limit {
            Limit::Kept => (
                "associations of this level or below, the rest is kept for higher ones",
                self.associations,
                "associations",
            ),
            Limit::KeptOfPeer => (
                "associations of this peer and level or below, the rest is kept for higher ones",
                self.associations_per_peer,
                "associations_per_peer",
            ),
            Limit::Associations => ("associations", self.associations, "associations"),
            Limit::PerPeer => {
                ("associations of this peer", self.associations_per_peer, "associations_per_peer")
            }
            Limit::PerChannel => (
                "associations on this channel",
                self.associations_per_channel,
                "associations_per_channel",
            ),
            Limit::PerUser => {
                ("associations of this user", self.associations_per_user, "associations_per_user")
            }
            Limit::PerAddress => (
                "connections from this address",
                self.associations_per_address,
                "associations_per_address",
            ),
            Limit::HalfOpen => ("connections without a bind", self.half_open, "half_open"),
            Limit::HalfOpenPerAddress => (
                "connections without a bind from this address",
                self.half_open_per_address,
                "half_open_per_address",
            ),
            Limit::Sockets => {
                return format!(
                    "no socket is free (most {}: the system's limit of open files)",
                    self.sockets
                );
            }
        };
        format!("too many {what} (limits.{key} = {most})")
    }
}
