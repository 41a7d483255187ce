//! A topology as it is written: hosts, routers, gateways and the links between their ports. Data
//! only; [`crate::Plan`] checks it and computes what follows from it.

mod address;
mod text;

pub use address::Address;

use dscp::Dscp;
use router::Rate;
use router::policy::{Name, Prefix, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A whole network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    /// What it is for, for people.
    pub about: String,
    /// Where packets come from and go to.
    pub hosts: BTreeMap<Name, Host>,
    /// What forwards them, each by its policy.
    pub routers: BTreeMap<Name, Router>,
    /// IP crypto: what hides packets in tunnels.
    pub gateways: BTreeMap<Name, Gateway>,
    /// The links, each between two ports.
    pub links: Vec<Link>,
}

/// A host. What it runs is the edge's affair; the network sees its ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Its ports by name; the names are those of the interfaces in its namespace.
    pub ports: BTreeMap<Name, HostPort>,
    /// Routes beside those computed, which they go before.
    pub routes: Vec<StaticRoute>,
    /// TCP congestion control of its connections; the machine's default where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Settings of its namespace by their names, all below `net.`: `"net.ipv4.tcp_sack" = 0`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, Setting>,
}

/// The value of a setting: text, written as text or as an integer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Setting(pub String);

/// A port of a host or of a gateway, which sends as fast as it likes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostPort {
    /// Its addresses, v4 and v6.
    pub addresses: Vec<Address>,
    /// Packets that may wait for the line, 1 to 100,000; what comes beyond is dropped.
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
pub struct Router {
    /// The name of its policy; absent, it forwards with a FIFO of 100 packets at each interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Name>,
    /// Its ports by name; the names are those of the interfaces in its policy.
    pub ports: BTreeMap<Name, RouterPort>,
    /// Routes beside those computed, which they go before.
    pub routes: Vec<StaticRoute>,
}

/// A port of a router; what waits for it waits in the queueing of the router's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouterPort {
    /// Its addresses, v4 and v6; it may have none.
    pub addresses: Vec<Address>,
}

/// IP crypto: what comes in at the red port goes out of the black one inside a packet to the far
/// gateway, which takes it out again. Nothing is really encrypted; lengths, headers and marks are
/// as if it were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// The plain side. ICMP answers come from its addresses.
    #[serde(default)]
    pub red: HostPort,
    /// The side of the tunnels; its first address of a family is their end.
    pub black: HostPort,
    /// Gateways it has a tunnel with, each of which must name it too; all others where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<Name>>,
    /// What the outer header is.
    #[serde(default)]
    pub outer: Outer,
    /// Octets between the outer header and the end of the packet beside the inner packet, 8 to 256:
    /// ESP's header, initialisation vector, trailer and check value.
    #[serde(default = "esp_overhead")]
    pub overhead: u16,
    /// The code point of the outer header.
    #[serde(default)]
    pub dscp: Outward,
    /// What is done with the ECN field.
    #[serde(default)]
    pub ecn: Ecn,
    /// Destinations that go to a peer other than the computed one; `via` is the peer.
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

/// Where the code point of an outer header comes from (RFC 2983 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outward {
    /// From the inner header, so that black routers can tell precedences apart.
    #[default]
    Copy,
    /// It is always this one: black routers see one behaviour aggregate.
    Fixed(Dscp),
}

/// What a tunnel does with the ECN field (RFC 6040).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecn {
    /// Copied outward, and congestion met on the way is copied inward (4.1 normal mode, 4.2).
    #[default]
    Normal,
    /// The outer header says that the transport knows no ECN (4.1 compatibility mode): black
    /// routers drop instead of marking, and nothing of the inner field is seen outside.
    Compatibility,
}

/// A route that is not computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// The destinations.
    pub to: Prefix,
    /// The port they go out of; of a gateway, the peer they go to.
    pub via: Name,
}

/// A link between two ports. All of it holds in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two ports: `["naples.lan", "sar.lan"]`.
    pub ends: [String; 2],
    /// Bits a second; absent, serialisation takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Octets that each packet takes on the line beside its own, up to 256: 14 for an Ethernet
    /// header, 38 with preamble, check sequence and gap.
    #[serde(default)]
    pub overhead: u16,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// A further delay by chance, uniform from nothing to this.
    #[serde(default)]
    pub jitter: Span,
    /// Whether jitter may change the order of packets.
    #[serde(default)]
    pub reorder: bool,
    /// The probability that a packet is lost, 0 to 1.
    #[serde(default)]
    pub loss: f64,
    /// The longest packet, in octets with its IP header.
    #[serde(default = "ethernet_mtu")]
    pub mtu: usize,
    /// Whether both directions can be in use at once.
    #[serde(default)]
    pub duplex: Duplex,
}

fn ethernet_mtu() -> usize {
    1_500
}

impl Link {
    /// A link between two ports with defaults: no rate, no delay, 1,500 octets, full duplex.
    pub fn between(one: &str, other: &str) -> Link {
        Link {
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
    /// Each has the whole rate.
    #[default]
    Full,
    /// They share it, packet for packet by turns where both have something to send.
    Half,
}
