//! Printed values that are of two rows: a difference, or a part of something.

use crate::expect::reference;
use crate::file::{Experiment, PrintedRelation, Study};
use crate::measured::Environment;
use crate::row::{Measure, StudyRow};
use crate::{Planned, StudyError};
use std::collections::BTreeSet;

/// Puts a row for each printed relation whose values are known behind the rows of its experiment.
pub(crate) fn add(study: &Study, planned: &[Planned], rows: &mut Vec<StudyRow>) {
    for experiment in &study.experiments {
        if !planned.iter().any(|planned| planned.experiment_name() == experiment.name) {
            continue;
        }
        for relation in &experiment.printed {
            let Some(row) = row(experiment, relation, rows) else { continue };
            let is_its = |other: &StudyRow| other.item.split('/').next() == Some(&experiment.name);
            let place = rows.iter().rposition(is_its).map_or(rows.len(), |place| place + 1);
            rows.insert(place, row);
        }
    }
}

/// `experiment/printed/name`, as the item of a row.
pub fn item(experiment: &Experiment, relation: &PrintedRelation) -> String {
    format!("{}/printed/{}", experiment.name, relation.name)
}

/// The items of the rows that a relation is of.
pub(crate) fn items(experiment: &str, relation: &PrintedRelation) -> Vec<String> {
    let all = [Some(&relation.value), relation.minus.as_ref(), relation.to.as_ref()];
    let items = all.into_iter().flatten().filter_map(|text| reference(experiment, text));
    items.map(|(item, _)| item).collect()
}

fn row(experiment: &Experiment, relation: &PrintedRelation, rows: &[StudyRow]) -> Option<StudyRow> {
    let find = |text: &str| {
        let (item, measure) = reference(&experiment.name, text)?;
        let row = rows.iter().find(|row| row.item == item)?;
        Some((row, row.value(measure)?, measure))
    };
    let (of, value, measure) = find(&relation.value)?;
    let percent = Measure::BasePercent;
    let (measure, value) = match (&relation.minus, &relation.to, relation.percent_of) {
        (Some(minus), _, _) => (measure, value - find_like(of, find(minus)?)?),
        (_, Some(to), _) => (percent, value / find_like(of, find(to)?)? * 100.0),
        (_, _, Some(whole)) => (percent, value / whole * 100.0),
        _ => (measure, value),
    };
    Some(StudyRow {
        table: experiment.table.clone().unwrap_or_else(|| experiment.name.clone()),
        row: relation.what.clone(),
        item: item(experiment, relation),
        dscp: of.dscp,
        dscp_name: of.dscp_name.clone(),
        kbit_s: (measure == Measure::KbitS).then_some(value),
        seconds: (measure == Measure::Seconds).then_some(value),
        more: match measure {
            Measure::KbitS | Measure::Seconds => Default::default(),
            other => [(other.name().to_owned(), value)].into(),
        },
        paper: relation.paper.clone(),
        no_fit_reason: relation.no_fit_reason.clone(),
        environment: of.environment,
        scale: of.scale,
        ..StudyRow::default()
    })
}

/// The other row's value, where it was made in the same environment.
fn find_like(of: &StudyRow, other: (&StudyRow, f64, Measure)) -> Option<f64> {
    let made = |row: &StudyRow| -> (Environment, crate::Scale) { (row.environment, row.scale) };
    (made(of) == made(other.0)).then_some(other.1)
}

/// What relations refer to is there, and what is printed of them is of the kind of their value.
pub(crate) fn check(study: &Study, items: &BTreeSet<String>) -> Result<(), StudyError> {
    for (number, experiment) in study.experiments.iter().enumerate() {
        let mut names = BTreeSet::new();
        for (place, relation) in experiment.printed.iter().enumerate() {
            let path = format!("experiment[{number}].printed[{place}]");
            if !names.insert(&relation.name) {
                let what = "another relation of this experiment has this name";
                return Err(StudyError::at(format!("{path}.name"), what));
            }
            relates(experiment, relation, items)
                .map_err(|(key, what)| StudyError::at(format!("{path}{key}"), what))?;
        }
    }
    Ok(())
}

fn relates(
    experiment: &Experiment,
    relation: &PrintedRelation,
    items: &BTreeSet<String>,
) -> Result<(), (String, String)> {
    let known = |key: &str, text: &str| {
        reference(&experiment.name, text)
            .filter(|(item, _)| items.contains(item))
            .map(|(_, measure)| measure)
            .ok_or_else(|| {
                (format!(".{key}"), format!("{text:?}: no `run/item.value` has this name"))
            })
    };
    let measure = known("value", &relation.value)?;
    let others = [("to", &relation.to), ("minus", &relation.minus)];
    for (key, text) in others.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
        if known(key, text)? != measure {
            return Err((format!(".{key}"), "of another kind than value".to_owned()));
        }
    }
    let given = [relation.to.is_some(), relation.minus.is_some(), relation.percent_of.is_some()];
    if given.into_iter().filter(|given| *given).count() > 1 {
        return Err((String::new(), "one of to, minus and percent_of".to_owned()));
    }
    if relation.percent_of.is_some_and(|whole| !whole.is_finite() || whole <= 0.0) {
        return Err((".percent_of".to_owned(), "a number above 0".to_owned()));
    }
    let of = match relation.to.is_some() || relation.percent_of.is_some() {
        true => Measure::BasePercent,
        false => measure,
    };
    match relation.paper.keys().find(|key| Measure::of_paper(key) != Some(of)) {
        Some(key) => Err((format!(".paper.{key}"), format!("it is of {}", of.name()))),
        None if relation.paper.is_empty() => Err((String::new(), "paper has nothing".to_owned())),
        None => Ok(()),
    }
}
