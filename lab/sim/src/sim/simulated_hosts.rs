//! What stations and loads stand on: the hosts, the network between them, and what is to happen.

use crate::load::bulk::BulkSide;
use crate::path;
use crate::sim::agenda::Agenda;
use base::{AssociationId, Instant, Now, Utc};
use bytes::Bytes;
use engine::journal::Batch;
use network::plan::RouteNextHop;
use network::{HostId, NetworkMachine, Output, PortId, TapDirection};
use node::{ListenerId, Token};
use router::{Packet, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use virtual_tcp::{ConnectionId, TcpHost};

/// Where a packet to the host itself goes takes so long.
const LOOPBACK: Duration = Duration::from_micros(20);
/// Some day in 2026, at which virtual time begins.
const BEGINNING: u64 = 1_767_225_600_000_000;

/// An event that is scheduled for a time.
#[derive(Debug)]
pub(crate) enum ScheduledEvent {
    /// A packet of a host to itself arrives.
    Looped { host: usize, octets: Vec<u8> },
    /// A node is answered.
    Answer { site: usize, input: node::Input },
    /// A site's disk has made a commit.
    Commit { site: usize, token: Token, batch: Batch },
    /// Octets of a user come to his node.
    ToNode { site: usize, association: AssociationId, bytes: Bytes },
    /// Octets of the node come to a user.
    ToUser { site: usize, association: AssociationId, bytes: Bytes },
    /// The pipe between a user and his node is closed.
    Unplugged { site: usize, association: AssociationId },
    /// A user binds.
    Bind { site: usize, user: usize },
    /// A message is submitted.
    Submit { message: usize },
    /// A UDP load sends.
    Datagram { load: usize },
    /// A TCP load begins, or begins again.
    Begin { load: usize },
    /// A TCP load may send more.
    Go { load: usize },
    /// A TCP load ends.
    Stop { load: usize },
    /// A probe looks.
    Probe { probe: usize },
}

/// A packet that passed a tapped port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedCapture {
    /// The port.
    pub port: PortId,
    /// Whether it came into the port or went out of it.
    pub direction: TapDirection,
    /// The virtual time at which it passed.
    pub at: Duration,
    /// From its IP header on.
    pub octets: Vec<u8>,
}

/// The owner of a TCP connection: the MTA of a site, or a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The MTA of a site.
    Site { site: usize, association: AssociationId },
    /// A TCP load.
    Bulk { load: usize, side: BulkSide },
}

/// The owner of a listening port: the MTA of a site, or a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// The MTA of a site.
    Site { site: usize, listener: ListenerId },
    /// A TCP load.
    Bulk { load: usize },
}

/// The simulated network with the TCP of its hosts, and the events that are scheduled on its clock.
pub(crate) struct SimulatedHosts {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda<ScheduledEvent>,
    pub(crate) network: NetworkMachine,
    /// By their places in the plan.
    pub(crate) hosts: Vec<TcpHost>,
    pub(crate) owners: BTreeMap<(usize, ConnectionId), Owner>,
    pub(crate) listening: BTreeMap<(usize, u16), Listening>,
    /// Copies of what passed tapped ports.
    pub(crate) captured: VecDeque<SimulatedCapture>,
    /// Packets that came to hosts and are not TCP's.
    pub(crate) datagrams: VecDeque<Packet>,
    mtus: BTreeMap<(usize, IpAddr), usize>,
}

impl SimulatedHosts {
    pub(crate) fn new(network: NetworkMachine, hosts: Vec<TcpHost>) -> SimulatedHosts {
        SimulatedHosts {
            now: Time::ZERO,
            agenda: Agenda::new(),
            network,
            hosts,
            owners: BTreeMap::new(),
            listening: BTreeMap::new(),
            captured: VecDeque::new(),
            datagrams: VecDeque::new(),
            mtus: BTreeMap::new(),
        }
    }

