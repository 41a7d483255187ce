//! Builds a network from its topology.

use super::{NetworkMachine, NodeState};
use crate::agenda::Deadlines;
use crate::gateway::Gateway;
use crate::line::{LineEnd, LinkLine};
use crate::plan::{NetworkPlan, NodeKind, PortId, RouteNextHop};
use crate::topology::Topology;
use router::policy::{KeyFault, Name, RouterPolicy};
use router::{InterfaceRoute, InterfaceSetup, Rng, Router, RouterSetup, Time};
use std::collections::{BTreeMap, VecDeque};

impl NetworkMachine {
    /// Builds a network, or returns the fault of its topology or policies. The same seed and the
    /// same inputs give the same outputs: the seed determines loss, jitter and random drops of
    /// routers.
    ///
    /// # Errors
    /// Those of [`NetworkPlan::new`]; an unknown policy of a router; a fault in a policy.
    pub fn new(
        topology: &Topology,
        policies: &BTreeMap<Name, RouterPolicy>,
        seed: u64,
    ) -> Result<NetworkMachine, KeyFault> {
        let plan = NetworkPlan::new(topology)?;
        let mut seeds = Rng::new(seed);
        let mut nodes = Vec::new();
        for (place, node) in plan.nodes.iter().enumerate() {
            nodes.push(match node.kind {
                NodeKind::Host => NodeState::Host,
                NodeKind::Router => {
                    let setup = setup(topology, &plan, place, policies, seeds.next_u64())?;
                    NodeState::Router(Box::new(router(topology, &setup)?))
                }
                NodeKind::Gateway => {
                    let gateway = Gateway::new(topology, &plan, place).ok_or_else(|| {
                        KeyFault::at(format!("gateways.{}", node.name), "it is not in the topology")
                    })?;
                    NodeState::Gateway(Box::new(gateway))
                }
            });
        }
        let lines: Vec<LinkLine> = plan
            .links
            .iter()
            .map(|wire| {
                let ends = wire.ends.map(|id| end(&plan, id, wire.link.rate.is_some()));
                LinkLine::new(&wire.link, ends, seeds.next_u64())
            })
            .collect();
        let agenda = Deadlines::new(lines.len() + nodes.len());
        let taps = plan.nodes.iter().map(|node| vec![false; node.ports.len()]).collect();
        let (touched, outputs) = (Vec::new(), VecDeque::new());
        Ok(NetworkMachine { plan, nodes, lines, agenda, taps, touched, outputs, now: Time::ZERO })
    }
}

fn end(plan: &NetworkPlan, id: PortId, timed: bool) -> LineEnd {
    let node = plan.nodes.get(id.node);
    let paced = timed && node.is_some_and(|node| node.kind == NodeKind::Router);
    let queue = node.and_then(|node| node.ports.get(id.port)).map_or(1, |port| port.queue);
    LineEnd { queue, paced, tapped: false }
}

fn setup(
    topology: &Topology,
    plan: &NetworkPlan,
    place: usize,
    policies: &BTreeMap<Name, RouterPolicy>,
    seed: u64,
) -> Result<RouterSetup, KeyFault> {
    let Some(node) = plan.nodes.get(place) else { return Ok(RouterSetup::default()) };
    let named = topology.routers.get(&node.name).and_then(|router| router.policy.as_ref());
    let policy = match named {
        None => RouterPolicy::default(),
        Some(name) => policies.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = policies.keys().map(String::as_str).collect();
            let what = format!("there is no policy {name:?}; there are: {}", known.join(", "));
            KeyFault::at(format!("routers.{}.policy", node.name), what)
        })?,
    };
    let interfaces = node.ports.iter().map(|port| InterfaceSetup {
        name: port.name.clone(),
        addresses: port.addresses.iter().map(|one| (one.ip(), one.length())).collect(),
        mtu: port.mtu,
        paced: plan.links.get(port.link).is_some_and(|wire| wire.link.rate.is_some()),
    });
    let routes = node.routes.iter().filter_map(|route| match route.next_hop {
        RouteNextHop::Port(interface) => Some(InterfaceRoute { to: route.to, interface }),
        RouteNextHop::Tunnel(_) => None,
    });
    Ok(RouterSetup {
        name: node.name.clone(),
        interfaces: interfaces.collect(),
        routes: routes.collect(),
        policy,
        seed,
    })
}

/// Builds a router. A fault of its policy is reported with the name of the policy.
fn router(topology: &Topology, setup: &RouterSetup) -> Result<Router, KeyFault> {
    Router::new(setup).map_err(|wrong| {
        let policy = topology.routers.get(&setup.name).and_then(|router| router.policy.clone());
        let path = match policy {
            Some(policy) => {
                format!("policies.{policy} (of routers.{}): {}", setup.name, wrong.path)
            }
            None => format!("routers.{}: {}", setup.name, wrong.path),
        };
        KeyFault::at(path, wrong.what)
    })
}
