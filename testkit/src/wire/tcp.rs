//! TCP over one line in virtual time, as a wire.

use super::{Wire, WireArrival, WireMoment};
use base::Instant;
use bytes::Bytes;
use dscp::Dscp;
use network::line::{LineEnd, LineEvent, LinkLine};
use network::topology::TopologyLink;
use router::policy::Span;
use router::{Rate, Time};
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use virtual_tcp::{ConnectionId, HostEvent, MAX_UNSENT, TcpHost, TcpSettings};

/// The hosts at the ends of the line.
const NEAR: usize = 0;
const FAR: usize = 1;
const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))];
const PORT: u16 = 102;
/// Packets that may wait for the line at each end.
const QUEUE: usize = 100;

/// Carries octets by a TCP connection over a line that has a rate and a delay and loses packets, in
/// both directions. TCP connects when the near end writes or closes first. The other direction of the
/// connection under test is another TCP connection on a line of its own.
///
/// The near end's random numbers at that moment decide which packets are lost.
pub struct VirtualTcp {
    link: TopologyLink,
    settings: TcpSettings,
    connection: Option<TcpConnection>,
    arrivals: VecDeque<WireArrival>,
    /// The time of the last arrival.
    due: Instant,
    /// Octets that the far host has acknowledged.
    taken: u64,
    /// The near end has closed.
    closed: bool,
    /// The far end has closed, or the connection is lost: nothing more arrives.
    ended: bool,
}

/// A TCP connection in progress: two hosts and the line between them.
struct TcpConnection {
    hosts: [TcpHost; 2],
    line: LinkLine,
    id: ConnectionId,
    /// The near host has finished the handshake.
    open: bool,
}

impl VirtualTcp {
    /// TCP over a line of `bit_s` bit/s and this delay, which loses a packet with probability `loss`.
    pub fn new(bit_s: u64, delay: Duration, loss: f64) -> VirtualTcp {
        let link = TopologyLink {
            rate: Rate::from_bits(bit_s),
            delay: Span(delay),
            loss,
            ..TopologyLink::between("near.line", "far.line")
        };
        VirtualTcp {
            link,
            settings: TcpSettings::default(),
            connection: None,
            arrivals: VecDeque::new(),
            due: Instant(0),
            taken: 0,
            closed: false,
            ended: false,
        }
    }

    /// The connection, made at the first call. `None` once it has ended.
    fn connection(&mut self, moment: &mut WireMoment<'_>) -> Option<&mut TcpConnection> {
        if self.ended {
            return None;
        }
        Some(self.connection.get_or_insert_with(|| {
            let mut host = |name, address| {
                let seed = moment.rng.next_u64();
                TcpHost::new(name, &[address], self.link.mtu, &self.settings, seed)
            };
            let mut hosts = [host("near", ADDRESSES[NEAR]), host("far", ADDRESSES[FAR])];
            let now = tcp_time(moment.now);
            let remote = SocketAddr::new(ADDRESSES[FAR], PORT);
            hosts[FAR].listen(PORT, Dscp::CS0);
            let id = hosts[NEAR].connect(now, ADDRESSES[NEAR], remote, Dscp::CS0);
            let end = LineEnd { queue: QUEUE, paced: false, tapped: false };
            let line = LinkLine::new(&self.link, [end; 2], moment.rng.next_u64());
            TcpConnection { hosts, line, id, open: false }
        }))
    }

    /// Lets hosts and line do all that is due by now.
    fn run_until(&mut self, now: Instant) {
        while let Some(connection) = &mut self.connection
            && let Some(due) = connection.deadline().filter(|due| *due <= tcp_time(now))
        {
            for event in connection.step(due) {
                self.handle(due, event);
            }
        }
    }

