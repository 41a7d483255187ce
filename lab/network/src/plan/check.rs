//! Checks of a topology before its routes are computed.

use super::{
    MAX_ADDRESSES, MAX_LINKS, MAX_NODES, MAX_PORTS, MAX_ROUTES, NetworkPlan, NodeKind, PlanLink,
    PlanNode, Port, PortId,
};
use crate::topology::{Address, Duplex, HostPort, Topology, TopologyLink};
use router::policy::KeyFault;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Link of a port that has no link yet.
const LOOSE: usize = usize::MAX;
const MAX_QUEUE: usize = 100_000;
const MAX_OVERHEAD: u16 = 256;
/// The longest name of a node, in octets.
const MAX_NODE_NAME: usize = 32;
/// The longest name of an interface that Linux accepts, in octets.
const MAX_PORT_NAME: usize = 15;
const MAX_SYSCTLS: usize = 64;

/// All nodes with their ports, still without links.
pub(super) fn nodes(topology: &Topology) -> Result<NetworkPlan, KeyFault> {
    let count = topology.hosts.len() + topology.routers.len() + topology.gateways.len();
    if count > MAX_NODES {
        let what = format!("{count} hosts, routers and gateways, at most {MAX_NODES}");
        return Err(KeyFault::at("topology", what));
    }
    if topology.hosts.is_empty() {
        return Err(KeyFault::at("hosts", "there is none; packets come from hosts and go to them"));
    }
    let mut plan = NetworkPlan {
        nodes: Vec::new(),
        links: Vec::new(),
        tunnels: Vec::new(),
        names: BTreeMap::new(),
    };
    for (name, host) in &topology.hosts {
        host_settings(name, host)?;
        let ports = host.ports.iter().map(|(name, port)| (name.as_str(), port.clone()));
        add(&mut plan, NodeKind::Host, name, ports, host.routes.len())?;
    }
    for (name, router) in &topology.routers {
        let ports = router.ports.iter().map(|(name, port)| {
            (name.as_str(), HostPort { addresses: port.addresses.clone(), queue: 1 })
        });
        add(&mut plan, NodeKind::Router, name, ports, router.routes.len())?;
    }
    for (name, gateway) in &topology.gateways {
        let ports = [("red", gateway.red.clone()), ("black", gateway.black.clone())];
        add(&mut plan, NodeKind::Gateway, name, ports.into_iter(), gateway.routes.len())?;
    }
    Ok(plan)
}

fn add<'a>(
    plan: &mut NetworkPlan,
    kind: NodeKind,
    name: &str,
    ports: impl Iterator<Item = (&'a str, HostPort)>,
    routes: usize,
) -> Result<(), KeyFault> {
    let path = format!("{}.{name}", kind.key());
    named(&path, name, MAX_NODE_NAME)?;
    let mut node = PlanNode { name: name.to_owned(), kind, ports: Vec::new(), routes: Vec::new() };
    for (name, port) in ports {
        let path = match kind {
            NodeKind::Gateway => format!("{path}.{name}"),
            _ => format!("{path}.ports.{name}"),
        };
        named(&path, name, MAX_PORT_NAME)?;
        within(&format!("{path}.queue"), port.queue, 1, MAX_QUEUE)?;
        within(&format!("{path}.addresses"), port.addresses.len(), 0, MAX_ADDRESSES)?;
        if kind == NodeKind::Host && port.addresses.is_empty() {
            return Err(KeyFault::at(
                format!("{path}.addresses"),
                "a host's port needs an address",
            ));
        }
        let (addresses, queue, name) = (port.addresses, port.queue, name.to_owned());
        node.ports.push(Port { name, addresses, queue, link: LOOSE, end: 0, mtu: 0 });
    }
    within(&format!("{path}.ports"), node.ports.len(), 1, MAX_PORTS)?;
    within(&format!("{path}.routes"), routes, 0, MAX_ROUTES)?;
    if let Some(other) = plan.names.insert(name.to_owned(), plan.nodes.len()) {
        let other = plan.nodes.get(other).map_or("hosts", |node| node.kind.key());
        return Err(KeyFault::at(path, format!("there is one of this name in {other}, too")));
    }
    plan.nodes.push(node);
    Ok(())
}

