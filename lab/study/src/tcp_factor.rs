//! How many times as long the simulation's TCP takes as that of Linux where packets are lost. The study
//! `tcp-models` measured it, by the rate of the line, loss and round trip. A simulated row whose packets
//! were lost has the factor of the nearest cell beside it.

mod path;

use crate::measured::{Environment, Measured, PortSeries, TcpCount};
use crate::{Planned, file};
use path::{FlowPath, Stretch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

/// The name of the factor among a row's values.
pub const FACTOR: &str = "tcp_factor";
/// The name of the share of the row's own segments that were lost.
pub const LOSS: &str = "tcp_loss_percent";
/// The name of the round trip of the path, with the time that packets waited at ports.
pub const ROUND_TRIP: &str = "tcp_round_trip_ms";

/// A loss or a round trip farther than this from the nearest cell, as a ratio, is outside of what was
/// measured. Cells are a factor of 2 to 3.3 apart.
const OUTSIDE: f64 = 2.0;
/// Below this loss, in percent, the cells without loss are nearest.
const MIN_LOSS: f64 = 0.03;
/// Ratios of round trips and rates begin here.
const LEAST: f64 = 1.0;

/// What was measured, as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpFactors {
    /// When, as a date.
    pub measured: String,
    /// By which commands, on what.
    pub how: String,
    /// For each rate, loss and round trip.
    pub cells: Vec<TcpCell>,
}

/// A rate, a loss and a round trip, and the rates of both TCPs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpCell {
    /// Of the line.
    pub line_kbit_s: f64,
    /// Of each packet, in each direction.
    pub loss_percent: f64,
    /// Without the time that packets wait.
    pub round_trip_ms: f64,
    /// What a load got in the simulation.
    pub simulation_kbit_s: f64,
    /// What it got on Linux.
    pub linux_kbit_s: f64,
    /// The second divided by the first.
    pub factor: f64,
}

/// The factors that are part of the program.
pub fn shipped() -> &'static TcpFactors {
    static SHIPPED: LazyLock<TcpFactors> = LazyLock::new(|| {
        let text = include_str!("../../../docs/results/data/tcp-factor.json");
        serde_json::from_str(text).unwrap_or_default()
    });
    &SHIPPED
}

impl TcpFactors {
    /// The cell nearest to a rate of the line, a loss and a round trip: by ratios, the loss first.
    pub fn nearest(&self, line_kbit_s: f64, loss: f64, round_trip_ms: f64) -> Option<&TcpCell> {
        let apart = |cell: &TcpCell| {
            let loss = distance(cell.loss_percent, loss, MIN_LOSS);
            let rest = distance(cell.round_trip_ms, round_trip_ms, LEAST)
                + distance(cell.line_kbit_s, line_kbit_s, LEAST);
            (loss, rest)
        };
        let by_distance = |one: &&TcpCell, other: &&TcpCell| {
            let (one, other) = (apart(one), apart(other));
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        };
        self.cells.iter().min_by(by_distance)
    }

    /// Whether a loss or a round trip lies outside of what was measured.
    pub fn is_outside(&self, loss: f64, round_trip_ms: f64) -> bool {
        let far = |value: f64, of: fn(&TcpCell) -> f64, least| {
            let apart = self.cells.iter().map(|cell| distance(of(cell), value, least));
            apart.min_by(f64::total_cmp).is_none_or(|apart| apart > OUTSIDE.ln())
        };
        far(loss, |cell| cell.loss_percent, MIN_LOSS)
            || far(round_trip_ms, |cell| cell.round_trip_ms, LEAST)
    }
}

/// How far two values are apart, as the logarithm of their ratio; neither counts as less than `least`.
fn distance(one: f64, other: f64, least: f64) -> f64 {
    (one.max(least) / other.max(least)).ln().abs()
}

/// A transfer by TCP: from one host to another, with a mark, from when to when in seconds of the run.
pub(crate) struct Transfer {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) dscp: u8,
    pub(crate) time: (f64, f64),
}

impl Transfer {
    /// A load, if it is one of TCP.
    pub(crate) fn of_load(
        planned: &Planned,
        load: &file::StudyLoad,
        time: (f64, f64),
    ) -> Option<Transfer> {
        if load.protocol != file::Protocol::Tcp {
            return None;
        }
        let from = load.source.or_else(|| address(planned, &load.from, load.destination))?;
        let to = load.destination.or_else(|| address(planned, &load.to, Some(from)))?;
        Some(Transfer { from, to, dscp: load.dscp.number(), time })
    }

    /// A message between two sites.
    pub(crate) fn of_message(
        planned: &Planned,
        mail: &file::Mail,
        dscp: u8,
        time: (f64, f64),
    ) -> Option<Transfer> {
        let from = address(planned, mail.sites.get(&mail.from)?, None)?;
        let to = address(planned, mail.sites.get(&mail.to)?, Some(from))?;
        Some(Transfer { from, to, dscp, time })
    }
}

