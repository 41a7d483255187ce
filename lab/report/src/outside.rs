//! What is not near what was printed, value by value; the score by kind of value; and what was fitted.

use crate::StudyReport;
use crate::closeness::{Closeness, Comparison};
use crate::number::{self, NONE};
use crate::score::{self, Score};
use crate::text::{kbit_s, ours, printed, seconds, tos_received};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use study::StudyRow;
use study::row::Measure;

/// A printed value that ours is not within 15 percent of, or not within its bound: an expectation that
/// derives from the print and does not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    /// `experiment/run/item`.
    pub item: String,
    /// The table.
    pub table: String,
    /// The row's name.
    pub row: String,
    /// The kind of value: a measure's name, or `tos`.
    pub kind: String,
    /// What was printed, as text.
    pub printed: String,
    /// Ours, as text.
    pub ours: String,
    /// Ours divided by what was printed, as text.
    pub ratio: String,
    /// `factor`, `far`, `unknown`, or `missing` where we have no value.
    pub closeness: String,
    /// The reason in the study's file; empty where it has none.
    pub reason: String,
}

/// The name of TOS octets among the kinds of values.
const TOS: &str = "tos";

impl Outside {
    /// The sign of its closeness.
    pub(crate) fn sign(&self) -> &'static str {
        let found = Closeness::ALL.into_iter().find(|one| one.class() == self.closeness);
        found.map_or("–", Closeness::sign)
    }
}

/// A printed value of a row: its kind and how near ours is.
fn values(row: &StudyRow) -> Vec<(&'static str, Option<Measure>, Option<Closeness>)> {
    let mut printed = score::measures(&row.paper);
    printed.extend(row.paper_seconds.map(|_| Measure::Seconds));
    let kinds = printed.into_iter().map(|measure| (measure.name(), Some(measure)));
    let tos = (!row.paper_tos.is_empty()).then_some((TOS, None));
    let kinds = kinds.chain(tos).zip(score::of_row(row));
    kinds.map(|((kind, measure), closeness)| (kind, measure, closeness)).collect()
}

/// Every printed value of these rows that ours is not near, the farthest kinds first.
pub(crate) fn outside(rows: &[StudyRow]) -> Vec<Outside> {
    let mut all: Vec<Outside> = Vec::new();
    for row in rows {
        for (kind, measure, closeness) in values(row) {
            if closeness != Some(Closeness::Near) {
                all.push(one(row, kind, measure, closeness));
            }
        }
    }
    let order =
        |one: &Outside| ["far", "missing", "unknown"].iter().position(|c| **c == one.closeness);
    all.sort_by_key(|one| order(one).unwrap_or(usize::MAX));
    all
}

fn one(
    row: &StudyRow,
    kind: &'static str,
    measure: Option<Measure>,
    closeness: Option<Closeness>,
) -> Outside {
    let comparison = measure.and_then(|measure| Comparison::of_value(row, measure));
    let (theirs, ours) = match measure {
        None => (number::tos(&row.paper_tos), tos_received(row)),
        Some(of) => {
            let ours = match of {
                Measure::Seconds => seconds(row),
                Measure::KbitS => kbit_s(row),
                other => ours(row, other),
            };
            (printed(row, of), ours)
        }
    };
    Outside {
        item: row.item.clone(),
        table: row.table.clone(),
        row: row.row.clone(),
        kind: kind.to_owned(),
        printed: theirs,
        ours,
        ratio: comparison.map_or(NONE.to_owned(), Comparison::words),
        closeness: closeness.map_or("missing", Closeness::class).to_owned(),
        reason: row.no_fit_reason.clone(),
    }
}

/// The score of each kind of value, by its name: printed, near, within a factor of 2.
pub(crate) fn by_kind(rows: &[StudyRow]) -> BTreeMap<String, KindScore> {
    let mut kinds: BTreeMap<String, KindScore> = BTreeMap::new();
    for (kind, _, closeness) in rows.iter().flat_map(values) {
        kinds.entry(kind.to_owned()).or_default().add(closeness);
    }
    kinds
}

