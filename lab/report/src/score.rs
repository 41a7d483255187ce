//! How many of the printed values came out near, of all there are.

use crate::StudyReport;
use crate::closeness::{Closeness, Comparison};
use crate::number;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use study::StudyRow;
use study::file::{Experiment, PrintedRelation};
use study::row::Measure;

/// Every printed value once, by how near ours is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Printed values of all kinds, of all rows and of runs that have not been made.
    pub printed: usize,
    /// Within 15 percent of a value, or within a printed bound.
    pub near: usize,
    /// Within a factor of 2.
    pub factor: usize,
    /// Beyond a factor of 2.
    pub far: usize,
    /// Only a bound of ours is known, and it may be near.
    pub unknown: usize,
    /// We have no value.
    pub missing: usize,
    /// Rows with printed values.
    pub rows: usize,
    /// Those of them with settings of their own.
    pub own_settings: usize,
}

impl Score {
    /// Of all that a report has.
    pub fn from_report(report: &StudyReport<'_>) -> Score {
        let mut score = Score::of_rows(report.rows);
        let missing = Score::of_rows(&unmade(report)).printed;
        score.printed += missing;
        score.missing += missing;
        score
    }

    /// Of these rows.
    pub fn of_rows(rows: &[StudyRow]) -> Score {
        let mut score = Score::default();
        for row in rows.iter().filter(|row| is_printed(row)) {
            score.rows += 1;
            score.own_settings += usize::from(has_own_settings(row));
            for closeness in of_row(row) {
                score.printed += 1;
                *match closeness {
                    Some(Closeness::Near) => &mut score.near,
                    Some(Closeness::Factor) => &mut score.factor,
                    Some(Closeness::Far) => &mut score.far,
                    Some(Closeness::Unknown) => &mut score.unknown,
                    None => &mut score.missing,
                } += 1;
            }
        }
        score
    }

    /// The expectations that derive from the print, one for each printed value: how many hold, how many do
    /// not, and of how many it is not known.
    pub(crate) fn expected(&self) -> String {
        format!(
            "from the print, within 15 % of a value or within a printed bound, that hold: {}; that do not: {}; \
             not known: {}",
            self.near,
            self.factor + self.far,
            self.unknown + self.missing
        )
    }

    /// The number of values with this closeness.
    pub(crate) fn count(&self, closeness: Closeness) -> usize {
        match closeness {
            Closeness::Near => self.near,
            Closeness::Factor => self.factor,
            Closeness::Far => self.far,
            Closeness::Unknown => self.unknown,
        }
    }
}

/// Printed values of two rows of which one has not been made.
fn relations_missing<'a>(
    report: &'a StudyReport<'_>,
) -> impl Iterator<Item = (&'a Experiment, &'a PrintedRelation)> {
    let items: BTreeSet<&str> = report.rows.iter().map(|row| row.item.as_str()).collect();
    let wanted: BTreeSet<&str> =
        report.planned.iter().map(study::Planned::experiment_name).collect();
    let experiments = report.study.experiments.iter();
    let experiments = experiments.filter(move |one| wanted.contains(one.name.as_str()));
    let relations = experiments.flat_map(|one| one.printed.iter().map(move |of| (one, of)));
    relations.filter(move |(one, of)| !items.contains(study::printed::item(one, of).as_str()))
}

/// A row without values of ours for each one with printed values of runs that have not been made.
pub(crate) fn unmade(report: &StudyReport<'_>) -> Vec<StudyRow> {
    let made: BTreeSet<&str> = report.measured.iter().map(|run| run.id.as_str()).collect();
    let planned = report.planned.iter();
    let planned = planned.filter(|run| !made.contains(run.id.as_str()) && run.fitted.is_empty());
    let mut rows: Vec<StudyRow> = planned.flat_map(unmade_run).collect();
    rows.extend(relations_missing(report).map(|(experiment, of)| StudyRow {
        table: experiment.table.clone().unwrap_or_else(|| experiment.name.clone()),
        row: of.what.clone(),
        item: study::printed::item(experiment, of),
        paper: of.paper.clone(),
        no_fit_reason: of.no_fit_reason.clone(),
        ..StudyRow::default()
    }));
    rows.retain(is_printed);
    rows
}

