//! Tunnels between gateways: which pairs have one, and their MTUs.

use super::{NetworkPlan, NodeKind, PortId, RouteNextHop};
use crate::topology::{Outer, Topology};
use router::policy::{KeyFault, Name};
use std::net::IpAddr;

/// Octets of an outer IPv4 header.
pub(crate) const V4_HEADER: usize = 20;
/// Octets of an outer IPv6 header.
pub(crate) const V6_HEADER: usize = 40;
/// Nested tunnels, at most.
const MAX_DEPTH: usize = 8;
const RED: usize = 0;
const BLACK: usize = 1;

/// A tunnel from one gateway to another. The opposite direction is another tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The position of the gateway that encapsulates.
    pub from: usize,
    /// The position of the gateway that decapsulates.
    pub to: usize,
    /// Source address of the outer header.
    pub source: IpAddr,
    /// Destination address of the outer header, of the same family.
    pub destination: IpAddr,
    /// The security parameters index: 256 plus the number of the tunnel.
    pub spi: u32,
    /// The path MTU for outer packets, in octets.
    pub outer_mtu: usize,
    /// The longest inner packet, in octets.
    pub inner_mtu: usize,
}

/// Pairs of gateways that have a tunnel, each in both directions, ordered by position.
pub(super) fn pairs(
    topology: &Topology,
    plan: &NetworkPlan,
) -> Result<Vec<(usize, usize)>, KeyFault> {
    let mut pairs = Vec::new();
    for (name, gateway) in &topology.gateways {
        let Some(from) = plan.node(name) else { continue };
        for (number, peer) in gateway.peers.iter().flatten().enumerate() {
            let path = format!("gateways.{name}.peers[{number}]");
            let quoted: Name = peer.chars().take(40).collect();
            let Some(far) = topology.gateways.get(peer).filter(|_| peer != name) else {
                return Err(KeyFault::at(path, format!("there is no other gateway {quoted:?}")));
            };
            if far.peers.as_ref().is_some_and(|peers| !peers.contains(name)) {
                let what = format!("gateways.{peer}.peers does not name {name:?}");
                return Err(KeyFault::at(path, what));
            }
        }
        for (peer, far) in topology.gateways.iter().filter(|(peer, _)| *peer != name) {
            let named =
                |peers: &Option<Vec<Name>>, who| peers.as_ref().is_none_or(|p| p.contains(who));
            if !named(&gateway.peers, peer) || !named(&far.peers, name) {
                continue;
            }
            let Some(to) = plan.node(peer) else { continue };
            if !pairs.contains(&(from, to)) {
                pairs.push((from, to));
            }
        }
    }
    Ok(pairs)
}

/// Computes the tunnels from the routes.
pub(super) fn finish(
    topology: &Topology,
    plan: &mut NetworkPlan,
    pairs: &[(usize, usize)],
) -> Result<(), KeyFault> {
    let mut tunnels = Vec::new();
    for (number, (from, to)) in pairs.iter().enumerate() {
        let Some(name) = plan.nodes.get(*from).map(|node| node.name.clone()) else { continue };
        let Some(gateway) = topology.gateways.get(&name) else { continue };
        let path = format!("gateways.{name}");
        if !(8..=256).contains(&gateway.overhead) {
            let what = format!("{} is not within 8 to 256", gateway.overhead);
            return Err(KeyFault::at(format!("{path}.overhead"), what));
        }
        let ends = [end(plan, *from, gateway.outer)?, end(plan, *to, gateway.outer)?];
        let [source, destination] = ends;
        let spi = 256 + u32::try_from(number).unwrap_or(0);
        let (from, to) = (*from, *to);
        tunnels.push(Tunnel { from, to, source, destination, spi, outer_mtu: 0, inner_mtu: 0 });
    }
    plan.tunnels = tunnels;
    let mut measured = Vec::new();
    for tunnel in &plan.tunnels {
        let outer_mtu = measure(topology, plan, tunnel, 0)?;
        let inner_mtu = inner(topology, plan, tunnel, outer_mtu)?;
        measured.push((outer_mtu, inner_mtu));
    }
    for (tunnel, (outer, inner)) in plan.tunnels.iter_mut().zip(measured) {
        (tunnel.outer_mtu, tunnel.inner_mtu) = (outer, inner);
    }
    Ok(())
}

