//! An IP crypto gateway. It encapsulates packets from the red port and sends them by the black port
//! to the far gateway. That gateway sends the inner packets by its red port.
//!
//! Two fields of the inner packet change: the ECN field, if there was congestion in the tunnel (RFC
//! 6040 4.2), and the time to live, which each of the two gateways decrements because it forwards
//! the packet (RFC 4301 5.1.2.1, RFC 2003 3.1). So packets in a routing loop end.

mod header;

use crate::plan::{NetworkPlan, RouteNextHop, Tunnel};
use crate::topology::{self, Ecn, Outward};
use dscp::Dscp;
use router::count::PartCounters;
use router::icmp::{self, ForwardingError};
use router::meter::Bucket;
use router::packet::{Packet, fragment};
use router::policy::IpPrefix;
use router::{Cause, PacketCounters, Rate, Time};
use std::collections::VecDeque;
use std::net::IpAddr;

/// The position of the red port, which has plain packets.
pub const RED: usize = 0;
/// The position of the black port, which has tunnels.
pub const BLACK: usize = 1;

/// Rate limit of ICMP answers, in bits a second.
const ANSWERS_RATE: u64 = 80_000;
/// Burst of ICMP answers, in octets.
const ANSWERS_BURST: u64 = 16_000;

/// An output of a gateway.
#[derive(Debug, PartialEq, Eq)]
pub enum GatewayOutput {
    /// Send a packet.
    Send {
        /// [`RED`] or [`BLACK`].
        port: usize,
        /// The packet.
        octets: Vec<u8>,
    },
    /// The gateway consumed a packet that was addressed to it.
    Taken {
        /// The packet.
        octets: Vec<u8>,
    },
    /// A packet was dropped and counted.
    Drop {
        /// The packet.
        octets: Vec<u8>,
        /// The cause.
        cause: Cause,
    },
}

/// An outgoing tunnel, with the sequence number of its last packet.
#[derive(Debug)]
struct Out {
    tunnel: Tunnel,
    sequence: u32,
}

/// An incoming tunnel, with the octets that the far gateway adds.
#[derive(Debug)]
struct In {
    tunnel: Tunnel,
    overhead: usize,
}

/// A gateway. After each `handle`, call `poll` until it returns `None`.
#[derive(Debug)]
pub struct Gateway {
    outward: Outward,
    ecn: Ecn,
    overhead: usize,
    /// The longest prefix first; the number is the position of a tunnel in `out`.
    routes: Vec<(IpPrefix, Option<usize>)>,
    out: Vec<Out>,
    into: Vec<In>,
    /// Its own red addresses, the sources of its ICMP answers.
    own: Vec<IpAddr>,
    answers: Bucket,
    actions: VecDeque<GatewayOutput>,
    red: PacketCounters,
    black: PacketCounters,
}

impl Gateway {
    /// The gateway at this position of the plan; `None` if the node is not a gateway.
    pub fn new(topology: &topology::Topology, plan: &NetworkPlan, place: usize) -> Option<Gateway> {
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
        let routes = node.routes.iter().map(|route| match route.next_hop {
            RouteNextHop::Tunnel(number) => {
                (route.to, places.iter().position(|place| *place == number))
            }
            RouteNextHop::Port(_) => (route.to, None),
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
            red: PacketCounters::default(),
            black: PacketCounters::default(),
        })
    }

    /// Takes a packet that arrived at this port, [`RED`] or [`BLACK`].
    pub fn handle(&mut self, now: Time, port: usize, octets: Vec<u8>) {
        let counters = if port == RED { &mut self.red } else { &mut self.black };
        let dscp = crate::line::dscp_of(&octets);
        counters.came(dscp, octets.len());
        match Packet::read(octets, port, now) {
            Ok(packet) if port == RED => self.encapsulate(now, packet),
            Ok(packet) => self.decapsulate(now, packet),
            Err((octets, _)) => {
                counters.dropped(dscp, octets.len(), Cause::Malformed);
                self.actions.push_back(GatewayOutput::Drop { octets, cause: Cause::Malformed });
            }
        }
    }

    /// The next output; `None` if there is none.
    pub fn poll(&mut self) -> Option<GatewayOutput> {
        self.actions.pop_front()
    }

