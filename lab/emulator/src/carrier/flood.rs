//! Floods: UDP at a constant rate that is made here and counted here, and crosses the network as if a
//! host had sent it. Through sockets it would measure what the machine can copy.

use crate::control::status::TrafficCount;
use network::plan::RouteNextHop;
use network::{HostId, NetworkMachine};
use router::packet::{self, HeaderFields};
use router::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Most at once.
const MAX_FLOODS: usize = 64;
/// The longest, and the latest to begin.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The fastest, in bits a second.
const MAX_RATE: u64 = 10_000_000_000;
/// Octets of payload: one packet on any link there is.
const PAYLOAD: std::ops::RangeInclusive<u16> = 16..=1_432;
/// Packets that are late by more than this are left out.
const LATE: Duration = Duration::from_millis(20);
/// Most packets made before others are looked at.
const AT_ONCE: usize = 32;
/// The first four octets of the payload.
const MAGIC: [u8; 4] = *b"XFLD";
/// The first one's port at the host that sends.
const PORT: u16 = 39_000;
const V4: usize = 20;
const V6: usize = 40;
const UDP: usize = 8;

/// A flood that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodAsk {
    /// For who asks.
    pub name: String,
    /// The host that seems to send.
    pub from: String,
    /// An address of the host that seems to receive.
    pub to: IpAddr,
    /// And the port there.
    pub port: u16,
    /// Bits a second of IP packets.
    pub rate: Rate,
    /// Octets of each payload, 16 to 1,432.
    pub payload: u16,
    /// The mark.
    pub dscp: dscp::Dscp,
    /// So long from now it begins, up to an hour.
    pub wait_ms: u64,
    /// So long it lasts, up to an hour.
    pub time_ms: u64,
    /// How far a packet may be from its moment, either way, in percent of the time between two: up to
    /// 50.
    pub jitter_percent: u8,
    /// Of that.
    pub seed: u64,
}

/// The state of a flood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FloodStatus {
    /// Its name.
    pub name: String,
    /// Made so far.
    pub sent: TrafficCount,
    /// Not made, this process being late: the machine was too slow.
    pub left_out: u64,
    /// Come to the end so far, by the code point they came with.
    pub received: BTreeMap<u8, TrafficCount>,
    /// Seconds from the first that came to the last.
    pub seconds: f64,
}

#[derive(Debug)]
struct Flood {
    ask: FloodAsk,
    from: (HostId, usize),
    fields: HeaderFields,
    source_port: u16,
    begin: Time,
    number: u64,
    next: Time,
    rng: base::rng::Rng,
    status: FloodStatus,
    came: Option<(Time, Time)>,
}

/// All there are.
#[derive(Debug, Default)]
pub(crate) struct Floods {
    all: Vec<Flood>,
}

impl Floods {
    /// One more.
    pub(crate) fn add(
        &mut self,
        now: Time,
        network: &NetworkMachine,
        ask: FloodAsk,
    ) -> Result<(), String> {
        let longest = u64::try_from(LONGEST.as_millis()).unwrap_or(u64::MAX);
        if ask.wait_ms > longest || !(1..=longest).contains(&ask.time_ms) {
            return Err("a flood begins within an hour, and lasts up to an hour".to_owned());
        }
        if ask.rate.bits() > MAX_RATE || !PAYLOAD.contains(&ask.payload) || ask.jitter_percent > 50
        {
            return Err("a flood has up to 10Gbit, 16 to 1,432 octets and 50 percent".to_owned());
        }
        let number = u16::try_from(self.all.len()).unwrap_or(u16::MAX);
        if self.all.len() >= MAX_FLOODS {
            return Err(format!("{MAX_FLOODS} floods at most"));
        }
        let plan = network.plan();
        let has = |node: &network::plan::PlanNode| {
            node.ports.iter().flat_map(|port| &port.addresses).any(|own| own.ip() == ask.to)
        };
        if !plan.hosts().any(|(_, node)| has(node)) {
            return Err(format!("no host has {}", ask.to));
        }
        let host = plan.hosts().find(|(_, node)| node.name == ask.from);
        let (place, node) = host.ok_or_else(|| format!("no host {}", ask.from))?;
        let Some(RouteNextHop::Port(port)) = node.route(ask.to) else {
            return Err(format!("{} has no route to {}", ask.from, ask.to));
        };
        let mut own = node.ports.iter().flat_map(|port| &port.addresses).map(|own| own.ip());
        let source = own.find(|own| own.is_ipv4() == ask.to.is_ipv4());
        let source = source.ok_or_else(|| format!("no address of the family of {}", ask.to))?;
        let begin = now + Duration::from_millis(ask.wait_ms);
        let fields = HeaderFields {
            source,
            destination: ask.to,
            protocol: 17,
            dscp: ask.dscp,
            ecn: 0,
            ttl: 64,
        };
        let status = FloodStatus { name: ask.name.clone(), ..FloodStatus::default() };
        let mut flood = Flood {
            from: (HostId(place), port),
            fields,
            source_port: PORT + number,
            begin,
            number: 0,
            next: begin,
            rng: base::rng::Rng::new(ask.seed ^ u64::from(number)),
            status,
            came: None,
            ask,
        };
        flood.plan();
        self.all.push(flood);
        Ok(())
    }

