//! A study's results without their series: small enough to be kept with the study, and all that a page
//! of the documentation is made of.

use crate::outside::ScoreDetail;
use crate::{StudyReport, markdown};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use study::file::Headline;
use study::{StudyRow, Verdict};

/// The results of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The study's name.
    pub study: String,
    /// The command that made them, without where they were kept.
    pub command: String,
    /// When they were made; empty of what the same command makes again to the digit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// What they were made on; empty likewise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Digests of what they are made from: of the rows with printed values by the name of the study's file, of
    /// the other runs of an experiment by `FILE: EXPERIMENT`.
    pub inputs: BTreeMap<String, String>,
    /// The one setting of all rows with printed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// The score, and what is outside.
    pub score: ScoreDetail,
    /// The results of the expectations.
    pub verdicts: Vec<Verdict>,
    /// All rows.
    pub rows: Vec<StudyRow>,
}

impl Summary {
    /// Of a report. What was made in simulation alone has neither date nor machine.
    pub fn from_report(
        report: &StudyReport<'_>,
        study: &str,
        inputs: BTreeMap<String, String>,
    ) -> Summary {
        let testbed = study::measured::Environment::Testbed;
        let is_made = report.measured.iter().any(|run| run.environment == testbed);
        let machine = report.machine;
        let on =
            format!("Linux {}, {} processors, {}", machine.kernel, machine.cpus, machine.memory);
        Summary {
            study: study.to_owned(),
            command: anybodys(&machine.command),
            date: if is_made { machine.date.clone() } else { String::new() },
            machine: if is_made { on } else { String::new() },
            inputs,
            headline: report.study.headline.clone(),
            score: ScoreDetail::from_report(report),
            verdicts: report.verdicts.to_vec(),
            rows: report.rows.to_vec(),
        }
    }

    /// Reads what [`Summary::json`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(text: &str) -> Result<Summary, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// One line for each row and each expectation.
    ///
    /// # Errors
    /// A parameter is something that JSON has not.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let lines = |all: Vec<serde_json::Value>| {
            let lines: Vec<String> = all.iter().map(|one| format!("\n  {one}")).collect();
            format!("[{}\n ]", lines.join(","))
        };
        let serde_json::Value::Object(all) = serde_json::to_value(self)? else {
            return serde_json::to_string(self);
        };
        let keys = all.into_iter().map(|(key, value)| match value {
            serde_json::Value::Array(all) => format!(" {key:?}: {}", lines(all)),
            value => format!(" {key:?}: {value}"),
        });
        Ok(format!("{{\n{}\n}}\n", keys.collect::<Vec<_>>().join(",\n")))
    }

    /// The score, what is outside, and every printed value beside ours, as Markdown. `now`: the digests
    /// of the files as they are.
    pub fn markdown(&self, now: &BTreeMap<String, String>) -> String {
        markdown::page(self, Some(now))
    }

    /// The inputs that are others now than when this was made.
    pub fn changed<'a>(&'a self, now: &'a BTreeMap<String, String>) -> Vec<&'a str> {
        let names =
            self.inputs.keys().chain(now.keys().filter(|key| !self.inputs.contains_key(*key)));
        names.filter(|key| self.inputs.get(*key) != now.get(*key)).map(String::as_str).collect()
    }
}

/// A command without where results were kept, and without what only speeds it up.
pub(crate) fn anybodys(command: &str) -> String {
    let mut words = Vec::new();
    let mut rest = command.split(' ');
    while let Some(word) = rest.next() {
        match word {
            "--out" | "--summary" | "--json" | "--parallel" => _ = rest.next(),
            "--again" | "--quiet" => {}
            word => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let row = StudyRow {
            item: "a/b/c".to_owned(),
            seconds: Some(0.1),
            more: BTreeMap::from([("loss_percent".to_owned(), 7.5)]),
            paper: BTreeMap::from([("seconds".to_owned(), 3.0)]),
            with: BTreeMap::from([("window".to_owned(), 3.into())]),
            fit: Some(study::Fit::default()),
            ..StudyRow::default()
        };
        let summary = Summary {
            study: "made-up".to_owned(),
            inputs: BTreeMap::from([("a.toml".to_owned(), "12".to_owned())]),
            rows: vec![row, StudyRow::default()],
            ..Summary::default()
        };
        let text = summary.json().unwrap();
        assert_eq!(Summary::read(&text).unwrap(), summary);
        assert_eq!(text.lines().filter(|line| line.contains("\"item\"")).count(), 2, "{text}");
        let now = |digest: &str| BTreeMap::from([("a.toml".to_owned(), digest.to_owned())]);
        assert!(summary.changed(&now("12")).is_empty());
        assert_eq!(summary.changed(&now("13")), ["a.toml"]);
        let other = BTreeMap::from([("b.toml".to_owned(), "1".to_owned())]);
        assert_eq!(summary.changed(&other), ["a.toml", "b.toml"]);
    }

    #[test]
    fn the_command_is_one_that_anybody_can_give() {
        let command =
            "lab run x --simulation --again --quiet --out /somewhere/x --parallel 2 --fits";
        assert_eq!(anybodys(command), "lab run x --simulation --fits");
    }
}