    fn handle(&mut self, now: Time, (host, event): (usize, HostEvent)) {
        let arrival = match (host, event) {
            (NEAR, HostEvent::Connected { .. }) => {
                if let Some(connection) = &mut self.connection {
                    connection.open = true;
                    if self.closed {
                        connection.hosts[NEAR].close(now, connection.id);
                    }
                }
                return;
            }
            (NEAR, HostEvent::Failed { .. }) => WireArrival::Lost,
            (FAR, HostEvent::Bytes { bytes, .. }) => WireArrival::Octets(bytes),
            (_, HostEvent::Closed { error: Some(_), .. }) => WireArrival::Lost,
            (FAR, HostEvent::Closed { .. }) => WireArrival::End,
            _ => return,
        };
        if self.ended {
            return;
        }
        if !matches!(arrival, WireArrival::Octets(_)) {
            self.measure();
            self.ended = true;
            self.connection = None;
        }
        self.arrivals.push_back(arrival);
        self.due = world_time(now);
    }
}

impl TcpConnection {
    fn deadline(&self) -> Option<Time> {
        let hosts = self.hosts.iter().filter_map(TcpHost::deadline);
        hosts.chain(self.line.deadline()).min()
    }

    /// Does what is due at this time. The events of the hosts.
    fn step(&mut self, now: Time) -> Vec<(usize, HostEvent)> {
        self.line.tick(now);
        let mut events = Vec::new();
        for number in [NEAR, FAR] {
            self.take_from_line(now);
            let host = &mut self.hosts[number];
            if host.deadline().is_some_and(|due| due <= now) {
                host.poll(now);
            }
            while let Some(packet) = host.packet() {
                self.line.offer(now, number, packet);
            }
            while let Some(event) = host.event() {
                events.push((number, event));
            }
        }
        self.take_from_line(now);
        events
    }

    fn take_from_line(&mut self, now: Time) {
        while let Some(event) = self.line.poll() {
            match event {
                LineEvent::Arrived { end, octets, .. } => {
                    let mtu = self.hosts[end].mtu();
                    self.hosts[end].receive(now, octets, |_| mtu);
                }
                LineEvent::Dropped { octets, .. } => self.hosts[NEAR].recycle(octets),
                LineEvent::Free { .. } | LineEvent::Began { .. } => {}
            }
        }
    }
}

impl Wire for VirtualTcp {
    fn write(&mut self, mut moment: WireMoment<'_>, octets: Bytes) {
        let now = moment.now;
        self.run_until(now);
        if let Some(connection) = self.connection(&mut moment) {
            connection.hosts[NEAR].write(tcp_time(now), connection.id, octets);
        }
        self.run_until(now);
    }

    fn close(&mut self, mut moment: WireMoment<'_>) {
        let now = moment.now;
        self.run_until(now);
        self.closed = true;
        // A host that closes before the handshake is finished drops what was written.
        if let Some(connection) = self.connection(&mut moment)
            && connection.open
        {
            connection.hosts[NEAR].close(tcp_time(now), connection.id);
        }
        self.run_until(now);
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.arrivals.is_empty() {
            return Some(self.due);
        }
        self.connection.as_ref()?.deadline().map(world_time)
    }

    fn poll(&mut self, now: Instant) -> Option<WireArrival> {
        self.run_until(now);
        self.arrivals.pop_front()
    }

    fn is_full(&self) -> bool {
        let waiting = |c: &TcpConnection| c.hosts[NEAR].waiting(c.id);
        self.connection.as_ref().map_or(0, waiting) >= MAX_UNSENT
    }

    fn measure(&mut self) -> Option<u64> {
        let taken = |c: &TcpConnection| c.hosts[NEAR].taken(c.id);
        self.taken = self.connection.as_ref().and_then(taken).unwrap_or(self.taken);
        Some(self.taken)
    }
}

impl fmt::Debug for VirtualTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("VirtualTcp");
        out.field("link", &self.link).field("taken", &self.taken).field("closed", &self.closed);
        out.field("ended", &self.ended).field("arrivals", &self.arrivals.len()).finish()
    }
}

/// The time of hosts and line.
fn tcp_time(at: Instant) -> Time {
    Time(at.0.saturating_mul(1_000))
}

