//! Whether the measured values meet the expectations of a study.

use crate::file::{Environments, Expect, Study};
use crate::measured::Environment;
use crate::row::{LESS_THAN, MORE_THAN, Measure, StudyRow, plain_item, tos, whole};
use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of an expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The experiment.
    pub experiment: Name,
    /// The expectation in words.
    pub what: String,
    /// The value, or the ratio; absent where one of its values is missing.
    pub value: Option<f64>,
    /// At least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// At most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// These TOS octets only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tos_wanted: Vec<u8>,
    /// Those that were received, if they are part of the expectation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tos_received: Vec<u8>,
    /// Whether the expectation holds; absent where that is not known.
    pub holds: Option<bool>,
}

/// The item and the value that a reference in an experiment names.
pub(crate) fn reference(experiment: &str, text: &str) -> Option<(String, Measure)> {
    let (item, measure) = text.rsplit_once('.')?;
    Some((whole(experiment, item), Measure::from_name(measure)?))
}

/// What stands for all messages of a run: of their seconds the sum can be asked for.
pub(crate) fn sum(planned: &crate::Planned) -> String {
    format!("{}{ALL}", planned.id)
}

/// Instead of an item.
const ALL: &str = "/*";

/// What is known of a value: it is between these.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    low: f64,
    high: f64,
}

impl Known {
    fn exactly(value: f64) -> Known {
        Known { low: value, high: value }
    }

    fn plus(self, other: Known) -> Known {
        Known { low: self.low + other.low, high: self.high + other.high }
    }

    /// Of two values that are not negative; none where the second may be nothing at all.
    fn ratio(self, to: Known) -> Option<Known> {
        (to.high > 0.0).then(|| Known {
            low: if to.high.is_infinite() { 0.0 } else { self.low / to.high },
            high: if to.low > 0.0 { self.high / to.low } else { f64::INFINITY },
        })
    }

    fn minus(self, other: Known) -> Known {
        Known { low: self.low - other.high, high: self.high - other.low }
    }

    /// The lower one where low is worse, else the higher one.
    fn worse(self, other: Known, is_low: bool) -> Known {
        let of = if is_low { f64::min } else { f64::max };
        Known { low: of(self.low, other.low), high: of(self.high, other.high) }
    }

    /// Whether it is within bounds; `None` where that is not known.
    fn within(self, least: f64, most: f64) -> Option<bool> {
        if self.low >= least && self.high <= most {
            Some(true)
        } else if self.high < least || self.low > most {
            Some(false)
        } else {
            None
        }
    }
}

/// Looks at every expectation of a study, but for those of one environment whose rows were made on the
/// other: they were not asked.
pub fn judge(study: &Study, rows: &[StudyRow]) -> Vec<Verdict> {
    let of = |experiment: &crate::file::Experiment| -> Vec<Verdict> {
        let asked = experiment.expect.iter().filter(|one| is_asked(&experiment.name, one, rows));
        asked.map(|expect| verdict(&experiment.name, expect, rows)).collect()
    };
    study.experiments.iter().flat_map(of).collect()
}

/// Whether just these code points arrived.
fn arrival(experiment: &str, expect: &Expect, rows: &[StudyRow]) -> Verdict {
    let mut wanted: Vec<u8> = expect.arrives.iter().map(|dscp| tos(dscp.number())).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let item = whole(experiment, &expect.value);
    let row = rows.iter().find(|row| row.item == item && is_of(row, expect.environment));
    let received = row.map(|row| row.tos_received.clone());
    Verdict {
        experiment: experiment.to_owned(),
        what: expect.what.clone(),
        value: None,
        at_least: None,
        at_most: None,
        holds: received.as_ref().map(|received| *received == wanted),
        tos_wanted: wanted,
        tos_received: received.unwrap_or_default(),
    }
}

/// The rows of all combinations that an expectation is about: those of its run with its values.
fn each<'a>(
    experiment: &str,
    expect: &Expect,
    each: &BTreeMap<Name, toml::Value>,
    rows: &'a [StudyRow],
) -> Vec<&'a StudyRow> {
    let item = reference(experiment, &expect.value).map(|(item, _)| item).unwrap_or_default();
    let is_it = |row: &&StudyRow| {
        plain_item(&row.item) == item
            && each.iter().all(|(name, value)| row.with.get(name) == Some(value))
    };
    rows.iter().filter(is_it).collect()
}

