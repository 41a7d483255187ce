//! Values over a parameter that is varied.

use super::beside::Beside;
use super::units::{axis, ticks};
use crate::number;
use crate::view::{Experiment, is_variant};
use plot::{Figure, Panel, Series, Shape};
use router::policy::Name;
use std::collections::BTreeMap;
use study::row::Measure;
use study::{Planned, StudyRow, file};
use toml::Value;

/// A picture of a sweep.
pub(crate) struct Sweep {
    pub(crate) figure: Figure,
    /// Notes that the reader of the picture needs.
    pub(crate) notes: Vec<String>,
}

/// What may be drawn, each in a panel of its own where there is any of it.
const MEASURES: [(Measure, &str); 4] = [
    (Measure::KbitS, "kbit/s"),
    (Measure::LossPercent, "loss, %"),
    (Measure::DelayMs, "delay, ms"),
    (Measure::BasePercent, "% of base"),
];
/// Most panels.
const MAX_PANELS: usize = 3;

/// The sweeps of an experiment: one for each of its runs that varies something and was made.
pub(crate) fn sweeps(experiment: &Experiment<'_>) -> Vec<Sweep> {
    // Of some of the combinations a line has few points: a grid shows them.
    let is_swept = |run: &&file::StudyRun| !run.vary.is_empty() && run.cells.is_none();
    let runs = experiment.file.runs.iter().filter(is_swept);
    runs.filter_map(|run| one(experiment, run)).collect()
}

/// A row of one of the combinations.
struct Point<'a> {
    planned: &'a Planned,
    row: &'a StudyRow,
}

fn one(experiment: &Experiment<'_>, run: &file::StudyRun) -> Option<Sweep> {
    let variants = experiment.runs.iter().filter(|of| is_variant(run, &of.planned.run));
    let by_id: BTreeMap<&str, &Planned> =
        variants.map(|of| (of.planned.id.as_str(), of.planned)).collect();
    let points = experiment.rows.iter().filter_map(|row| {
        let (id, _) = row.item.rsplit_once('/')?;
        Some(Point { planned: by_id.get(id)?, row })
    });
    let points: Vec<Point<'_>> = points.collect();
    let (name, values) = over(run)?;
    let axis = axis(values);
    let place = |point: &Point<'_>| -> Option<f64> {
        let value = point.planned.settings.get(name)?;
        axis.places.get(values.iter().position(|other| other == value)?).copied()
    };
    let mut figure = Figure::new(format!("{}: {name} varied", run.name));
    let shape = if axis.ordered { Shape::Dotted } else { Shape::Dots };
    let mut colours: Vec<String> = Vec::new();
    for (measure, label) in MEASURES {
        let lines = lines(run, name, measure, &points, &place);
        if lines.is_empty() || figure.panels.len() == MAX_PANELS {
            continue;
        }
        let (mut panel, mut beside) = (Panel::new(label), Beside::new(measure));
        for (name, points) in lines {
            let colour = place_of(&mut colours, &name);
            let printed: Vec<_> =
                points.iter().map(|(at, point, _)| (*at, &point.row.paper)).collect();
            beside.line(&name, colour, &printed);
            let points = points.iter().map(|(at, _, value)| (*at, *value)).collect();
            panel = panel.series(Series::new(name, shape, points).colour(colour));
        }
        figure = figure.panel(beside.onto(panel));
    }
    figure.ticks = ticks(&axis, values);
    figure.span = Some(axis.span);
    figure.time_label = name.clone();
    let given_up = points.iter().filter(|point| point.row.seconds_more_than.is_some()).count();
    let mut notes = Vec::new();
    if axis.ordered {
        notes.push(format!("The axis of {name} is {}.", axis.how));
    }
    if given_up > 0 {
        notes.push(format!(
            "{given_up} of {} were given up: drawn is the most that their rate can have been.",
            points.len()
        ));
    }
    (!figure.panels.is_empty()).then_some(Sweep { figure, notes })
}

/// The colour of a name: the same in all panels.
fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|other| other == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// The parameter for the axis: one whose values have an order, and of those the one with the most.
fn over(run: &file::StudyRun) -> Option<(&Name, &Vec<Value>)> {
    run.vary.iter().max_by_key(|(_, values)| (axis(values).ordered, values.len()))
}

fn value(row: &StudyRow, measure: Measure) -> Option<f64> {
    row.value(measure).or(match measure {
        Measure::KbitS => row.kbit_s_less_than,
        _ => None,
    })
}

/// The points of a line: where it is on the axis, its row, and the value.
type Places<'a, 'b> = Vec<(f64, &'b Point<'a>, f64)>;

/// By their names, each in the order of the axis.
fn lines<'a, 'b>(
    run: &file::StudyRun,
    over: &str,
    measure: Measure,
    points: &'b [Point<'a>],
    place: &dyn Fn(&Point<'_>) -> Option<f64>,
) -> Vec<(String, Places<'a, 'b>)> {
    let several = run.messages.len() + run.loads.len() > 1;
    let mut named: Vec<(String, Places<'a, 'b>)> = Vec::new();
    for point in points {
        let Some((at, value)) = place(point).zip(value(point.row, measure)) else { continue };
        let name = name(run, over, point, several);
        match named.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push((at, point, value)),
            None => named.push((name, vec![(at, point, value)])),
        }
    }
    for (_, points) in &mut named {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    named
}

/// The other parameters' values, and which of several messages and loads it is.
fn name(run: &file::StudyRun, over: &str, point: &Point<'_>, several: bool) -> String {
    let others = run.vary.keys().filter(|name| *name != over);
    let others = others.filter_map(|name| {
        let value = point.planned.settings.get(name)?;
        Some(format!("{name} {}", number::setting(value)))
    });
    let item = point.row.item.rsplit('/').next().unwrap_or_default();
    let item = several.then(|| item.to_owned());
    let parts: Vec<String> = item.into_iter().chain(others).collect();
    if parts.is_empty() { "measured".to_owned() } else { parts.join(", ") }
}
