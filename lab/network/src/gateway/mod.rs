//! An IP crypto gateway: packets from the red port go out of the black one inside a packet to the
//! far gateway, and come out of its red port as they went in.
//!
//! Of the inner packet the ECN field changes where there was congestion outside (RFC 6040 4.2), and
//! the time to live falls by one at each of the two gateways, which forward it (RFC 4301 5.1.2.1,
//! RFC 2003 3.1). So packets that go round, by whatever routes, come to an end.

mod header;

use crate::plan::{NextHop, Plan, Tunnel};
use crate::topology::{self, Ecn, Outward};
use dscp::Dscp;
use router::count::Part;
use router::icmp::{self, Trouble};
use router::meter::Bucket;
use router::packet::{Packet, fragment};
use router::policy::Prefix;
use router::{Cause, Counters, Rate, Time};
use std::collections::VecDeque;
use std::net::IpAddr;

/// The place of the port that has plain packets.
pub const RED: usize = 0;
/// The place of the port that has tunnels.
pub const BLACK: usize = 1;

/// ICMP answers are limited to this rate, in bits a second ...
const ANSWERS_RATE: u64 = 80_000;
/// ... after this burst in octets.
const ANSWERS_BURST: u64 = 16_000;

/// What becomes of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes out of this port.
    Send {
        /// [`RED`] or [`BLACK`].
        port: usize,
        /// The packet.
        octets: Vec<u8>,
    },
    /// It was for the gateway itself.
    Taken {
        /// The packet.
        octets: Vec<u8>,
    },
    /// It goes no further; it is counted.
    Drop {
        /// The packet.
        octets: Vec<u8>,
        /// Why.
        cause: Cause,
    },
}

/// A tunnel out, with what its packets are numbered by.
#[derive(Debug)]
struct Out {
    tunnel: Tunnel,
    sequence: u32,
}

/// A tunnel in, with the octets that the far gateway adds.
#[derive(Debug)]
struct In {
    tunnel: Tunnel,
    overhead: usize,
}

/// A gateway. After each `handle`, `poll` until there is nothing.
#[derive(Debug)]
pub struct Gateway {
    outward: Outward,
    ecn: Ecn,
    overhead: usize,
    /// By the longest prefix first; the number is that of a tunnel in `out`.
    routes: Vec<(Prefix, Option<usize>)>,
    out: Vec<Out>,
    into: Vec<In>,
    /// Its own addresses of the red side, from which it answers.
    own: Vec<IpAddr>,
    answers: Bucket,
    actions: VecDeque<Action>,
    red: Counters,
    black: Counters,
}

impl Gateway {
    /// The gateway at this place of the plan; `None` where there is none.
    pub fn new(topology: &topology::Topology, plan: &Plan, place: usize) -> Option<Gateway> {
        let node = plan.nodes.get(place)?;
        let written = topology.gateways.get(&node.name)?;
        let mut out = Vec::new();
        let mut places = Vec::new();
        for (number, tunnel) in plan.tunnels.iter().enumerate() {
            if tunnel.from == place {
                places.push(number);
                out.push(Out { tunnel: tunnel.clone(), sequence: 0 });
            }
        }
        let into = plan.tunnels.iter().filter(|tunnel| tunnel.to == place).filter_map(|tunnel| {
            let far = topology.gateways.get(&plan.nodes.get(tunnel.from)?.name)?;
            Some(In { tunnel: tunnel.clone(), overhead: far.overhead.into() })
        });
        let routes = node.routes.iter().map(|route| match route.way {
            NextHop::Tunnel(number) => (route.to, places.iter().position(|place| *place == number)),
            NextHop::Port(_) => (route.to, None),
        });
        let own = node.ports.get(RED)?.addresses.iter().map(|address| address.ip()).collect();
        Some(Gateway {
            own,
            answers: Bucket::new(Rate::from_bits(ANSWERS_RATE)?, ANSWERS_BURST),
            outward: written.dscp,
            ecn: written.ecn,
            overhead: written.overhead.into(),
            routes: routes.collect(),
            into: into.collect(),
            out,
            actions: VecDeque::new(),
            red: Counters::default(),
            black: Counters::default(),
        })
    }

    /// A packet has come in at this port.
    pub fn handle(&mut self, now: Time, port: usize, octets: Vec<u8>) {
        let counters = if port == RED { &mut self.red } else { &mut self.black };
        let dscp = crate::line::dscp_of(&octets);
        counters.came(dscp, octets.len());
        match Packet::read(octets, port, now) {
            Ok(packet) if port == RED => self.encapsulate(now, packet),
            Ok(packet) => self.decapsulate(now, packet),
            Err((octets, _)) => {
                counters.dropped(dscp, octets.len(), Cause::Malformed);
                self.actions.push_back(Action::Drop { octets, cause: Cause::Malformed });
            }
        }
    }

