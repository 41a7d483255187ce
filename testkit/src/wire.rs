//! One direction of a connection in virtual time.
//!
//! A network or bench writes octets to a wire and polls it for arrivals. [`Direct`] carries at once,
//! [`Delayed`] after a latency and in pieces of any length, [`Paced`] packet by packet at a rate,
//! [`VirtualTcp`] by TCP over a line that loses packets.

mod tcp;

use base::Instant;
use base::rng::Rng;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::time::Duration;

pub use tcp::VirtualTcp;

/// The time, and what a wire uses of its network or bench.
#[derive(Debug)]
pub struct WireMoment<'a> {
    /// The time.
    pub now: Instant,
    /// The delay of the network's wires now.
    pub latency: Duration,
    /// Decides what is left to chance.
    pub rng: &'a mut Rng,
}

/// An event at the far end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireArrival {
    /// Octets, in order.
    Octets(Bytes),
    /// The near end has closed.
    End,
    /// The connection is lost, in both directions.
    Lost,
}

/// One direction of a connection.
pub trait Wire: std::fmt::Debug {
    /// The near end writes octets.
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes);

    /// The near end closes; what it wrote arrives before.
    fn close(&mut self, moment: WireMoment<'_>);

    /// The time at which `poll` must be called again; `None` if nothing is due.
    fn deadline(&self) -> Option<Instant>;

    /// The next arrival that is due by now; `None` once there is none.
    fn poll(&mut self, now: Instant) -> Option<WireArrival>;

    /// Whether the near end stops reading content because too many octets wait here.
    fn is_full(&self) -> bool {
        false
    }

    /// Octets that the far end's transport has taken so far; `None` for a wire on which none wait.
    fn measure(&mut self) -> Option<u64> {
        None
    }
}

/// Carries everything at the moment it is written.
#[derive(Debug, Default)]
pub struct Direct {
    arrivals: VecDeque<WireArrival>,
    due: Instant,
    /// Octets carried, if [`Wire::measure`] reports them.
    taken: Option<u64>,
}

impl Direct {
    /// A wire that reports how much it has carried.
    pub fn measured() -> Direct {
        Direct { taken: Some(0), ..Direct::default() }
    }
}

impl Wire for Direct {
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes) {
        self.due = moment.now;
        self.taken = self.taken.map(|taken| taken + octets.len() as u64);
        self.arrivals.push_back(WireArrival::Octets(octets));
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        self.due = moment.now;
        self.arrivals.push_back(WireArrival::End);
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.arrivals.is_empty()).then_some(self.due)
    }

    fn poll(&mut self, _: Instant) -> Option<WireArrival> {
        self.arrivals.pop_front()
    }

    fn measure(&mut self) -> Option<u64> {
        self.taken
    }
}

/// Carries octets after the network's latency and up to half a millisecond more. Some arrive in pieces
/// of a few octets.
#[derive(Debug, Default)]
pub struct Delayed {
    arrivals: VecDeque<(Instant, WireArrival)>,
    last: Instant,
}

impl Delayed {
    fn push(&mut self, at: Instant, arrival: WireArrival) {
        self.last = self.last.max(at);
        self.arrivals.push_back((self.last, arrival));
    }
}

impl Wire for Delayed {
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes) {
        let mut rest = octets;
        while !rest.is_empty() {
            let cut = match moment.rng.below(4) {
                0 => 1 + moment.rng.below(rest.len().min(40) as u64) as usize,
                _ => rest.len(),
            };
            let piece = rest.split_to(cut);
            let jitter = Duration::from_micros(moment.rng.below(500));
            self.push(moment.now + moment.latency + jitter, WireArrival::Octets(piece));
        }
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        self.push(moment.now + moment.latency, WireArrival::End);
    }

    fn deadline(&self) -> Option<Instant> {
        self.arrivals.front().map(|(at, _)| *at)
    }

    fn poll(&mut self, now: Instant) -> Option<WireArrival> {
        self.arrivals.pop_front_if(|(at, _)| *at <= now).map(|(_, arrival)| arrival)
    }
}

/// Octets of a packet.
const PACKET: usize = 1_448;
/// More content is read while fewer octets wait.
const ROOM: usize = 32 << 10;

/// Carries packets one after the other at a rate. Its far end may stop reading.
#[derive(Debug)]
pub struct Paced {
    bit_s: u64,
    /// The far end stops reading after so many octets.
    stops: u64,
    /// Octets that it still takes between two measurements.
    trickles: u64,
    waits: BytesMut,
    next: Option<Instant>,
    taken: u64,
    closed: bool,
}

impl Paced {
    /// A wire of this rate, whose far end reads everything.
    pub fn new(bit_s: u64) -> Paced {
        Paced::that_stops(bit_s, u64::MAX, 0)
    }