/// Likewise, of one run; those of which nothing was printed too.
fn unmade_run(run: &study::Planned) -> Vec<StudyRow> {
    let row = |name: &str, paper: &BTreeMap<_, f64>, why: &str| StudyRow {
        table: run.table.clone(),
        row: format!("{}/{name}", run.run),
        item: format!("{}/{name}", run.id),
        paper: paper.clone(),
        no_fit_reason: why.to_owned(),
        ..StudyRow::default()
    };
    let messages = run.messages.iter().map(|of| row(&of.name, &of.paper, &of.no_fit_reason));
    let loads = run.loads.iter().map(|of| StudyRow {
        paper_tos: of.paper_tos.clone(),
        ..row(&of.name, &of.paper, &of.no_fit_reason)
    });
    messages.chain(loads).collect()
}

/// How many values were printed of a run.
pub(crate) fn printed_of(planned: &study::Planned) -> usize {
    Score::of_rows(&unmade_run(planned)).printed
}

/// The kinds of values with something printed.
pub(crate) fn measures<'a>(
    paper: impl IntoIterator<Item = (&'a router::policy::Name, &'a f64)>,
) -> BTreeSet<Measure> {
    paper.into_iter().filter_map(|(name, _)| Measure::of_paper(name)).collect()
}

/// Each printed value of a row, its TOS octets as one: how near ours is, where we have it.
pub(crate) fn of_row(row: &StudyRow) -> Vec<Option<Closeness>> {
    let mut printed = measures(&row.paper);
    printed.extend(row.paper_seconds.map(|_| Measure::Seconds));
    let values = printed.into_iter();
    let compared =
        values.map(|measure| Comparison::of_value(row, measure).map(Comparison::closeness));
    let tos = (!row.paper_tos.is_empty()).then(|| {
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (row.tos_received.iter().collect(), row.paper_tos.iter().collect());
        match (ours.is_empty(), ours == theirs) {
            (true, _) => None,
            (false, true) => Some(Closeness::Near),
            (false, false) => Some(Closeness::Far),
        }
    });
    compared.chain(tos).collect()
}

/// Whether anything was printed of it.
pub(crate) fn is_printed(row: &StudyRow) -> bool {
    row.paper_seconds.is_some() || !row.paper.is_empty() || !row.paper_tos.is_empty()
}

/// Whether it was made with parameters that are others than the study's own.
pub(crate) fn has_own_settings(row: &StudyRow) -> bool {
    is_printed(row) && !row.with.is_empty()
}

/// The parameters with other values than the study's, except those in the row's name.
pub(crate) fn own_settings(row: &StudyRow) -> String {
    let all = row.with.iter().map(|(name, value)| format!("{name}={}", number::setting(value)));
    let unnamed: Vec<String> = all.filter(|one| !row.row.contains(one.as_str())).collect();
    unnamed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
        of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn every_printed_value_counts_once_and_what_was_not_measured_too() {
        let timed = StudyRow {
            paper_seconds: Some(10.0),
            paper: values(&[("seconds", 10.0), ("base_percent", 80.0)]),
            seconds: Some(10.5),
            more: values(&[("base_percent", 50.0)]),
            with: BTreeMap::from([("window".to_owned(), 3.into())]),
            ..StudyRow::default()
        };
        let load = StudyRow {
            paper: values(&[
                ("loss_percent", 1.0),
                ("delay_ms_more_than", 2.0),
                ("delay_ms_less_than", 4.0),
                ("jitter_ms", 1.0),
                ("round_trip_ms", 0.0),
            ]),
            paper_tos: vec![0x28, 0x30],
            more: values(&[("loss_percent", 9.0), ("delay_ms", 3.0), ("round_trip_ms", 0.01)]),
            tos_received: vec![0x30, 0x28],
            ..StudyRow::default()
        };
        let plain = StudyRow { seconds: Some(1.0), ..StudyRow::default() };
        let score = Score::of_rows(&[timed, load.clone(), plain]);
        let expected = Score {
            printed: 7,
            near: 4,   // seconds, delay, round trip, TOS
            factor: 1, // percent of base
            far: 1,    // loss
            unknown: 0,
            missing: 1, // jitter
            rows: 2,
            own_settings: 1,
        };
        assert_eq!(score, expected);
        let words = score.expected();
        assert!(words.ends_with("that hold: 4; that do not: 2; not known: 1"), "{words}");
        let other = StudyRow { tos_received: vec![0x28], ..load };
        assert_eq!(Score::of_rows(&[other]).far, 2);
    }
}