    /// What becomes of what came in; `None` once nothing is left.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Its counters: of the red port what was to be hidden, of the black one what was to be shown.
    pub fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        for (port, counters) in [("red", &self.red), ("black", &self.black)] {
            into.push(Part { path: format!("{path}/{port}"), kind: "gateway", counters });
        }
    }

    fn encapsulate(&mut self, now: Time, mut packet: Packet) {
        let to = packet.header().destination;
        if self.own.contains(&to) {
            self.red.taken(packet.dscp(), packet.length());
            return self.arrive(now, packet);
        }
        if !packet.decrement_ttl() {
            return self.give_up(now, packet, Trouble::Expired, Cause::Expired);
        }
        let Some(number) = self.tunnel_to(to) else {
            return self.give_up(now, packet, Trouble::NoRoute, Cause::NoRoute);
        };
        match self.divided(number, packet) {
            Ok(pieces) => {
                for piece in pieces {
                    self.red.went(piece.dscp(), piece.length());
                    self.wrap(number, piece);
                }
            }
            Err((packet, mtu)) => {
                self.give_up(now, packet, Trouble::TooLong { mtu }, Cause::TooLong);
            }
        }
    }

    /// The tunnel out that this address is reached by; `None` where it lies on the red side, or
    /// nowhere.
    fn tunnel_to(&self, to: IpAddr) -> Option<usize> {
        self.routes.iter().find(|(prefix, _)| prefix.contains(to))?.1
    }

    /// The pieces of a packet that a tunnel takes, one where it takes it whole; else the packet, and
    /// how many octets the tunnel takes.
    fn divided(&self, number: usize, packet: Packet) -> Result<Vec<Packet>, (Packet, usize)> {
        let mtu = self.out.get(number).map_or(0, |out| out.tunnel.inner_mtu);
        if packet.length() <= mtu {
            return Ok(vec![packet]);
        }
        fragment::divide(packet, mtu).map_err(|packet| (packet, mtu))
    }

    /// Tells the sender what became of a packet (RFC 4301 8.2.1: how long one may be), and drops it.
    fn give_up(&mut self, now: Time, packet: Packet, trouble: Trouble, cause: Cause) {
        let answer = self.error(now, &packet, trouble);
        self.drop(RED, packet, cause);
        self.answer(now, answer);
    }

    fn error(&mut self, now: Time, packet: &Packet, trouble: Trouble) -> Option<Vec<u8>> {
        let source = packet.header().source;
        let from = self.own.iter().find(|own| own.is_ipv4() == source.is_ipv4())?;
        icmp::error(now, packet, trouble, *from, &mut self.answers)
    }

    /// A packet for the gateway itself: an echo request is answered, all else is of no use to it.
    fn arrive(&mut self, now: Time, packet: Packet) {
        let answer = icmp::echo_reply(now, &packet, &mut self.answers);
        self.actions.push_back(Action::Taken { octets: packet.into_octets() });
        self.answer(now, answer);
    }

    /// Sends a packet of its own, if there is one, to the side where its destination lies. One that
    /// no tunnel takes is forgotten: nobody is told of an answer's fate.
    fn answer(&mut self, now: Time, octets: Option<Vec<u8>>) {
        let packet = octets.and_then(|octets| Packet::read(octets, RED, now).ok());
        let Some(packet) = packet else { return };
        let Some(number) = self.tunnel_to(packet.header().destination) else {
            let octets = packet.into_octets();
            return self.actions.push_back(Action::Send { port: RED, octets });
        };
        for piece in self.divided(number, packet).unwrap_or_default() {
            self.wrap(number, piece);
        }
    }

    fn wrap(&mut self, number: usize, packet: Packet) {
        let Some(out) = self.out.get_mut(number) else { return };
        let dscp = match self.outward {
            Outward::Copy => packet.dscp(),
            Outward::Fixed(dscp) => dscp,
        };
        let ecn = match self.ecn {
            Ecn::Normal => packet.header().ecn,
            Ecn::Compatibility => 0,
        };
        out.sequence = out.sequence.wrapping_add(1);
        let esp = header::Esp { spi: out.tunnel.spi, sequence: out.sequence };
        let ends = (out.tunnel.source, out.tunnel.destination);
        let octets = header::wrap(packet.into_octets(), ends, dscp.tos() | ecn, esp, self.overhead);
        self.actions.push_back(Action::Send { port: BLACK, octets });
    }

    fn decapsulate(&mut self, now: Time, packet: Packet) {
        let header = *packet.header();
        let spi = header::spi(packet.octets());
        let from = self.into.iter().find(|one| {
            let tunnel = &one.tunnel;
            tunnel.source == header.source
                && tunnel.destination == header.destination
                && Some(tunnel.spi) == spi
        });
        let (true, Some(from)) = (header.protocol == header::ESP, from) else {
            return self.drop(BLACK, packet, Cause::NoRoute);
        };
        let (overhead, outer) = (from.overhead, packet.dscp());
        let length = packet.length();
        let octets = header::unwrap(packet.into_octets(), overhead);
        let mut inner = match Packet::read(octets, RED, now) {
            Ok(inner) => inner,
            Err((octets, _)) => return self.refuse((outer, length), octets, Cause::Malformed),
        };
        let Some(ecn) = header::inward(inner.header().ecn, header.ecn) else {
            // Its transport knows no ECN: a drop is how it hears of congestion.
            return self.refuse((outer, length), inner.into_octets(), Cause::Forced);
        };
        if self.own.contains(&inner.header().destination) {
            self.black.taken(outer, length);
            return self.arrive(now, inner);
        }
        if !inner.decrement_ttl() {
            let answer = self.error(now, &inner, Trouble::Expired);
            self.refuse((outer, length), inner.into_octets(), Cause::Expired);
            return self.answer(now, answer);
        }
        self.black.went(outer, length);
        let had = inner.header().ecn;
        let octets = inner.into_octets();
        let octets = if ecn == had { octets } else { header::with_ecn(octets, ecn) };
        self.actions.push_back(Action::Send { port: RED, octets });
    }

    /// Drops what came out of a tunnel, counted by the outer packet.
    fn refuse(&mut self, (outer, length): (Dscp, usize), octets: Vec<u8>, cause: Cause) {
        self.black.dropped(outer, length, cause);
        self.actions.push_back(Action::Drop { octets, cause });
    }

    fn drop(&mut self, port: usize, packet: Packet, cause: Cause) {
        let counters = if port == RED { &mut self.red } else { &mut self.black };
        counters.dropped(packet.dscp(), packet.length(), cause);
        self.actions.push_back(Action::Drop { octets: packet.into_octets(), cause });
    }
}

#[cfg(test)]
mod tests;
