//! What a configuration file means: the node's part and the edge's.

use super::value::Remote;
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
    /// Where files live and how a stop is bounded.
    pub paths: Paths,
    /// Longest wait for the node to stop.
    pub stop_timeout: Duration,
    /// Where events about messages are kept, if they are.
    pub events: Option<EventLog>,
    /// Where Prometheus reads, if it does.
    pub metrics: Option<SocketAddr>,
    /// For the node. Mailboxes, seed and epoch are filled in at start.
    pub node: NodeConfig,
    /// Sockets to listen on, one for each of [`NodeConfig::listeners`].
    pub listeners: Vec<ListenSocket>,
    /// Sockets to connect from.
    pub channels: BTreeMap<ChannelId, ChannelSocket>,
    /// What each peer must present, by its identifier.
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

/// What numbers channels and listeners have: a channel is known by its peer and its name, a listener
/// by its address and what its socket is set to.
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
    /// The file written to; older ones have `.1` (the youngest), `.2` and so on behind its name.
    pub path: PathBuf,
    /// Octets at which another file is begun.
    pub size: u64,
    /// How many older files are kept.
    pub keep: u64,
}

/// Where the daemon keeps its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Queue, bodies, users.
    pub data_dir: PathBuf,
    /// The admin socket.
    pub admin_socket: PathBuf,
}

impl Paths {
    /// The users with a mailbox here.
    pub fn users_file(&self) -> PathBuf {
        self.data_dir.join("users.toml")
    }
}

/// What a socket is set to before it connects or listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tcp {
    /// The mark of every packet.
    pub dscp: Dscp,
    /// Name of a congestion control, or the system's.
    pub congestion: Option<String>,
    /// TCP_USER_TIMEOUT: longest wait for an acknowledgement of what was sent, and for any sign of
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
    /// Where.
    pub address: SocketAddr,
    /// Options; accepted connections have them too.
    pub tcp: Tcp,
    /// For log and tables: the peer and channel, or `p3`.
    pub label: String,
}

/// How connections of a channel are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSocket {
    /// Where to.
    pub remote: Remote,
    /// Options.
    pub tcp: Tcp,
    /// Longest wait for a connection, for each address of the host.
    pub connect_timeout: Duration,
    /// For log and tables: the peer and channel.
    pub label: String,
}
