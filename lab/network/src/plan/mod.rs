//! A topology checked and worked out: numbers instead of names, and the routes of every node.

mod check;
mod route;
pub(crate) mod tunnel;

pub use tunnel::Tunnel;

use crate::topology::{Address, Link, Topology};
use router::policy::{Name, Prefix, Wrong};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most nodes: hosts, routers and gateways together.
pub const MAX_NODES: usize = 256;
/// Most links.
pub const MAX_LINKS: usize = 1_024;
/// Most ports of a node.
pub const MAX_PORTS: usize = 64;
/// Most addresses of a port.
pub const MAX_ADDRESSES: usize = 8;
/// Most routes of a node that are not computed.
pub const MAX_ROUTES: usize = 256;

/// The place of a port of the network: of its node among the nodes, and its own among the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId {
    /// The node's place in [`Plan::nodes`].
    pub node: usize,
    /// The port's place in [`Node::ports`].
    pub port: usize,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Packets come from it and go to it.
    Host,
    /// Forwards by a policy.
    Router,
    /// Hides packets in tunnels. Its port 0 is the red one, 1 the black one.
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

/// A host, a router or a gateway.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, unlike that of any other node.
    pub name: Name,
    /// What it is.
    pub kind: Kind,
    /// Its ports, in the order of their names.
    pub ports: Vec<Port>,
    /// Its routes, the longest prefix first. A gateway's are those of what comes in at its red port.
    pub routes: Vec<Route>,
}

impl Node {
    /// The way to this address by the longest prefix that has it.
    pub fn route(&self, to: IpAddr) -> Option<NextHop> {
        self.routes.iter().find(|route| route.to.contains(to)).map(|route| route.way)
    }
}

/// A port of a node.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name, unlike that of the node's other ports.
    pub name: Name,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Packets that may wait for the line, at hosts and gateways.
    pub queue: usize,
    /// The place of its link in [`Plan::links`].
    pub link: usize,
    /// Which end of the link it is, 0 or 1.
    pub end: usize,
    /// The longest packet of its link, in octets.
    pub mtu: usize,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The destinations.
    pub to: Prefix,
    /// Where they go.
    pub way: NextHop,
}

/// Where packets go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// Out of this port of the node.
    Port(usize),
    /// Through the gateway's tunnel of this number in [`Plan::tunnels`].
    Tunnel(usize),
}

/// A link and the ports at its ends.
#[derive(Clone, Debug)]
pub struct Wire {
    /// As it was written.
    pub link: Link,
    /// The ports.
    pub ends: [PortId; 2],
}

/// A topology that holds together.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts, then routers, then gateways, each in the order of their names.
    pub nodes: Vec<Node>,
    /// The links, in their order.
    pub links: Vec<Wire>,
    /// The tunnels between gateways, one for each direction.
    pub tunnels: Vec<Tunnel>,
    names: BTreeMap<Name, usize>,
}

impl Plan {
    /// Checks a topology and works it out. Routes are computed by the fewest hops, and where several
    /// ways have as few, by the first port in the order of names; what lies behind gateways is
    /// reached through their tunnels alone.
    ///
    /// # Errors
    /// With the path of the key: a name or a number out of range, a port that no link or more than
    /// one ends at, a link's end that is no port, an address or a prefix that is there twice,
    /// addresses at the ends of a link that share no prefix, a node that no way leads to, gateways
    /// whose tunnels do not fit each other, a tunnel that has no way or leads through itself.
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

    /// The place of the node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The place of this port: `"sar.wan"`.
    pub fn port(&self, text: &str) -> Option<PortId> {
        let (node, port) = text.split_once('.')?;
        let node = self.node(node)?;
        let ports = &self.nodes.get(node)?.ports;
        let port = ports.iter().position(|one| one.name == port)?;
        Some(PortId { node, port })
    }

    /// The name of a port as links write it: `sar.wan`.
    pub fn port_name(&self, id: PortId) -> String {
        let node = self.nodes.get(id.node);
        let port = node.and_then(|node| node.ports.get(id.port));
        match (node, port) {
            (Some(node), Some(port)) => format!("{}.{}", node.name, port.name),
            _ => String::new(),
        }
    }

    /// The port at the other end of this one's link.
    pub fn far_end(&self, id: PortId) -> Option<PortId> {
        let port = self.nodes.get(id.node)?.ports.get(id.port)?;
        self.links.get(port.link)?.ends.get(1 - port.end.min(1)).copied()
    }

    /// The hosts with their places, in the order of their names.
    pub fn hosts(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Host)
    }
}

#[cfg(test)]
mod tests;