    /// A wire of this rate whose far end stops reading after `stops` octets, but takes `trickles` octets
    /// before each measurement.
    pub fn that_stops(bit_s: u64, stops: u64, trickles: u64) -> Paced {
        let (waits, next) = (BytesMut::new(), None);
        Paced { bit_s, stops, trickles, waits, next, taken: 0, closed: false }
    }

    fn packet(&self) -> Duration {
        Duration::from_secs_f64(PACKET as f64 * 8.0 / self.bit_s as f64)
    }
}

impl Wire for Paced {
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes) {
        if self.waits.is_empty() {
            self.next = Some(moment.now + self.packet());
        }
        self.waits.extend_from_slice(&octets);
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        self.closed = true;
        self.next = self.next.or(Some(moment.now));
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn poll(&mut self, now: Instant) -> Option<WireArrival> {
        self.next.filter(|at| *at <= now)?;
        if self.waits.is_empty() {
            self.next = None;
            return std::mem::take(&mut self.closed).then_some(WireArrival::End);
        }
        let packet = self.waits.split_to(PACKET.min(self.waits.len()));
        self.taken += packet.len() as u64;
        let continues = self.taken < self.stops && (self.closed || !self.waits.is_empty());
        self.next = continues.then(|| now + self.packet());
        Some(WireArrival::Octets(packet.freeze()))
    }

    fn is_full(&self) -> bool {
        self.waits.len() >= ROOM
    }

    fn measure(&mut self) -> Option<u64> {
        if self.taken >= self.stops {
            self.taken += self.trickles;
        }
        Some(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: u64, rng: &mut Rng) -> WireMoment<'_> {
        WireMoment { now: Instant(now), latency: Duration::from_millis(5), rng }
    }

    fn arrivals(wire: &mut dyn Wire, until: Instant) -> (Vec<u8>, Vec<Instant>, bool) {
        let (mut octets, mut times, mut ended) = (Vec::new(), Vec::new(), false);
        while let Some(at) = wire.deadline().filter(|at| *at <= until) {
            while let Some(arrival) = wire.poll(at) {
                assert!(!ended, "{arrival:?} after the end");
                match arrival {
                    WireArrival::Octets(piece) => octets.extend_from_slice(&piece),
                    WireArrival::End => ended = true,
                    WireArrival::Lost => panic!("the connection is lost"),
                }
                times.push(at);
            }
        }
        (octets, times, ended)
    }

    #[test]
    fn every_wire_carries_all_octets_in_order_and_then_the_end() {
        let sent: Vec<u8> = (0..10_000u32).map(|n| (n * 7) as u8).collect();
        let wires: [Box<dyn Wire>; 4] = [
            Box::<Direct>::default(),
            Box::<Delayed>::default(),
            Box::new(Paced::new(64_000)),
            Box::new(VirtualTcp::new(64_000, Duration::from_millis(50), 0.02)),
        ];
        for mut wire in wires {
            let mut rng = Rng::new(3);
            for (n, piece) in sent.chunks(3_000).enumerate() {
                let moment = moment(n as u64 * 100, &mut rng);
                wire.write(moment, Bytes::copy_from_slice(piece));
            }
            wire.close(moment(500, &mut rng));
            let (octets, times, ended) = arrivals(&mut *wire, Instant(u64::MAX));
            assert!(octets == sent && ended, "{wire:?}");
            assert!(times.is_sorted(), "{times:?}");
            assert_eq!(wire.deadline(), None);
        }
    }

    #[test]
    fn a_delayed_wire_takes_the_latency_at_least() {
        let (mut wire, mut rng) = (Delayed::default(), Rng::new(1));
        wire.write(moment(1_000, &mut rng), Bytes::from_static(b"octets"));
        assert_eq!(wire.poll(Instant(5_999)), None);
        assert!(wire.deadline().unwrap() >= Instant(6_000));
    }

    #[test]
    fn a_paced_wire_has_its_rate_and_a_far_end_that_stops_takes_no_more() {
        let mut rng = Rng::new(1);
        let mut wire = Paced::that_stops(1_448 * 8, 3_000, 1);
        wire.write(moment(0, &mut rng), vec![1; 100_000].into());
        assert!(wire.is_full());
        let (octets, times, _) = arrivals(&mut wire, Instant(u64::MAX));
        assert_eq!((octets.len(), wire.deadline()), (3 * 1_448, None));
        assert_eq!(times, [1, 2, 3].map(|second| Instant(second * 1_000_000)));
        assert_eq!((wire.measure(), wire.measure()), (Some(4_345), Some(4_346)));
    }
}
