//! What passes an interface of a router over time, and what waits for it.

use crate::scenario::InterfaceProbe;
use dscp::Dscp;
use network::NetworkMachine;
use router::count::Amount;
use std::collections::BTreeMap;
use std::time::Duration;

/// The records of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSeries {
    /// The router.
    pub router: String,
    /// Its interface.
    pub interface: String,
    /// The time from one row to the next.
    pub interval: Duration,
    /// In the order of time, then of code points. A code point has rows from its first packet on.
    pub rows: Vec<ProbeRow>,
}

/// What happened to a code point in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRow {
    /// The end of the interval.
    pub at: Duration,
    /// The code point, as packets bear it where they wait.
    pub dscp: Dscp,
    /// The traffic that left the interface.
    pub sent: Amount,
    /// What was to go out, and was dropped: by queues, policers and shapers of this interface.
    pub dropped: Amount,
    /// What waits at the end of the interval.
    pub waiting: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct DelaySum {
    sent: Amount,
    dropped: Amount,
    waiting: Amount,
}

/// Records a series.
#[derive(Debug)]
pub(crate) struct Recorder {
    prefix: String,
    before: BTreeMap<Dscp, DelaySum>,
    pub(crate) series: ProbeSeries,
}

fn add(sum: &mut Amount, more: Amount) {
    sum.packets += more.packets;
    sum.octets += more.octets;
}

fn less(now: Amount, before: Amount) -> Amount {
    Amount {
        packets: now.packets.saturating_sub(before.packets),
        octets: now.octets.saturating_sub(before.octets),
    }
}

impl Recorder {
    pub(crate) fn new(probe: &InterfaceProbe) -> Recorder {
        Recorder {
            prefix: format!("{}/", probe.interface),
            before: BTreeMap::new(),
            series: ProbeSeries {
                router: probe.router.clone(),
                interface: probe.interface.clone(),
                interval: probe.interval,
                rows: Vec::new(),
            },
        }
    }

    /// Adds the rows of the interval that ends now.
    pub(crate) fn record(&mut self, now: Duration, network: &NetworkMachine) {
        let Some(router) = network.router(&self.series.router) else { return };
        let mut sums: BTreeMap<Dscp, DelaySum> = BTreeMap::new();
        for part in router.report() {
            let is_interface = part.path == self.series.interface;
            let within = part.path.strip_prefix(&self.prefix);
            let is_output = within
                .is_some_and(|rest| rest.starts_with("output/") || rest.starts_with("queueing"));
            if !is_interface && !is_output {
                continue;
            }
            for (dscp, row) in part.counters.used() {
                let sum = sums.entry(dscp).or_default();
                if is_interface {
                    add(&mut sum.sent, row.went);
                } else {
                    add(&mut sum.dropped, row.dropped_in_all());
                    let depth = part.counters.depth_of(dscp).map(|depth| depth.now());
                    add(&mut sum.waiting, depth.unwrap_or_default());
                }
            }
        }
        for (dscp, sum) in sums {
            let before = self.before.insert(dscp, sum).unwrap_or_default();
            if sum.sent.packets + sum.dropped.packets + sum.waiting.packets == 0 {
                continue; // it only came in here
            }
            self.series.rows.push(ProbeRow {
                at: now,
                dscp,
                sent: less(sum.sent, before.sent),
                dropped: less(sum.dropped, before.dropped),
                waiting: sum.waiting,
            });
        }
    }
}
