//! Builds a network from its topology.

use super::{Network, Node};
use crate::agenda::Agenda;
use crate::gateway::Gateway;
use crate::line::{End, Line};
use crate::plan::{Kind, NextHop, Plan, PortId};
use crate::topology::Topology;
use router::policy::{Name, Policy, Wrong};
use router::{InterfaceSetup, Rng, Route, Router, Setup, Time};
use std::collections::{BTreeMap, VecDeque};

impl Network {
    /// Builds a network, or returns the fault of its topology or policies. The same seed and the
    /// same inputs give the same outputs: the seed determines loss, jitter and random drops of
    /// routers.
    ///
    /// # Errors
    /// Those of [`Plan::new`]; an unknown policy of a router; a fault in a policy.
    pub fn new(
        topology: &Topology,
        policies: &BTreeMap<Name, Policy>,
        seed: u64,
    ) -> Result<Network, Wrong> {
        let plan = Plan::new(topology)?;
        let mut seeds = Rng::new(seed);
        let mut nodes = Vec::new();
        for (place, node) in plan.nodes.iter().enumerate() {
            nodes.push(match node.kind {
                Kind::Host => Node::Host,
                Kind::Router => {
                    let setup = setup(topology, &plan, place, policies, seeds.next_u64())?;
                    Node::Router(Box::new(router(topology, &setup)?))
                }
                Kind::Gateway => {
                    let gateway = Gateway::new(topology, &plan, place).ok_or_else(|| {
                        Wrong::at(format!("gateways.{}", node.name), "it is not in the topology")
                    })?;
                    Node::Gateway(Box::new(gateway))
                }
            });
        }
        let lines: Vec<Line> = plan
            .links
            .iter()
            .map(|wire| {
                let ends = wire.ends.map(|id| end(&plan, id, wire.link.rate.is_some()));
                Line::new(&wire.link, ends, seeds.next_u64())
            })
            .collect();
        let agenda = Agenda::new(lines.len() + nodes.len());
        let taps = plan.nodes.iter().map(|node| vec![false; node.ports.len()]).collect();
        let (touched, outputs) = (Vec::new(), VecDeque::new());
        Ok(Network { plan, nodes, lines, agenda, taps, touched, outputs, now: Time::ZERO })
    }
}

fn end(plan: &Plan, id: PortId, timed: bool) -> End {
    let node = plan.nodes.get(id.node);
    let paced = timed && node.is_some_and(|node| node.kind == Kind::Router);
    let queue = node.and_then(|node| node.ports.get(id.port)).map_or(1, |port| port.queue);
    End { queue, paced, tapped: false }
}

fn setup(
    topology: &Topology,
    plan: &Plan,
    place: usize,
    policies: &BTreeMap<Name, Policy>,
    seed: u64,
) -> Result<Setup, Wrong> {
    let Some(node) = plan.nodes.get(place) else { return Ok(Setup::default()) };
    let named = topology.routers.get(&node.name).and_then(|router| router.policy.as_ref());
    let policy = match named {
        None => Policy::default(),
        Some(name) => policies.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = policies.keys().map(String::as_str).collect();
            let what = format!("there is no policy {name:?}; there are: {}", known.join(", "));
            Wrong::at(format!("routers.{}.policy", node.name), what)
        })?,
    };
    let interfaces = node.ports.iter().map(|port| InterfaceSetup {
        name: port.name.clone(),
        addresses: port.addresses.iter().map(|one| (one.ip(), one.length())).collect(),
        mtu: port.mtu,
        paced: plan.links.get(port.link).is_some_and(|wire| wire.link.rate.is_some()),
    });
    let routes = node.routes.iter().filter_map(|route| match route.way {
        NextHop::Port(interface) => Some(Route { to: route.to, interface }),
        NextHop::Tunnel(_) => None,
    });
    Ok(Setup {
        name: node.name.clone(),
        interfaces: interfaces.collect(),
        routes: routes.collect(),
        policy,
        seed,
    })
}

/// Builds a router. A fault of its policy is reported with the name of the policy.
fn router(topology: &Topology, setup: &Setup) -> Result<Router, Wrong> {
    Router::new(setup).map_err(|wrong| {
        let policy = topology.routers.get(&setup.name).and_then(|router| router.policy.clone());
        let path = match policy {
            Some(policy) => {
                format!("policies.{policy} (of routers.{}): {}", setup.name, wrong.path)
            }
            None => format!("routers.{}: {}", setup.name, wrong.path),
        };
        Wrong::at(path, wrong.what)
    })
}
