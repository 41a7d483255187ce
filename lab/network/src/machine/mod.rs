//! The network as one machine: lines, routers and gateways, each with its deadline.

mod build;

use crate::agenda::Deadlines;
use crate::api::{HostId, Input, Output, TapDirection};
use crate::gateway::{self, Gateway};
use crate::line::{LineEvent, LinkLine};
use crate::plan::{NetworkPlan, NodeKind, PortId};
use router::count::PartCounters;
use router::{FlowTables, Router, Time};
use std::collections::VecDeque;

/// The state of a node of the plan.
#[derive(Debug)]
enum NodeState {
    Host,
    Router(Box<Router>),
    Gateway(Box<Gateway>),
}

/// A network. After each `handle`, call `poll` until it returns `None`.
///
/// Every event has its own time, however late `handle` is called: the next transmission of a line
/// begins at the end of the previous one, not at the time of the call.
#[derive(Debug)]
pub struct NetworkMachine {
    plan: NetworkPlan,
    nodes: Vec<NodeState>,
    lines: Vec<LinkLine>,
    /// Deadlines of the lines, then of the nodes.
    agenda: Deadlines,
    /// Ports whose arrivals are copied, by node and port.
    taps: Vec<Vec<bool>>,
    /// Lines that may have outputs.
    touched: Vec<usize>,
    outputs: VecDeque<Output>,
    now: Time,
}

impl NetworkMachine {
    /// Takes an input, after everything that was due before it. If `now` is before the last input,
    /// the time of that input applies.
    pub fn handle(&mut self, now: Time, input: Input) {
        let now = now.max(self.now);
        self.advance(now);
        self.now = now;
        match input {
            Input::Packet { host, port, octets } => {
                let id = PortId { node: host.0, port };
                if self.plan.nodes.get(host.0).is_some_and(|node| node.kind == NodeKind::Host) {
                    self.send(now, id, octets);
                } else {
                    self.outputs.push_back(Output::Recycle(octets));
                }
                self.settle();
                self.advance(now);
            }
            Input::Tick => {}
            Input::Tap { port, on } => self.tap(port, on),
        }
    }

    /// The next output; `None` if there is none.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The time at which the network needs an [`Input::Tick`]; `None` while it is idle.
    pub fn deadline(&self) -> Option<Time> {
        self.agenda.first().map(|(_, due)| due)
    }

