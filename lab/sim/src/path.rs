//! How long a packet a path takes, as path MTU discovery (RFC 1191, RFC 8201) would find out.

use network::plan::RouteNextHop;
use network::{NetworkPlan, NodeKind, PortId};
use std::net::IpAddr;

/// More hops than any path without a loop has.
const MAX_HOPS: usize = 2 * network::plan::MAX_NODES;
/// A gateway's plain port.
const RED: usize = 0;

/// The longest packet that goes whole from this node to this address, in octets; `None` where no path
/// leads there.
pub(crate) fn mtu(plan: &NetworkPlan, from: usize, to: IpAddr) -> Option<usize> {
    let (mut at, mut most) = (from, usize::MAX);
    for _ in 0..MAX_HOPS {
        let node = plan.nodes.get(at)?;
        let ends_here = node.ports.iter().flat_map(|port| &port.addresses).any(|a| a.ip() == to);
        if ends_here && (node.kind == NodeKind::Host || at == from) {
            return Some(most);
        }
        let port = match node.route(to)? {
            RouteNextHop::Port(port) => PortId { node: at, port },
            RouteNextHop::Tunnel(number) => {
                let tunnel = plan.tunnels.get(number)?;
                most = most.min(tunnel.inner_mtu);
                PortId { node: tunnel.to, port: RED }
            }
        };
        most = most.min(plan.nodes.get(port.node)?.ports.get(port.port)?.mtu);
        at = plan.far_end(port)?.node;
    }
    None
}

/// The host that has this address.
pub(crate) fn host_of(plan: &NetworkPlan, address: IpAddr) -> Option<usize> {
    let has = |node: &network::plan::PlanNode| {
        node.ports.iter().flat_map(|port| &port.addresses).any(|one| one.ip() == address)
    };
    plan.hosts().find(|(_, node)| has(node)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::Topology;

    #[test]
    fn the_narrowest_link_or_tunnel_counts() {
        let text = include_str!("../../../config/lab/topologies/nato.toml");
        let mut topology = Topology::read(text).unwrap();
        let to = "10.10.65.10".parse().unwrap();
        let found = |topology: &Topology, to| {
            let plan = NetworkPlan::new(topology).unwrap();
            mtu(&plan, plan.node("naples").unwrap(), to)
        };
        assert_eq!(found(&topology, to), Some(1_500));
        for link in &mut topology.links {
            link.mtu = 1_500;
        }
        assert_eq!(found(&topology, to), Some(1_500 - 20 - 38));
        let act = topology.links.iter_mut().find(|link| link.ends[0] == "act.lan").unwrap();
        act.mtu = 1_400;
        assert_eq!(found(&topology, to), Some(1_400));
        assert_eq!(found(&topology, "203.0.113.1".parse().unwrap()), None);
    }
}