    /// The time as nodes have it.
    pub(crate) fn clock(&self) -> Now {
        let mono = Instant(self.now.0 / 1_000);
        Now { mono, utc: Utc(BEGINNING.saturating_add(mono.0)) }
    }

    /// The time since the beginning.
    pub(crate) fn since(&self) -> Duration {
        self.now.duration_since(Time::ZERO)
    }

    /// Enters what is to happen so long from now.
    pub(crate) fn later(&mut self, delay: Duration, what: ScheduledEvent) {
        self.agenda.enter(self.now + delay, what);
    }

    /// The host of a connection's owner.
    pub(crate) fn host(&mut self, host: usize) -> Option<&mut TcpHost> {
        self.hosts.get_mut(host)
    }

    /// The time of the next event; `None` if there is none.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let hosts = self.hosts.iter().filter_map(TcpHost::deadline).min();
        [self.agenda.first(), self.network.deadline(), hosts].into_iter().flatten().min()
    }

    /// Passes a packet of a host to the network, or to the host itself.
    pub(crate) fn send(&mut self, host: usize, octets: Vec<u8>) {
        let Some(to) = destination(&octets) else { return self.recycle(host, octets) };
        let Some(node) = self.network.plan().nodes.get(host) else { return };
        if node.ports.iter().flat_map(|port| &port.addresses).any(|own| own.ip() == to) {
            return self.later(LOOPBACK, ScheduledEvent::Looped { host, octets });
        }
        match node.route(to) {
            Some(RouteNextHop::Port(port)) => {
                let host = HostId(host);
                self.network.handle(self.now, network::Input::Packet { host, port, octets });
            }
            _ => self.recycle(host, octets),
        }
    }

    /// A packet comes to a host.
    pub(crate) fn arrive(&mut self, host: usize, octets: Vec<u8>) {
        const TCP: u8 = 6;
        if protocol(&octets) != Some(TCP) {
            match Packet::read(octets, 0, self.now) {
                Ok(packet) => self.datagrams.push_back(packet),
                Err((octets, _)) => self.recycle(host, octets),
            }
            return;
        }
        let (plan, mtus) = (self.network.plan(), &mut self.mtus);
        let mtu = |to: IpAddr| {
            *mtus.entry((host, to)).or_insert_with(|| path::mtu(plan, host, to).unwrap_or(576))
        };
        if let Some(host) = self.hosts.get_mut(host) {
            host.receive(self.now, octets, mtu);
        }
    }

    fn recycle(&mut self, host: usize, octets: Vec<u8>) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.recycle(octets);
        }
    }

    /// Lets packets and TCP go as far as they can now.
    pub(crate) fn exchange(&mut self) {
        loop {
            while let Some(output) = self.network.poll() {
                match output {
                    Output::Deliver { host, octets, .. } => self.arrive(host.0, octets),
                    Output::Recycle(octets) => self.recycle(0, octets),
                    Output::Tap { port, direction, at, octets } => {
                        let at = at.duration_since(Time::ZERO);
                        self.captured.push_back(SimulatedCapture { port, direction, at, octets });
                    }
                }
            }
            let due = |host: &TcpHost| host.deadline().is_some_and(|due| due <= self.now);
            let Some(place) = self.hosts.iter().position(due) else { return };
            let Some(host) = self.hosts.get_mut(place) else { return };
            host.poll(self.now);
            while let Some(octets) = self.hosts.get_mut(place).and_then(TcpHost::packet) {
                self.send(place, octets);
            }
        }
    }
}

fn destination(octets: &[u8]) -> Option<IpAddr> {
    match octets.first()? >> 4 {
        4 => Some(octets.get(16..20)?.first_chunk::<4>().copied()?.into()),
        6 => Some(octets.get(24..40)?.first_chunk::<16>().copied()?.into()),
        _ => None,
    }
}

fn protocol(octets: &[u8]) -> Option<u8> {
    match octets.first()? >> 4 {
        4 => octets.get(9).copied(),
        6 => octets.get(6).copied(),
        _ => None,
    }
}
