//! The way of packets from one host to another and back, line by line.

use network::plan::{MAX_NODES, RouteNextHop};
use network::{NetworkPlan, NodeKind, PortId, Topology};
use std::net::IpAddr;

/// A gateway's plain port, and the port of its tunnels.
const RED: usize = 0;
const BLACK: usize = 1;
/// Tunnels within tunnels, at most.
const MAX_DEPTH: usize = 8;

/// The lines that packets pass in each direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FlowPath {
    pub(super) there: Vec<Stretch>,
    pub(super) back: Vec<Stretch>,
}

/// A line in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stretch {
    /// The port by which packets leave, `router.port`.
    pub(super) port: String,
    /// How long the line takes, in the mean.
    pub(super) seconds: f64,
    pub(super) kbit_s: Option<f64>,
}

impl FlowPath {
    /// `None` where no path leads there or back.
    pub(super) fn new(topology: &Topology, from: IpAddr, to: IpAddr) -> Option<FlowPath> {
        let plan = NetworkPlan::new(topology).ok()?;
        let host = |ip: IpAddr| plan.hosts().map(|(at, _)| at).find(|at| has(&plan, *at, ip));
        let way = |from, to| {
            let ports = ports(&plan, host(from)?, to, 0)?;
            ports.into_iter().map(|port| stretch(&plan, port)).collect::<Option<Vec<_>>>()
        };
        Some(FlowPath { there: way(from, to)?, back: way(to, from)? })
    }
}

fn has(plan: &NetworkPlan, node: usize, ip: IpAddr) -> bool {
    let ports = plan.nodes.get(node).into_iter().flat_map(|node| &node.ports);
    ports.flat_map(|port| &port.addresses).any(|address| address.ip() == ip)
}

/// The ports by which packets leave the nodes on their path.
fn ports(plan: &NetworkPlan, from: usize, to: IpAddr, depth: usize) -> Option<Vec<PortId>> {
    let (mut at, mut out) = (from, Vec::new());
    for _ in 0..2 * MAX_NODES {
        let node = plan.nodes.get(at)?;
        // Outer packets end at a gateway.
        if node.kind != NodeKind::Router && has(plan, at, to) {
            return Some(out);
        }
        let port = match node.route(to)? {
            RouteNextHop::Port(port) => PortId { node: at, port },
            RouteNextHop::Tunnel(number) => {
                let tunnel = plan.tunnels.get(number).filter(|_| depth < MAX_DEPTH)?;
                let black = PortId { node: tunnel.from, port: BLACK };
                let next = plan.far_end(black)?.node;
                out.push(black);
                out.extend(ports(plan, next, tunnel.destination, depth + 1)?);
                PortId { node: tunnel.to, port: RED }
            }
        };
        out.push(port);
        at = plan.far_end(port)?.node;
    }
    None
}

fn stretch(plan: &NetworkPlan, port: PortId) -> Option<Stretch> {
    let link = plan.nodes.get(port.node)?.ports.get(port.port)?.link;
    let link = &plan.links.get(link)?.link;
    Some(Stretch {
        port: plan.port_name(port),
        seconds: link.delay.0.as_secs_f64() + link.jitter.0.as_secs_f64() / 2.0,
        kbit_s: link.rate.map(|rate| rate.bits() as f64 / 1e3),
    })
}