    /// The time at which the next packet is due; `None` if there is none.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.all.iter().filter(|flood| !flood.is_over()).map(|flood| flood.next).min()
    }

    /// Hands on what is due, a bounded number of packets; whether more is.
    pub(crate) fn due(&mut self, now: Time, mut send: impl FnMut(HostId, usize, Vec<u8>)) -> bool {
        let mut left = AT_ONCE;
        for (number, flood) in self.all.iter_mut().enumerate() {
            while left > 0 && !flood.is_over() && flood.next <= now {
                if let Some(octets) = flood.packet(number, now) {
                    left -= 1;
                    let (host, port) = flood.from;
                    send(host, port, octets);
                }
            }
        }
        self.deadline().is_some_and(|due| due <= now)
    }

    /// Counts a packet that came to a host, if it is of a flood.
    pub(crate) fn take(&mut self, now: Time, octets: &[u8]) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let Some((number, dscp, protocol)) = read(octets) else { return false };
        let Some(flood) = self.all.get_mut(number).filter(|_| protocol == 17) else { return false };
        flood.status.received.entry(dscp).or_default().add(octets.len());
        let (first, _) = flood.came.unwrap_or((now, now));
        flood.came = Some((first, now));
        flood.status.seconds = now.since(first) as f64 / 1e9;
        true
    }

    /// The state of all floods.
    pub(crate) fn status(&self) -> Vec<FloodStatus> {
        self.all.iter().map(|flood| flood.status.clone()).collect()
    }
}

/// The number of the flood, the code point and the protocol, where it may be of one.
fn read(octets: &[u8]) -> Option<(usize, u8, u8)> {
    let (one, two) = (*octets.first()?, *octets.get(1)?);
    let (header, protocol, tos) = match one >> 4 {
        4 => (V4, *octets.get(9)?, two),
        6 => (V6, *octets.get(6)?, (one << 4) | (two >> 4)),
        _ => return None,
    };
    let payload = octets.get(header + UDP..)?;
    let (magic, rest) = payload.split_first_chunk::<4>()?;
    let number = u32::from_be_bytes(*rest.first_chunk::<4>()?);
    (*magic == MAGIC).then_some((usize::try_from(number).ok()?, tos >> 2, protocol))
}

impl Flood {
    fn is_over(&self) -> bool {
        self.next >= self.begin + Duration::from_millis(self.ask.time_ms)
    }

    fn length(&self) -> usize {
        let header = if self.ask.to.is_ipv4() { V4 } else { V6 };
        usize::from(self.ask.payload) + UDP + header
    }

    /// When its packet of a number is due, but for jitter, in nanoseconds from the beginning.
    fn nanos(&self, number: u64) -> u128 {
        let bits = self.length() as u128 * 8 * 1_000_000_000;
        u128::from(number) * bits / u128::from(self.ask.rate.bits())
    }

    /// Sets when the next is due.
    fn plan(&mut self) {
        let at = self.nanos(self.number);
        let between = self.nanos(self.number + 1) - at;
        let most = u64::try_from(between * u128::from(self.ask.jitter_percent) / 100).unwrap_or(0);
        let moved = at + u128::from(self.rng.below(2 * most + 1));
        let at = u64::try_from(moved.saturating_sub(most.into())).unwrap_or(u64::MAX);
        self.next = (self.begin + Duration::from_nanos(at)).max(self.next);
    }

