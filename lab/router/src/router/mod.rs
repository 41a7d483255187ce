//! The router: a packet enters at one interface, is conditioned, routed and queued, and leaves at
//! another.

mod interface;
mod routes;

pub use interface::InterfaceSetup;
pub use routes::InterfaceRoute;

use crate::classify::FlowTables;
use crate::condition;
use crate::conditioner::PacketVerdict;
use crate::count::{Cause, PartCounters};
use crate::discipline::Discarded;
use crate::icmp::{self, ForwardingError};
use crate::meter::Bucket;
use crate::packet::{Malformed, Packet, fragment};
use crate::policy::{KeyFault, Name, RouterPolicy};
use crate::time::{Rate, Time};
use interface::RouterInterface;
use routes::RoutingTable;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Interfaces of a router, at most.
const MAX_INTERFACES: usize = 256;
/// Limit of the packets that a router originates: bits a second, and burst in octets.
const ANSWERS: (u64, u64) = (1_000_000, 64_000);

/// The parts of a router.
#[derive(Clone, Debug, Default)]
pub struct RouterSetup {
    /// Its name, for people.
    pub name: Name,
    /// Its interfaces. The position of an interface is its number.
    pub interfaces: Vec<InterfaceSetup>,
    /// Routes; the longest matching prefix applies. Directly connected prefixes are added.
    pub routes: Vec<InterfaceRoute>,
    /// The policy: conditioners and queueing of its interfaces.
    pub policy: RouterPolicy,
    /// The seed of the droppers that drop at random.
    pub seed: u64,
}

/// An input of a router.
#[derive(Debug)]
pub enum Input {
    /// A packet that arrived. Its octets begin with the IP header.
    Packet {
        /// The input interface.
        interface: usize,
        /// The packet.
        octets: Vec<u8>,
    },
    /// A paced interface is free for the next packet.
    Free {
        /// The interface.
        interface: usize,
    },
    /// The deadline has passed.
    Tick,
}

/// An output of a router.
#[derive(Debug)]
pub enum Output {
    /// Send a packet. A paced interface gets no further packet before [`Input::Free`].
    Send {
        /// The output interface.
        interface: usize,
        /// The packet.
        packet: Packet,
    },
    /// A packet was dropped.
    Dropped {
        /// The packet.
        packet: Packet,
        /// The cause.
        cause: Cause,
    },
    /// A packet addressed to the router itself arrived.
    Arrived {
        /// The packet.
        packet: Packet,
    },
    /// Octets that are not a packet were refused.
    Refused {
        /// The octets.
        octets: Vec<u8>,
        /// The reason.
        why: Malformed,
    },
}

/// The chain that a packet is in.
#[derive(Clone, Copy, Debug)]
enum ChainSide {
    Input,
    Output,
}

/// A router. After each `handle`, call `poll` until it returns `None`.
#[derive(Debug)]
pub struct Router {
    interfaces: Vec<RouterInterface>,
    routes: RoutingTable,
    tables: FlowTables,
    outputs: VecDeque<Output>,
    discarded: Discarded,
    /// The tokens for packets that the router originates.
    answers: Bucket,
}

impl Router {
    /// Builds a router, or returns the fault of its setup.
    ///
    /// # Errors
    /// A fault of the policy, in use or not; more than 256 interfaces; two interfaces of one name;
    /// a route to an unknown interface.
    pub fn new(setup: &RouterSetup) -> Result<Router, KeyFault> {
        if setup.interfaces.len() > MAX_INTERFACES {
            let what = format!("{} of them; at most {MAX_INTERFACES}", setup.interfaces.len());
            return Err(KeyFault::at("interfaces", what));
        }
        let names: Vec<Name> = setup.interfaces.iter().map(|one| one.name.clone()).collect();
        for (place, name) in names.iter().enumerate() {
            if names.iter().position(|other| other == name) != Some(place) {
                return Err(KeyFault::at(format!("interfaces.{name}"), "there twice"));
            }
        }
        for name in setup.policy.interfaces.keys().filter(|name| *name != "*") {
            if !names.contains(name) {
                let known = names.join(", ");
                let what = format!("this router has no such interface; it has {known}");
                return Err(KeyFault::at(format!("interfaces.{name}"), what));
            }
        }
        let interfaces = setup.interfaces.iter().enumerate();
        let interfaces = interfaces
            .map(|(place, one)| {
                let seed = setup.seed.wrapping_add(place as u64 * 0x9e37_79b9);
                RouterInterface::new(one, &setup.policy, &names, seed)
            })
            .collect::<Result<_, _>>()?;
        setup.policy.check(&names)?;
        let (bits, octets) = ANSWERS;
        let rate = Rate::from_bits(bits).ok_or_else(|| KeyFault::at("answers", "no rate"))?;
        Ok(Router {
            answers: Bucket::new(rate, octets),
            routes: RoutingTable::new(setup)?,
            tables: FlowTables::new(&setup.policy, &names)?,
            interfaces,
            outputs: VecDeque::new(),
            discarded: Discarded::new(),
        })
    }

