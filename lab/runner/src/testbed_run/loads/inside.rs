//! Loads that the network makes itself.

use super::super::{Moment, TestbedRunner};
use super::port;
use crate::sites::end;
use anyhow::{Context as _, Result};
use emulator::{FloodAsk, FloodStatus};
use router::Rate;
use std::time::Duration;
use study::Planned;
use study::file::StudyLoad;
use study::measured::LoadMeasured;

/// The longest.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A flow of a load.
pub(super) fn ask(
    runner: &TestbedRunner,
    planned: &Planned,
    (place, flow): (usize, u16),
    load: &StudyLoad,
    origin: Moment,
) -> Result<FloodAsk> {
    let rate = load.rate.context("UDP has a rate")?.bits() / u64::from(load.flows.max(1));
    let wait = load.start.0.as_secs_f64() - origin.seconds();
    let time = load.time.map_or(planned.limit, |time| time.0).min(LONGEST);
    Ok(FloodAsk {
        name: load.name.clone(),
        from: load.from.clone(),
        to: end(planned, load)?,
        port: port(load, place)?.checked_add(flow).context("a port")?,
        rate: Rate::from_bits(rate.max(1)).context("a rate")?,
        payload: load.payload,
        dscp: load.dscp,
        wait_ms: Duration::from_secs_f64(wait.max(0.0)).as_millis().try_into()?,
        time_ms: time.as_millis().try_into()?,
        jitter_percent: load.jitter_percent.min(50),
        seed: runner.seed.wrapping_add(place as u64),
    })
}

/// The results of a load's flows.
pub(super) fn measured(load: &StudyLoad, flows: &[FloodStatus], origin: Moment) -> LoadMeasured {
    let sent: u64 = flows.iter().map(|flow| flow.sent.packets).sum();
    let mut of = LoadMeasured {
        name: load.name.clone(),
        started: load.start.0.as_secs_f64(),
        ended: load.time.map_or(origin.seconds(), |time| (load.start.0 + time.0).as_secs_f64()),
        sent,
        inside: true,
        ..LoadMeasured::default()
    };
    for flow in flows {
        let mut octets = 0;
        for (dscp, count) in &flow.received {
            *of.dscp_seen.entry(*dscp).or_default() += count.packets;
            of.received += count.packets;
            octets += count.bytes;
        }
        if flow.seconds > 0.0 {
            of.kbit_s += octets as f64 * 8e-3 / flow.seconds;
        }
    }
    of.loss_percent = (sent > 0).then(|| (1.0 - of.received as f64 / sent as f64).max(0.0) * 100.0);
    of
}

/// A note for the reader about packets that were not made in time.
pub(super) fn note(flow: &FloodStatus) -> Option<String> {
    let FloodStatus { name, left_out, sent, .. } = flow;
    let note =
        || format!("{name}: {left_out} packets beside {} were not made in time", sent.packets);
    (*left_out > 0).then(note)
}
