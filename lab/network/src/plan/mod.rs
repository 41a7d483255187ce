//! A topology checked and computed: indexes instead of names, and the routes of every node.

mod check;
mod route;
pub(crate) mod tunnel;

pub use tunnel::Tunnel;

use crate::topology::{Address, Topology, TopologyLink};
use router::policy::{IpPrefix, KeyFault, Name};
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
    /// The position of the node in [`NetworkPlan::nodes`].
    pub node: usize,
    /// The position of the port in its node's `ports`.
    pub port: usize,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// Sends and receives packets.
    Host,
    /// Forwards packets by a policy.
    Router,
    /// Sends packets through tunnels. Port 0 is the red one, port 1 the black one.
    Gateway,
}

impl NodeKind {
    /// The key of its table in a topology.
    pub fn key(self) -> &'static str {
        match self {
            NodeKind::Host => "hosts",
            NodeKind::Router => "routers",
            NodeKind::Gateway => "gateways",
        }
    }
}

/// A host, a router or a gateway, with its routes.
#[derive(Clone, Debug)]
pub struct PlanNode {
    /// Its name, unique among all nodes.
    pub name: Name,
    /// Its kind.
    pub kind: NodeKind,
    /// Its ports, ordered by name.
    pub ports: Vec<Port>,
    /// Its routes, the longest prefix first. Those of a gateway are for packets from its red port.
    pub routes: Vec<NodeRoute>,
}

impl PlanNode {
    /// The next hop for this address, by the longest matching prefix.
    pub fn route(&self, to: IpAddr) -> Option<RouteNextHop> {
        self.routes.iter().find(|route| route.to.contains(to)).map(|route| route.next_hop)
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
    /// The position of its link in [`NetworkPlan::links`].
    pub link: usize,
    /// The end of the link that it is, 0 or 1.
    pub end: usize,
    /// The MTU of its link: the longest packet in octets.
    pub mtu: usize,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeRoute {
    /// The destination prefix.
    pub to: IpPrefix,
    /// The next hop.
    pub next_hop: RouteNextHop,
}

/// The next hop of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteNextHop {
    /// A port of the node, by position.
    Port(usize),
    /// A tunnel of the gateway, by its position in [`NetworkPlan::tunnels`].
    Tunnel(usize),
}

/// A link with the ports at its ends.
#[derive(Clone, Debug)]
pub struct PlanLink {
    /// The link as written in the topology.
    pub link: TopologyLink,
    /// The ports at end 0 and end 1.
    pub ends: [PortId; 2],
}

/// A topology checked and computed.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Hosts, then routers, then gateways, each ordered by name.
    pub nodes: Vec<PlanNode>,
    /// The links, in the order of the topology.
    pub links: Vec<PlanLink>,
    /// The tunnels between gateways, one for each direction.
    pub tunnels: Vec<Tunnel>,
    names: BTreeMap<Name, usize>,
}

impl NetworkPlan {
    /// Checks a topology and computes its routes. Routes have the fewest hops; of several, the one
    /// by the first port ordered by name applies. Addresses behind gateways are reached only
    /// through their tunnels.
    ///
    /// # Errors
    /// With the path of the key: a name or a number out of range; a port with no link or with
    /// several; an end of a link that is not a port; an address or a prefix that occurs twice;
    /// addresses at the ends of a link without a common prefix; an unreachable node; gateways whose
    /// tunnels do not match; a tunnel without a route, or one that leads through itself.
    pub fn new(topology: &Topology) -> Result<NetworkPlan, KeyFault> {
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
    pub fn hosts(&self) -> impl Iterator<Item = (usize, &PlanNode)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Host)
    }
}

#[cfg(test)]
mod tests;
