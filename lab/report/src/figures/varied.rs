//! The pictures that a study asks for: a value of several runs over a parameter they vary.

use super::beside::Beside;
use super::units::{axis, ticks};
use crate::view::View;
use plot::{Figure, Panel, Series, Shape};
use router::policy::Name;
use std::collections::BTreeMap;
use study::row::Measure;
use study::{Planned, StudyRow, file};
use toml::Value;

/// Most values of a parameter on an axis.
const MAX_VALUES: usize = 1_000;

/// Colours; from this place on they come again, dashed.
const COLOURS: usize = 8;

/// What is drawn over a value of the parameter.
struct Point<'a> {
    value: &'a Value,
    y: f64,
    paper: &'a BTreeMap<Name, f64>,
}

/// The picture; nothing where none of its rows has been measured.
pub(crate) fn figure(view: &View<'_>, of: &file::StudyFigure) -> Option<Figure> {
    let planned = view.report.planned.iter().map(|planned| (planned.id.as_str(), planned));
    let planned: BTreeMap<&str, &Planned> = planned.collect();
    let panels: Vec<Vec<(&file::FigureLine, Vec<Point<'_>>)>> = of
        .panels
        .iter()
        .map(|panel| {
            let lines = panel.lines.iter();
            let lines = lines.map(|line| {
                let points = points(view, &planned, of, panel, line);
                (line, points)
            });
            lines.filter(|(_, points)| !points.is_empty()).collect()
        })
        .collect();
    let values = values(panels.iter().flatten().flat_map(|(_, points)| points));
    if values.is_empty() {
        return None;
    }
    let axis = axis(&values);
    let place =
        |value: &Value| axis.places.get(values.iter().position(|other| other == value)?).copied();
    let shape = if axis.ordered { Shape::Dotted } else { Shape::Dots };
    let mut names: Vec<&str> = Vec::new();
    let mut figure = Figure::new(&of.title);
    for (panel, lines) in of.panels.iter().zip(panels) {
        let mut drawn = Panel::new(&panel.label);
        let Some(measure) = Measure::from_name(&panel.y) else { continue };
        let mut beside = Beside::new(measure);
        for (line, mut points) in lines {
            let at = |of: &Point<'_>| place(of.value).unwrap_or(f64::NAN);
            points.sort_by(|one, other| at(one).total_cmp(&at(other)));
            let printed: Vec<_> = points.iter().map(|of| (at(of), of.paper)).collect();
            let points: Vec<_> = points.iter().map(|of| (at(of), of.y)).collect();
            // A name has the same colour in all panels.
            let name = line.name.as_str();
            let place = names.iter().position(|other| *other == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let colour = line.colour.map_or(place, usize::from) % COLOURS;
            let colour = if line.dashed { colour + COLOURS } else { colour };
            beside.line(name, colour, &printed);
            drawn = drawn.series(Series::new(name, shape, points).colour(colour));
        }
        if !drawn.series.is_empty() {
            figure = figure.panel(beside.onto(drawn));
        }
    }
    figure.ticks = ticks(&axis, &values);
    figure.span = Some(axis.span);
    let unit = view.report.study.parameters.get(&of.x).map(|parameter| parameter.unit.as_str());
    figure.time_label = match unit.filter(|unit| !unit.is_empty()) {
        Some(unit) => format!("{}: {unit}", of.x),
        None => of.x.clone(),
    };
    Some(figure)
}

fn points<'a>(
    view: &View<'a>,
    planned: &BTreeMap<&str, &'a Planned>,
    of: &file::StudyFigure,
    panel: &file::FigurePanel,
    line: &file::FigureLine,
) -> Vec<Point<'a>> {
    let Some(measure) = Measure::from_name(&panel.y) else { return Vec::new() };
    let point = |row: &'a StudyRow| -> Option<Point<'a>> {
        let (run, _) = row.item.rsplit_once('/')?;
        let run: &'a Planned = planned.get(run).copied()?;
        let is_of = line.is_of(run) && line.is_item(&row.item);
        let y = row.value(measure).filter(|y| is_of && y.is_finite())?;
        Some(Point { value: run.settings.get(&of.x)?, y, paper: &row.paper })
    };
    view.report.rows.iter().filter_map(point).collect()
}

/// Each once, in their order.
fn values<'a>(points: impl Iterator<Item = &'a Point<'a>>) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for Point { value, .. } in points {
        if !values.contains(value) && values.len() < MAX_VALUES {
            values.push((*value).clone());
        }
    }
    values
}
