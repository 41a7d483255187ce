//! What arrived of each message and each load over time, whatever marks they share.

use super::beside::Beside;
use super::colour;
use super::over_time::{MAX_POINTS, mark};
use dscp::Dscp;
use plot::{Panel, Series, Shape};
use router::policy::Name;
use std::collections::BTreeMap;
use study::measured::{LoadMeasured, MessageTimes, STEP};
use study::row::Measure;
use study::{Measured, Planned};

/// Most colours there are, the dashed ones included.
const COLOURS: usize = 72;

/// A message or a load.
struct Flow<'a> {
    name: &'a str,
    dscp: u8,
    paper: &'a BTreeMap<Name, f64>,
    points: Vec<(f64, f64)>,
}

/// The panel, and what its reader should know. Nothing where there is nothing of any flow; where a port
/// is drawn, nothing either of a single flow of which no rate was printed: it would be the same line.
pub(crate) fn panel(
    planned: &Planned,
    measured: &Measured,
    has_port: bool,
) -> Option<(Panel, String)> {
    let flows = flows(planned, measured);
    let colours = colours(&flows);
    let (mut panel, mut beside) = (Panel::new("received, kbit/s"), Beside::new(Measure::KbitS));
    for (flow, colour) in flows.iter().zip(colours) {
        let mark = Dscp::new(flow.dscp).map_or(flow.dscp.to_string(), |dscp| dscp.to_string());
        let name = if flow.name == mark { mark } else { format!("{}, {mark}", flow.name) };
        beside.line(flow.name, colour, &[(0.0, flow.paper)]);
        let series = Series::new(name, Shape::Line, flow.points.clone());
        panel = panel.series(series.colour(colour));
    }
    let panel = beside.onto(panel);
    let shows_more = panel.series.len() > 1 || !panel.levels.is_empty() || !has_port;
    let note = match flows.iter().any(|flow| planned.loads.iter().all(|of| of.name != flow.name)) {
        true => {
            "Received, by flow: of a message the octets that the next MTA has confirmed (in \
             simulation and on the testbed as the sending MTA's status has them; those between two \
             confirmations are spread over the time between), of a load what arrived."
        }
        false => "Received, by flow: what arrived of the loads.",
    };
    (shows_more && !flows.is_empty()).then(|| (panel, note.to_owned()))
}

/// Those of which there is a line, messages first.
fn flows<'a>(planned: &'a Planned, measured: &Measured) -> Vec<Flow<'a>> {
    let scale = measured.scale.factor();
    let messages = planned.messages.iter().filter_map(|of| {
        let times = measured.messages.iter().find(|times| times.name == of.name)?;
        let dscp = planned.mail.as_ref().and_then(|mail| mark(mail, of)).unwrap_or_default();
        let points = of_message(times, measured.seconds, scale);
        Some(Flow { name: &of.name, dscp, paper: &of.paper, points })
    });
    let loads = planned.loads.iter().filter_map(|of| {
        let load = measured.loads.iter().find(|load| load.name == of.name)?;
        let points = of_load(load, scale);
        Some(Flow { name: &of.name, dscp: of.dscp.number(), paper: &of.paper, points })
    });
    messages.chain(loads).filter(|flow| !flow.points.is_empty()).collect()
}

