//! Paths that are probed before a run begins, in the simulation.

use crate::idle::{self, idle_ms};
use crate::sites::end;
use anyhow::{Context as _, Result};
use sim::{ReceiverClock, Sim, SimulatedLoad, UdpLoad};
use std::net::SocketAddr;
use std::time::Duration;
use study::file::Protocol;
use study::skew::{self, Skew};
use study::{Planned, file};

/// The port of the first load's probes.
const PORT: u16 = 6_000;

/// What a load's receiver's clock is made to do.
pub(super) fn clock(load: &file::StudyLoad) -> ReceiverClock {
    let of = load.clock.unwrap_or_default();
    ReceiverClock { ahead: of.ahead_ms * 1e6, faster: of.drift_ppm * 1e-6 }
}

/// The probes of all loads whose paths are probed, in their order.
pub(super) fn loads(planned: &Planned) -> Result<Vec<SimulatedLoad>> {
    let all = planned.loads.iter().zip(PORT..);
    let probed = all.filter_map(|(load, port)| Some((load, port, load.probing?.0)));
    let each = probed.map(|(load, port, time)| {
        let to = SocketAddr::new(end(planned, load)?, port);
        let clock = clock(load);
        Ok(SimulatedLoad::Udp(UdpLoad {
            name: format!("{} probes", load.name),
            from: load.from.clone(),
            source: None,
            to,
            rate: idle::rate(time, to.is_ipv4()),
            payload: idle::PAYLOAD.into(),
            dscp: load.dscp,
            start: super::begin(planned) - time,
            stop: Some(super::begin(planned)),
            jitter: 0.0,
            echo: false,
            clock,
            keeps: true,
        }))
    });
    each.collect()
}

/// Runs the simulation until all paths have been probed, and takes what was found off the clocks of the
/// loads' receivers.
pub(super) fn find(planned: &Planned, sim: &mut Sim) -> Result<Vec<Option<Skew>>> {
    let begin = super::begin(planned);
    if begin > Duration::ZERO {
        sim.run_until(begin)?;
    }
    let mut probes: usize = planned.loads.iter().map(|load| usize::from(load.flows)).sum();
    let (mut first, mut skews) = (0, Vec::new());
    for load in &planned.loads {
        let flows = first..first + usize::from(load.flows);
        first = flows.end;
        if load.probing.is_none() {
            skews.push(None);
            continue;
        }
        let samples = sim.samples(probes).iter();
        let samples: Vec<(f64, f64)> =
            samples.map(|(at, nanos)| (at.as_secs_f64(), *nanos as f64 / 1e6)).collect();
        probes += 1;
        let skew = skew::find(&samples, idle_ms(planned, load)?);
        let skew = skew.with_context(|| format!("{}: no two probes arrived", load.name))?;
        if load.protocol == Protocol::Udp {
            let clock = ReceiverClock {
                ahead: skew.removed.offset_ms * 1e6,
                faster: skew.removed.drift_ppm * 1e-6,
            };
            flows.for_each(|flow| sim.correct(flow, clock));
        }
        skews.push(Some(skew));
    }
    Ok(skews)
}
