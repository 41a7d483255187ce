//! What passes the ports that a run analyses.

use crate::passed::{PassedAnalysis, PathEnd};
use analyse::Time;
use anyhow::{Context as _, Result};
use network::{PortId, TapDirection};
use sim::{Sim, SimulatedCapture, SimulationOutcome};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use study::Planned;
use study::measured::{CodePointPassed, PassedCount};

/// The taps of a run; none of a run that analyses nothing.
pub(super) struct Tapped(Option<TappedPorts>);

struct TappedPorts {
    analysis: PassedAnalysis,
    from: PortId,
    to: PortId,
    waiting: VecDeque<SimulatedCapture>,
    /// The time between two readings of the counters.
    step: Duration,
    /// The router and its port that counts.
    counts: (String, String),
}

impl Tapped {
    /// From now on.
    ///
    /// # Errors
    /// There is no such port.
    pub(super) fn new(planned: &Planned, sim: &mut Sim) -> Result<Tapped> {
        let Some(path) = &planned.analysed else { return Ok(Tapped(None)) };
        let mut tap = |port: &str| sim.tap(port).with_context(|| format!("{port}: no such port"));
        let (from, to) = (tap(&path.from)?, tap(&path.to)?);
        let (router, port) = path.to.split_once('.').context("a port of a router")?;
        let counts = (router.to_owned(), port.to_owned());
        let analysis = PassedAnalysis::new(path);
        let (waiting, step) = (VecDeque::new(), super::step(planned));
        Ok(Tapped(Some(TappedPorts { analysis, from, to, waiting, step, counts })))
    }

    /// Analyses what has passed so far, up to where the router's counters were last read: the rest waits.
    pub(super) fn take(&mut self, sim: &mut Sim) {
        let Some(tapped) = &mut self.0 else { return };
        tapped.waiting.extend(std::iter::from_fn(|| sim.captured()));
        let step = tapped.step.as_nanos().max(1);
        let read = sim.now().as_nanos() / step * step;
        while let Some(captured) = tapped.waiting.pop_front_if(|one| one.at.as_nanos() <= read) {
            let end = match captured.direction {
                TapDirection::In if captured.port == tapped.from => PathEnd::From,
                TapDirection::Out if captured.port == tapped.to => PathEnd::To,
                _ => continue,
            };
            tapped.analysis.packet(end, Time::from(captured.at), &captured.octets);
        }
    }

    pub(super) fn finish(
        self,
        outcome: &SimulationOutcome,
        begin: Duration,
    ) -> Vec<CodePointPassed> {
        let Some(TappedPorts { analysis, counts: (router, port), .. }) = self.0 else {
            return Vec::new();
        };
        let series = outcome.series.iter();
        let series = series.filter(|of| of.router == router && of.interface == port);
        let mut counted: BTreeMap<u8, PassedCount> = BTreeMap::new();
        for row in series.flat_map(|of| &of.rows).filter(|row| row.at > begin) {
            let count = counted.entry(row.dscp.number()).or_default();
            count.packets += row.sent.packets;
            count.octets += row.sent.octets;
            count.lost += row.dropped.packets;
        }
        analysis.finish(&counted)
    }
}
