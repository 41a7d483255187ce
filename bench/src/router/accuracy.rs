//! How near a shaper keeps to its rate in real time, over each data path that is ours.

use super::network::{HEADERS, Network, TOPOLOGY};
use crate::figures::{aligned, thousands};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::Path;

/// The kernel's own shaper is not ours to judge.
const PATHS: [&str; 2] = ["tun", "packet"];
/// The rates, in bit/s.
const RATES: [u64; 4] = [512_000, 2_000_000, 10_000_000, 100_000_000];
/// Octets of a packet with its IP header, all of which count; a shaper's `overhead` is 0 here.
const SIZE: u64 = 1_500;
/// So much more than the rate is offered, in percent of it.
const OFFERED: u64 = 150;

/// A shaper of some rate.
#[derive(Debug, Serialize)]
pub(super) struct Accuracy {
    path: &'static str,
    /// The rate in the policy.
    nominal_kbit_s: f64,
    /// IP packets at the receiver.
    measured_kbit_s: f64,
    /// Measured beside nominal.
    error_percent: f64,
    /// Packets that the shaper's queue or another part of the path dropped. If there are none, the
    /// load was below the shaper's rate, and the other values are not valid.
    lost_in_transit: u64,
    /// Packets that the receiver was too slow for.
    dropped_at_receiver: u64,
}

/// Each path and rate for so many seconds, beside a second before to empty the bucket.
pub(super) fn measure(lab: &Path, seconds: u64) -> Result<Vec<Accuracy>> {
    let each = PATHS.into_iter().flat_map(|path| RATES.map(|rate| (path, rate)));
    each.map(|(path, rate)| one(lab, path, rate, seconds)).collect()
}

fn one(lab: &Path, path: &'static str, rate: u64, seconds: u64) -> Result<Accuracy> {
    eprintln!("a shaper of {} kbit/s: {path}", rate / 1_000);
    let directory = tempfile::tempdir()?;
    let topology = directory.path().join("accuracy.toml");
    let named = TOPOLOGY.replace("[routers.r]\n", "[routers.r]\npolicy = \"shaper\"\n");
    std::fs::write(&topology, named)?;
    std::fs::write(directory.path().join("shaper.toml"), policy(rate))?;
    let load = directory.path().join("load.toml");
    std::fs::write(&load, plan(rate, seconds))?;
    let network = Network::up(lab, path, &topology)?;
    let plan = load.to_str().context("a path that is not UTF-8")?;
    let outcome = network.send(&["--plan", plan], 2, seconds + 1)?;
    let measured_kbit_s = outcome.flow_kbit_s(1)?;
    let nominal_kbit_s = rate as f64 / 1e3;
    Ok(Accuracy {
        path,
        nominal_kbit_s,
        measured_kbit_s,
        error_percent: (measured_kbit_s / nominal_kbit_s - 1.0) * 100.0,
        lost_in_transit: outcome.lost_in_transit(),
        dropped_at_receiver: outcome.dropped_at_receiver,
    })
}

/// A shaper with a burst of 2 ms and a queue of 20 ms, but room for a few packets.
fn policy(rate: u64) -> String {
    let burst = (rate / 8 / 500).max(2 * SIZE);
    let packets = 20 + rate / 8 / 50 / SIZE;
    format!(
        "[queueings.wan]\nkind = \"shaper\"\nrate = \"{rate}bit\"\nburst = \"{burst}B\"\n\
         child = {{ kind = \"fifo\", limit = {{ packets = {packets} }} }}\n\
         [interfaces.right]\nqueueing = \"wan\"\n"
    )
}

/// A second of one flow, which empties the bucket and fills the queue; then the one that counts.
fn plan(rate: u64, seconds: u64) -> String {
    let (offered, size) = (rate / 100 * OFFERED, SIZE - HEADERS);
    let packets = offered / 8 / SIZE;
    let flow =
        format!("[[flows]]\nto = \"10.0.2.2:5000\"\nrate = \"{offered}bit\"\nsize = {size}\n");
    format!("time = \"{}s\"\n{flow}packets = {packets}\n{flow}start = \"1s\"\n", seconds + 1)
}

/// For people.
pub(super) fn text(all: &[Accuracy]) -> String {
    let rows = all.iter().map(|one| {
        vec![
            one.path.to_owned(),
            format!("{:.0}", one.nominal_kbit_s),
            format!("{:.3}", one.measured_kbit_s),
            format!("{:+.3}", one.error_percent),
            thousands(one.lost_in_transit),
            thousands(one.dropped_at_receiver),
            if one.lost_in_transit == 0 { "load-limited" } else { "" }.to_owned(),
        ]
    });
    let header = ["path", "shaper kbit/s", "measured kbit/s", "error %", "lost", "receiver's", ""];
    let table = aligned(&header, &rows.collect::<Vec<_>>());
    format!(
        "{table}UDP at {OFFERED} % of the rate; {SIZE} octets a packet count, link headers do not\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::router::policy::RouterPolicy;
    use traffic::LoadPlan;

    #[test]
    fn the_files_are_what_they_should_be() {
        for rate in RATES {
            let plan: LoadPlan = toml::from_str(&plan(rate, 5)).unwrap();
            plan.check().unwrap();
            assert!(plan.flows.iter().all(|flow| flow.rate.bits() == rate / 2 * 3));
            assert_eq!(plan.flows[1].start.0.as_secs(), 1);
            assert!(toml::from_str::<RouterPolicy>(&policy(rate)).is_ok());
        }
    }
}
