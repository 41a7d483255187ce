//! What passed of one code point while a message was in transfer.

use crate::file::Expect;
use crate::measured::{Measured, PortSeries};
use crate::row::{Measure, mark};
use crate::{Planned, Study, expect};
use std::collections::{BTreeMap, BTreeSet};

/// The messages during whose transfer a row's rate is asked for, by its item.
pub(crate) type Asked = BTreeMap<String, BTreeSet<String>>;

/// What a study's expectations ask for.
pub(crate) fn asked(study: &Study) -> Asked {
    let mut asked = Asked::new();
    for experiment in &study.experiments {
        for expect in &experiment.expect {
            let item = expect::reference(&experiment.name, &expect.value).map(|(item, _)| item);
            if let (Some(during), Some(item)) = (&expect.during, item) {
                asked.entry(item).or_default().insert(during.clone());
            }
        }
    }
    asked
}

/// Its name among a row's values.
pub(crate) fn name(message: &str) -> String {
    format!("{}_during_{message}", Measure::KbitS.name())
}

/// Bits of IP packets a second, in 1,000, as at the study's own rates: those with a code point that left
/// the port where most of them waited for a policy's queueing, from the start of a message's transfer to
/// its confirm, or to the run's end. Steps that lie in it in part count in part. `None` where the
/// transfer did not start or no such port was sampled.
pub(crate) fn kbit_s(
    planned: &Planned,
    measured: &Measured,
    dscp: u8,
    message: &str,
) -> Option<f64> {
    let place = planned.messages.iter().position(|other| other.name == message)?;
    let times = measured.messages.get(place)?;
    let (from, to) = (times.started?, times.confirmed.unwrap_or(measured.seconds));
    let queued = measured.series.iter().filter(|series| planned.queueing(&series.port).is_some());
    let most = queued.max_by_key(|series| -> u64 {
        series.rows.get(&dscp).map_or(0, |steps| steps.octets.iter().sum())
    })?;
    let seconds = to - from;
    let octets = octets(most, dscp, from, to)?;
    (seconds > 0.0).then(|| octets * 8e-3 / seconds / measured.scale.factor())
}

fn octets(series: &PortSeries, dscp: u8, from: f64, to: f64) -> Option<f64> {
    if !(series.interval.is_finite() && series.interval > 0.0) {
        return None;
    }
    let Some(steps) = series.rows.get(&dscp) else { return Some(0.0) };
    let part = |(place, octets): (usize, &u64)| {
        let begin = place as f64 * series.interval;
        let within = (begin + series.interval).min(to) - begin.max(from);
        *octets as f64 * (within / series.interval).clamp(0.0, 1.0)
    };
    Some(steps.octets.iter().enumerate().map(part).sum())
}

/// Checks that a run can answer an expectation about a message's transfer.
///
/// # Errors
/// The reason for which no run can answer it, as a sentence.
pub(crate) fn check(experiment: &str, expect: &Expect, planned: &[Planned]) -> Result<(), String> {
    let Some(during) = &expect.during else { return Ok(()) };
    let Some((item, Measure::KbitS)) = expect::reference(experiment, &expect.value) else {
        return Err("during a message there is only kbit_s".to_owned());
    };
    let is_of = |id: &str| item.strip_prefix(id).is_some_and(|rest| rest.starts_with('/'));
    let run = planned.iter().find(|planned| is_of(&planned.id));
    let Some(run) = run else { return Err(format!("{item}: there is no such run")) };
    if !run.messages.iter().any(|message| message.name == *during) {
        return Err(format!("during = {during:?}: its run has no such message"));
    }
    let name = item.rsplit('/').next().unwrap_or_default();
    let messages = run.messages.iter().map(|message| {
        (message.name.as_str(), mark(run.mail.as_ref(), message.precedence).number())
    });
    let loads = run.loads.iter().map(|load| (load.name.as_str(), load.dscp.number()));
    let all: Vec<(&str, u8)> = messages.chain(loads).collect();
    let own = all.iter().find(|(other, _)| *other == name).map(|(_, dscp)| *dscp);
    let other = all.iter().find(|(other, dscp)| *other != name && Some(*dscp) == own);
    match other {
        None => Ok(()),
        Some((other, _)) => Err(format!(
            "{other} has the same code point: they cannot be distinguished at the port"
        )),
    }
}
