//! The network's machine in real time: one thread reads what hosts send, passes it to the machine,
//! and writes what the machine delivers.

use crate::TimeOrigin;
use crate::carrier::flood::Floods;
use crate::carrier::hosts::HostPort;
use crate::carrier::kind::DataPathKind;
use crate::carrier::path::DataPath;
use crate::carrier::ports::{Pool, Ports};
use crate::carrier::tap::TapSender;
use crate::control::ask::{Ask, Asked, FlowAsk, Passed, Questions, Reply};
use crate::control::status::{CarriedTraffic, NetworkStatus, nodes};
use anyhow::{Context, Result};
use network::{HostId, Input, NetworkMachine, Output, PortId, TapDirection};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::Duration;
use testbed::clock;

/// The longest sleep: the longest delay until the thread notices that the program must end.
const SLEEP: Duration = Duration::from_millis(500);

/// A receiver of the packets of a port.
struct Listener {
    port: PortId,
    to: TapSender,
}

/// The machine with the hosts' ports.
pub(crate) struct Driver<P> {
    kind: DataPathKind,
    core: Core,
    ports: P,
    numbers: Vec<HostPort>,
}

/// All but the ports, so that both can be changed at once.
struct Core {
    network: NetworkMachine,
    /// The number of each host's port.
    places: BTreeMap<HostPort, usize>,
    pool: Pool,
    listeners: Vec<Listener>,
    floods: Floods,
    carried: CarriedTraffic,
    origin: TimeOrigin,
}

impl<P: Ports> Driver<P> {
    pub(crate) fn new(
        kind: DataPathKind,
        network: NetworkMachine,
        ports: P,
        numbers: Vec<HostPort>,
    ) -> Driver<P> {
        let places = numbers.iter().enumerate().map(|(number, port)| (*port, number)).collect();
        let core = Core {
            network,
            places,
            pool: Pool::default(),
            listeners: Vec::new(),
            floods: Floods::default(),
            carried: CarriedTraffic::default(),
            origin: TimeOrigin::now(),
        };
        Driver { kind, core, ports, numbers }
    }

    /// Reads each port that is ready, and passes the packets to the machine. Returns whether more may wait.
    fn read(&mut self, ready: &mut [bool], batch: &mut Vec<Vec<u8>>) -> Result<bool> {
        let mut more = false;
        let all = self.numbers.iter().enumerate().zip(ready);
        for ((number, port), ready) in all.filter(|(_, ready)| **ready) {
            *ready = self.ports.receive(number, &mut self.core.pool, batch)?;
            more |= *ready;
            for octets in batch.drain(..) {
                let now = self.core.origin.time();
                self.core.carried.from_hosts.add(octets.len());
                let (host, port) = (HostId(port.node), port.port);
                self.core.network.handle(now, Input::Packet { host, port, octets });
                self.core.settle(&mut self.ports);
            }
        }
        Ok(more)
    }

    /// Makes the packets of floods that are due. Returns whether more are due.
    fn flood(&mut self) -> bool {
        let Core { network, floods, origin, .. } = &mut self.core;
        let now = origin.time();
        if floods.deadline().is_none_or(|due| due > now) {
            return false;
        }
        let more = floods.due(now, |host, port, octets| {
            network.handle(now, Input::Packet { host, port, octets });
        });
        self.core.settle(&mut self.ports);
        more
    }

    /// Waits until a port is readable, a question comes, or the machine's next moment.
    fn sleep(&self, questions: &Questions, at_once: bool, ready: &mut [bool]) -> Result<bool> {
        let now = self.core.origin.time();
        let due = [self.core.network.deadline(), self.core.floods.deadline()];
        let until = due.into_iter().flatten().min().map(|at| at.duration_since(now));
        let wait = if at_once { Duration::ZERO } else { until.map_or(SLEEP, |at| at.min(SLEEP)) };
        let descriptors = self.ports.descriptors();
        let mut watched: Vec<PollFd<'_>> =
            descriptors.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        watched.push(PollFd::new(questions.wake.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut watched, Some(TimeSpec::from_duration(wait)), None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error).context("ppoll(2)"),
        }
        for (ready, watched) in ready.iter_mut().zip(&watched) {
            *ready |= watched.any().unwrap_or(false);
        }
        Ok(watched.last().is_some_and(|wake| wake.any().unwrap_or(false)))
    }
}