    /// Takes an input; `poll` returns the outputs.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet { interface, octets } => match Packet::read(octets, interface, now) {
                Ok(packet) => self.enter(now, packet),
                Err((octets, why)) => {
                    if let Some(interface) = self.interfaces.get_mut(interface) {
                        interface.refused(octets.len());
                    }
                    self.outputs.push_back(Output::Refused { octets, why });
                }
            },
            Input::Free { interface } => {
                if let Some(one) = self.interfaces.get_mut(interface) {
                    one.is_free = true;
                }
                self.serve(now, interface);
            }
            Input::Tick => self.tick(now),
        }
    }

    /// The next output; `None` if there is none.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the router needs an [`Input::Tick`]; `None` while it waits only for other inputs.
    pub fn deadline(&self) -> Option<Time> {
        self.interfaces.iter().filter_map(RouterInterface::deadline).min()
    }

    /// The tables of flows.
    pub fn tables(&self) -> &FlowTables {
        &self.tables
    }

    /// Changes the tables of flows. The change applies to the next packet and to held packets.
    /// `poll` returns the outputs that it causes.
    pub fn change<T>(&mut self, now: Time, change: impl FnOnce(&mut FlowTables) -> T) -> T {
        let changed = change(&mut self.tables);
        for place in 0..self.interfaces.len() {
            if let Some(interface) = self.interfaces.get_mut(place) {
                interface.follow(now, &self.tables);
            }
            self.go_on(now, place);
        }
        changed
    }

    /// The counters of every part.
    pub fn report(&self) -> Vec<PartCounters<'_>> {
        let mut parts = Vec::new();
        for interface in &self.interfaces {
            interface.report(&mut parts);
        }
        parts
    }

    /// Packets inside: held by conditioners, or waiting for interfaces.
    pub fn inside(&self) -> usize {
        self.interfaces.iter().map(RouterInterface::inside).sum()
    }

    fn enter(&mut self, now: Time, packet: Packet) {
        let place = packet.interface;
        if let Some(interface) = self.interfaces.get_mut(place) {
            interface.counters.came(packet.dscp(), packet.length());
        }
        self.condition(now, place, ChainSide::Input, 0, packet);
    }

    /// Passes a packet through a chain from step `from` on, and then to the next stage.
    fn condition(&mut self, now: Time, place: usize, side: ChainSide, from: usize, packet: Packet) {
        let Some(interface) = self.interfaces.get_mut(place) else {
            return self.outputs.push_back(Output::Dropped { packet, cause: Cause::NoRoute });
        };
        let chain = match side {
            ChainSide::Input => &mut interface.input,
            ChainSide::Output => &mut interface.output,
        };
        let mut packet = packet;
        for step in chain.iter_mut().skip(from) {
            packet = match step.take(now, packet, &self.tables) {
                PacketVerdict::Pass(packet) => packet,
                PacketVerdict::Hold => return interface.look_again(),
                PacketVerdict::Drop(packet, cause) => {
                    return self.outputs.push_back(Output::Dropped { packet, cause });
                }
            };
        }
        match side {
            ChainSide::Input => self.forward(now, packet),
            ChainSide::Output => self.queue(now, place, packet),
        }
    }

    /// Routes a packet (RFC 1812 5.2).
    fn forward(&mut self, now: Time, mut packet: Packet) {
        let destination = packet.header().destination;
        if self.interfaces.iter().any(|one| one.has(destination)) {
            return self.arrive(now, packet);
        }
        if routes::is_martian(packet.header()) {
            if let Some(interface) = self.interfaces.get_mut(packet.interface) {
                interface.counters.dropped(packet.dscp(), packet.length(), Cause::Martian);
            }
            return self.outputs.push_back(Output::Dropped { packet, cause: Cause::Martian });
        }
        if !packet.decrement_ttl() {
            return self.give_up(now, packet, Cause::Expired, ForwardingError::Expired);
        }
        let Some(out) = self.routes.find(destination) else {
            return self.give_up(now, packet, Cause::NoRoute, ForwardingError::NoRoute);
        };
        self.send(now, out, packet);
    }

    /// Sends a packet by this interface, in fragments if necessary.
    fn send(&mut self, now: Time, out: usize, packet: Packet) {
        let mtu = self.interfaces.get(out).map_or(0, |one| one.mtu);
        if packet.length() <= mtu {
            return self.condition(now, out, ChainSide::Output, 0, packet);
        }
        match fragment::divide(packet, mtu) {
            Ok(pieces) => {
                for piece in pieces {
                    self.condition(now, out, ChainSide::Output, 0, piece);
                }
            }
            Err(packet) => {
                self.give_up(now, packet, Cause::TooLong, ForwardingError::TooLong { mtu });
            }
        }
    }

    /// Consumes a packet for the router itself; answers echo requests.
    fn arrive(&mut self, now: Time, packet: Packet) {
        let answer = icmp::echo_reply(now, &packet, &mut self.answers);
        if let Some(interface) = self.interfaces.get_mut(packet.interface) {
            interface.counters.taken(packet.dscp(), packet.length());
        }
        let place = packet.interface;
        self.outputs.push_back(Output::Arrived { packet });
        self.answer(now, place, answer);
    }

    /// Drops a packet that cannot be forwarded, and sends an ICMP error to its sender.
    fn give_up(&mut self, now: Time, packet: Packet, cause: Cause, trouble: ForwardingError) {
        let place = packet.interface;
        let is_v4 = packet.header().source.is_ipv4();
        let interface = self.interfaces.get_mut(place);
        // The source of the error is an address of the input interface (RFC 1812 4.3.2.4).
        let from: Option<IpAddr> = interface.and_then(|interface| {
            interface.counters.dropped(packet.dscp(), packet.length(), cause);
            interface.address(is_v4)
        });
        let answer =
            from.and_then(|from| icmp::error(now, &packet, trouble, from, &mut self.answers));
        self.outputs.push_back(Output::Dropped { packet, cause });
        self.answer(now, place, answer);
    }

    /// Sends a packet that the router originates, if there is one. It passes no input chain. An
    /// answer without a route is not sent, and nobody is notified of it.
    fn answer(&mut self, now: Time, place: usize, octets: Option<Vec<u8>>) {
        let packet = octets.and_then(|octets| Packet::read(octets, place, now).ok());
        let Some(packet) = packet else { return };
        if let Some(out) = self.routes.find(packet.header().destination) {
            self.send(now, out, packet);
        }
    }

    fn queue(&mut self, now: Time, place: usize, packet: Packet) {
        let Some(interface) = self.interfaces.get_mut(place) else { return };
        if !interface.has_room(packet.length()) {
            interface.counters.dropped(packet.dscp(), packet.length(), Cause::Limit);
            let cause = Cause::Limit;
            return self.outputs.push_back(Output::Dropped { packet, cause });
        }
        interface.queue.push(now, packet, &self.tables, &mut self.discarded);
        let dropped = self.discarded.drain(..);
        self.outputs.extend(dropped.map(|(packet, cause)| Output::Dropped { packet, cause }));
        self.serve(now, place);
    }

    /// Sends the packets that can leave by this interface now.
    fn serve(&mut self, now: Time, place: usize) {
        let Some(interface) = self.interfaces.get_mut(place) else { return };
        while let Some(packet) = interface.next(now) {
            self.outputs.push_back(Output::Send { interface: place, packet });
        }
    }

    fn tick(&mut self, now: Time) {
        for place in 0..self.interfaces.len() {
            let is_due = |one: &RouterInterface| one.deadline().is_some_and(|due| due <= now);
            if !self.interfaces.get(place).is_some_and(is_due) {
                continue;
            }
            self.go_on(now, place);
        }
    }

    /// Forwards the packets of this interface that are due.
    fn go_on(&mut self, now: Time, place: usize) {
        for side in [ChainSide::Input, ChainSide::Output] {
            self.release(now, place, side);
        }
        self.serve(now, place);
        if let Some(interface) = self.interfaces.get_mut(place) {
            interface.look_again();
        }
    }

    /// Forwards the packets of a chain that are due.
    fn release(&mut self, now: Time, place: usize, side: ChainSide) {
        for step in 0.. {
            let Some(interface) = self.interfaces.get_mut(place) else { return };
            let chain = match side {
                ChainSide::Input => &mut interface.input,
                ChainSide::Output => &mut interface.output,
            };
            let Some(holder) = chain.get_mut(step) else { return };
            match holder.release(now) {
                Some(packet) => self.condition(now, place, side, step + 1, packet),
                None => continue,
            }
            // The same step again, until it returns no packet.
            while let Some(packet) = self.released(now, place, side, step) {
                self.condition(now, place, side, step + 1, packet);
            }
        }
    }

    fn released(
        &mut self,
        now: Time,
        place: usize,
        side: ChainSide,
        step: usize,
    ) -> Option<Packet> {
        let interface = self.interfaces.get_mut(place)?;
        let chain = match side {
            ChainSide::Input => &mut interface.input,
            ChainSide::Output => &mut interface.output,
        };
        chain.get_mut(step)?.release(now)
    }
}

/// The steps of the chains that a policy names for an interface, in order.
fn chain(
    policy: &RouterPolicy,
    interfaces: &[Name],
    chains: &[Name],
    path: &str,
) -> Result<Vec<Box<dyn crate::Conditioner>>, KeyFault> {
    let mut built = Vec::new();
    for name in chains {
        let Some(steps) = policy.chains.get(name) else {
            return Err(KeyFault::at(path, format!("no chain {name:?}: write one under [chains]")));
        };
        built.extend(condition::build(policy, interfaces, steps, &format!("chains.{name}"))?);
    }
    Ok(built)
}

#[cfg(test)]
mod tests;
