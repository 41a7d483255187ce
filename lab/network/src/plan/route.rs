//! Routes by the fewest hops.

use super::{Kind, MAX_ROUTES, NextHop, Node, Plan, PortId, Route};
use crate::topology::{StaticRoute, Topology};
use router::policy::{Prefix, Wrong};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A vertex of the routing graph: a node, or one of the two sides of a gateway, which are separate.
/// The number is the position of the node; for black sides, the number of nodes is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side(usize);

/// An edge from one vertex to the next.
#[derive(Clone, Copy, Debug)]
struct Hop {
    way: NextHop,
    to: Side,
}

struct Graph {
    hops: Vec<Vec<Hop>>,
    prefixes: Vec<Vec<Prefix>>,
    hosts: Vec<bool>,
}

fn side(plan: &Plan, id: PortId) -> Side {
    let gateway = plan.nodes.get(id.node).is_some_and(|node| node.kind == Kind::Gateway);
    if gateway && id.port == 1 { Side(plan.nodes.len() + id.node) } else { Side(id.node) }
}

fn graph(plan: &Plan, tunnels: &[(usize, usize)]) -> Graph {
    let sides = plan.nodes.len() * 2;
    let mut graph = Graph {
        hops: vec![Vec::new(); sides],
        prefixes: vec![Vec::new(); sides],
        hosts: vec![false; sides],
    };
    for (place, node) in plan.nodes.iter().enumerate() {
        if let Some(host) = graph.hosts.get_mut(place) {
            *host = node.kind == Kind::Host;
        }
        for (port, is) in node.ports.iter().enumerate() {
            let id = PortId { node: place, port };
            let from = side(plan, id).0;
            if let Some(prefixes) = graph.prefixes.get_mut(from) {
                prefixes.extend(is.addresses.iter().map(|address| address.prefix()));
            }
            let Some(far) = plan.far_end(id) else { continue };
            if let Some(hops) = graph.hops.get_mut(from) {
                hops.push(Hop { way: NextHop::Port(port), to: side(plan, far) });
            }
        }
    }
    for (number, (from, to)) in tunnels.iter().enumerate() {
        if let Some(hops) = graph.hops.get_mut(*from) {
            hops.push(Hop { way: NextHop::Tunnel(number), to: Side(*to) });
        }
    }
    graph
}

/// Computes the routes of every node. `tunnels` are pairs of positions of gateways, in both
/// directions.
pub(super) fn compute(
    topology: &Topology,
    plan: &mut Plan,
    tunnels: &[(usize, usize)],
) -> Result<(), Wrong> {
    let graph = graph(plan, tunnels);
    let mut all = Vec::new();
    for (place, node) in plan.nodes.iter().enumerate() {
        let mut routes = if node.kind == Kind::Host && node.ports.len() == 1 {
            default_routes(node)
        } else {
            graph.routes(Side(place))
        };
        for (to, way) in statics(topology, plan, tunnels, place)? {
            routes.insert(to, way);
        }
        let mut routes: Vec<Route> =
            routes.into_iter().map(|(to, way)| Route { to, way }).collect();
        routes.sort_by_key(|route| (std::cmp::Reverse(route.to.length()), route.to));
        all.push(routes);
    }
    for (node, routes) in plan.nodes.iter_mut().zip(all) {
        node.routes = routes;
    }
    Ok(())
}

/// Default routes by the node's only port, for the address families that the port has.
fn default_routes(node: &Node) -> BTreeMap<Prefix, NextHop> {
    let everything = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let has = |any: &IpAddr| {
        let mut addresses = node.ports.iter().flat_map(|port| &port.addresses);
        addresses.any(|address| address.ip().is_ipv4() == any.is_ipv4())
    };
    let everything = everything.into_iter().filter(has);
    everything.filter_map(|any| Some((Prefix::new(any, 0)?, NextHop::Port(0)))).collect()
}

impl Graph {
    /// Breadth-first search: the first hop of the shortest path to each prefix. Hosts do not
    /// forward.
    fn routes(&self, from: Side) -> BTreeMap<Prefix, NextHop> {
        let mut found = BTreeMap::new();
        let mut reached = vec![false; self.hops.len()];
        let mut next = VecDeque::new();
        let mut reach =
            |side: Side| reached.get_mut(side.0).is_some_and(|seen| !std::mem::replace(seen, true));
        reach(from);
        let own = self.prefixes.get(from.0).into_iter().flatten();
        let own: Vec<Prefix> = own.copied().collect();
        for hop in self.hops.get(from.0).into_iter().flatten() {
            if let NextHop::Port(_) = hop.way {
                // A prefix at both ends is reached by the node's own port, not by another port with
                // a lower name.
                let far = self.prefixes.get(hop.to.0).into_iter().flatten();
                let shared = far.filter(|prefix| own.contains(prefix));
                for prefix in shared {
                    found.entry(*prefix).or_insert(hop.way);
                }
            }
            if reach(hop.to) {
                next.push_back((hop.to, hop.way));
            }
        }
        while let Some((side, way)) = next.pop_front() {
            for prefix in self.prefixes.get(side.0).into_iter().flatten() {
                found.entry(*prefix).or_insert(way);
            }
            if self.hosts.get(side.0).copied().unwrap_or(true) {
                continue;
            }
            for hop in self.hops.get(side.0).into_iter().flatten() {
                if reach(hop.to) {
                    next.push_back((hop.to, way));
                }
            }
        }
        found
    }
}

fn statics(
    topology: &Topology,
    plan: &Plan,
    tunnels: &[(usize, usize)],
    place: usize,
) -> Result<Vec<(Prefix, NextHop)>, Wrong> {
    let Some(node) = plan.nodes.get(place) else { return Ok(Vec::new()) };
    let routes: &[StaticRoute] = match node.kind {
        Kind::Host => topology.hosts.get(&node.name).map_or(&[], |host| &host.routes),
        Kind::Router => topology.routers.get(&node.name).map_or(&[], |router| &router.routes),
        Kind::Gateway => topology.gateways.get(&node.name).map_or(&[], |gateway| &gateway.routes),
    };
    let mut found: Vec<(Prefix, NextHop)> = Vec::new();
    for (number, route) in routes.iter().take(MAX_ROUTES).enumerate() {
        let path = format!("{}.{}.routes[{number}]", node.kind.key(), node.name);
        let way = if node.kind == Kind::Gateway {
            let far = plan.node(&route.via);
            let tunnel = tunnels.iter().position(|(from, to)| *from == place && Some(*to) == far);
            tunnel.map(NextHop::Tunnel)
        } else {
            node.ports.iter().position(|port| port.name == route.via).map(NextHop::Port)
        };
        let Some(way) = way else {
            let kind = if node.kind == Kind::Gateway { "peer" } else { "port" };
            let via: String = route.via.chars().take(40).collect();
            return Err(Wrong::at(format!("{path}.via"), format!("there is no {kind} {via:?}")));
        };
        if found.iter().any(|(to, _)| *to == route.to) {
            let what = format!("there is a route to {} already", route.to);
            return Err(Wrong::at(format!("{path}.to"), what));
        }
        found.push((route.to, way));
    }
    Ok(found)
}