/// Checks that an expectation about each of some combinations can be met.
///
/// # Errors
/// The reason for which it cannot, as a sentence.
pub(crate) fn check_each(
    experiment: &str,
    expect: &Expect,
    each: &BTreeMap<Name, toml::Value>,
    planned: &[crate::Planned],
) -> Result<(), String> {
    if expect.to.is_some() || expect.minus.is_some() || expect.during.is_some() {
        return Err("each goes without during, to and minus".to_owned());
    }
    if expect.at_least.is_some() == expect.at_most.is_some() {
        return Err("of each, either at_least or at_most".to_owned());
    }
    if [expect.at_least, expect.at_most].into_iter().flatten().any(|bound| !bound.is_finite()) {
        return Err("a number for at_least or at_most".to_owned());
    }
    let item = reference(experiment, &expect.value);
    let (item, _) = item.ok_or_else(|| format!("{:?}: no `run/item.value`", expect.value))?;
    let mut runs = planned.iter().filter(|run| {
        let has = |name: &String| plain_item(&format!("{}/{name}", run.id)) == item;
        run.messages.iter().map(|message| &message.name).any(has)
            || run.loads.iter().map(|load| &load.name).any(has)
    });
    let is_in = |run: &crate::Planned| each.iter().all(|(n, v)| run.special.get(n) == Some(v));
    match runs.any(is_in) {
        true => Ok(()),
        false => Err(format!("{:?}: no combination has these values", expect.value)),
    }
}

/// Whether an expectation is about the environment that its row was made on, or none was made yet.
fn is_asked(experiment: &str, expect: &Expect, rows: &[StudyRow]) -> bool {
    let item = match expect.arrives.is_empty() {
        true => reference(experiment, &expect.value).map(|(item, _)| item),
        false => Some(whole(experiment, &expect.value)),
    };
    let item = item.unwrap_or_default();
    if let Some(values) = &expect.each {
        let its = each(experiment, expect, values, rows);
        return its.is_empty() || its.iter().any(|row| is_of(row, expect.environment));
    }
    let is_its = |row: &StudyRow| match item.strip_suffix(ALL) {
        Some(run) => row.item.strip_prefix(run).is_some_and(|rest| rest.starts_with('/')),
        None => row.item == item,
    };
    let mut its = rows.iter().filter(|row| is_its(row)).peekable();
    its.peek().is_none() || its.any(|row| is_of(row, expect.environment))
}

fn verdict(experiment: &str, expect: &Expect, rows: &[StudyRow]) -> Verdict {
    if !expect.arrives.is_empty() {
        return arrival(experiment, expect, rows);
    }
    if let Some(values) = &expect.each {
        let measure = reference(experiment, &expect.value).map(|(_, measure)| measure);
        let its = each(experiment, expect, values, rows);
        let all = its.iter().filter(|row| is_of(row, expect.environment));
        let all = all.map(|row| known(row, measure?, None, expect.environment));
        // All that matters is the worst.
        let worst = all.reduce(|one, other| Some(one?.worse(other?, expect.at_least.is_some())));
        return of_known(experiment, expect, worst.flatten());
    }
    let value = read(experiment, &expect.value, expect.during.as_deref(), rows, expect.environment);
    let read = |text: &String| read(experiment, text, None, rows, expect.environment);
    let known = match (&expect.to, &expect.minus) {
        (None, None) => value,
        (Some(to), _) => value.zip(read(to)).and_then(|(value, to)| value.ratio(to)),
        (None, Some(minus)) => value.zip(read(minus)).map(|(value, minus)| value.minus(minus)),
    };
    of_known(experiment, expect, known)
}

fn of_known(experiment: &str, expect: &Expect, known: Option<Known>) -> Verdict {
    let (least, most) = (expect.at_least, expect.at_most);
    Verdict {
        experiment: experiment.to_owned(),
        what: expect.what.clone(),
        value: known.map(|known| if known.high.is_finite() { known.high } else { known.low }),
        at_least: least,
        at_most: most,
        tos_wanted: Vec::new(),
        tos_received: Vec::new(),
        holds: known.and_then(|known| {
            known.within(least.unwrap_or(f64::NEG_INFINITY), most.unwrap_or(f64::INFINITY))
        }),
    }
}

/// Whether a row was made where an expectation is about.
fn is_of(row: &StudyRow, environments: Environments) -> bool {
    !matches!(
        (environments, row.environment),
        (Environments::Testbed, Environment::Simulation)
            | (Environments::Simulation, Environment::Testbed)
    )
}

