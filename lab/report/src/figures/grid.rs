//! The pictures of cells that a study asks for: the lowest of a value where rows of several runs meet.

use crate::number;
use crate::view::View;
use plot::{Cell, Grid, GridRow};
use router::policy::Name;
use std::collections::BTreeMap;
use study::row::{Measure, plain_item};
use study::{Planned, StudyRow, file};
use toml::Value;

/// Most combinations of values down, and across.
const MAX_LINES: usize = plot::MAX_LINES;

/// The picture; nothing where none of its rows has been measured.
pub(crate) fn figure(view: &View<'_>, of: &file::StudyGrid) -> Option<Grid> {
    let planned = view.report.planned.iter().map(|planned| (planned.id.as_str(), planned));
    let planned: BTreeMap<&str, &Planned> = planned.collect();
    let measure = Measure::from_name(&of.value)?;
    let mut rows = Vec::new();
    for row in view.report.rows.iter().filter(|row| of.of.contains(&plain_item(&row.item))) {
        let id = row.item.rsplit_once('/').map(|(id, _)| id)?;
        let Some(planned) = planned.get(id) else { continue };
        rows.extend(value(row, measure).map(|value| (*planned, value)));
    }
    if rows.is_empty() {
        return None;
    }
    let order = order(view, of);
    let lines = |names: &[Name]| lines(names, &order, &rows);
    let (down, across) = (lines(&of.down), lines(&of.across));
    let cell = |below: &[Value], beside: &[Value]| {
        let is_in = |planned: &Planned| {
            settings(planned, &of.down) == below && settings(planned, &of.across) == beside
        };
        let within = rows.iter().filter(|(planned, _)| is_in(planned)).map(|(_, value)| *value);
        within.min_by(f64::total_cmp).map_or_else(Cell::default, |lowest| Cell {
            words: format!("{lowest:.0}"),
            shade: Some(match lowest {
                _ if lowest >= of.good => 0,
                _ if lowest >= of.fair => 1,
                _ => 2,
            }),
        })
    };
    let (good, fair) = (number::exact(of.good), number::exact(of.fair));
    Some(Grid {
        title: of.title.clone(),
        down: of.down.join(", "),
        across: of.across.join(", "),
        columns: across.iter().map(|values| name(values)).collect(),
        rows: down
            .iter()
            .map(|below| GridRow {
                name: name(below),
                cells: across.iter().map(|beside| cell(below, beside)).collect(),
            })
            .collect(),
        shades: vec![
            format!("{good} and more"),
            format!("from {fair} to {good}"),
            format!("below {fair}"),
        ],
    })
}

/// Of what was given up, the most that it can be.
fn value(row: &StudyRow, measure: Measure) -> Option<f64> {
    let bound = || row.more.get(&format!("{}_less_than", measure.name())).copied();
    row.value(measure).or_else(bound)
}

/// The values of each parameter, in the order in which the file varies them.
fn order(view: &View<'_>, of: &file::StudyGrid) -> BTreeMap<Name, Vec<Value>> {
    let mut order: BTreeMap<Name, Vec<Value>> = BTreeMap::new();
    let experiments = view.report.study.experiments.iter();
    let runs = experiments.flat_map(|experiment| {
        experiment.runs.iter().map(move |run| (format!("{}/{}/", experiment.name, run.name), run))
    });
    for (_, run) in runs.filter(|(id, _)| of.of.iter().any(|item| item.starts_with(id))) {
        for (name, values) in &run.vary {
            let known = order.entry(name.clone()).or_default();
            let new: Vec<Value> =
                values.iter().filter(|value| !known.contains(value)).cloned().collect();
            known.extend(new);
        }
    }
    order
}

fn settings(planned: &Planned, names: &[Name]) -> Vec<Value> {
    let none = || Value::String(String::new());
    names.iter().map(|name| planned.settings.get(name).cloned().unwrap_or_else(none)).collect()
}

/// The combinations of values that rows have, in order.
fn lines(
    names: &[Name],
    order: &BTreeMap<Name, Vec<Value>>,
    rows: &[(&Planned, f64)],
) -> Vec<Vec<Value>> {
    let mut all: Vec<Vec<Value>> = Vec::new();
    for (planned, _) in rows {
        let values = settings(planned, names);
        if !all.contains(&values) {
            all.push(values);
        }
    }
    let place = |(name, value): (&Name, &Value)| {
        let known = order.get(name);
        known.and_then(|known| known.iter().position(|other| other == value)).unwrap_or(usize::MAX)
    };
    all.sort_by_cached_key(|values| names.iter().zip(values).map(place).collect::<Vec<_>>());
    all.truncate(MAX_LINES);
    all
}

fn name(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(number::setting).collect();
    values.join(", ")
}