    /// The next packet; `None` where it is left out.
    fn packet(&mut self, number: usize, now: Time) -> Option<Vec<u8>> {
        let is_late = now.duration_since(self.next) > LATE;
        self.number += 1;
        self.plan();
        if is_late {
            self.status.left_out += 1;
            return None;
        }
        let mut payload = vec![0; self.ask.payload.into()];
        let begin = MAGIC.into_iter().chain(u32::try_from(number).unwrap_or(0).to_be_bytes());
        for (to, from) in payload.iter_mut().zip(begin.chain(self.number.to_be_bytes())) {
            *to = from;
        }
        let ports = (self.source_port, self.ask.port);
        let octets = packet::datagram(&self.fields, ports, &payload)?;
        self.status.sent.add(octets.len());
        Some(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::{Input, Output, Topology};

    const PAIR: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
[[links]]
ends = ["a.eth0", "b.eth0"]
rate = "1Mbit"
"#;

    fn ask(to: &str) -> FloodAsk {
        FloodAsk {
            name: "flood".to_owned(),
            from: "a".to_owned(),
            to: to.parse().unwrap(),
            port: 9,
            rate: Rate::from_bits(2_000_000).unwrap(),
            payload: 972,
            dscp: dscp::Dscp::AF11,
            wait_ms: 100,
            time_ms: 1_000,
            jitter_percent: 20,
            seed: 3,
        }
    }

    #[test]
    fn a_flood_crosses_the_network_and_is_counted_at_its_end() {
        for to in ["10.0.1.1", "fd00:1::1"] {
            let topology = Topology::read(PAIR).unwrap();
            let mut network = NetworkMachine::new(&topology, &BTreeMap::new(), 1).unwrap();
            let mut floods = Floods::default();
            floods.add(Time::ZERO, &network, ask(to)).unwrap();
            let (mut now, mut foreign) = (Time::ZERO, 0);
            let end = Time::ZERO + Duration::from_secs(5);
            while let Some(due) =
                [floods.deadline(), network.deadline()].into_iter().flatten().min()
            {
                now = now.max(due).min(end);
                let mut sent = Vec::new();
                floods.due(now, |host, port, octets| sent.push((host, port, octets)));
                for (host, port, octets) in sent {
                    network.handle(now, Input::Packet { host, port, octets });
                }
                network.handle(now, Input::Tick);
                while let Some(output) = network.poll() {
                    if let Output::Deliver { octets, .. } = output {
                        foreign += u64::from(!floods.take(now, &octets));
                    }
                }
            }
            let status = floods.status().remove(0);
            assert!((240..=260).contains(&status.sent.packets), "{to}: {status:?}");
            let came = status.received[&dscp::Dscp::AF11.number()];
            // The line's queue holds what it cannot take at once.
            assert_eq!(came, status.sent, "{to}");
            let rate = came.bytes as f64 * 8.0 / status.seconds;
            assert!((0.9e6..1.1e6).contains(&rate), "{to}: {rate}");
            assert_eq!((status.left_out, foreign), (0, 0), "{to}");
        }
    }

    #[test]
    fn packets_that_would_be_late_are_left_out_and_counted() {
        let topology = Topology::read(PAIR).unwrap();
        let network = NetworkMachine::new(&topology, &BTreeMap::new(), 1).unwrap();
        let mut floods = Floods::default();
        floods.add(Time::ZERO, &network, ask("10.0.1.1")).unwrap();
        let now = Time::ZERO + Duration::from_millis(600);
        let mut sent = 0;
        while floods.due(now, |_, _, _| sent += 1) {}
        let status = floods.status().remove(0);
        assert!(sent <= 7 && status.left_out > 100, "{sent}, {status:?}");
        assert!(!floods.take(now, b"E") && !floods.take(now, &[0x45; 60]));
    }

    #[test]
    fn a_flood_is_bounded() {
        let topology = Topology::read(PAIR).unwrap();
        let network = NetworkMachine::new(&topology, &BTreeMap::new(), 1).unwrap();
        let mut floods = Floods::default();
        let mut add = |ask: FloodAsk| floods.add(Time::ZERO, &network, ask);
        let one = ask("10.0.1.1");
        assert!(add(FloodAsk { time_ms: 3_600_001, ..one.clone() }).is_err());
        assert!(add(FloodAsk { time_ms: 0, ..one.clone() }).is_err());
        assert!(add(FloodAsk { payload: 1_433, ..one.clone() }).is_err());
        assert!(add(FloodAsk { from: "z".to_owned(), ..one.clone() }).is_err());
        assert!(add(FloodAsk { to: "192.0.2.1".parse().unwrap(), ..one.clone() }).is_err());
        assert!((0..MAX_FLOODS).all(|_| add(one.clone()).is_ok()));
        assert!(add(one).is_err());
    }
}
