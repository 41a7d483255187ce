//! The results of a scenario.

pub(crate) mod probe;
pub(crate) mod spread;

use crate::outcome::probe::ProbeSeries;
use crate::outcome::spread::Spread;
use base::AssociationId;
use dscp::Dscp;
use node::event::LogEvent;
use std::collections::BTreeMap;
use std::time::Duration;
use virtual_tcp::ConnectionCount;

/// The results of a scenario. All times count from its beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationOutcome {
    /// Of each message.
    pub messages: Vec<SimulatedTimes>,
    /// Of each load.
    pub loads: Vec<LoadCount>,
    /// Of each probe.
    pub series: Vec<ProbeSeries>,
    /// The events of the nodes, each with the index of its site.
    pub events: Vec<(Duration, usize, LogEvent)>,
    /// Each TCP connection that there was, at either end.
    pub tcp: Vec<ConnectionCount>,
    /// The virtual time at which the simulation ended.
    pub ended: Duration,
    /// Whether all messages were delivered and all bounded loads received before the end.
    pub complete: bool,
    /// The number of steps of the simulation.
    pub steps: u64,
}

/// The moments of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedTimes {
    /// Its user got it, and submits it once bound and without another submission in progress.
    pub submitted: Option<Duration>,
    /// The submission was answered: the first MTA is responsible.
    pub accepted: Option<Duration>,
    /// The first transfer from the first MTA began.
    pub started: Option<Duration>,
    /// The last transfer from the first MTA began.
    pub started_last: Option<Duration>,
    /// Octets that the next MTA has confirmed, envelope included, of a transfer that goes on at the
    /// end.
    pub transferred: Option<u64>,
    /// The next MTA confirmed it.
    pub confirmed: Option<Duration>,
    /// Its recipient has all of it.
    pub delivered: Option<Duration>,
    /// Whether what was delivered is what was submitted, octet for octet.
    pub intact: bool,
    /// The number of deliveries; above 1 the recipient has duplicates.
    pub deliveries: u32,
    /// Its MTS identifier.
    pub identifier: Option<String>,
    /// The reason for which the submission was refused.
    pub refused: Option<String>,
    /// The associations its transfers from the first MTA began on.
    pub associations: Vec<AssociationId>,
}

/// Packets, or for TCP reads, and octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// The number of packets; for TCP, of reads.
    pub packets: u64,
    /// Octets: of whole IP packets for UDP, of payload for TCP.
    pub octets: u64,
    /// The first.
    pub first: Option<Duration>,
    /// The last.
    pub last: Option<Duration>,
}

impl TrafficCount {
    pub(crate) fn add(&mut self, now: Duration, octets: usize) {
        self.packets += 1;
        self.octets += octets as u64;
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Bits a second between the first and the last; `None` where there are no two moments.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.last?.saturating_sub(self.first?).as_secs_f64();
        (seconds > 0.0).then(|| self.octets as f64 * 8.0 / seconds)
    }
}

/// How long a step of [`LoadCount::over_time`] is.
pub const LOAD_INTERVAL: Duration = Duration::from_millis(100);

/// Most [`LoadCount::samples`].
pub const MAX_SAMPLES: usize = 20_000;

/// Times, and how many they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelaySum {
    /// The number of times in the sum.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub nanos: u64,
}

impl DelaySum {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos = self.nanos.saturating_add(nanos);
    }
}

/// The results of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadCount {
    /// What went out of the host; for TCP, what TCP took.
    pub sent: TrafficCount,
    /// The traffic that reached the other end.
    pub received: TrafficCount,
    /// Of UDP, the times from one end to the other.
    pub delays: Spread,
    /// The median of `delays`.
    pub delay: Option<Duration>,
    /// Of UDP, how far the delays of two successive packets are from each other.
    pub jitter: Spread,
    /// Of UDP that is sent back, the times there and back.
    pub round_trips: Spread,
    /// Of UDP, packets by the code point they arrived with.
    pub dscp_seen: BTreeMap<Dscp, u64>,
    /// Octets received, as [`TrafficCount::octets`] has them, in each [`LOAD_INTERVAL`] from the beginning
    /// of the run to the last that anything came in.
    pub over_time: Vec<u64>,
    /// Of the delays in each [`LOAD_INTERVAL`], by when they ended; of TCP, of octets from when they
    /// were written to when they came.
    pub delay_over_time: Vec<DelaySum>,
    /// Of the jitter, likewise.
    pub jitter_over_time: Vec<DelaySum>,
    /// Of a UDP load that keeps them: when each datagram came, and how long it took by the clocks of
    /// both ends, in nanoseconds. [`MAX_SAMPLES`] at most.
    pub samples: Vec<(Duration, i64)>,
    /// Of TCP, when the receiver had all of it.
    pub done: Option<Duration>,
    /// Of TCP, octets that came and were not those sent at their place.
    pub wrong: u64,
    /// Of TCP, why it ended before its end.
    pub error: Option<String>,
}

impl LoadCount {
    /// So many octets came.
    pub(crate) fn came(&mut self, now: Duration, octets: usize) {
        self.received.add(now, octets);
        if let Some(sum) = step(&mut self.over_time, now) {
            *sum += octets as u64;
        }
    }

    /// Something took so long, as the clocks of both ends have it; `before` is the one before it.
    pub(crate) fn took(&mut self, now: Duration, nanos: i64, before: Option<i64>) {
        let delay = u64::try_from(nanos).unwrap_or(0);
        self.delays.add(delay);
        if let Some(sum) = step(&mut self.delay_over_time, now) {
            sum.add(delay);
        }
        let Some(before) = before else { return };
        let jitter = nanos.abs_diff(before);
        self.jitter.add(jitter);
        if let Some(sum) = step(&mut self.jitter_over_time, now) {
            sum.add(jitter);
        }
    }
}

/// The step that this moment lies in; the series grows up to it.
fn step<T: Clone + Default>(steps: &mut Vec<T>, now: Duration) -> Option<&mut T> {
    let step = now.as_nanos() / LOAD_INTERVAL.as_nanos();
    let step = usize::try_from(step).unwrap_or(usize::MAX - 1);
    if step >= steps.len() {
        steps.resize(step + 1, T::default());
    }
    steps.get_mut(step)
}
