//! Routes by the fewest hops.

use super::{MAX_ROUTES, NetworkPlan, NodeKind, NodeRoute, PlanNode, PortId, RouteNextHop};
use crate::topology::{StaticRoute, Topology};
use router::policy::{IpPrefix, KeyFault};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A vertex of the routing graph: a node, or one of the two sides of a gateway, which are separate.
/// The number is the position of the node; for black sides, the number of nodes is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Vertex(usize);

/// An edge from one vertex to the next.
#[derive(Clone, Copy, Debug)]
struct Edge {
    next_hop: RouteNextHop,
    to: Vertex,
}

struct Graph {
    edges: Vec<Vec<Edge>>,
    prefixes: Vec<Vec<IpPrefix>>,
    hosts: Vec<bool>,
}

fn vertex(plan: &NetworkPlan, id: PortId) -> Vertex {
    let gateway = plan.nodes.get(id.node).is_some_and(|node| node.kind == NodeKind::Gateway);
    if gateway && id.port == 1 { Vertex(plan.nodes.len() + id.node) } else { Vertex(id.node) }
}

fn graph(plan: &NetworkPlan, tunnels: &[(usize, usize)]) -> Graph {
    let vertices = plan.nodes.len() * 2;
    let mut graph = Graph {
        edges: vec![Vec::new(); vertices],
        prefixes: vec![Vec::new(); vertices],
        hosts: vec![false; vertices],
    };
    for (place, node) in plan.nodes.iter().enumerate() {
        if let Some(host) = graph.hosts.get_mut(place) {
            *host = node.kind == NodeKind::Host;
        }
        for (port, is) in node.ports.iter().enumerate() {
            let id = PortId { node: place, port };
            let from = vertex(plan, id).0;
            if let Some(prefixes) = graph.prefixes.get_mut(from) {
                prefixes.extend(is.addresses.iter().map(|address| address.prefix()));
            }
            let Some(far) = plan.far_end(id) else { continue };
            if let Some(edges) = graph.edges.get_mut(from) {
                edges.push(Edge { next_hop: RouteNextHop::Port(port), to: vertex(plan, far) });
            }
        }
    }
    for (number, (from, to)) in tunnels.iter().enumerate() {
        if let Some(edges) = graph.edges.get_mut(*from) {
            edges.push(Edge { next_hop: RouteNextHop::Tunnel(number), to: Vertex(*to) });
        }
    }
    graph
}

/// Computes the routes of every node. `tunnels` are pairs of positions of gateways, in both
/// directions.
pub(super) fn compute(
    topology: &Topology,
    plan: &mut NetworkPlan,
    tunnels: &[(usize, usize)],
) -> Result<(), KeyFault> {
    let graph = graph(plan, tunnels);
    let mut all = Vec::new();
    for (place, node) in plan.nodes.iter().enumerate() {
        let mut routes = if node.kind == NodeKind::Host && node.ports.len() == 1 {
            default_routes(node)
        } else {
            graph.routes(Vertex(place))
        };
        for (to, next_hop) in static_routes(topology, plan, tunnels, place)? {
            routes.insert(to, next_hop);
        }
        let mut routes: Vec<NodeRoute> =
            routes.into_iter().map(|(to, next_hop)| NodeRoute { to, next_hop }).collect();
        routes.sort_by_key(|route| (std::cmp::Reverse(route.to.length()), route.to));
        all.push(routes);
    }
    for (node, routes) in plan.nodes.iter_mut().zip(all) {
        node.routes = routes;
    }
    Ok(())
}

/// Default routes by the node's only port, for the address families that the port has.
fn default_routes(node: &PlanNode) -> BTreeMap<IpPrefix, RouteNextHop> {
    let everything = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let has = |any: &IpAddr| {
        let mut addresses = node.ports.iter().flat_map(|port| &port.addresses);
        addresses.any(|address| address.ip().is_ipv4() == any.is_ipv4())
    };
    let everything = everything.into_iter().filter(has);
    everything.filter_map(|any| Some((IpPrefix::new(any, 0)?, RouteNextHop::Port(0)))).collect()
}

impl Graph {
    /// Breadth-first search: the first hop of the shortest path to each prefix. Hosts do not
    /// forward.
    fn routes(&self, from: Vertex) -> BTreeMap<IpPrefix, RouteNextHop> {
        let mut found = BTreeMap::new();
        let mut reached = vec![false; self.edges.len()];
        let mut next = VecDeque::new();
        let mut reach = |vertex: Vertex| {
            reached.get_mut(vertex.0).is_some_and(|seen| !std::mem::replace(seen, true))
        };
        reach(from);
        let own = self.prefixes.get(from.0).into_iter().flatten();
        let own: Vec<IpPrefix> = own.copied().collect();
        for edge in self.edges.get(from.0).into_iter().flatten() {
            if let RouteNextHop::Port(_) = edge.next_hop {
                // A prefix at both ends is reached by the node's own port, not by another port with
                // a lower name.
                let far = self.prefixes.get(edge.to.0).into_iter().flatten();
                let shared = far.filter(|prefix| own.contains(prefix));
                for prefix in shared {
                    found.entry(*prefix).or_insert(edge.next_hop);
                }
            }
            if reach(edge.to) {
                next.push_back((edge.to, edge.next_hop));
            }
        }
        while let Some((vertex, next_hop)) = next.pop_front() {
            for prefix in self.prefixes.get(vertex.0).into_iter().flatten() {
                found.entry(*prefix).or_insert(next_hop);
            }
            if self.hosts.get(vertex.0).copied().unwrap_or(true) {
                continue;
            }
            for edge in self.edges.get(vertex.0).into_iter().flatten() {
                if reach(edge.to) {
                    next.push_back((edge.to, next_hop));
                }
            }
        }
        found
    }
}

fn static_routes(
    topology: &Topology,
    plan: &NetworkPlan,
    tunnels: &[(usize, usize)],
    place: usize,
) -> Result<Vec<(IpPrefix, RouteNextHop)>, KeyFault> {
    let Some(node) = plan.nodes.get(place) else { return Ok(Vec::new()) };
    let routes: &[StaticRoute] = match node.kind {
        NodeKind::Host => topology.hosts.get(&node.name).map_or(&[], |host| &host.routes),
        NodeKind::Router => topology.routers.get(&node.name).map_or(&[], |router| &router.routes),
        NodeKind::Gateway => {
            topology.gateways.get(&node.name).map_or(&[], |gateway| &gateway.routes)
        }
    };
    let mut found: Vec<(IpPrefix, RouteNextHop)> = Vec::new();
    for (number, route) in routes.iter().take(MAX_ROUTES).enumerate() {
        let path = format!("{}.{}.routes[{number}]", node.kind.key(), node.name);
        let next_hop = if node.kind == NodeKind::Gateway {
            let far = plan.node(&route.via);
            let tunnel = tunnels.iter().position(|(from, to)| *from == place && Some(*to) == far);
            tunnel.map(RouteNextHop::Tunnel)
        } else {
            node.ports.iter().position(|port| port.name == route.via).map(RouteNextHop::Port)
        };
        let Some(next_hop) = next_hop else {
            let kind = if node.kind == NodeKind::Gateway { "peer" } else { "port" };
            let via: String = route.via.chars().take(40).collect();
            return Err(KeyFault::at(format!("{path}.via"), format!("there is no {kind} {via:?}")));
        };
        if found.iter().any(|(to, _)| *to == route.to) {
            let what = format!("there is a route to {} already", route.to);
            return Err(KeyFault::at(format!("{path}.to"), what));
        }
        found.push((route.to, next_hop));
    }
    Ok(found)
}