fn named(path: &str, name: &str, longest: usize) -> Result<(), KeyFault> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > longest || !name.chars().all(good) {
        let what = format!("a name has 1 to {longest} letters, digits, - and _");
        return Err(KeyFault::at(path, what));
    }
    Ok(())
}

fn within(path: &str, value: usize, least: usize, most: usize) -> Result<(), KeyFault> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(KeyFault::at(path, format!("{value} is not within {least} to {most}")))
}

fn host_settings(name: &str, host: &crate::topology::TopologyHost) -> Result<(), KeyFault> {
    if let Some(control) = &host.congestion_control {
        named(&format!("hosts.{name}.congestion_control"), control, MAX_PORT_NAME)?;
    }
    let path = format!("hosts.{name}.sysctls");
    within(&path, host.sysctls.len(), 0, MAX_SYSCTLS)?;
    for (key, setting) in &host.sysctls {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !key.starts_with("net.") || !key.chars().all(good) || key.contains("..") {
            let what = "settings of a namespace have names such as net.ipv4.tcp_sack";
            return Err(KeyFault::at(format!("{path}.{key:?}"), what));
        }
        if setting.0.len() > 256 || setting.0.chars().any(char::is_control) {
            let what = "a value is one line of up to 256 octets";
            return Err(KeyFault::at(format!("{path}.{key:?}"), what));
        }
    }
    Ok(())
}

/// Joins ports by links.
pub(super) fn links(topology: &Topology, plan: &mut NetworkPlan) -> Result<(), KeyFault> {
    if topology.links.len() > MAX_LINKS {
        let what = format!("{} links, at most {MAX_LINKS}", topology.links.len());
        return Err(KeyFault::at("links", what));
    }
    for (place, link) in topology.links.iter().enumerate() {
        let path = format!("links[{place}]");
        numbers(&path, link)?;
        let mut ends = [PortId { node: 0, port: 0 }; 2];
        for (end, (text, id)) in link.ends.iter().zip(&mut ends).enumerate() {
            *id = join(plan, &format!("{path}.ends[{end}]"), text, (place, end, link.mtu))?;
        }
        plan.links.push(PlanLink { link: link.clone(), ends });
    }
    for node in &plan.nodes {
        if let Some(port) = node.ports.iter().find(|port| port.link == LOOSE) {
            let path = format!("{}.{}.{}", node.kind.key(), node.name, port.name);
            return Err(KeyFault::at(
                path,
                "no link ends at this port; add one or remove the port",
            ));
        }
    }
    Ok(())
}

fn numbers(path: &str, link: &TopologyLink) -> Result<(), KeyFault> {
    within(&format!("{path}.mtu"), link.mtu, 68, router::packet::MAX_LENGTH)?;
    within(&format!("{path}.overhead"), link.overhead.into(), 0, MAX_OVERHEAD.into())?;
    if !(0.0..=1.0).contains(&link.loss) {
        let what = format!("invalid probability {}: 0 to 1, so 1 % is 0.01", link.loss);
        return Err(KeyFault::at(format!("{path}.loss"), what));
    }
    if link.duplex == Duplex::Half && link.rate.is_none() {
        let what = "a half-duplex link needs a rate for its ends to share";
        return Err(KeyFault::at(format!("{path}.rate"), what));
    }
    Ok(())
}