/// That of its mark, in all pictures the same; of several flows with one mark the first has it, and the
/// others have what is left.
fn colours(flows: &[Flow<'_>]) -> Vec<usize> {
    let marks: Vec<usize> = flows.iter().map(|flow| colour(flow.dscp)).collect();
    let mut taken: Vec<usize> = Vec::new();
    for wanted in &marks {
        let left = (0..COLOURS).find(|place| !taken.contains(place) && !marks.contains(place));
        let is_taken = taken.contains(wanted);
        taken.push(left.filter(|_| is_taken).unwrap_or(*wanted));
    }
    taken
}

/// What was confirmed in each step, in kbit/s.
fn of_message(times: &MessageTimes, seconds: f64, scale: f64) -> Vec<(f64, f64)> {
    let steps = times.progress.steps();
    let Some((first, _)) = steps.first() else { return Vec::new() };
    let begin = times.started.filter(|started| started < first);
    let end = times.confirmed.zip(times.content).map(|(at, content)| {
        let last = steps.last().map_or(0, |(_, octets)| *octets);
        (at, content.max(last))
    });
    let confirmed: Vec<(f64, f64)> = begin
        .map(|at| (at, 0))
        .into_iter()
        .chain(steps.iter().copied())
        .chain(end)
        .map(|(at, octets)| (at * scale, octets as f64))
        .filter(|(at, _)| at.is_finite())
        .collect();
    let whole = seconds * scale;
    let (Some((from, _)), Some((to, _))) = (confirmed.first(), confirmed.last()) else {
        return Vec::new();
    };
    if !whole.is_finite() || whole <= 0.0 || to <= from {
        return Vec::new();
    }
    let width = (whole / MAX_POINTS as f64).max(STEP.as_secs_f64());
    let (first, last) = ((from / width).floor().max(0.0), (to / width).ceil());
    let bins = (last - first).min(MAX_POINTS as f64 * 2.0) as usize;
    let each = (0..bins).map(|bin| {
        let begin = (first + bin as f64) * width;
        let octets = octets_between(&confirmed, begin, begin + width);
        (begin + width / 2.0, octets * 8e-3 / width)
    });
    each.collect()
}

/// What was confirmed between two times, where it grew evenly from one point to the next. What a transfer
/// that began anew lost is not taken off.
fn octets_between(confirmed: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let pairs = confirmed.windows(2).filter_map(|pair| match pair {
        [one, other] => Some((*one, *other)),
        _ => None,
    });
    let part = pairs.map(|((begin, before), (end, after))| {
        let shared = to.min(end) - from.max(begin);
        let long = end - begin;
        if long <= 0.0 {
            // All at once: in the step that it lies in.
            return if (from..to).contains(&end) { (after - before).max(0.0) } else { 0.0 };
        }
        (after - before).max(0.0) * (shared.max(0.0) / long)
    });
    part.sum()
}

/// What arrived in each step, several taken together where there are many, in kbit/s.
fn of_load(load: &LoadMeasured, scale: f64) -> Vec<(f64, f64)> {
    let together = load.over_time.len().div_ceil(MAX_POINTS).max(1);
    let seconds = load.interval * scale * together as f64;
    if !seconds.is_finite() || seconds <= 0.0 {
        return Vec::new();
    }
    let means = load.over_time.chunks(together);
    let means = means.map(|all| all.iter().sum::<f64>() / all.len() as f64 / scale);
    let at = |place: usize| load.started * scale + (place as f64 + 0.5) * seconds;
    means.enumerate().map(|(place, mean)| (at(place), mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::measured::Progress;

    fn message(steps: &[(f64, u64)], confirmed: Option<f64>) -> MessageTimes {
        let mut progress = Progress::default();
        steps.iter().for_each(|(at, octets)| progress.seen(*at, *octets));
        MessageTimes {
            content: Some(4_000),
            started: Some(1.0),
            confirmed,
            progress,
            ..MessageTimes::default()
        }
    }

    #[test]
    fn what_was_confirmed_is_spread_over_the_time_that_it_took() {
        // 1,000 octets a second from the first second on, and seen at every other one.
        let points = of_message(&message(&[(3.0, 2_000)], Some(5.0)), 16.0, 1.0);
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!((first.0 - 1.05).abs() < 1e-9 && (last.0 - 4.95).abs() < 1e-9, "{points:?}");
        assert!(points.iter().all(|(_, rate)| (rate - 8.0).abs() < 1e-6), "{points:?}");
        // Ten times as fast, it is the same.
        let mut fast = message(&[(0.3, 2_000)], Some(0.5));
        fast.started = Some(0.1);
        let fast = of_message(&fast, 1.6, 10.0);
        assert!(fast.iter().all(|(_, rate)| (rate - 8.0).abs() < 1e-6), "{fast:?}");
    }

    #[test]
    fn one_that_stands_still_or_begins_anew_has_no_rate_below_zero() {
        let steps = [(2.0, 1_000), (8.0, 0), (9.0, 500), (9.0, 900)];
        let points = of_message(&message(&steps, None), 16.0, 1.0);
        let rate = |at: f64| points.iter().find(|(x, _)| (x - at).abs() < 0.06).map(|of| of.1);
        assert!((rate(1.55).unwrap() - 8.0).abs() < 1e-6);
        assert_eq!(rate(5.05), Some(0.0));
        assert!(points.iter().all(|(_, rate)| *rate >= 0.0));
        let sum: f64 = points.iter().map(|(_, rate)| rate / 8e-3 * 0.1).sum();
        assert!((sum - 1_900.0).abs() < 410.0, "{sum}");
        assert!(of_message(&message(&[], Some(9.0)), 16.0, 1.0).is_empty(), "nothing was seen");
        assert!(of_message(&message(&[(2.0, 9)], None), f64::NAN, 1.0).is_empty());
    }

    #[test]
    fn flows_with_one_mark_have_colours_of_their_own() {
        let paper = BTreeMap::new();
        let flow = |dscp| Flow { name: "", dscp, paper: &paper, points: Vec::new() };
        let flows = [24, 24, 0, 24, 10].map(flow);
        let colours = colours(&flows);
        assert_eq!(colours, [3, 1, 0, 2, 18]);
    }
}
