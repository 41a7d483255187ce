//! Rival explanations, each scored over all rows at once.

mod tables;

pub(crate) use tables::Table;

use crate::closeness::{Closeness, Comparison};
use crate::score::{self, Score};
use crate::{Machine, StudyReport};
use router::policy::Name;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use study::hypothesis::Proposer;
use study::row::Measure;
use study::{Planned, Rival, StudyRow};
use toml::Value;

/// The rivals of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Hypotheses {
    /// The study's title.
    pub study: String,
    /// The command that tried them.
    pub command: String,
    /// A digest of what they are made from, by the name of the study's file.
    pub inputs: BTreeMap<String, String>,
    /// The rows by which they can be distinguished, as `experiment/run/item`.
    pub distinguish: Vec<String>,
    /// In the study's order.
    pub hypotheses: Vec<HypothesisScore>,
}

/// One rival: how many rows and printed values it brings near, and what it predicts.
#[derive(Clone, Debug, Serialize)]
pub struct HypothesisScore {
    /// Its name.
    pub name: String,
    /// In words.
    pub what: String,
    /// Who proposed it.
    pub by: Proposer,
    /// What speaks against it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// The values of its parameters.
    pub with: BTreeMap<Name, Value>,
    /// Printed values, of whatever kind, and how near ours are.
    #[serde(flatten)]
    pub values: ValueCount,
    /// Rows, by their seconds or, where none were printed, by their rate.
    #[serde(flatten)]
    pub rows: RowCount,
    /// The mean factor between ours and the printed value over all rows: of a row that was given up, the
    /// factor of its bound, where that is beyond the printed value. Absent where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_by: Option<f64>,
    /// Each row with printed values, as `experiment/run/item.measure`.
    pub items: BTreeMap<String, ItemValue>,
    /// What it predicts of the rows by which rivals can be distinguished.
    pub predicts: BTreeMap<String, ItemValue>,
}

/// How near the printed values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ValueCount {
    /// All.
    pub printed: usize,
    /// Within 15 percent.
    pub near: usize,
    /// Within a factor of 2.
    pub factor: usize,
    /// Beyond it.
    pub far: usize,
    /// Only a bound is known.
    pub unknown: usize,
    /// We have no value.
    pub missing: usize,
}

/// The same of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowCount {
    /// Rows with printed values that were made.
    pub rows: usize,
    /// Within 15 percent.
    pub rows_near: usize,
    /// Within a factor of 2.
    pub rows_factor: usize,
    /// Beyond it.
    pub rows_far: usize,
    /// Only a bound is known.
    pub rows_unknown: usize,
}

/// A value of ours, beside what was printed if anything was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ItemValue {
    /// What was printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<f64>,
    /// More than this was printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed_more_than: Option<f64>,
    /// Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// Ours was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_more_than: Option<f64>,
    /// How near that is, if anything was printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closeness: Option<&'static str>,
}

impl HypothesisScore {
    /// Of a rival's runs: all that were planned, and the rows of those that were made.
    pub fn new(
        rival: &Rival,
        planned: &[Planned],
        rows: &[StudyRow],
        distinguish: &[String],
    ) -> HypothesisScore {
        let Score { mut printed, near, factor, far, unknown, mut missing, .. } =
            Score::of_rows(rows);
        let unmade = |run: &&Planned| {
            let own = format!("{}/", run.id);
            !rows.iter().any(|row| row.item.starts_with(&own))
        };
        for run in planned.iter().filter(unmade) {
            let more = score::printed_of(run);
            printed += more;
            missing += more;
        }
        let mut count = RowCount::default();
        let mut items = BTreeMap::new();
        let mut factors = Vec::new();
        for row in rows.iter().filter(|row| score::is_printed(row)) {
            count.rows += 1;
            let comparison = Comparison::from_row(row);
            let closeness = comparison
                .map(Comparison::closeness)
                .or_else(|| score::of_row(row).into_iter().flatten().max());
            match closeness {
                Some(Closeness::Near) => count.rows_near += 1,
                Some(Closeness::Factor) => count.rows_factor += 1,
                Some(Closeness::Far) => count.rows_far += 1,
                Some(Closeness::Unknown) | None => count.rows_unknown += 1,
            }
            factors.extend(comparison.and_then(off_by));
            let (key, mut value) = value(row);
            value.closeness = closeness.map(Closeness::class);
            items.insert(key, value);
        }
        let distinguishing = rows.iter().filter(|row| distinguish.contains(&row.item));
        let logarithms: f64 = factors.iter().map(|factor| factor.ln()).sum();
        HypothesisScore {
            name: rival.name.clone(),
            what: rival.what.clone(),
            by: rival.by,
            against: rival.against.clone(),
            with: rival.with.clone(),
            values: ValueCount { printed, near, factor, far, unknown, missing },
            rows: count,
            off_by: (!factors.is_empty())
                .then(|| rounded((logarithms / factors.len() as f64).exp())),
            items,
            predicts: distinguishing.map(value).collect(),
        }
    }
}

/// The factor between ours and what was printed, as far as it is known.
fn off_by(comparison: Comparison) -> Option<f64> {
    let factor = match comparison {
        Comparison::Exactly(ratio) | Comparison::Outside(ratio) => ratio.max(ratio.recip()),
        Comparison::Within => 1.0,
        Comparison::MoreThan(ratio) if ratio > 1.0 => ratio,
        Comparison::LessThan(ratio) if ratio < 1.0 => ratio.recip(),
        _ => return None,
    };
    (factor.is_finite() && factor >= 1.0).then_some(factor)
}

