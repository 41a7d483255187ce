//! A run over time: what passed the port with the policy, what waited there and what was dropped.

use super::{colour, flows};
use dscp::Dscp;
use plot::{Figure, Mark, Panel, Series, Shape};
use router::policy::Queueing;
use std::collections::BTreeMap;
use study::measured::{MessageTimes, PortSteps};
use study::{Measured, Planned, file, measured};

/// Most points of a series: more are taken together.
pub(super) const MAX_POINTS: usize = 160;
/// Fewer steps show nothing.
const MIN_STEPS: usize = 4;
/// Marks nearer than this part of the picture are one.
const APART: f64 = 0.015;
/// Most ports that are looked at.
const MAX_PORTS: usize = 256;

/// A picture of a run.
pub(crate) struct OverTime {
    pub(crate) figure: Figure,
    /// Notes that the reader of the picture needs.
    pub(crate) notes: Vec<String>,
}

/// The picture; nothing where nothing was measured over time. Times and rates are as at the study's
/// own rates.
pub(crate) fn over_time(planned: &Planned, measured: &Measured) -> Option<OverTime> {
    let scale = measured.scale.factor();
    let mut notes = Vec::new();
    let port = port(planned, measured);
    let mut panels = match port {
        Some(series) => {
            notes.push(format!("What left {}.", series.port));
            at_port(planned, series, scale, &mut notes)
        }
        None => Vec::new(),
    };
    if let Some((panel, note)) = flows::panel(planned, measured, port.is_some()) {
        panels.insert(panels.len().min(1), panel);
        notes.push(note);
    }
    if panels.is_empty() {
        return None;
    }
    let mut figure = panels.into_iter().fold(Figure::new(&planned.id), Figure::panel);
    figure.time_label = "seconds from the run's beginning".to_owned();
    if measured.seconds.is_finite() && measured.seconds > 0.0 {
        figure.span = Some((0.0, measured.seconds * scale));
    }
    figure.marks = marks(planned, measured, scale);
    if !figure.marks.is_empty() {
        notes.push("▶ a message begins, ■ it ends.".to_owned());
    }
    Some(OverTime { figure, notes })
}

/// The port to show: one with a queueing of its own where there is one; of those where most was
/// dropped, where most waited, which sent most.
fn port<'a>(planned: &Planned, measured: &'a Measured) -> Option<&'a measured::PortSeries> {
    let weight = |series: &measured::PortSeries| {
        let sum = |of: fn(&PortSteps) -> &Vec<u64>| -> u64 {
            let all = series.rows.values().flat_map(|steps| of(steps).iter());
            all.fold(0_u64, |sum, value| sum.saturating_add(*value))
        };
        let own = planned.queueing(&series.port).is_some();
        (own, sum(|steps| &steps.dropped), sum(|steps| &steps.waiting), sum(|steps| &steps.octets))
    };
    let usable = measured.series.iter().take(MAX_PORTS).filter(|series| {
        let enough = series.rows.values().any(|steps| steps.octets.len() >= MIN_STEPS);
        enough && series.interval.is_finite() && series.interval > 0.0
    });
    usable.max_by_key(|series| weight(series))
}

/// The rate of the shaper that a policy attaches to a port, in kbit/s.
fn shaped(planned: &Planned, port: &str) -> Option<f64> {
    match planned.queueing(port)? {
        Queueing::Shaper { rate, .. } => Some(rate.bits() as f64 / 1e3),
        _ => None,
    }
}

/// The rate of the link at a port, in kbit/s.
fn line(planned: &Planned, port: &str) -> Option<f64> {
    let link = planned.topology.links.iter().find(|link| link.ends.iter().any(|end| end == port));
    Some(link?.rate?.bits() as f64 / 1e3)
}

fn at_port(
    planned: &Planned,
    series: &measured::PortSeries,
    scale: f64,
    notes: &mut Vec<String>,
) -> Vec<Panel> {
    let steps = series.rows.values().map(|steps| steps.octets.len()).max().unwrap_or(0);
    let together = steps.div_ceil(MAX_POINTS).max(1);
    let bin = Bins { together, seconds: series.interval * scale * together as f64 };
    // The last one may be of fewer steps.
    let rate_of = |all: &[u64]| sum(all) * 8e-3 / (all.len() as f64 * series.interval * scale);
    let rates = |steps: &PortSteps| bin.each(&steps.octets, rate_of);
    let mut throughput = Panel::new("sent, kbit/s");
    let mut waiting = Panel::new("waiting, packets");
    let mut dropped = Panel::new(format!("dropped in {} s", crate::number::short(bin.seconds)));
    for (number, steps) in &series.rows {
        let name = name(planned, *number);
        let add = |points, shape| Series::new(name.clone(), shape, points).colour(colour(*number));
        // One that was there before the run, and had nothing to do in it, has no line.
        let any = |of: &[u64]| of.iter().any(|value| *value > 0);
        if any(&steps.octets) {
            throughput = throughput.series(add(rates(steps), Shape::Line));
        }
        if any(&steps.waiting) {
            let most = |all: &[u64]| all.iter().copied().max().unwrap_or(0) as f64;
            waiting = waiting.series(add(bin.each(&steps.waiting, most), Shape::Step));
        }
        if any(&steps.dropped) {
            dropped = dropped.series(add(bin.each(&steps.dropped, sum), Shape::Step));
        }
    }
    let shaped = shaped(planned, &series.port).map(|rate| (rate, "shaped to"));
    let limit = shaped.or(line(planned, &series.port).map(|rate| (rate, "line")));
    if let Some((rate, what)) = limit {
        throughput =
            throughput.level(rate, format!("{what} {} kbit/s", crate::number::exact(rate)));
    }
    if together > 1 {
        notes.push(format!(
            "Each point is of {} s: {together} steps are taken together (mean of what was sent, most \
             of what waited, sum of what was dropped).",
            crate::number::short(bin.seconds)
        ));
    }
    let mut panels = vec![throughput];
    for (panel, what) in [(waiting, "No packet waited."), (dropped, "No packet was dropped.")] {
        if panel.series.is_empty() {
            notes.push(what.to_owned());
        } else {
            panels.push(panel);
        }
    }
    panels
}