/// The score of each table, in the order of the rows: printed, near, within a factor of 2.
pub(crate) fn by_table(rows: &[StudyRow]) -> Vec<(String, KindScore)> {
    let mut tables: Vec<(String, KindScore)> = Vec::new();
    for row in rows {
        for (_, _, closeness) in values(row) {
            let place = match tables.iter().position(|(table, _)| *table == row.table) {
                Some(place) => place,
                None => {
                    tables.push((row.table.clone(), KindScore::default()));
                    tables.len() - 1
                }
            };
            if let Some((_, score)) = tables.get_mut(place) {
                score.add(closeness);
            }
        }
    }
    tables
}

/// The score of a kind of value, or of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindScore {
    /// Printed values of this kind.
    pub printed: usize,
    /// Within 15 percent, or within a printed bound.
    pub near: usize,
    /// Within a factor of 2.
    pub factor: usize,
}

impl KindScore {
    /// One value more.
    fn add(&mut self, closeness: Option<Closeness>) {
        self.printed += 1;
        self.near += usize::from(closeness == Some(Closeness::Near));
        self.factor += usize::from(closeness == Some(Closeness::Factor));
    }
}

/// What was chosen by printed values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fitted {
    /// Parameters whose value, the same for all rows, was chosen by printed values, by name.
    pub parameters: Vec<String>,
    /// Rows of the second column.
    pub rows: usize,
    /// Of these, rows whose seconds, or rate where no seconds are printed, are near.
    pub near: usize,
    /// Distinct values of parameters that the second column has.
    pub values: usize,
}

impl Fitted {
    /// Of all that a report has.
    pub fn from_report(report: &StudyReport<'_>) -> Fitted {
        let used: BTreeSet<&String> =
            report.planned.iter().flat_map(|planned| planned.settings.keys()).collect();
        let parameters = report.study.parameters.iter();
        let parameters = parameters
            .filter(|(name, parameter)| !parameter.fits.is_empty() && used.contains(name));
        let printed = || report.rows.iter().filter(|row| score::is_printed(row));
        let fits = || printed().filter_map(|row| Some((row, row.fit.as_ref()?)));
        let values: BTreeSet<(&String, String)> = fits()
            .flat_map(|(_, fit)| fit.with.iter().map(|(name, value)| (name, value.to_string())))
            .collect();
        Fitted {
            parameters: parameters.map(|(name, _)| name.clone()).collect(),
            rows: fits().count(),
            near: fits().filter(|(row, fit)| is_near(row, fit)).count(),
            values: values.len(),
        }
    }
}

/// The value of a fit, beside what was printed of its row.
pub(crate) fn comparison(row: &StudyRow, fit: &study::Fit) -> Option<Comparison> {
    let value = |measure: Measure| fit.values.get(measure.name()).copied();
    let fitted = StudyRow {
        seconds: value(Measure::Seconds),
        seconds_more_than: None,
        kbit_s: value(Measure::KbitS),
        kbit_s_less_than: None,
        more: fit.values.clone(),
        ..row.clone()
    };
    Comparison::from_row(&fitted)
}

fn is_near(row: &StudyRow, fit: &study::Fit) -> bool {
    comparison(row, fit).map(Comparison::closeness) == Some(Closeness::Near)
}

/// The score with all that stands behind it, for JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreDetail {
    /// The numbers.
    #[serde(flatten)]
    pub score: Score,
    /// By kind of value.
    pub by_kind: BTreeMap<String, KindScore>,
    /// By table.
    #[serde(default)]
    pub by_table: Vec<(String, KindScore)>,
    /// What is not near.
    pub outside: Vec<Outside>,
    /// What was chosen by printed values.
    pub fitted: Fitted,
}

impl ScoreDetail {
    /// Of all that a report has.
    pub fn from_report(report: &StudyReport<'_>) -> ScoreDetail {
        // What was not made counts as missing in all of them.
        let rows = [report.rows, &score::unmade(report)].concat();
        ScoreDetail {
            score: Score::from_report(report),
            by_kind: by_kind(&rows),
            by_table: by_table(&rows),
            outside: outside(&rows),
            fitted: Fitted::from_report(report),
        }
    }
}
