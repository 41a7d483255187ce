//! What passes and waits at the ports of routers that have a policy, sampled at intervals.

use super::Moment;
use super::up::Network;
use anyhow::Result;
use emulator::client::ControlClient;
use emulator::{NetworkStatus, PartStatus};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use study::Planned;
use study::measured::{PassedCount, PortSeries, PortSteps};
use testbed::clock::pause;

/// The most steps of a run.
pub(super) const MAX_STEPS: u32 = 1_200;
/// The shortest step.
pub(super) const MIN_STEP: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

/// The samples.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) series: Vec<PortSeries>,
    /// The data path; `None` if the network reported nothing.
    pub(super) path: Option<String>,
    /// By port and code point, all that was counted since the network came up.
    pub(super) counted: BTreeMap<String, BTreeMap<u8, PassedCount>>,
    /// Packets that captures were too slow for.
    pub(super) missed: u64,
    /// Seconds after which it reported nothing.
    pub(super) lost: Option<f64>,
}

impl Watch {
    pub(super) fn start(network: &Network, planned: &Planned, origin: Moment) -> Result<Watch> {
        let with_policy = planned.topology.routers.iter().filter(|(_, is)| is.policy.is_some());
        let routers: Vec<String> = with_policy.map(|(name, _)| name.clone()).collect();
        let step = (planned.limit / MAX_STEPS).max(MIN_STEP);
        let stop = Arc::new(AtomicBool::new(false));
        let (client, stopping) = (network.client().clone(), Arc::clone(&stop));
        let watching = move || watch(&client, &routers, step, origin, &stopping);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(watching)?;
        Ok(Watch { stop, thread: Some(thread) })
    }

    /// Stops, and returns the samples.
    pub(super) fn end(mut self) -> Watched {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Totals of a code point at a port.
#[derive(Clone, Copy, Debug, Default)]
struct PortTotals {
    packets: u64,
    octets: u64,
    /// Packets that came and have not left.
    stayed: u64,
    waiting: u64,
}

impl PortTotals {
    fn dropped(self) -> u64 {
        self.stayed.saturating_sub(self.waiting)
    }
}

fn watch(
    client: &ControlClient,
    routers: &[String],
    step: Duration,
    origin: Moment,
    stop: &AtomicBool,
) -> Watched {
    let (mut path, mut lost, mut missed) = (None, None, 0);
    let mut before: BTreeMap<String, BTreeMap<u8, PortTotals>> = BTreeMap::new();
    let mut all: BTreeMap<String, PortSeries> = BTreeMap::new();
    let mut steps = 0usize;
    let mut last = false;
    while !last {
        let due = step.as_secs_f64() * (steps + 1) as f64;
        while origin.seconds() < due && !stop.load(Ordering::Relaxed) {
            pause(Duration::from_secs_f64((due - origin.seconds()).clamp(0.001, 0.05)));
        }
        last = stop.load(Ordering::Relaxed);
        let Ok(status) = client.status() else {
            lost = Some(origin.seconds());
            break;
        };
        path.get_or_insert_with(|| status.path.to_string());
        missed = status.carried.captures_missed;
        let now = sums(&status, routers);
        for (port, rows) in &now {
            let series = all.entry(port.clone()).or_insert_with(|| PortSeries {
                port: port.clone(),
                interval: step.as_secs_f64(),
                rows: BTreeMap::new(),
            });
            for (dscp, sum) in rows {
                let was = before.get(port).and_then(|rows| rows.get(dscp)).copied();
                add(series.rows.entry(*dscp).or_default(), steps, *sum, was.unwrap_or_default());
            }
        }
        before = now;
        steps += 1;
    }
    // A port that nothing passed has no series.
    let series = all.into_values().filter(|series| !series.rows.is_empty()).collect();
    let count = |(dscp, sum): (u8, PortTotals)| {
        (dscp, PassedCount { packets: sum.packets, octets: sum.octets, lost: sum.dropped() })
    };
    let counted =
        before.into_iter().map(|(port, rows)| (port, rows.into_iter().map(count).collect()));
    Watched { series, path, counted: counted.collect(), missed, lost }
}

fn add(to: &mut PortSteps, step: usize, now: PortTotals, was: PortTotals) {
    // A code point that is new here has zeros until now.
    to.octets.resize(step, 0);
    to.packets.resize(step, 0);
    to.dropped.resize(step, 0);
    to.waiting.resize(step, 0);
    to.octets.push(now.octets.saturating_sub(was.octets));
    to.packets.push(now.packets.saturating_sub(was.packets));
    to.dropped.push(now.dropped().saturating_sub(was.dropped()));
    to.waiting.push(now.waiting);
}

/// By port, what the queueing there has sent, dropped and holds.
fn sums(status: &NetworkStatus, routers: &[String]) -> BTreeMap<String, BTreeMap<u8, PortTotals>> {
    let mut ports: BTreeMap<String, BTreeMap<u8, PortTotals>> = BTreeMap::new();
    for node in status.nodes.iter().filter(|node| routers.contains(&node.name)) {
        for part in &node.parts {
            let Some((port, behind)) = part.part.split_once('/') else { continue };
            if behind != "queueing" && !behind.starts_with("queueing/") {
                continue;
            }
            let rows = ports.entry(format!("{}.{port}", node.name)).or_default();
            take(rows, part, behind == "queueing");
        }
    }
    ports
}

/// The root counts arrivals and departures; each part counts what waits in it. A packet that neither
/// left nor waits was dropped.
fn take(rows: &mut BTreeMap<u8, PortTotals>, part: &PartStatus, is_root: bool) {
    for row in &part.rows {
        let sum = rows.entry(row.dscp).or_default();
        if is_root {
            sum.packets += row.went.packets;
            sum.octets += row.went.bytes;
            sum.stayed += row.came.packets.saturating_sub(row.went.packets);
        }
        sum.waiting += row.queue.map_or(0, |queue| queue.packets);
    }
}
