//! The floors of a headline: as many printed values are near as before.

use crate::{Score, StudyReport};
use study::Verdict;
use study::measured::Environment;

/// The experiment that stands with the floors of a headline.
const HEADLINE: &str = "headline";

/// Whether as many printed values are near as the study's headline states: no fewer, and where there are
/// more, the file has to state them, so that the number only grows. They were counted in simulation: of
/// runs on the testbed there is no such expectation. Where some value is missing, it is not known.
pub fn floors(report: &StudyReport<'_>) -> Vec<Verdict> {
    let score = Score::from_report(report);
    let mut printed = report.rows.iter().filter(|row| !row.paper.is_empty());
    let simulated = printed.all(|row| row.environment == Environment::Simulation);
    let headline = report.study.headline.as_ref().filter(|_| simulated && score.printed > 0);
    let Some(headline) = headline else { return Vec::new() };
    let floors = [
        ("within 15 percent", score.near, headline.within_15_percent),
        ("within a factor of 2", score.near + score.factor, headline.within_factor_2),
    ];
    let verdict = |(what, found, stated): (&str, usize, Option<usize>)| {
        let stated = stated?;
        Some(Verdict {
            experiment: HEADLINE.to_owned(),
            what: format!("printed values {what}, with one setting: as many as the file states"),
            value: Some(found as f64),
            at_least: Some(stated as f64),
            at_most: Some(stated as f64),
            tos_wanted: Vec::new(),
            tos_received: Vec::new(),
            holds: (score.missing == 0).then_some(found == stated),
        })
    };
    floors.into_iter().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::file::Headline;
    use study::{Study, StudyRow};

    fn row(seconds: Option<f64>, environment: Environment) -> StudyRow {
        StudyRow {
            paper: [("seconds".to_owned(), 10.0)].into(),
            paper_seconds: Some(10.0),
            seconds,
            environment,
            ..StudyRow::default()
        }
    }

    /// Whether the floors of one near value, and of two within a factor of 2, hold for these rows.
    fn held(rows: &[StudyRow]) -> Vec<Option<bool>> {
        let headline = Headline {
            within_15_percent: Some(1),
            within_factor_2: Some(2),
            ..Headline::default()
        };
        let mut study: Study = toml::from_str(include_str!("../tests/made-up.toml")).unwrap();
        study.headline = Some(headline);
        let report = StudyReport {
            study: &study,
            planned: &[],
            measured: &[],
            rows,
            verdicts: &[],
            machine: &crate::Machine::default(),
        };
        floors(&report).iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn fewer_near_values_than_before_do_not_hold() {
        let of = |seconds: [f64; 2]| {
            held(&seconds.map(|seconds| row(Some(seconds), Environment::Simulation)))
        };
        assert_eq!(of([10.0, 10.0]), [Some(false), Some(true)], "the file has to state more");
        assert_eq!(of([10.0, 16.0]), [Some(true), Some(true)]);
        assert_eq!(of([16.0, 16.0]), [Some(false), Some(true)]);
        assert_eq!(of([10.0, 30.0]), [Some(true), Some(false)]);
    }

    #[test]
    fn floors_are_of_whole_simulated_results() {
        let known = row(Some(30.0), Environment::Simulation);
        let missing = row(None, Environment::Simulation);
        assert_eq!(held(&[known.clone(), missing]), [None, None], "one is missing");
        assert_eq!(held(&[known, row(Some(30.0), Environment::Testbed)]), []);
        assert_eq!(held(&[]), []);
    }
}
