//! A scenario: the network, the MTAs and users on it, and what they send when.

pub(crate) mod check;
pub(crate) mod sites;

use base::Precedence;
use dscp::Dscp;
use network::Topology;
use node::config::NodeConfig;
use node::{ChannelId, ListenerId};
use router::policy::{KeyFault, Name, RouterPolicy};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use virtual_tcp::TcpSettings;

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// The policies its routers name.
    pub policies: BTreeMap<Name, RouterPolicy>,
    /// The MTAs.
    pub sites: Vec<SimulatedSite>,
    /// The messages, in the order in which those of the same moment are submitted.
    pub messages: Vec<SimulatedMessage>,
    /// The loads beside the messages.
    pub loads: Vec<SimulatedLoad>,
    /// The TCP of all hosts.
    pub tcp: TcpSettings,
    /// The duration of a sync or a commit of a site's store.
    pub disk: Duration,
    /// Decides loss, jitter, random drops, sequence numbers and backoff.
    pub seed: u64,
    /// When it ends at the latest, from the beginning.
    pub until: Duration,
    /// The router interfaces whose traffic is recorded over time.
    pub probes: Vec<InterfaceProbe>,
}

/// An MTA on a host.
#[derive(Clone, Debug)]
pub struct SimulatedSite {
    /// A host of the topology.
    pub host: Name,
    /// The address it connects from and listens at: one of the host's.
    pub address: IpAddr,
    /// The MTA. A listener of P3 is for its users, and needs no port.
    pub config: NodeConfig,
    /// Where its channels connect to. A channel that is not here cannot be opened from here.
    pub connects: BTreeMap<ChannelId, SocketAddr>,
    /// The ports its P1 listeners listen at. A listener's mark is that of its channel.
    pub listens: BTreeMap<ListenerId, u16>,
    /// The users that bind to it.
    pub users: Vec<SiteUser>,
}

/// A user of an MTA, who binds at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteUser {
    /// His O/R address, one of the MTA's mailboxes.
    pub address: String,
    /// Whether he takes deliveries.
    pub delivery: bool,
}

/// A user: the place of his site, and his among its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserId {
    /// Place in [`Scenario::sites`].
    pub site: usize,
    /// Place in [`SimulatedSite::users`].
    pub user: usize,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedMessage {
    /// The name to show.
    pub name: String,
    /// The user that submits it.
    pub from: UserId,
    /// The O/R address of its recipient.
    pub to: String,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of its content.
    pub size: u64,
    /// The time or the event after which it is submitted.
    pub start: SubmissionStart,
}

/// The start of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionStart {
    /// So long after the beginning.
    At(Duration),
    /// So long after another message got somewhere.
    After {
        /// Its place in [`Scenario::messages`].
        message: usize,
        /// The stage that the other message must have reached.
        stage: MessageStage,
        /// The time between that stage and the submission.
        delay: Duration,
    },
}

/// A moment in the life of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageStage {
    /// The submission was answered.
    Accepted,
    /// The first transfer from its first MTA began.
    Started,
    /// Its recipient has all of it.
    Delivered,
}

/// Traffic beside the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatedLoad {
    /// Datagrams at a rate, without regard to losses.
    Udp(UdpLoad),
    /// A TCP connection that sends as much as it can, or is let.
    Tcp(BulkLoad),
}

/// A stream of UDP datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpLoad {
    /// The name to show.
    pub name: String,
    /// The host that sends.
    pub from: Name,
    /// The source address; the host's first one of the destination's family where absent. It need
    /// not be one of the host's.
    pub source: Option<IpAddr>,
    /// Address and port of the receiver; the address is one of a host's.
    pub to: SocketAddr,
    /// Bits a second, of whole IP packets.
    pub rate: u64,
    /// Octets of payload, 16 or more.
    pub payload: usize,
    /// The mark.
    pub dscp: Dscp,
    /// From when.
    pub start: Duration,
    /// Until when; to the end where absent.
    pub stop: Option<Duration>,
    /// How far a datagram may be from its moment, either way, as a share of the time between two: 0
    /// to 0.5. It keeps loads from locking into the phase of others (0.2 is a good value).
    pub jitter: f64,
    /// Whether each datagram is sent back by the host it comes to, with the mark it came with. What
    /// is counted as received is then what came back.
    pub echo: bool,
    /// The clock of the receiver beside that of the sender.
    pub clock: ReceiverClock,
    /// Whether what each datagram took is kept.
    pub keeps: bool,
}

/// A clock beside another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverClock {
    /// So many nanoseconds ahead at the beginning.
    pub ahead: f64,
    /// So much faster: 0.000001 gains a microsecond a second.
    pub faster: f64,
}

impl ReceiverClock {
    /// How far it is ahead so many nanoseconds after the beginning.
    pub fn ahead_at(self, nanos: u64) -> i64 {
        (self.ahead + self.faster * nanos as f64) as i64
    }
}

/// A TCP connection that carries octets one way.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkLoad {
    /// The name to show.
    pub name: String,
    /// The host that connects and sends.
    pub from: Name,
    /// Where to: an address of some host, and a port that nothing else there listens at.
    pub to: SocketAddr,
    /// The mark, of both directions.
    pub dscp: Dscp,
    /// How many octets; until `stop` where absent.
    pub octets: Option<u64>,
    /// Most octets of payload a second, times eight.
    pub rate: Option<u64>,
    /// Most octets of payload in a segment, where it is less than the path permits.
    pub segment: Option<u16>,
    /// From when.
    pub start: Duration,
    /// Until when at most: what was not sent by then is not sent.
    pub stop: Option<Duration>,
}

/// What is recorded: the packets that pass an interface of a router, and those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceProbe {
    /// The router.
    pub router: Name,
    /// Its interface.
    pub interface: Name,
    /// A row for each of these, 1 ms or longer.
    pub interval: Duration,
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Part of it is invalid; the path names the part.
    #[error("the scenario's {0}")]
    Scenario(KeyFault),
    /// Its topology or a policy is invalid.
    #[error("the network: {0}")]
    Network(KeyFault),
    /// A node requested an impossible change of its store: a fault of the node or of this crate.
    #[error("site {site}: {what}")]
    Broken {
        /// Place in [`Scenario::sites`].
        site: usize,
        /// The fault, as a sentence.
        what: String,
    },
}