    /// Appends its counters: of packets to encapsulate at the red port, of packets to decapsulate
    /// at the black one.
    pub fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        for (port, counters) in [("red", &self.red), ("black", &self.black)] {
            into.push(PartCounters { path: format!("{path}/{port}"), kind: "gateway", counters });
        }
    }

    fn encapsulate(&mut self, now: Time, mut packet: Packet) {
        let to = packet.header().destination;
        if self.own.contains(&to) {
            self.red.taken(packet.dscp(), packet.length());
            return self.arrive(now, packet);
        }
        if !packet.decrement_ttl() {
            return self.give_up(now, packet, ForwardingError::Expired, Cause::Expired);
        }
        let Some(number) = self.tunnel_to(to) else {
            return self.give_up(now, packet, ForwardingError::NoRoute, Cause::NoRoute);
        };
        match self.divided(number, packet) {
            Ok(pieces) => {
                for piece in pieces {
                    self.red.went(piece.dscp(), piece.length());
                    self.wrap(number, piece);
                }
            }
            Err((packet, mtu)) => {
                self.give_up(now, packet, ForwardingError::TooLong { mtu }, Cause::TooLong);
            }
        }
    }

    /// The outgoing tunnel for this address; `None` for an address on the red side, and without a
    /// route.
    fn tunnel_to(&self, to: IpAddr) -> Option<usize> {
        self.routes.iter().find(|(prefix, _)| prefix.contains(to))?.1
    }

    /// The fragments of a packet for a tunnel, or the whole packet if it fits. The error is the
    /// packet, and the MTU of the tunnel in octets.
    fn divided(&self, number: usize, packet: Packet) -> Result<Vec<Packet>, (Packet, usize)> {
        let mtu = self.out.get(number).map_or(0, |out| out.tunnel.inner_mtu);
        if packet.length() <= mtu {
            return Ok(vec![packet]);
        }
        fragment::divide(packet, mtu).map_err(|packet| (packet, mtu))
    }

    /// Drops a packet, and sends an ICMP error to its sender (RFC 4301 8.2.1: Packet Too Big).
    fn give_up(&mut self, now: Time, packet: Packet, trouble: ForwardingError, cause: Cause) {
        let answer = self.error(now, &packet, trouble);
        self.drop(RED, packet, cause);
        self.answer(now, answer);
    }

    fn error(&mut self, now: Time, packet: &Packet, trouble: ForwardingError) -> Option<Vec<u8>> {
        let source = packet.header().source;
        let from = self.own.iter().find(|own| own.is_ipv4() == source.is_ipv4())?;
        icmp::error(now, packet, trouble, *from, &mut self.answers)
    }

    /// Consumes a packet for the gateway itself; answers echo requests.
    fn arrive(&mut self, now: Time, packet: Packet) {
        let answer = icmp::echo_reply(now, &packet, &mut self.answers);
        self.actions.push_back(GatewayOutput::Taken { octets: packet.into_octets() });
        self.answer(now, answer);
    }

    /// Sends a packet that the gateway originates, if there is one, to the side of its destination.
    /// An answer that no tunnel takes is not sent, and nobody is notified of it.
    fn answer(&mut self, now: Time, octets: Option<Vec<u8>>) {
        let packet = octets.and_then(|octets| Packet::read(octets, RED, now).ok());
        let Some(packet) = packet else { return };
        let Some(number) = self.tunnel_to(packet.header().destination) else {
            let octets = packet.into_octets();
            return self.actions.push_back(GatewayOutput::Send { port: RED, octets });
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
        self.actions.push_back(GatewayOutput::Send { port: BLACK, octets });
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
            // The inner transport is not ECN-capable: a drop signals the congestion to it.
            return self.refuse((outer, length), inner.into_octets(), Cause::Forced);
        };
        if self.own.contains(&inner.header().destination) {
            self.black.taken(outer, length);
            return self.arrive(now, inner);
        }
        if !inner.decrement_ttl() {
            let answer = self.error(now, &inner, ForwardingError::Expired);
            self.refuse((outer, length), inner.into_octets(), Cause::Expired);
            return self.answer(now, answer);
        }
        self.black.went(outer, length);
        let had = inner.header().ecn;
        let octets = inner.into_octets();
        let octets = if ecn == had { octets } else { header::with_ecn(octets, ecn) };
        self.actions.push_back(GatewayOutput::Send { port: RED, octets });
    }

    /// Drops an inner packet, counted by the outer packet.
    fn refuse(&mut self, (outer, length): (Dscp, usize), octets: Vec<u8>, cause: Cause) {
        self.black.dropped(outer, length, cause);
        self.actions.push_back(GatewayOutput::Drop { octets, cause });
    }

    fn drop(&mut self, port: usize, packet: Packet, cause: Cause) {
        let counters = if port == RED { &mut self.red } else { &mut self.black };
        counters.dropped(packet.dscp(), packet.length(), cause);
        self.actions.push_back(GatewayOutput::Drop { octets: packet.into_octets(), cause });
    }
}

#[cfg(test)]
mod tests;