impl<P: Ports> DataPath for Driver<P> {
    fn run(&mut self, questions: &mut Questions) -> Result<()> {
        // The kernel rounds the sleep of a thread up by its slack: 50 us by default.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut ready = vec![false; self.numbers.len()];
        let mut batch = Vec::new();
        let mut more = false;
        while !clock::is_interrupted() {
            if self.sleep(questions, more, &mut ready)? {
                questions.woken();
                while let Some(Asked { ask, answer }) = questions.next() {
                    if matches!(ask, Ask::Status) {
                        self.core.carried.not_read = self.ports.not_read();
                    }
                    // The client may have closed its connection.
                    let _ = answer.send(self.core.answer(self.kind, ask));
                    self.core.settle(&mut self.ports);
                }
            }
            more = self.read(&mut ready, &mut batch)?;
            more |= self.flood();
            let now = self.core.origin.time();
            if self.core.network.deadline().is_some_and(|at| at <= now) {
                self.core.network.handle(now, Input::Tick);
                self.core.settle(&mut self.ports);
            }
            self.core.carried.not_taken += self.ports.flush(&mut self.core.pool);
        }
        Ok(())
    }

    fn status(&mut self) -> Result<NetworkStatus> {
        self.core.carried.not_read = self.ports.not_read();
        Ok(self.core.counters(self.kind))
    }
}

impl Core {
    /// Carries out the outputs of the machine.
    fn settle(&mut self, ports: &mut impl Ports) {
        while let Some(output) = self.network.poll() {
            match output {
                Output::Deliver { host, port, octets, .. } => {
                    if self.floods.take(self.origin.time(), &octets) {
                        self.pool.give(octets);
                        continue;
                    }
                    let Some(number) = self.places.get(&HostPort { node: host.0, port }) else {
                        continue;
                    };
                    self.carried.to_hosts.add(octets.len());
                    let taken = ports.send(*number, octets, &mut self.pool);
                    self.carried.not_taken += u64::from(!taken);
                }
                Output::Recycle(memory) => self.pool.give(memory),
                Output::Tap { port, direction, at, octets } => {
                    let at = self.origin.since_1970(at);
                    let inbound = direction == TapDirection::In;
                    self.attach_tap(port, &Passed { at, inbound, octets });
                }
            }
        }
    }

    /// Passes a packet to the listeners of its port. A slow listener misses it; nothing waits.
    fn attach_tap(&mut self, port: PortId, packet: &Passed) {
        let there = self.listeners.iter().filter(|listener| listener.port == port);
        let missed = there.filter(|listener| !listener.to.send(packet) && !listener.to.is_over());
        self.carried.captures_missed += missed.count() as u64;
    }

    /// Removes listeners that have ended, and the taps of ports without a listener.
    fn sweep(&mut self) {
        let over = |listener: &Listener| listener.to.is_over().then_some(listener.port);
        let left: Vec<PortId> = self.listeners.iter().filter_map(over).collect();
        self.listeners.retain(|listener| !listener.to.is_over());
        let now = self.origin.time();
        for port in left {
            if !self.listeners.iter().any(|listener| listener.port == port) {
                self.network.handle(now, Input::Tap { port, on: false });
            }
        }
    }

    fn counters(&self, kind: DataPathKind) -> NetworkStatus {
        let now = self.origin.time();
        NetworkStatus::new(kind, now, self.carried, nodes(&self.network, now))
    }

