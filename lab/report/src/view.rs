//! A report's parts, experiment by experiment.

use crate::StudyReport;
use std::collections::BTreeMap;
use study::{Measured, Planned, StudyRow, Verdict, file};

/// All of a report, by experiment.
pub(crate) struct View<'a> {
    pub(crate) report: &'a StudyReport<'a>,
    pub(crate) experiments: Vec<Experiment<'a>>,
}

/// An experiment and what it gave.
pub(crate) struct Experiment<'a> {
    pub(crate) file: &'a file::Experiment,
    pub(crate) runs: Vec<Run<'a>>,
    pub(crate) rows: Vec<&'a StudyRow>,
    pub(crate) verdicts: Vec<&'a Verdict>,
}

/// A run and what it gave.
pub(crate) struct Run<'a> {
    pub(crate) planned: &'a Planned,
    /// Absent where it has not been made.
    pub(crate) measured: Option<&'a Measured>,
    /// One of several that differ in a parameter's value.
    pub(crate) varied: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(report: &'a StudyReport<'a>) -> View<'a> {
        let experiments = report.study.experiments.iter().map(|file| Experiment {
            file,
            runs: Vec::new(),
            rows: Vec::new(),
            verdicts: Vec::new(),
        });
        let mut experiments: Vec<Experiment<'a>> = experiments.collect();
        let places = report.study.experiments.iter().enumerate();
        let places: BTreeMap<&str, usize> =
            places.map(|(place, experiment)| (experiment.name.as_str(), place)).collect();
        // Of a run that was made several times the first is shown.
        let mut measured: BTreeMap<&str, &Measured> = BTreeMap::new();
        for one in report.measured {
            measured.entry(one.id.as_str()).or_insert(one);
        }
        for planned in report.planned {
            let Some(experiment) = experiments.get_mut(planned.experiment) else { continue };
            let varied = experiment.file.runs.iter().any(|run| is_variant(run, &planned.run));
            let measured = measured.get(planned.id.as_str()).copied();
            experiment.runs.push(Run { planned, measured, varied });
        }
        let mut put = |name: &str, row: Option<&'a StudyRow>, verdict: Option<&'a Verdict>| {
            let place = places.get(name).copied();
            let Some(experiment) = place.and_then(|place| experiments.get_mut(place)) else {
                return;
            };
            experiment.rows.extend(row);
            experiment.verdicts.extend(verdict);
        };
        for row in report.rows {
            put(row.item.split('/').next().unwrap_or_default(), Some(row), None);
        }
        for verdict in report.verdicts {
            put(&verdict.experiment, None, Some(verdict));
        }
        View { report, experiments }
    }

    /// Runs that have been made.
    pub(crate) fn made(&self) -> usize {
        let runs = self.experiments.iter().flat_map(|experiment| &experiment.runs);
        runs.filter(|run| run.measured.is_some()).count()
    }
}

impl Experiment<'_> {
    /// How many of its expectations hold, do not, and are not known.
    pub(crate) fn verdicts(&self) -> [usize; 3] {
        count(self.verdicts.iter().copied())
    }
}

/// How many hold, do not, and are not known.
pub(crate) fn count<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> [usize; 3] {
    verdicts.fold([0; 3], |[hold, fail, open], verdict| match verdict.holds {
        Some(true) => [hold + 1, fail, open],
        Some(false) => [hold, fail + 1, open],
        None => [hold, fail, open + 1],
    })
}

/// Whether a run is one of the combinations of an entry of the file.
pub(crate) fn is_variant(run: &file::StudyRun, name: &str) -> bool {
    let suffix = || name.strip_prefix(run.name.as_str());
    !run.vary.is_empty() && suffix().is_some_and(|suffix| suffix.starts_with('['))
}