/// Four digits that count.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A row's seconds; where it has none, its rate, or what else was printed of it.
fn value(row: &StudyRow) -> (String, ItemValue) {
    let is_timed = row.seconds.is_some() || row.seconds_more_than.is_some();
    let measure = if is_timed {
        Measure::Seconds
    } else if row.kbit_s.is_some() {
        Measure::KbitS
    } else {
        score::measures(&row.paper).into_iter().next().unwrap_or(Measure::Seconds)
    };
    let of = |suffix: &str| row.paper.get(&format!("{}{suffix}", measure.name())).copied();
    let value = ItemValue {
        printed: of(""),
        printed_more_than: of("_more_than"),
        ours: row.value(measure).map(rounded),
        ours_more_than: row.seconds_more_than.filter(|_| is_timed).map(rounded),
        closeness: None,
    };
    (format!("{}.{}", row.item, measure.name()), value)
}

impl Hypotheses {
    /// All of a study.
    pub fn new(
        study: &study::Study,
        machine: &Machine,
        inputs: BTreeMap<String, String>,
        hypotheses: Vec<HypothesisScore>,
    ) -> Hypotheses {
        Hypotheses {
            study: study.title.clone(),
            command: crate::summary::anybodys(&machine.command),
            inputs,
            distinguish: study.distinguish.items.clone(),
            hypotheses,
        }
    }

    /// The best first: by rows that are near, then by printed values, then by the mean factor.
    fn ranked(&self) -> Vec<&HypothesisScore> {
        let mut ranked: Vec<&HypothesisScore> = self.hypotheses.iter().collect();
        ranked.sort_by(|one, other| {
            let off = |of: &HypothesisScore| of.off_by.unwrap_or(f64::INFINITY);
            let order = |of: &HypothesisScore| (of.rows.rows_near, of.values.near);
            order(other).cmp(&order(one)).then(off(one).total_cmp(&off(other)))
        });
        ranked
    }

    /// One object, a line for each rival.
    ///
    /// # Errors
    /// A parameter is something that JSON has not.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let rivals: Result<Vec<String>, _> =
            self.hypotheses.iter().map(serde_json::to_string).collect();
        Ok(format!(
            "{{\"study\":{},\n\"command\":{},\n\"inputs\":{},\n\"distinguish\":{},\n\"hypotheses\":[\n{}\n]}}\n",
            serde_json::to_string(&self.study)?,
            serde_json::to_string(&self.command)?,
            serde_json::to_string(&self.inputs)?,
            serde_json::to_string(&self.distinguish)?,
            rivals?.join(",\n")
        ))
    }

    /// Writes `hypotheses.json`, `hypotheses.md` and `report.html` into a directory, and makes the
    /// directory if it is missing.
    ///
    /// # Errors
    /// [`crate::WriteError`].
    pub fn write(
        &self,
        directory: &Path,
        report: &StudyReport<'_>,
    ) -> Result<(), crate::WriteError> {
        fs::create_dir_all(directory).map_err(crate::write::at(directory))?;
        let put =
            |name: &str, text: &str| crate::write::put(&directory.join(name), text.as_bytes());
        put("hypotheses.json", &self.json()?)?;
        put("hypotheses.md", &self.markdown())?;
        put("report.html", &crate::html::rivals(report, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(item: &str, printed: f64, ours: f64) -> StudyRow {
        StudyRow {
            item: item.to_owned(),
            paper: BTreeMap::from([("seconds".to_owned(), printed)]),
            paper_seconds: Some(printed),
            seconds: Some(ours),
            ..StudyRow::default()
        }
    }

    fn rival(name: &str, against: &str) -> Rival {
        Rival {
            name: name.to_owned(),
            what: format!("{name} | in words"),
            by: Proposer::Paper,
            against: against.to_owned(),
            with: BTreeMap::from([("window".to_owned(), Value::Integer(2))]),
        }
    }

    #[test]
    fn rivals_are_scored_over_all_rows_and_the_best_stands_first() {
        let distinguishing = ["e/b/m".to_owned()];
        let poor = [row("e/a/m", 10.0, 25.0), row("e/b/m", 20.0, 30.0)];
        let good = [row("e/a/m", 10.0, 11.0), row("e/b/m", 20.0, 20.0)];
        let scores = vec![
            HypothesisScore::new(&rival("poor", "it is"), &[], &poor, &distinguishing),
            HypothesisScore::new(&rival("good", ""), &[], &good, &distinguishing),
        ];
        let study: study::Study = toml::from_str(
            "title = 'x'\nnetwork.topology = 'pair'\nexperiment = []\ndistinguish.items = ['e/b/m']",
        )
        .unwrap();
        let all = Hypotheses::new(&study, &Machine::default(), BTreeMap::new(), scores);
        let [poor, good] = all.hypotheses.as_slice() else { panic!("two") };
        let count = RowCount { rows: 2, rows_factor: 1, rows_far: 1, ..RowCount::default() };
        assert_eq!(poor.rows, count);
        assert_eq!((poor.values.near, good.values.near, good.values.printed), (0, 2, 2));
        let off_by = poor.off_by.unwrap();
        assert!((off_by - 1.936).abs() < 1e-9, "{off_by}");
        assert_eq!(good.predicts["e/b/m.seconds"].ours, Some(20.0));
        for text in [all.text(), all.markdown()] {
            assert!(text.find("good").unwrap() < text.find("poor").unwrap(), "{text}");
            assert!(text.contains("30.00") && text.contains("printed 20"), "{text}");
            assert!(text.contains("it is"), "{text}");
        }
        assert!(all.markdown().contains("good \\| in words"), "{}", all.markdown());
        let json: serde_json::Value = serde_json::from_str(&all.json().unwrap()).unwrap();
        assert_eq!(json["hypotheses"][1]["rows_near"], 2);
        assert_eq!(json["hypotheses"][0]["items"]["e/a/m.seconds"]["closeness"], "far");
    }
}