    /// The plan that it was built from.
    pub fn plan(&self) -> &NetworkPlan {
        &self.plan
    }

    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        let place = self.plan.node(name)?;
        matches!(self.nodes.get(place), Some(NodeState::Host)).then_some(HostId(place))
    }

    /// The router with this name.
    pub fn router(&self, name: &str) -> Option<&Router> {
        match self.nodes.get(self.plan.node(name)?)? {
            NodeState::Router(router) => Some(router),
            _ => None,
        }
    }

    /// Changes the tables of flows of the router with this name; `poll` returns the outputs that
    /// the change causes. `None` if there is no such router.
    pub fn change<T>(
        &mut self,
        now: Time,
        router: &str,
        change: impl FnOnce(&mut FlowTables) -> T,
    ) -> Option<T> {
        self.advance(now);
        let node = self.plan.node(router)?;
        let Some(NodeState::Router(router)) = self.nodes.get_mut(node) else { return None };
        let changed = router.change(now, change);
        self.drain_router(now, node);
        self.settle();
        Some(changed)
    }

    /// The counters of every part: of lines by the port that sends (`naples.lan/line`), of routers
    /// (`sar/wan/...`) and gateways by node.
    pub fn report(&self) -> Vec<PartCounters<'_>> {
        let mut parts = Vec::new();
        for (wire, line) in self.plan.links.iter().zip(&self.lines) {
            for (end, id) in wire.ends.iter().enumerate() {
                let Some(counters) = line.counters(end) else { continue };
                let path = format!("{}/line", self.plan.port_name(*id));
                parts.push(PartCounters { path, kind: "line", counters });
            }
        }
        for (planned, node) in self.plan.nodes.iter().zip(&self.nodes) {
            match node {
                NodeState::Host => {}
                NodeState::Gateway(gateway) => gateway.report(&planned.name, &mut parts),
                NodeState::Router(router) => {
                    parts.extend(router.report().into_iter().map(|part| {
                        let path = format!("{}/{}", planned.name, part.path);
                        PartCounters { path, ..part }
                    }));
                }
            }
        }
        parts
    }

    /// Packets inside: waiting at ports, held by routers, or in flight.
    pub fn inside(&self) -> usize {
        let lines: usize = self.lines.iter().map(LinkLine::inside).sum();
        let routers = self.nodes.iter().map(|node| match node {
            NodeState::Router(router) => router.inside(),
            _ => 0,
        });
        lines + routers.sum::<usize>()
    }

    fn tap(&mut self, id: PortId, on: bool) {
        let tap = self.taps.get_mut(id.node).and_then(|ports| ports.get_mut(id.port));
        let port = self.plan.nodes.get(id.node).and_then(|node| node.ports.get(id.port));
        let (Some(tap), Some(port)) = (tap, port) else { return };
        *tap = on;
        if let Some(line) = self.lines.get_mut(port.link) {
            line.tap(port.end, on);
        }
    }

    /// Handles everything that is due until `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        while let Some((part, due)) = self.agenda.first().filter(|(_, due)| *due <= now) {
            let due = due.max(self.now);
            self.now = due;
            if let Some(line) = self.lines.get_mut(part) {
                line.tick(due);
                self.touched.push(part);
            } else {
                let node = part - self.lines.len();
                if let Some(NodeState::Router(router)) = self.nodes.get_mut(node) {
                    router.handle(due, router::router::Input::Tick);
                }
                self.drain_router(due, node);
                // The part has handled what was due. If it is due again at the same time, it is
                // called a nanosecond later, so that time advances.
                let next =
                    self.agenda.first().filter(|(again, next)| *again == part && *next <= due);
                if next.is_some() {
                    self.agenda.set(part, Some(Time(due.0.saturating_add(1))));
                }
            }
            self.settle();
        }
    }

    /// Offers a packet to the line at a port.
    fn send(&mut self, now: Time, id: PortId, octets: Vec<u8>) {
        let port = self.plan.nodes.get(id.node).and_then(|node| node.ports.get(id.port));
        let line = port.and_then(|port| Some((port, self.lines.get_mut(port.link)?)));
        let Some((port, line)) = line else {
            return self.outputs.push_back(Output::Recycle(octets));
        };
        line.offer(now, port.end, octets);
        self.touched.push(port.link);
    }

    /// Handles the outputs of lines, until there are none.
    fn settle(&mut self) {
        while let Some(place) = self.touched.pop() {
            while let Some(event) = self.lines.get_mut(place).and_then(LinkLine::poll) {
                self.event(place, event);
            }
            let due = self.lines.get(place).and_then(LinkLine::deadline);
            self.agenda.set(place, due);
        }
    }

    fn event(&mut self, line: usize, event: LineEvent) {
        match event {
            LineEvent::Dropped { octets, .. } => self.outputs.push_back(Output::Recycle(octets)),
            LineEvent::Free { end, at } => {
                let Some(id) = self.end(line, end) else { return };
                if let Some(NodeState::Router(router)) = self.nodes.get_mut(id.node) {
                    router.handle(at, router::router::Input::Free { interface: id.port });
                    self.drain_router(at, id.node);
                }
            }
            LineEvent::Began { end, octets, at } => {
                let Some(port) = self.end(line, end) else { return };
                self.outputs.push_back(Output::Tap {
                    port,
                    direction: TapDirection::Out,
                    at,
                    octets,
                });
            }
            LineEvent::Arrived { end, octets, at } => {
                let Some(id) = self.end(line, end) else { return };
                self.arrived(at, id, octets);
            }
        }
    }

    fn end(&self, line: usize, end: usize) -> Option<PortId> {
        self.plan.links.get(line)?.ends.get(end).copied()
    }

    fn arrived(&mut self, at: Time, id: PortId, octets: Vec<u8>) {
        if self.taps.get(id.node).and_then(|ports| ports.get(id.port)).is_some_and(|on| *on) {
            let (direction, octets) = (TapDirection::In, octets.clone());
            self.outputs.push_back(Output::Tap { port: id, direction, at, octets });
        }
        match self.nodes.get_mut(id.node) {
            None => self.outputs.push_back(Output::Recycle(octets)),
            Some(NodeState::Host) => {
                let host = HostId(id.node);
                self.outputs.push_back(Output::Deliver { host, port: id.port, octets, at });
            }
            Some(NodeState::Router(router)) => {
                router.handle(at, router::router::Input::Packet { interface: id.port, octets });
                self.drain_router(at, id.node);
            }
            Some(NodeState::Gateway(gateway)) => {
                gateway.handle(at, id.port, octets);
                self.drain_gateway(at, id.node);
            }
        }
    }

    fn drain_router(&mut self, at: Time, node: usize) {
        use router::router::Output as RouterOutput;
        loop {
            let Some(NodeState::Router(router)) = self.nodes.get_mut(node) else { return };
            let Some(output) = router.poll() else {
                let due = router.deadline();
                return self.agenda.set(self.lines.len() + node, due);
            };
            match output {
                RouterOutput::Send { interface, packet } => {
                    self.send(at, PortId { node, port: interface }, packet.into_octets());
                }
                RouterOutput::Dropped { packet, .. } | RouterOutput::Arrived { packet } => {
                    self.outputs.push_back(Output::Recycle(packet.into_octets()));
                }
                RouterOutput::Refused { octets, .. } => {
                    self.outputs.push_back(Output::Recycle(octets));
                }
            }
        }
    }

    fn drain_gateway(&mut self, at: Time, node: usize) {
        loop {
            let Some(NodeState::Gateway(gateway)) = self.nodes.get_mut(node) else { return };
            match gateway.poll() {
                None => return,
                Some(gateway::GatewayOutput::Send { port, octets }) => {
                    self.send(at, PortId { node, port }, octets);
                }
                Some(
                    gateway::GatewayOutput::Drop { octets, .. }
                    | gateway::GatewayOutput::Taken { octets },
                ) => {
                    self.outputs.push_back(Output::Recycle(octets));
                }
            }
        }
    }
}