fn join(
    plan: &mut NetworkPlan,
    path: &str,
    text: &str,
    (link, end, mtu): (usize, usize, usize),
) -> Result<PortId, KeyFault> {
    let quoted: String = text.chars().take(60).collect();
    let Some((node, port)) = text.split_once('.') else {
        return Err(KeyFault::at(path, format!("{quoted:?} is not a port, as in \"naples.lan\"")));
    };
    let Some(id) = plan.port(text) else {
        let ports = plan.node(node).and_then(|node| plan.nodes.get(node)).map(|node| {
            node.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ")
        });
        let what = match ports {
            Some(ports) => {
                let (node, port) = (short(node), short(port));
                format!("{node:?} has no port {port:?}, but {ports}")
            }
            None => format!("there is no host, router or gateway {:?}", short(node)),
        };
        return Err(KeyFault::at(path, what));
    };
    let found = plan.nodes.get_mut(id.node).and_then(|node| node.ports.get_mut(id.port));
    let Some(port) = found else {
        return Err(KeyFault::at(path, format!("{quoted:?} is not a port")));
    };
    if port.link != LOOSE {
        let other = port.link;
        let what = format!("links[{other}] ends at {quoted:?} already; a port has one link");
        return Err(KeyFault::at(path, what));
    }
    (port.link, port.end, port.mtu) = (link, end, mtu);
    Ok(id)
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Checks that no address or prefix occurs twice, and that the addresses at the ends of a link
/// agree.
pub(super) fn addresses(plan: &NetworkPlan) -> Result<(), KeyFault> {
    let mut seen: BTreeMap<IpAddr, String> = BTreeMap::new();
    for node in &plan.nodes {
        for port in &node.ports {
            let path = addresses_path(node, port);
            for address in &port.addresses {
                if let Some(other) = seen.insert(address.ip(), path.clone()) {
                    let what = format!("{} is an address in {other}, too", address.ip());
                    return Err(KeyFault::at(path, what));
                }
            }
        }
    }
    let mut owners = BTreeMap::new();
    for (place, wire) in plan.links.iter().enumerate() {
        let [Some(one), Some(other)] = wire.ends.map(|id| port(plan, id)) else { continue };
        meet(place, wire, one, other)?;
        meet(place, wire, other, one)?;
        for address in one.1.addresses.iter().chain(&other.1.addresses) {
            let owner = *owners.entry(address.prefix()).or_insert(place);
            if owner != place {
                let what = format!(
                    "{} is the prefix of links[{owner}], too; each link needs its own",
                    address.prefix()
                );
                return Err(KeyFault::at(format!("links[{place}]"), what));
            }
        }
        let six = one.1.addresses.iter().chain(&other.1.addresses).any(|a| a.ip().is_ipv6());
        if six && wire.link.mtu < 1_280 {
            let what = format!("{}: a link with IPv6 takes 1,280 (RFC 8200 5)", wire.link.mtu);
            return Err(KeyFault::at(format!("links[{place}].mtu"), what));
        }
    }
    Ok(())
}

fn addresses_path(node: &PlanNode, port: &Port) -> String {
    match node.kind {
        NodeKind::Gateway => format!("gateways.{}.{}.addresses", node.name, port.name),
        kind => format!("{}.{}.ports.{}.addresses", kind.key(), node.name, port.name),
    }
}

fn port(plan: &NetworkPlan, id: PortId) -> Option<(&PlanNode, &Port)> {
    let node = plan.nodes.get(id.node)?;
    Some((node, node.ports.get(id.port)?))
}

/// Checks that every address at this end has its prefix at the other end, if that has addresses of
/// its family.
fn meet(
    place: usize,
    wire: &PlanLink,
    one: (&PlanNode, &Port),
    other: (&PlanNode, &Port),
) -> Result<(), KeyFault> {
    for address in &one.1.addresses {
        let mut family = other
            .1
            .addresses
            .iter()
            .filter(|far: &&Address| far.ip().is_ipv4() == address.ip().is_ipv4())
            .peekable();
        if family.peek().is_some() && !family.any(|far| far.prefix() == address.prefix()) {
            let far = wire.link.ends.get(1 - usize::from(one.1.end == 1).min(1));
            let far = far.map_or("the other end", String::as_str);
            let what =
                format!("{address} shares its prefix with no address of {far} (links[{place}])");
            return Err(KeyFault::at(addresses_path(one.0, one.1), what));
        }
    }
    Ok(())
}

/// Checks that every node is reachable from the first host, as if gateways passed all packets.
pub(super) fn connected(plan: &NetworkPlan) -> Result<(), KeyFault> {
    let mut reached = vec![false; plan.nodes.len()];
    let mut next = vec![0];
    while let Some(node) = next.pop() {
        let Some(seen) = reached.get_mut(node) else { continue };
        if std::mem::replace(seen, true) {
            continue;
        }
        let ports = plan.nodes.get(node).map_or(0, |node| node.ports.len());
        let far = (0..ports).filter_map(|port| plan.far_end(PortId { node, port }));
        next.extend(far.map(|id| id.node));
    }
    let lost = plan.nodes.iter().zip(&reached).find(|(_, reached)| !**reached);
    if let (Some((node, _)), Some(first)) = (lost, plan.nodes.first()) {
        let path = format!("{}.{}", node.kind.key(), node.name);
        return Err(KeyFault::at(path, format!("no path leads here from hosts.{}", first.name)));
    }
    Ok(())
}
