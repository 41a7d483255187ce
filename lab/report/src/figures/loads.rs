//! Figures that were printed of loads over time, drawn of ours.

use super::beside::Beside;
use crate::StudyReport;
use plot::{Figure, Panel, Series, Shape};
use std::collections::BTreeMap;
use study::file::{self, OverTime};
use study::measured::LoadMeasured;
use study::row::Measure;
use study::{Measured, Planned};

/// Most figures.
pub(crate) const MAX_FIGURES: usize = 100;

/// Those that there is anything of, by their numbers.
pub(crate) fn figures(report: &StudyReport<'_>) -> Vec<(u32, Figure)> {
    let mut measured: BTreeMap<&str, &Measured> = BTreeMap::new();
    for one in report.measured {
        // Of a run that was made several times, the first.
        measured.entry(one.id.as_str()).or_insert(one);
    }
    let planned = report.planned.iter().map(|planned| (planned.id.as_str(), planned)).collect();
    let all = report.study.over_time.iter().take(MAX_FIGURES);
    all.filter_map(|figure| Some((figure.number, one(figure, &measured, &planned)?))).collect()
}

fn one(
    of: &file::LoadFigure,
    measured: &BTreeMap<&str, &Measured>,
    planned: &BTreeMap<&str, &Planned>,
) -> Option<Figure> {
    let mut panel = Panel::new(match of.value {
        OverTime::KbitS => "arrived, kbit/s",
        OverTime::DelayMs => "one-way delay, ms",
        OverTime::JitterMs => "jitter, ms",
    });
    let mut beside = Beside::new(match of.value {
        OverTime::KbitS => Measure::KbitS,
        OverTime::DelayMs => Measure::DelayMs,
        OverTime::JitterMs => Measure::JitterMs,
    });
    let mut end = 0.0_f64;
    for (name, item) in &of.items {
        let Some((run, load)) = item.rsplit_once('/') else { continue };
        let Some(measured) = measured.get(run) else { continue };
        let Some(load) = measured.loads.iter().find(|other| other.name == load) else { continue };
        let scale = measured.scale.factor();
        let points = points(of.value, load, scale);
        if !points.is_empty() {
            end = points.last().map_or(end, |(at, _)| end.max(at + load.interval * scale / 2.0));
            let loads = planned.get(run).map(|planned| planned.loads.as_slice());
            let file = loads.unwrap_or_default().iter().find(|other| other.name == load.name);
            let paper: Vec<_> = file.iter().map(|load| (0.0, &load.paper)).collect();
            beside.line(name, panel.series.len(), &paper);
            panel = panel.series(Series::new(named(name, &points), Shape::Line, points));
        }
    }
    if panel.series.is_empty() {
        return None;
    }
    let mut figure = Figure::new(format!("Figure {}: {}", of.number, of.title));
    figure = figure.panel(beside.onto(panel));
    figure.time_label = "seconds from the load's beginning".to_owned();
    figure.span = Some((0.0, end));
    Some(figure)
}

/// A name with the mean, which distinguishes lines that lie on each other.
fn named(name: &str, points: &[(f64, f64)]) -> String {
    let values: Vec<f64> =
        points.iter().map(|one| one.1).filter(|value| value.is_finite()).collect();
    match values.len() {
        0 => name.to_owned(),
        count => {
            let mean = values.iter().sum::<f64>() / count as f64;
            format!("{name}: {}", crate::number::short(mean))
        }
    }
}

/// As at the study's own rates: the middle of each step and its value; a gap where nothing came.
fn points(value: OverTime, load: &LoadMeasured, scale: f64) -> Vec<(f64, f64)> {
    let values: Vec<f64> = match value {
        OverTime::KbitS => load.over_time.iter().map(|rate| rate / scale).collect(),
        OverTime::DelayMs => times(&load.delay_over_time, scale),
        OverTime::JitterMs => times(&load.jitter_over_time, scale),
    };
    let seconds = load.interval * scale;
    let at = |place: usize| (place as f64 + 0.5) * seconds;
    values.into_iter().enumerate().map(|(place, value)| (at(place), value)).collect()
}

fn times(of: &[Option<f64>], scale: f64) -> Vec<f64> {
    of.iter().map(|ms| ms.map_or(f64::NAN, |ms| ms * scale)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_shown_at_the_studys_own_rates() {
        let load = LoadMeasured {
            over_time: vec![10.0, 20.0],
            delay_over_time: vec![Some(4.0), None],
            interval: 1.0,
            ..LoadMeasured::default()
        };
        assert_eq!(
            points(OverTime::KbitS, &load, 0.1),
            [(0.05, 100.0), (0.15000000000000002, 200.0)]
        );
        let delays = points(OverTime::DelayMs, &load, 0.1);
        assert!(delays[0] == (0.05, 0.4) && delays[1].1.is_nan(), "{delays:?}");
        assert_eq!(named("4 Mbit/s", &delays), "4 Mbit/s: 0.400");
        assert!(points(OverTime::JitterMs, &load, 1.0).is_empty());
    }
}