fn read(
    experiment: &str,
    text: &str,
    during: Option<&str>,
    rows: &[StudyRow],
    environments: Environments,
) -> Option<Known> {
    let (item, measure) = reference(experiment, text)?;
    if let Some(run) = item.strip_suffix(ALL) {
        let is_in = |row: &&StudyRow| {
            let name = row.item.strip_prefix(run).and_then(|rest| rest.strip_prefix('/'));
            row.precedence.is_some() && name.is_some_and(|name| !name.contains('/'))
        };
        let all = rows.iter().filter(is_in).map(|row| known(row, measure, None, environments));
        return all.reduce(|sum, one| Some(sum?.plus(one?)))?;
    }
    known(rows.iter().find(|row| row.item == item)?, measure, during, environments)
}

fn known(
    row: &StudyRow,
    measure: Measure,
    during: Option<&str>,
    environments: Environments,
) -> Option<Known> {
    if !is_of(row, environments) {
        return None;
    }
    if let Some(during) = during {
        return row.more.get(&crate::during::name(during)).copied().map(Known::exactly);
    }
    // A run that was given up takes longer; the time is not known.
    match (row.value(measure), measure) {
        (Some(value), _) => Some(Known::exactly(value)),
        (None, Measure::Seconds) => {
            Some(Known { low: row.seconds_more_than?, high: f64::INFINITY })
        }
        (None, Measure::KbitS) => Some(Known { low: 0.0, high: row.kbit_s_less_than? }),
        (None, Measure::BasePercent | Measure::BoundPercent) => {
            let bound =
                |suffix: &str| row.more.get(&format!("{}{suffix}", measure.name())).copied();
            let (low, high) = (bound(MORE_THAN), bound(LESS_THAN));
            (low.is_some() || high.is_some())
                .then(|| Known { low: low.unwrap_or(0.0), high: high.unwrap_or(f64::INFINITY) })
        }
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(item: &str, seconds: Option<f64>, more_than: Option<f64>) -> StudyRow {
        let kbit_s = seconds.map(|seconds| 8_000.0 / seconds);
        let kbit_s_less_than = more_than.map(|seconds| 8_000.0 / seconds);
        let item = item.to_owned();
        StudyRow {
            item,
            seconds,
            seconds_more_than: more_than,
            kbit_s,
            kbit_s_less_than,
            ..StudyRow::default()
        }
    }

    fn expect(value: &str, to: Option<&str>, least: Option<f64>, most: Option<f64>) -> Expect {
        Expect {
            what: String::new(),
            value: value.to_owned(),
            during: None,
            each: None,
            to: to.map(str::to_owned),
            minus: None,
            at_least: least,
            at_most: most,
            arrives: Vec::new(),
            environment: Environments::Any,
        }
    }

    #[test]
    fn just_the_code_points_that_are_named_may_arrive() {
        let arrived = StudyRow { tos_received: vec![0x28, 0x30], ..row("e/a/x", None, None) };
        let holds = |arrives: &[dscp::Dscp]| {
            let expect = Expect { arrives: arrives.to_vec(), ..expect("a/x", None, None, None) };
            verdict("e", &expect, std::slice::from_ref(&arrived)).holds
        };
        let [af11, af12, af13] = [10, 12, 14].map(|number| dscp::Dscp::new(number).unwrap());
        assert_eq!(holds(&[af12, af11, af12]), Some(true));
        assert_eq!(holds(&[af11]), Some(false));
        assert_eq!(holds(&[af11, af12, af13]), Some(false));
        let expect = Expect { arrives: vec![af11], ..expect("b/x", None, None, None) };
        assert_eq!(verdict("e", &expect, &[arrived]).holds, None);
    }

    #[test]
    fn a_value_or_a_ratio_is_held_to_its_bounds() {
        let rows = [row("e/a/x", Some(10.0), None), row("e/b/x", Some(20.0), None)];
        let holds =
            |value, to, least, most| verdict("e", &expect(value, to, least, most), &rows).holds;
        assert_eq!(holds("a/x.seconds", None, Some(9.0), Some(11.0)), Some(true));
        assert_eq!(holds("a/x.seconds", None, Some(11.0), None), Some(false));
        assert_eq!(holds("a/x.kbit_s", Some("e/b/x.kbit_s"), Some(1.9), Some(2.1)), Some(true));
        assert_eq!(holds("a/x.seconds", Some("b/x.seconds"), None, Some(0.4)), Some(false));
        assert_eq!(holds("c/x.seconds", None, Some(1.0), None), None);
        let grown = |most| Expect {
            minus: Some("a/x.seconds".to_owned()),
            ..expect("b/x.seconds", None, Some(9.0), Some(most))
        };
        assert_eq!(verdict("e", &grown(10.0), &rows).holds, Some(true));
        assert_eq!(verdict("e", &grown(9.9), &rows).holds, Some(false));
        assert_eq!(holds("a/x.loss_percent", None, Some(1.0), None), None);
    }

    #[test]
    fn of_what_was_given_up_only_one_bound_is_known() {
        let rows = [row("e/a/x", None, Some(100.0)), row("e/b/x", Some(20.0), None)];
        let holds =
            |value, to, least, most| verdict("e", &expect(value, to, least, most), &rows).holds;
        assert_eq!(holds("a/x.seconds", None, Some(90.0), None), Some(true));
        assert_eq!(holds("a/x.seconds", None, Some(110.0), None), None);
        assert_eq!(holds("a/x.seconds", None, None, Some(90.0)), Some(false));
        assert_eq!(holds("a/x.kbit_s", None, None, Some(80.0)), Some(true));
        assert_eq!(holds("a/x.seconds", Some("b/x.seconds"), Some(5.0), None), Some(true));
        assert_eq!(holds("b/x.seconds", Some("a/x.seconds"), None, Some(0.2)), Some(true));
        assert_eq!(holds("b/x.seconds", Some("a/x.seconds"), Some(0.1), None), None);
        let grown = |value: &str, minus: &str| {
            let expect = expect(value, None, Some(80.0), None);
            verdict("e", &Expect { minus: Some(minus.to_owned()), ..expect }, &rows).holds
        };
        assert_eq!(grown("a/x.seconds", "b/x.seconds"), Some(true));
        assert_eq!(grown("b/x.seconds", "a/x.seconds"), Some(false));
    }

    #[test]
    fn all_messages_of_a_run_have_a_sum() {
        let message = |item: &str, seconds: Option<f64>, more_than: Option<f64>| StudyRow {
            precedence: Some("flash".to_owned()),
            ..row(item, seconds, more_than)
        };
        let rows = [
            message("e/a/x", Some(10.0), None),
            message("e/a/y", Some(5.0), None),
            // A load, another run, and one whose name begins alike.
            row("e/a/load", Some(100.0), None),
            message("e/ab/x", Some(100.0), None),
            message("e/b/x", Some(20.0), None),
            message("e/b/y", None, Some(40.0)),
        ];
        let of = |value, to, least| verdict("e", &expect(value, to, Some(least), None), &rows);
        assert_eq!(of("a/*.seconds", None, 14.0).value, Some(15.0));
        assert_eq!(of("b/*.seconds", None, 59.0).holds, Some(true));
        assert_eq!(of("b/*.seconds", None, 61.0).holds, None);
        assert_eq!(of("b/*.seconds", Some("a/*.seconds"), 4.0).holds, Some(true));
        assert_eq!(of("c/*.seconds", None, 1.0).value, None);
    }

    #[test]
    fn of_a_percentage_a_bound_may_be_known() {
        let mut rows = [row("e/a/x", Some(1.0), None), row("e/b/x", None, Some(1.0))];
        rows[0].more.insert("base_percent_more_than".to_owned(), 40.0);
        rows[1].more.insert("base_percent_less_than".to_owned(), 5.0);
        let holds =
            |value, least, most| verdict("e", &expect(value, None, least, most), &rows).holds;
        assert_eq!(holds("a/x.base_percent", Some(30.0), None), Some(true));
        assert_eq!(holds("a/x.base_percent", Some(50.0), None), None);
        assert_eq!(holds("b/x.base_percent", Some(30.0), None), Some(false));
    }

    #[test]
    fn an_expectation_may_be_for_one_environment() {
        let rows = [row("e/a/x", Some(10.0), None)];
        let mut of = expect("a/x.seconds", None, Some(1.0), None);
        of.environment = Environments::Simulation;
        assert_eq!(verdict("e", &of, &rows).holds, None);
        assert!(!is_asked("e", &of, &rows) && is_asked("e", &of, &[]));
        of.environment = Environments::Testbed;
        assert_eq!(verdict("e", &of, &rows).holds, Some(true));
        assert!(is_asked("e", &of, &rows));
        of.value = "a/*.seconds".to_owned();
        assert!(is_asked("e", &of, &rows));
        of.environment = Environments::Simulation;
        assert!(!is_asked("e", &of, &rows));
    }
}