/// The address of a gateway's black port that ends tunnels of this family.
fn end(plan: &NetworkPlan, gateway: usize, outer: Outer) -> Result<IpAddr, KeyFault> {
    let node = plan.nodes.get(gateway);
    let addresses = node.and_then(|node| node.ports.get(BLACK)).map(|port| &port.addresses);
    let mut addresses = addresses.into_iter().flatten().map(|address| address.ip());
    addresses.find(|ip| ip.is_ipv4() == (outer == Outer::V4)).ok_or_else(|| {
        let name = node.map_or("", |node| node.name.as_str());
        let version = if outer == Outer::V4 { 4 } else { 6 };
        let path = format!("gateways.{name}.black.addresses");
        KeyFault::at(
            path,
            format!("a tunnel with an outer header of IPv{version} needs one of IPv{version}"),
        )
    })
}

/// The longest inner packet of the tunnel.
fn inner(
    topology: &Topology,
    plan: &NetworkPlan,
    tunnel: &Tunnel,
    outer_mtu: usize,
) -> Result<usize, KeyFault> {
    let node = plan.nodes.get(tunnel.from);
    let name = node.map_or("", |node| node.name.as_str());
    let overhead = topology.gateways.get(name).map_or(0, |gateway| usize::from(gateway.overhead));
    let header = if tunnel.source.is_ipv4() { V4_HEADER } else { V6_HEADER };
    let mtu = outer_mtu.saturating_sub(header + overhead);
    let red = node.and_then(|node| node.ports.get(RED));
    let six = red.is_some_and(|red| red.addresses.iter().any(|a| a.ip().is_ipv6()));
    let least = if six { 1_280 } else { 68 };
    if mtu < least {
        let what = format!(
            "the path to {} takes packets of {outer_mtu} octets, which leaves {mtu} for those \
             inside; at least {least} are needed",
            plan.nodes.get(tunnel.to).map_or("", |node| node.name.as_str()),
        );
        return Err(KeyFault::at(format!("gateways.{name}"), what));
    }
    Ok(mtu)
}

/// Follows the routes from end to end. Returns the lowest MTU of the links.
fn measure(
    topology: &Topology,
    plan: &NetworkPlan,
    tunnel: &Tunnel,
    depth: usize,
) -> Result<usize, KeyFault> {
    let name = |node: usize| plan.nodes.get(node).map_or("", |node| node.name.as_str());
    let path = format!("gateways.{}", name(tunnel.from));
    let far = name(tunnel.to);
    if depth >= MAX_DEPTH {
        let what = format!("its tunnel to {far} lies within itself, or in more than {MAX_DEPTH}");
        return Err(KeyFault::at(path, what));
    }
    let unreachable = || {
        let what = format!("no route to the gateway {far} at {}", tunnel.destination);
        KeyFault::at(path.clone(), what)
    };
    let mut mtu = usize::MAX;
    let mut out = PortId { node: tunnel.from, port: BLACK };
    for _ in 0..=2 * plan.nodes.len() {
        let port = plan.nodes.get(out.node).and_then(|node| node.ports.get(out.port));
        mtu = mtu.min(port.ok_or_else(unreachable)?.mtu);
        let at = plan.far_end(out).ok_or_else(unreachable)?;
        if (at == PortId { node: tunnel.to, port: BLACK }) {
            return Ok(mtu);
        }
        let node = plan.nodes.get(at.node).ok_or_else(unreachable)?;
        let next = node.route(tunnel.destination).ok_or_else(unreachable)?;
        out = match (node.kind, next) {
            (NodeKind::Router, RouteNextHop::Port(port)) => PortId { node: at.node, port },
            (NodeKind::Gateway, RouteNextHop::Tunnel(number)) if at.port == RED => {
                let around = plan.tunnels.get(number).ok_or_else(unreachable)?;
                let outer = measure(topology, plan, around, depth + 1)?;
                mtu = mtu.min(inner(topology, plan, around, outer)?);
                PortId { node: around.to, port: RED }
            }
            _ => return Err(unreachable()),
        };
    }
    Err(unreachable())
}
