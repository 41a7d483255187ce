//! A checked configuration: the node's part and the edge's.

use crate::section::store::engine::StoreEngine;
use crate::value::Remote;
use base::PeerId;
use dscp::Dscp;
use node::config::{NodeConfig, Numbers};
use node::{ChannelId, ListenerId, Secret};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Site {
    /// File locations.
    pub paths: Paths,
    /// Longest wait for the node to stop.
    pub stop_timeout: Duration,
    /// Octets on the disk of the data directory below which lower precedences are refused; absent: a
    /// twentieth of the disk, within 16 MiB and 1 GiB.
    pub disk_reserve: Option<u64>,
    /// The event log of messages, if enabled.
    pub events: Option<EventLog>,
    /// Octets of tracked events, at most; `None` where no message is tracked.
    pub tracking: Option<u64>,
    /// The listener for Prometheus, if enabled.
    pub metrics: Option<SocketAddr>,
    /// Where the queue is.
    pub engine: StoreEngine,
    /// For the node. Mailboxes, seed and epoch are filled in at start.
    pub node: NodeConfig,
    /// Sockets to listen on, one for each of [`NodeConfig::listeners`].
    pub listeners: Vec<ListenSocket>,
    /// Sockets to connect from.
    pub channels: BTreeMap<ChannelId, ChannelSocket>,
    /// The password each peer must present, by peer number.
    pub expected: BTreeMap<PeerId, Secret>,
    /// The numbers of channels and listeners.
    pub numbering: Numbering,
}

impl Site {
    /// The socket of this listener.
    pub fn listener(&self, id: ListenerId) -> Option<&ListenSocket> {
        self.listeners.iter().find(|socket| socket.id == id)
    }
}

/// The numbers of channels and listeners: a channel is identified by its peer and its name, a
/// listener by its address and its socket options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// [`node::config::Channel::index`].
    pub channels: Numbers<(PeerId, String)>,
    /// [`ListenerId`].
    pub listeners: Numbers<(SocketAddr, Tcp)>,
}

/// The event log of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLog {
    /// The current file; older ones have the suffixes `.1` (the newest), `.2` and so on.
    pub path: PathBuf,
    /// Octets at which the file is rotated.
    pub size: u64,
    /// The number of older event log files that are kept.
    pub keep: u64,
}

/// The directory and the socket of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Queue, bodies, users.
    pub data_dir: PathBuf,
    /// The admin socket.
    pub admin_socket: PathBuf,
}

impl Paths {
    /// What happened to messages.
    pub fn tracking(&self) -> PathBuf {
        self.data_dir.join("tracking")
    }

    /// The users with a mailbox here.
    pub fn users_file(&self) -> PathBuf {
        self.data_dir.join("users.toml")
    }
}

/// Socket options, set before connect or listen.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tcp {
    /// The DSCP of every packet.
    pub dscp: Dscp,
    /// Name of a congestion control algorithm; `None` for the system's default.
    pub congestion: Option<String>,
    /// TCP_USER_TIMEOUT: longest wait for an acknowledgement of sent data, and for any segment of
    /// an idle peer.
    pub user_timeout: Duration,
    /// TCP_KEEPIDLE: idle time before the first keepalive probe.
    pub keepalive: Duration,
}

/// A socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenSocket {
    /// Its number.
    pub id: ListenerId,
    /// The local address.
    pub address: SocketAddr,
    /// Options; accepted connections inherit them.
    pub tcp: Tcp,
    /// For log and tables: the peer and channel, or `p3`.
    pub label: String,
}

impl ChannelSocket {
    /// Where the peer is, in the order in which it is tried.
    pub fn remotes(&self) -> impl Iterator<Item = &Remote> {
        std::iter::once(&self.remote).chain(&self.others)
    }
}

/// The remote end of a channel's connections, and their options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSocket {
    /// The remote host and port.
    pub remote: Remote,
    /// Where else the peer is, tried in this order.
    pub others: Vec<Remote>,
    /// Options.
    pub tcp: Tcp,
    /// Longest wait for a connection, per address of the host.
    pub connect_timeout: Duration,
    /// For log and tables: the peer and channel.
    pub label: String,
}
