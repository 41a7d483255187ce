//! An interface: its chains, its queueing, and whether its line is free.

use super::chain;
use crate::classify::FlowTables;
use crate::conditioner::Conditioner;
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::discipline::{Discipline, Readiness};
use crate::packet::Packet;
use crate::policy::{KeyFault, Name, Queueing, RouterPolicy};
use crate::queue::MAX_OCTETS;
use crate::queueing;
use crate::time::Time;
use dscp::Dscp;
use std::net::IpAddr;

/// The smallest MTU of an interface in octets: the minimum for IPv4 (RFC 791 3.2).
const MIN_MTU: usize = 68;

/// The parts of an interface.
#[derive(Clone, Debug)]
pub struct InterfaceSetup {
    /// Its name in policies.
    pub name: Name,
    /// Its own addresses, each with the length of the prefix that is directly connected.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The longest packet in octets without a link header (MTU); 68 to 65,575.
    pub mtu: usize,
    /// Whether the interface sends one packet at a time, and the next only after
    /// [`super::Input::Free`]. An interface that is not paced sends every packet at once.
    pub paced: bool,
}

#[derive(Debug)]
pub(super) struct RouterInterface {
    name: Name,
    addresses: Vec<IpAddr>,
    pub(super) mtu: usize,
    is_paced: bool,
    pub(super) is_free: bool,
    pub(super) input: Vec<Box<dyn Conditioner>>,
    pub(super) output: Vec<Box<dyn Conditioner>>,
    pub(super) queue: Box<dyn Discipline>,
    /// Limit of the octets that wait in all its queues together.
    pub(super) max_octets: usize,
    pub(super) counters: PacketCounters,
    /// Time at which the queueing releases its next packet, while the line is free.
    wake: Option<Time>,
    /// Time at which a chain releases its next packet.
    release: Option<Time>,
}

impl RouterInterface {
    pub(super) fn new(
        setup: &InterfaceSetup,
        policy: &RouterPolicy,
        interfaces: &[Name],
        seed: u64,
    ) -> Result<RouterInterface, KeyFault> {
        let name = &setup.name;
        if !(MIN_MTU..=crate::packet::MAX_LENGTH).contains(&setup.mtu) {
            let most = crate::packet::MAX_LENGTH;
            let what = format!("{} octets; from {MIN_MTU} to {most}", setup.mtu);
            return Err(KeyFault::at(format!("interfaces.{name}.mtu"), what));
        }
        let attachment = policy.interfaces.get(name).or_else(|| policy.interfaces.get("*"));
        let attachment = attachment.cloned().unwrap_or_default();
        let path = |key: &str| format!("interfaces.{name}.{key}");
        let default = Queueing::default();
        let (queueing, at) = match &attachment.queueing {
            None => (&default, path("queueing")),
            Some(named) => match policy.queueings.get(named) {
                Some(queueing) => (queueing, format!("queueings.{named}")),
                None => {
                    let what = format!("no queueing {named:?}: write one under [queueings]");
                    return Err(KeyFault::at(path("queueing"), what));
                }
            },
        };
        Ok(RouterInterface {
            name: name.clone(),
            addresses: setup.addresses.iter().map(|(address, _)| *address).collect(),
            mtu: setup.mtu,
            is_paced: setup.paced,
            is_free: true,
            input: chain(policy, interfaces, &attachment.input, &path("input"))?,
            output: chain(policy, interfaces, &attachment.output, &path("output"))?,
            queue: queueing::build(policy, interfaces, queueing, &at, seed)?,
            max_octets: usize::try_from(MAX_OCTETS).unwrap_or(usize::MAX),
            counters: PacketCounters::default(),
            wake: None,
            release: None,
        })
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Its first address of this IP version.
    pub(super) fn address(&self, is_v4: bool) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| address.is_ipv4() == is_v4)
    }

    /// Whether a packet of this length may wait. A policy limits each queue, but can have many
    /// queues.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.queue.backlog().octets.saturating_add(length) <= self.max_octets
    }

    /// Counts octets that are not a packet, as best effort.
    pub(super) fn refused(&mut self, length: usize) {
        self.counters.came(Dscp::CS0, length);
        self.counters.dropped(Dscp::CS0, length, Cause::Malformed);
    }

    /// The packet to send now; if there is none, notes when there will be one.
    pub(super) fn next(&mut self, now: Time) -> Option<Packet> {
        self.wake = None;
        if !self.is_free {
            return None;
        }
        match self.queue.ready(now) {
            Readiness::Empty => None,
            Readiness::At(time) => {
                self.wake = Some(time);
                None
            }
            Readiness::Now(_) => {
                let packet = self.queue.pop(now)?;
                self.is_free = !self.is_paced;
                let inside = now.since(packet.arrived);
                self.counters.went_after(packet.dscp(), packet.length(), inside);
                Some(packet)
            }
        }
    }

    /// Updates the time of the next release after a change of the chains.
    pub(super) fn look_again(&mut self) {
        let steps = self.input.iter().chain(&self.output);
        self.release = steps.filter_map(|step| step.deadline()).min();
    }

    /// Notifies the chains of changed tables.
    pub(super) fn follow(&mut self, now: Time, tables: &FlowTables) {
        for step in self.input.iter_mut().chain(&mut self.output) {
            step.follow(now, tables);
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        [self.wake, self.release].into_iter().flatten().min()
    }

    pub(super) fn inside(&self) -> usize {
        let steps = self.input.iter().chain(&self.output);
        steps.map(|step| step.held()).sum::<usize>() + self.queue.backlog().packets
    }

    pub(super) fn report<'a>(&'a self, into: &mut Vec<PartCounters<'a>>) {
        let name = &self.name;
        into.push(PartCounters { path: name.clone(), kind: "interface", counters: &self.counters });
        for (side, steps) in [("input", &self.input), ("output", &self.output)] {
            for (number, step) in steps.iter().enumerate() {
                step.report(&format!("{name}/{side}/{number}"), into);
            }
        }
        self.queue.report(&format!("{name}/queueing"), into);
    }
}