/// The first address of a host, of the family of another one where there is one.
fn address(planned: &Planned, host: &str, other: Option<IpAddr>) -> Option<IpAddr> {
    let ports = &planned.topology.hosts.get(host)?.ports;
    let mut all = ports.values().flat_map(|port| &port.addresses).map(|address| address.ip());
    all.find(|ip| other.is_none_or(|other| other.is_ipv4() == ip.is_ipv4()))
}

/// The factor, the loss and the round trip of a simulated transfer, by their names; nothing of one of
/// which no segment was lost. The loss is that of the connections with its mark between its hosts.
pub(crate) fn values(
    planned: &Planned,
    measured: &Measured,
    transfer: &Transfer,
) -> BTreeMap<String, f64> {
    let found = (measured.environment == Environment::Simulation)
        .then(|| FlowPath::new(&planned.topology, transfer.from, transfer.to))
        .flatten()
        .and_then(|path| {
            let loss = lost(&measured.tcp, transfer);
            of_path(shipped(), &path, &measured.series, transfer, loss)
        });
    found.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What was lost of the segments with payload from its host to the other one with its mark, 0 to 1.
fn lost(counts: &[TcpCount], transfer: &Transfer) -> f64 {
    let is_its = |count: &&TcpCount| {
        (count.from, count.to, count.dscp) == (transfer.from, transfer.to, transfer.dscp)
    };
    counts.iter().find(is_its).map_or(0.0, TcpCount::loss)
}

fn of_path(
    factors: &TcpFactors,
    path: &FlowPath,
    series: &[PortSeries],
    transfer: &Transfer,
    loss: f64,
) -> Option<[(&'static str, f64); 3]> {
    if !(loss > 0.0 && loss.is_finite()) {
        return None;
    }
    let loss = loss * 100.0;
    let of_port = |stretch: &Stretch| {
        let series = series.iter().find(|series| series.port == stretch.port)?;
        Passed::new(series, transfer.dscp, transfer.time)
    };
    let mut worst = 0.0;
    // Rate of the narrowest line, or of the port that dropped most: what left it is all it could send.
    let lines = path.there.iter().filter_map(|stretch| stretch.kbit_s);
    let mut line = lines.min_by(f64::total_cmp).unwrap_or(f64::MAX);
    let mut waited = 0.0;
    for stretch in &path.there {
        let Some(passed) = of_port(stretch) else { continue };
        waited += passed.waited();
        if passed.loss() > worst {
            (worst, line) = (passed.loss(), passed.kbit_s);
        }
    }
    waited += path.back.iter().filter_map(of_port).map(|passed| passed.waited()).sum::<f64>();
    let ways = path.there.iter().chain(&path.back);
    let round_trip = (ways.map(|stretch| stretch.seconds).sum::<f64>() + waited) * 1e3;
    let cell = factors.nearest(line, loss, round_trip)?;
    Some([(FACTOR, cell.factor), (LOSS, loss), (ROUND_TRIP, round_trip)])
}

/// What passed a port during a transfer.
struct Passed {
    /// Of its code point, packets that left, were dropped, and waited in the mean.
    packets: f64,
    dropped: f64,
    waiting: f64,
    seconds: f64,
    /// Of all code points.
    kbit_s: f64,
}

impl Passed {
    fn new(series: &PortSeries, dscp: u8, (from, to): (f64, f64)) -> Option<Passed> {
        let sound = series.interval.is_finite() && series.interval > 0.0 && from < to;
        let first = (from / series.interval).max(0.0) as usize;
        let count = ((to / series.interval).ceil() as usize).saturating_sub(first);
        let sum = |of: &[u64]| of.iter().skip(first).take(count).sum::<u64>() as f64;
        let steps = series.rows.get(&dscp).filter(|_| sound && count > 0)?;
        let seconds = count as f64 * series.interval;
        let octets: f64 = series.rows.values().map(|steps| sum(&steps.octets)).sum();
        Some(Passed {
            packets: sum(&steps.packets),
            dropped: sum(&steps.dropped),
            waiting: sum(&steps.waiting) / count as f64,
            seconds,
            kbit_s: octets * 8e-3 / seconds,
        })
    }

    /// The share that was dropped.
    fn loss(&self) -> f64 {
        if self.dropped > 0.0 { self.dropped / (self.dropped + self.packets) } else { 0.0 }
    }

    /// How long a packet waited, in seconds: as many wait as come in that time (Little's law).
    fn waited(&self) -> f64 {
        if self.packets > 0.0 { self.waiting * self.seconds / self.packets } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