/// The first moment of the world that is not before.
fn world_time(at: Time) -> Instant {
    Instant(at.0.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    const LATENCY: Duration = Duration::from_millis(50);

    struct Transfer {
        octets: Vec<u8>,
        /// When each piece has arrived.
        times: Vec<Instant>,
        /// How the connection ends.
        end: Option<WireArrival>,
    }

    fn moment(rng: &mut Rng) -> WireMoment<'_> {
        WireMoment { now: Instant(0), latency: Duration::ZERO, rng }
    }

    /// Writes octets, closes, and runs until nothing more arrives.
    fn transfer(mut wire: VirtualTcp, seed: u64, octets: &[u8]) -> Transfer {
        let mut rng = Rng::new(seed);
        wire.write(moment(&mut rng), Bytes::copy_from_slice(octets));
        wire.close(moment(&mut rng));
        let mut done = Transfer { octets: Vec::new(), times: Vec::new(), end: None };
        while let Some(now) = wire.deadline() {
            while let Some(arrival) = wire.poll(now) {
                assert_eq!(done.end, None, "{arrival:?} after the end");
                match arrival {
                    WireArrival::Octets(piece) => done.octets.extend_from_slice(&piece),
                    end => done.end = Some(end),
                }
                done.times.push(now);
            }
        }
        done
    }

    fn sample(length: u32) -> Vec<u8> {
        (0..length).map(|n| (n * 7 % 251) as u8).collect()
    }

    #[test]
    fn a_line_without_loss_is_used_to_its_rate() {
        let sent = sample(100_000);
        let done = transfer(VirtualTcp::new(64_000, LATENCY, 0.0), 1, &sent);
        assert!(done.octets == sent);
        assert_eq!(done.end, Some(WireArrival::End));
        // 100,000 octets and 52 of headers for each 1,448.
        let took = done.times.last().unwrap().since(Instant(0)).as_secs_f64();
        assert!((12.9..14.5).contains(&took), "{took}");
    }

    #[test]
    fn lost_packets_cost_time_and_no_octets() {
        let sent = sample(100_000);
        let took = |loss| {
            let done = transfer(VirtualTcp::new(64_000, LATENCY, loss), 3, &sent);
            assert!(done.octets == sent && done.end == Some(WireArrival::End), "{loss}");
            done.times.last().unwrap().since(Instant(0))
        };
        let (without, with) = (took(0.0), took(0.05));
        assert!(with > without && with < 8 * without, "{with:?} {without:?}");
    }

    #[test]
    fn the_seed_decides_which_packets_are_lost() {
        let sent = sample(50_000);
        let times = |seed| transfer(VirtualTcp::new(64_000, LATENCY, 0.05), seed, &sent).times;
        assert!(times(1) == times(1));
        assert!(times(1) != times(2));
    }

    #[test]
    fn a_line_that_carries_nothing_loses_the_connection() {
        let done = transfer(VirtualTcp::new(64_000, LATENCY, 1.0), 1, b"octets");
        assert_eq!((done.octets.len(), done.end), (0, Some(WireArrival::Lost)));
        assert_eq!(done.times, [Instant(10_000_000)], "the time limit of the handshake");
    }

    #[test]
    fn octets_that_the_far_host_has_not_acknowledged_are_not_measured() {
        let mut wire = VirtualTcp::new(64_000, LATENCY, 0.0);
        let mut rng = Rng::new(1);
        assert_eq!(wire.measure(), Some(0));
        wire.write(moment(&mut rng), sample(2_000_000).into());
        assert!(wire.is_full());
        let mut arrived = 0;
        while arrived < 40_000 {
            let now = wire.deadline().unwrap();
            while let Some(WireArrival::Octets(piece)) = wire.poll(now) {
                arrived += piece.len() as u64;
            }
            let taken = wire.measure().unwrap();
            assert!(taken <= arrived && taken + (64 << 10) >= arrived, "{taken} of {arrived}");
        }
        assert!(wire.measure().unwrap() > 0);
    }
}