    fn answer(&mut self, kind: DataPathKind, ask: Ask) -> Result<Reply, String> {
        match ask {
            Ask::Status => Ok(Reply::Status(Box::new(self.counters(kind)))),
            Ask::Flow { router, ask } => self.flow(&router, ask),
            Ask::Listen { port, to } => {
                let place = self.network.plan().port(&port);
                let place = place.ok_or_else(|| format!("no port {port}: {}", self.known()))?;
                self.listeners.push(Listener { port: place, to });
                let now = self.origin.time();
                self.network.handle(now, Input::Tap { port: place, on: true });
                Ok(Reply::Done)
            }
            Ask::Flood(ask) => {
                let now = self.origin.time();
                self.floods.add(now, &self.network, ask).map(|()| Reply::Done)
            }
            Ask::Floods => Ok(Reply::Floods(self.floods.status())),
            Ask::Sweep => {
                self.sweep();
                Ok(Reply::Done)
            }
        }
    }

    fn flow(&mut self, name: &str, ask: FlowAsk) -> Result<Reply, String> {
        let now = self.origin.time();
        let none = || format!("no router {name}");
        match ask {
            FlowAsk::Add { table, flow, before } => {
                let added = self.network.change(now, name, |tables| match before {
                    None => tables.add(&table, flow),
                    Some(other) => tables.add_before(&table, flow, &other),
                });
                added.ok_or_else(none)?.map(|()| Reply::Done).map_err(|wrong| wrong.to_string())
            }
            FlowAsk::Replace { table, flow } => {
                let old = self.network.change(now, name, |tables| tables.replace(&table, flow));
                old.ok_or_else(none)?.map(|_| Reply::Done).map_err(|wrong| wrong.to_string())
            }
            FlowAsk::Delete { table, flow } => {
                let removed = self.network.change(now, name, |tables| tables.remove(&table, &flow));
                removed.ok_or_else(none)?.map(|_| Reply::Done).map_err(|no| no.to_string())
            }
            FlowAsk::List { table: wanted } => {
                let tables = self.network.router(name).ok_or_else(none)?.tables();
                let names = tables
                    .names()
                    .filter(|name| wanted.as_deref().is_none_or(|wanted| wanted == *name));
                let listed: Vec<_> = names
                    .filter_map(|name| {
                        let flows = tables.flows(tables.place(name)?).cloned().collect();
                        Some((name.to_owned(), flows))
                    })
                    .collect();
                match wanted {
                    Some(wanted) if listed.is_empty() => Err(format!("no table {wanted:?}")),
                    _ => Ok(Reply::Flows(listed)),
                }
            }
        }
    }

    /// The names of all ports, for an error message.
    fn known(&self) -> String {
        let plan = self.network.plan();
        let nodes = plan.nodes.iter();
        let ports = nodes
            .flat_map(|node| node.ports.iter().map(move |p| format!("{}.{}", node.name, p.name)));
        ports.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::tap::tap;

    const PAIR: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.0.1.1/24"]
[[links]]
ends = ["a.eth0", "b.eth0"]
"#;

    #[test]
    fn listeners_of_an_idle_port_are_removed() {
        let topology = network::Topology::read(PAIR).unwrap();
        let network = NetworkMachine::new(&topology, &BTreeMap::new(), 1).unwrap();
        let mut core = Core {
            network,
            places: BTreeMap::new(),
            pool: Pool::default(),
            listeners: Vec::new(),
            floods: Floods::default(),
            carried: CarriedTraffic::default(),
            origin: TimeOrigin::now(),
        };
        let mut listen = || {
            let (to, receiver) = tap();
            core.answer(DataPathKind::Tun, Ask::Listen { port: "a.eth0".to_owned(), to }).unwrap();
            receiver
        };
        let (one, _other) = (listen(), listen());
        drop(one);
        core.answer(DataPathKind::Tun, Ask::Sweep).unwrap();
        assert_eq!(core.listeners.len(), 1);
    }
}