/// Steps taken together.
struct Bins {
    together: usize,
    /// Seconds of each bin, in the time of the study.
    seconds: f64,
}

impl Bins {
    /// The middle of each bin and its value.
    fn each(&self, steps: &[u64], value: impl Fn(&[u64]) -> f64) -> Vec<(f64, f64)> {
        let bins = steps.chunks(self.together).enumerate();
        bins.map(|(place, all)| ((place as f64 + 0.5) * self.seconds, value(all))).collect()
    }
}

fn sum(values: &[u64]) -> f64 {
    values.iter().map(|value| *value as f64).sum()
}

/// A code point and what has it in this run.
fn name(planned: &Planned, number: u8) -> String {
    let known = Dscp::new(number).map_or(number.to_string(), |dscp| dscp.to_string());
    let mut who: Vec<String> = Vec::new();
    for message in &planned.messages {
        let of = planned.mail.as_ref().and_then(|mail| mark(mail, message));
        let precedence = message.precedence.name().to_owned();
        if of == Some(number) && !who.contains(&precedence) {
            who.push(precedence);
        }
    }
    for load in planned.loads.iter().filter(|load| load.dscp.number() == number) {
        if !who.contains(&load.name) {
            who.push(load.name.clone());
        }
    }
    if who.is_empty() { known } else { format!("{known} {}", who.join(", ")) }
}

/// The code point of a message: its channel's.
pub(super) fn mark(mail: &file::Mail, message: &file::StudyMessage) -> Option<u8> {
    let mut channels = mail.channels.iter();
    let channel = channels.find(|channel| channel.precedences.contains(&message.precedence));
    channel.map(|channel| channel.dscp.number())
}

/// The marks at which messages begin and end.
fn marks(planned: &Planned, measured: &Measured, scale: f64) -> Vec<Mark> {
    let measure = planned.mail.as_ref().map(|mail| mail.measured).unwrap_or_default();
    let ends = |times: &MessageTimes| match measure {
        file::MessageMeasure::SubmittedToDelivered => {
            (times.submitted.or(times.started), times.delivered.or(times.confirmed))
        }
        file::MessageMeasure::StartedToConfirmed => {
            (times.started.or(times.submitted), times.confirmed.or(times.delivered))
        }
    };
    let of: BTreeMap<&str, Option<usize>> = planned
        .messages
        .iter()
        .map(|message| {
            let number = planned.mail.as_ref().and_then(|mail| mark(mail, message));
            (message.name.as_str(), number.map(colour))
        })
        .collect();
    let (mut begins, mut finishes) = (Vec::new(), Vec::new());
    for times in &measured.messages {
        let (from, to) = ends(times);
        let colour = of.get(times.name.as_str()).copied().flatten();
        let mark = |at: f64| Mark { at: at * scale, label: times.name.clone(), colour };
        begins.extend(from.map(mark));
        finishes.extend(to.map(mark));
    }
    let apart = measured.seconds * scale * APART;
    let mut marks = merged(begins, '▶', apart);
    marks.extend(merged(finishes, '■', apart));
    marks.sort_by(|one, other| one.at.total_cmp(&other.at));
    marks
}

/// With a sign before each label; those that stand together are one.
fn merged(mut marks: Vec<Mark>, sign: char, apart: f64) -> Vec<Mark> {
    marks.retain(|mark| mark.at.is_finite());
    marks.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut groups: Vec<(Mark, usize)> = Vec::new();
    for mark in marks {
        match groups.last_mut() {
            Some((first, count)) if mark.at - first.at < apart => {
                *count += 1;
                first.colour = None;
            }
            _ => groups.push((mark, 1)),
        }
    }
    let labelled = groups.into_iter().map(|(mark, count)| {
        let label = if count == 1 {
            format!("{sign} {}", mark.label)
        } else {
            format!("{sign} {count} of them")
        };
        Mark { label, ..mark }
    });
    labelled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: f64, label: &str) -> Mark {
        Mark { at, label: label.to_owned(), colour: Some(1) }
    }

    #[test]
    fn marks_that_stand_together_are_one() {
        let marks = vec![mark(9.0, "c"), mark(0.0, "a"), mark(0.1, "b"), mark(f64::NAN, "x")];
        let merged = merged(marks, '▶', 0.5);
        let shown: Vec<_> = merged.iter().map(|mark| (mark.at, mark.label.as_str())).collect();
        assert_eq!(shown, [(0.0, "▶ 2 of them"), (9.0, "▶ c")]);
        assert_eq!((merged[0].colour, merged[1].colour), (None, Some(1)));
    }

    #[test]
    fn steps_taken_together_keep_their_sum() {
        let bins = Bins { together: 4, seconds: 2.0 };
        let steps: Vec<u64> = (0..10).collect();
        let sums = bins.each(&steps, sum);
        assert_eq!(sums, [(1.0, 6.0), (3.0, 22.0), (5.0, 17.0)]);
    }
}
