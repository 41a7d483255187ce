//! The hosts' namespaces: interfaces, addresses, routes, settings.

use anyhow::{Context, Result};
use network::plan::{NetworkPlan, PlanNode, RouteNextHop};
use network::topology::TopologyHost;
use std::collections::BTreeMap;
use testbed::netns::{Netns, has_ipv6};

/// A host's port: its host's place among the hosts, and its own in the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    /// The node's place in the plan.
    pub(crate) node: usize,
    /// The port's place in the node.
    pub(crate) port: usize,
}

/// A namespace for each host, by the host's place in the plan.
#[derive(Debug)]
pub(crate) struct Hosts {
    namespaces: BTreeMap<usize, Netns>,
}

impl Hosts {
    /// Makes them, with nothing but a loopback in them.
    pub(crate) fn new(plan: &NetworkPlan, of: &BTreeMap<String, TopologyHost>) -> Result<Hosts> {
        let mut namespaces = BTreeMap::new();
        for (place, node) in plan.hosts() {
            let namespace =
                Netns::new().with_context(|| format!("a namespace for {}", node.name))?;
            namespace.prepare().with_context(|| format!("the namespace of {}", node.name))?;
            if let Some(host) = of.get(&node.name) {
                settings(&node.name, &namespace, host)
                    .with_context(|| format!("hosts.{}", node.name))?;
            }
            namespaces.insert(place, namespace);
        }
        Ok(Hosts { namespaces })
    }

    /// That of a host.
    pub(crate) fn namespace(&self, place: usize) -> Option<&Netns> {
        self.namespaces.get(&place)
    }

    /// The ports of all hosts, in the order of the plan.
    pub(crate) fn ports(plan: &NetworkPlan) -> Vec<HostPort> {
        let of = |(place, node): (usize, &PlanNode)| {
            (0..node.ports.len())
                .map(move |port| HostPort { node: place, port })
                .collect::<Vec<_>>()
        };
        plan.hosts().flat_map(of).collect()
    }

    /// Gives interfaces that are there their addresses and routes, and brings them up.
    pub(crate) fn configure(&self, plan: &NetworkPlan, more: &[&str]) -> Result<()> {
        for (place, node) in plan.hosts() {
            let Some(namespace) = self.namespace(place) else { continue };
            namespace.ip(&lines(node, more)).with_context(|| format!("host {}", node.name))?;
        }
        Ok(())
    }
}

fn settings(name: &str, namespace: &Netns, host: &TopologyHost) -> Result<()> {
    if let Some(control) = &host.congestion_control {
        // A machine-wide setting permits controls in namespaces, and the lab does not change it.
        if namespace.set("ipv4/tcp_congestion_control", control).is_err() {
            let taken = namespace.get("ipv4/tcp_congestion_control")?;
            eprintln!(
                "hosts.{name}.congestion_control: no {control} in a namespace of this machine \
                 (modprobe tcp_{control}; sysctl net.ipv4.tcp_allowed_congestion_control): {taken} \
                 is taken"
            );
        }
    }
    for (name, value) in &host.sysctls {
        let path = name.strip_prefix("net.").unwrap_or(name).replace('.', "/");
        namespace.set(&path, &value.0).with_context(|| format!("sysctls.{name:?}"))?;
    }
    Ok(())
}

/// The lines for `ip -batch` inside a host: links first, because routes need them up.
pub(crate) fn lines(node: &PlanNode, more: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for port in &node.ports {
        let name = &port.name;
        for words in more {
            lines.push(format!("link set dev {name} {words}"));
        }
        // Packets of a fast sender wait in the interface, as in a network card's ring.
        lines.push(format!("link set dev {name} mtu {} txqueuelen 1000 up", port.mtu));
    }
    let six = has_ipv6();
    for port in &node.ports {
        for address in port.addresses.iter().filter(|address| six || address.ip().is_ipv4()) {
            let nodad = if address.ip().is_ipv6() { " nodad" } else { "" };
            lines.push(format!("address add {address} dev {}{nodad}", port.name));
        }
    }
    for route in &node.routes {
        let RouteNextHop::Port(port) = route.next_hop else { continue };
        let to = route.to;
        let Some(port) = node.ports.get(port) else { continue };
        // The kernel adds the routes of the addresses itself.
        let own = port.addresses.iter().any(|address| address.prefix() == to);
        if own || (to.address().is_ipv6() && !six) {
            continue;
        }
        lines.push(format!("route replace {to} dev {}", port.name));
    }
    lines
}
