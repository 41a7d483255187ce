//! A topology checked and computed: indexes instead of names, and the routes of every node.

mod check;
mod route;
pub(crate) mod tunnel;

pub use tunnel::Tunnel;

use crate::topology::{Address, Link, Topology};
use router::policy::{Name, Prefix, Wrong};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Nodes at most: hosts, routers and gateways together.
pub const MAX_NODES: usize = 256;
/// Links at most.
pub const MAX_LINKS: usize = 1_024;
/// Ports of a node at most.
pub const MAX_PORTS: usize = 64;
/// Addresses of a port at most.
pub const MAX_ADDRESSES: usize = 8;
/// Static routes of a node at most.
pub const MAX_ROUTES: usize = 256;

/// A port of the network: the position of its node, and its position among the node's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId {
    /// The position of the node in [`Plan::nodes`].
    pub node: usize,
    /// The position of the port in its node's `ports`.
    pub port: usize,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sends and receives packets.
    Host,
    /// Forwards packets by a policy.
    Router,
    /// Sends packets through tunnels. Port 0 is the red one, port 1 the black one.
    Gateway,
}

impl Kind {
    /// The key of its table in a topology.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Host => "hosts",
            Kind::Router => "routers",
            Kind::Gateway => "gateways",
        }
    }
}

/// A host, a router or a gateway, with its routes.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, unique among all nodes.
    pub name: Name,
    /// Its kind.
    pub kind: Kind,
    /// Its ports, ordered by name.
    pub ports: Vec<Port>,
    /// Its routes, the longest prefix first. Those of a gateway are for packets from its red port.
    pub routes: Vec<Route>,
}

impl Node {
    /// The next hop for this address, by the longest matching prefix.
    pub fn route(&self, to: IpAddr) -> Option<NextHop> {
        self.routes.iter().find(|route| route.to.contains(to)).map(|route| route.way)
    }
}

/// A port of a node.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name, unique among the node's ports.
    pub name: Name,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Packets that can wait for the line, at hosts and gateways.
    pub queue: usize,
    /// The position of its link in [`Plan::links`].
    pub link: usize,
    /// The end of the link that it is, 0 or 1.
    pub end: usize,
    /// The MTU of its link: the longest packet in octets.
    pub mtu: usize,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The destination prefix.
    pub to: Prefix,
    /// The next hop.
    pub way: NextHop,
}

/// The next hop of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// A port of the node, by position.
    Port(usize),
    /// A tunnel of the gateway, by its position in [`Plan::tunnels`].
    Tunnel(usize),
}

/// A link with the ports at its ends.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The link as written in the topology.
    pub link: Link,
    /// The ports at end 0 and end 1.
    pub ends: [PortId; 2],
}

/// A topology checked and computed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts, then routers, then gateways, each ordered by name.
    pub nodes: Vec<Node>,
    /// The links, in the order of the topology.
    pub links: Vec<Wire>,
    /// The tunnels between gateways, one for each direction.
    pub tunnels: Vec<Tunnel>,
    names: BTreeMap<Name, usize>,
}

impl Plan {
    /// Checks a topology and computes its routes. Routes have the fewest hops; of several, the one
    /// by the first port ordered by name applies. Addresses behind gateways are reached only
    /// through their tunnels.
    ///
    /// # Errors
    /// With the path of the key: a name or a number out of range; a port with no link or with
    /// several; an end of a link that is not a port; an address or a prefix that occurs twice;
    /// addresses at the ends of a link without a common prefix; an unreachable node; gateways whose
    /// tunnels do not match; a tunnel without a route, or one that leads through itself.
    pub fn new(topology: &Topology) -> Result<Plan, Wrong> {
        let mut plan = check::nodes(topology)?;
        check::links(topology, &mut plan)?;
        check::addresses(&plan)?;
        check::connected(&plan)?;
        let pairs = tunnel::pairs(topology, &plan)?;
        route::compute(topology, &mut plan, &pairs)?;
        tunnel::finish(topology, &mut plan, &pairs)?;
        Ok(plan)
    }

    /// The position of the node with this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The port with this text form, such as `"sar.wan"`.
    pub fn port(&self, text: &str) -> Option<PortId> {
        let (node, port) = text.split_once('.')?;
        let node = self.node(node)?;
        let ports = &self.nodes.get(node)?.ports;
        let port = ports.iter().position(|one| one.name == port)?;
        Some(PortId { node, port })
    }

    /// The text form of a port, such as `sar.wan`.
    pub fn port_name(&self, id: PortId) -> String {
        let node = self.nodes.get(id.node);
        let port = node.and_then(|node| node.ports.get(id.port));
        match (node, port) {
            (Some(node), Some(port)) => format!("{}.{}", node.name, port.name),
            _ => String::new(),
        }
    }

    /// The port at the other end of this port's link.
    pub fn far_end(&self, id: PortId) -> Option<PortId> {
        let port = self.nodes.get(id.node)?.ports.get(id.port)?;
        self.links.get(port.link)?.ends.get(1 - port.end.min(1)).copied()
    }

    /// The hosts with their positions, ordered by name.
    pub fn hosts(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Host)
    }
}

#[cfg(test)]
mod tests;
