//! A topology as written: hosts, routers, gateways and the links between their ports. Data only;
//! [`crate::NetworkPlan`] checks it and computes the rest.

mod address;
mod text;

pub use address::Address;

use dscp::Dscp;
use router::Rate;
use router::policy::{IpPrefix, Name, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A laboratory network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a topology")]
pub struct Topology {
    /// A description for people.
    pub about: String,
    /// Hosts, which send and receive packets.
    pub hosts: BTreeMap<Name, TopologyHost>,
    /// Routers, each with its policy.
    pub routers: BTreeMap<Name, TopologyRouter>,
    /// IP crypto gateways, which send packets through tunnels.
    pub gateways: BTreeMap<Name, TopologyGateway>,
    /// The links, each between two ports.
    pub links: Vec<TopologyLink>,
}

/// A host. The edge runs its programs; the network has only its ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of a host")]
pub struct TopologyHost {
    /// Its ports by name. The names are those of the interfaces in its namespace.
    pub ports: BTreeMap<Name, HostPort>,
    /// Static routes; they precede the computed ones.
    pub routes: Vec<StaticRoute>,
    /// TCP congestion control of its connections; if absent, the machine's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Settings (sysctls) of its namespace by name, all below `net.`: `"net.ipv4.tcp_sack" = 0`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, Setting>,
}

/// The value of a setting as text. TOML may have text or an integer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Setting(pub String);

/// A port of a host or of a gateway, which is not paced by the line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of a host's port")]
pub struct HostPort {
    /// Its addresses, IPv4 and IPv6.
    pub addresses: Vec<Address>,
    /// Packets that can wait for the line, 1 to 100,000. Further packets are dropped.
    pub queue: usize,
}

impl Default for HostPort {
    fn default() -> HostPort {
        HostPort { addresses: Vec::new(), queue: 1_000 }
    }
}

/// A router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of a router")]
pub struct TopologyRouter {
    /// The name of its policy; if absent, it forwards with a FIFO of 100 packets at each interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Name>,
    /// Its ports by name. The names are those of the interfaces in its policy.
    pub ports: BTreeMap<Name, RouterPort>,
    /// Static routes; they precede the computed ones.
    pub routes: Vec<StaticRoute>,
}

/// A port of a router. Its packets wait in the queueing of the router's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of a router's port")]
pub struct RouterPort {
    /// Its addresses, IPv4 and IPv6; there may be none.
    pub addresses: Vec<Address>,
}

/// An IP crypto gateway. It encapsulates packets from the red port and sends them by the black port
/// to the far gateway, which decapsulates them. The payload is not encrypted; lengths, headers and
/// marks are as if it were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a gateway")]
pub struct TopologyGateway {
    /// The side of plain packets. ICMP answers have its addresses as source.
    #[serde(default)]
    pub red: HostPort,
    /// The side of the tunnels. Its first address of a family is their end.
    pub black: HostPort,
    /// Gateways that it has tunnels with; each must name it too. If absent, all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<Name>>,
    /// The version of the outer header.
    #[serde(default)]
    pub outer: Outer,
    /// Octets that encapsulation adds to the inner packet, without the outer header, 8 to 256: ESP
    /// header, initialisation vector, trailer and check value.
    #[serde(default = "esp_overhead")]
    pub overhead: u16,
    /// The DSCP of the outer header.
    #[serde(default)]
    pub dscp: Outward,
    /// The handling of the ECN field.
    #[serde(default)]
    pub ecn: Ecn,
    /// Destinations that go to another peer than the computed one; `via` is the peer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}

/// ESP with AES-CBC and HMAC-SHA1-96 (RFC 3602, RFC 2404): header 8, initialisation vector 16,
/// trailer 2, check value 12; padding, 0 to 15 octets, is not counted.
fn esp_overhead() -> u16 {
    38
}

/// The version of a tunnel's outer header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outer {
    /// IPv4: 20 octets.
    #[default]
    V4,
    /// IPv6: 40 octets.
    V6,
}

/// The source of the DSCP of an outer header (RFC 2983 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outward {
    /// The inner header, so that black routers distinguish precedences.
    #[default]
    Copy,
    /// A fixed DSCP, so that black routers see one behaviour aggregate.
    Fixed(Dscp),
}

/// The handling of the ECN field by a tunnel (RFC 6040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecn {
    /// Copied outward; congestion on the path is copied inward (4.1 normal mode, 4.2).
    #[default]
    Normal,
    /// The outer header is Not-ECT (4.1 compatibility mode): black routers drop instead of marking,
    /// and the inner field is not visible outside.
    Compatibility,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a route")]
pub struct StaticRoute {
    /// The destination prefix.
    pub to: IpPrefix,
    /// The output port; for a gateway, the peer.
    pub via: Name,
}

/// A link between two ports. Its properties hold in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a link")]
pub struct TopologyLink {
    /// The two ports: `["naples.lan", "sar.lan"]`.
    pub ends: [String; 2],
    /// The rate in bits a second; if absent, serialisation takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Octets that the line adds to each packet, up to 256: 14 for an Ethernet header, 38 with
    /// preamble, check sequence and gap.
    #[serde(default)]
    pub overhead: u16,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// Additional random delay, uniformly distributed from 0 to this.
    #[serde(default)]
    pub jitter: Span,
    /// Whether jitter may change the order of packets.
    #[serde(default)]
    pub reorder: bool,
    /// The probability that a packet is lost, 0 to 1.
    #[serde(default)]
    pub loss: f64,
    /// The MTU: the longest packet in octets, IP header included.
    #[serde(default = "ethernet_mtu")]
    pub mtu: usize,
    /// Whether both directions can be in use at the same time.
    #[serde(default)]
    pub duplex: Duplex,
}

fn ethernet_mtu() -> usize {
    1_500
}

impl TopologyLink {
    /// A link between two ports with the defaults: no rate, no delay, 1,500 octets, full duplex.
    pub fn between(one: &str, other: &str) -> TopologyLink {
        TopologyLink {
            ends: [one.to_owned(), other.to_owned()],
            rate: None,
            overhead: 0,
            delay: Span::default(),
            jitter: Span::default(),
            reorder: false,
            loss: 0.0,
            mtu: ethernet_mtu(),
            duplex: Duplex::Full,
        }
    }
}

/// Whether a link's directions are independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// Full duplex: each direction has the whole rate.
    #[default]
    Full,
    /// Half duplex: the directions share the rate, and take turns packet by packet while both have
    /// packets.
    Half,
}
