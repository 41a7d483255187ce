//! Packets a second and delay over each data path, by turns.

use super::median;
use super::network::{HEADERS, Network, Outcome, TOPOLOGY};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The kernel's forwarding first: the others are compared with it.
const PATHS: [&str; 3] = ["tc", "tun", "packet"];
/// Octets of an IPv4 packet, and the rate that is offered: more than any path carries.
pub(super) const SIZES: [(u64, &str); 2] = [(128, "2Gbit"), (1_500, "12Gbit")];

/// A data path and a size.
#[derive(Debug, Serialize)]
pub(super) struct RouterRow {
    pub(super) path: &'static str,
    /// Octets of a packet with its IP header.
    pub(super) size: u64,
    /// What arrived, the median of the rounds.
    pub(super) packets_per_second: f64,
    /// Beside the kernel's forwarding in the same round, the median.
    pub(super) ratio_to_kernel: f64,
    /// Of all rounds.
    pub(super) sent: u64,
    pub(super) lost_in_transit: u64,
    pub(super) dropped_at_receiver: u64,
    /// In some round nothing was lost in transit: the path might have carried more.
    pub(super) load_limited: bool,
    /// Half of the median round trip of an idle network, and that without the kernel's.
    pub(super) one_way_ms: f64,
    pub(super) added_ms: f64,
}

/// All paths, so many rounds of so many seconds for each size.
pub(super) fn measure(lab: &Path, seconds: u64, rounds: usize) -> Result<Vec<RouterRow>> {
    let directory = tempfile::tempdir()?;
    let topology = directory.path().join("bench.toml");
    std::fs::write(&topology, TOPOLOGY)?;
    // By place in `PATHS`, and octets.
    let mut loads: BTreeMap<(usize, u64), Vec<Outcome>> = BTreeMap::new();
    let mut trips: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        for (place, path) in PATHS.into_iter().enumerate() {
            eprintln!("round {} of {rounds}: {path}", round + 1);
            let network = Network::up(lab, path, &topology)?;
            trips.entry(place).or_default().push(network.round_trip()?);
            for (size, rate) in SIZES {
                let (payload, time) = ((size - HEADERS).to_string(), format!("{seconds}s"));
                let load = ["10.0.2.2:5000", "--rate", rate, "--size", &payload, "--for", &time];
                let load =
                    network.send(&[&load[..], &["--pacing", "busy"]].concat(), 1, seconds)?;
                loads.entry((place, size)).or_default().push(load);
            }
        }
    }
    let trip = |place: usize| trips.get(&place).cloned().and_then(median).context("no round trips");
    let mut rows = Vec::new();
    for (place, path) in PATHS.into_iter().enumerate() {
        for (size, _) in SIZES {
            let own = loads.get(&(place, size)).context("no rates")?;
            let kernel = loads.get(&(0, size)).context("no rates")?;
            let rate = |load: &Outcome| load.packets_per_second;
            let ratios = own.iter().zip(kernel).map(|(own, kernel)| rate(own) / rate(kernel));
            let sum = |of: fn(&Outcome) -> u64| own.iter().map(of).sum();
            rows.push(RouterRow {
                path,
                size,
                packets_per_second: median(own.iter().map(rate).collect()).context("no rounds")?,
                ratio_to_kernel: median(ratios.collect()).context("no rounds")?,
                sent: sum(|load| load.sent),
                lost_in_transit: sum(Outcome::lost_in_transit),
                dropped_at_receiver: sum(|load| load.dropped_at_receiver),
                load_limited: own.iter().any(|load| load.lost_in_transit() == 0),
                one_way_ms: trip(place)? / 2.0,
                added_ms: (trip(place)? - trip(0)?) / 2.0,
            });
        }
    }
    Ok(rows)
}
