//! Rival explanations of what was printed: the same runs under other settings.

use crate::StudyError;
use crate::file::{Experiment, Study, StudyRun};
use crate::plan::{Library, Planned};
use crate::row::whole;
use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// Most rivals of a study.
const MAX_RIVALS: usize = 100;

/// An explanation of what was printed, as settings that every run with printed values then has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a hypothesis")]
pub struct Hypothesis {
    /// Its name, unlike any other.
    pub name: Name,
    /// In words.
    pub what: String,
    /// Who proposed it.
    #[serde(default)]
    pub by: Proposer,
    /// What speaks against it, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// The earlier hypothesis whose values it has where it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Name>,
    /// Values of parameters, in place of the headline's, of those of experiments and of runs.
    #[serde(default)]
    pub with: BTreeMap<Name, Value>,
    /// Parameters that take each of these values: a rival for each combination.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<Name, Vec<Value>>,
}

/// Who proposed a hypothesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proposer {
    /// Whoever wrote the study.
    #[default]
    Ours,
    /// The authors of the publication.
    Paper,
}

/// Rows by which rivals can be distinguished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of rows that distinguish hypotheses")]
pub struct Distinguish {
    /// `experiment/run/item`, with printed values or without.
    pub items: Vec<String>,
}

/// One combination of a hypothesis' values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rival {
    /// That of its hypothesis, and the values that are varied: `rts[window=2]`.
    pub name: String,
    /// In words.
    pub what: String,
    /// Who proposed it.
    pub by: Proposer,
    /// What speaks against it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// All its values, those of its base included.
    pub with: BTreeMap<Name, Value>,
}

impl Rival {
    /// Whether a name means it: its own, or that of its hypothesis.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.name.split('[').next() == Some(name)
    }
}

impl Study {
    /// The rivals, in the order of the file.
    ///
    /// # Errors
    /// Two of one name; an unknown parameter or base; too many.
    pub fn rivals(&self) -> Result<Vec<Rival>, StudyError> {
        let mut rivals: Vec<Rival> = Vec::new();
        for (number, hypothesis) in self.hypotheses.iter().enumerate() {
            let wrong =
                |key: &str, what: &str| StudyError::at(format!("hypothesis[{number}].{key}"), what);
            if !crate::plan::is_name(&hypothesis.name) {
                return Err(wrong("name", crate::plan::NO_NAME));
            }
            if rivals.iter().any(|rival| rival.is_named(&hypothesis.name)) {
                return Err(wrong("name", "another hypothesis has this name"));
            }
            let named = |key, names: Vec<&Name>| match names
                .into_iter()
                .find(|name| !self.parameters.contains_key(*name))
            {
                Some(name) => Err(wrong(key, &format!("there is no parameter {name}"))),
                None => Ok(()),
            };
            named("with", hypothesis.with.keys().collect())?;
            named("vary", hypothesis.vary.keys().collect())?;
            let base = match &hypothesis.base {
                None => BTreeMap::new(),
                Some(base) => match rivals.iter().find(|rival| rival.name == *base) {
                    Some(rival) => rival.with.clone(),
                    None => {
                        let what = format!("no hypothesis before it is {base}");
                        return Err(wrong("base", &what));
                    }
                },
            };
            let count = crate::plan::combinations(&hypothesis.vary);
            if count.is_none_or(|count| count > MAX_RIVALS - rivals.len().min(MAX_RIVALS)) {
                return Err(wrong("vary", &format!("more than {MAX_RIVALS} rivals in all")));
            }
            for (suffix, varied) in crate::plan::variants(&hypothesis.vary) {
                let mut with = base.clone();
                with.extend(hypothesis.with.clone());
                with.extend(varied);
                rivals.push(Rival {
                    name: format!("{}{suffix}", hypothesis.name),
                    what: hypothesis.what.clone(),
                    by: hypothesis.by,
                    against: hypothesis.against.clone(),
                    with,
                });
            }
        }
        Ok(rivals)
    }

    /// The study without its rivals, and without the parameters and experiments that only they have: what
    /// decides all other results.
    #[must_use]
    pub fn without_rivals(&self) -> Study {
        let mut study = self.clone();
        let set = |name: &Name| {
            self.hypotheses
                .iter()
                .any(|of| of.with.contains_key(name) || of.vary.contains_key(name))
        };
        let headline = self.headline.iter().flat_map(|headline| headline.with.keys());
        let given = self.experiments.iter().flat_map(|experiment| {
            let runs = experiment.runs.iter();
            let of_runs =
                runs.flat_map(|run| run.with.keys().chain(run.vary.keys()).chain(run.fit.keys()));
            experiment.with.keys().chain(of_runs)
        });
        let given: BTreeSet<&Name> = headline.chain(given).collect();
        study
            .parameters
            .retain(|name, of| of.value.is_some() || given.contains(name) || !set(name));
        let distinguishes = |of: &Experiment| {
            let own = format!("{}/", of.name);
            self.distinguish.items.iter().any(|item| item.starts_with(&own))
        };
        study.experiments.retain(|of| {
            !of.optional || of.runs.iter().any(StudyRun::is_printed) || !distinguishes(of)
        });
        study.hypotheses.clear();
        study.distinguish.items.clear();
        study
    }

    /// The study as a rival has it: only what decides between rivals, and everything with its values.
    fn under(&self, rival: &Rival) -> Study {
        let mut study = self.clone();
        let wanted = self.deciding();
        study.experiments.retain(|experiment| wanted.contains(&experiment.name));
        for experiment in &mut study.experiments {
            experiment.expect.clear();
            experiment.with.retain(|name, _| !rival.with.contains_key(name));
            for run in &mut experiment.runs {
                run.with.retain(|name, _| !rival.with.contains_key(name));
                run.fit.clear();
                run.fit_why.clear();
            }
        }
        for (name, value) in &rival.with {
            if let Some(parameter) = study.parameters.get_mut(name) {
                parameter.value = Some(value.clone());
            }
        }
        study.headline = None;
        study.hypotheses.clear();
        study.figures.clear();
        study.over_time.clear();
        study
    }

    /// Experiments with printed values, or with rows that distinguish rivals, or with the bases of these.
    fn deciding(&self) -> BTreeSet<Name> {
        let distinguishing = self.distinguish.items.iter();
        let mut wanted: BTreeSet<Name> =
            distinguishing.filter_map(|item| Some(item.split('/').next()?.to_owned())).collect();
        let all = || self.experiments.iter();
        let is_printed =
            |of: &&Experiment| !of.printed.is_empty() || of.runs.iter().any(StudyRun::is_printed);
        wanted.extend(all().filter(is_printed).map(|of| of.name.clone()));
        loop {
            let known = wanted.len();
            let bases: Vec<Name> = all()
                .filter(|of| wanted.contains(&of.name))
                .flat_map(bases)
                .filter_map(|base| Some(base.split('/').next()?.to_owned()))
                .collect();
            wanted.extend(bases);
            if wanted.len() == known {
                return wanted;
            }
        }
    }
}

/// The bases of its messages and loads, `experiment/run/item`.
fn bases(experiment: &Experiment) -> Vec<String> {
    let of_run = experiment.runs.iter().flat_map(|run| {
        let messages = run.messages.iter().map(|message| &message.base);
        messages.chain(run.loads.iter().map(|load| &load.base))
    });
    of_run.flatten().map(|base| whole(&experiment.name, base)).collect()
}

/// The runs by which a rival is judged: those with printed values, those whose rows distinguish it from
/// others, and the bases of these.
///
/// # Errors
/// As of [`crate::plan()`]; or a value of the rival has no place in any of these runs.
pub fn plan_rival(
    study: &Study,
    rival: &Rival,
    library: &dyn Library,
) -> Result<Vec<Planned>, StudyError> {
    let study = study.under(rival);
    let planned = crate::plan::plan_with(&study, library, &rival.with)?;
    let items = |planned: &Planned| -> Vec<String> {
        let messages = planned.messages.iter().map(|message| &message.name);
        let names = messages.chain(planned.loads.iter().map(|load| &load.name));
        names.map(|name| format!("{}/{name}", planned.id)).collect()
    };
    let mut wanted: BTreeSet<String> = study.distinguish.items.iter().cloned().collect();
    for run in &planned {
        let bases = run.messages.iter().map(|of| (&of.name, &of.paper, &of.base));
        let bases = bases.chain(run.loads.iter().map(|of| (&of.name, &of.paper, &of.base)));
        for (name, paper, base) in bases {
            let distinguishes = study.distinguish.items.contains(&format!("{}/{name}", run.id));
            if let Some(base) = base.as_ref().filter(|_| distinguishes || !paper.is_empty()) {
                wanted.insert(whole(run.experiment_name(), base));
            }
        }
    }
    for experiment in &study.experiments {
        for relation in &experiment.printed {
            wanted.extend(crate::printed::items(&experiment.name, relation));
        }
    }
    let decides = |run: &Planned| {
        let printed = run.messages.iter().any(|message| !message.paper.is_empty())
            || run.loads.iter().any(|load| !load.paper.is_empty() || !load.paper_tos.is_empty());
        printed || items(run).iter().any(|item| wanted.contains(item))
    };
    Ok(planned.into_iter().filter(decides).collect())
}

/// Rows that distinguish rivals are rows of the study.
pub(crate) fn check(study: &Study, items: &BTreeSet<String>) -> Result<(), StudyError> {
    study.rivals()?;
    match study.distinguish.items.iter().find(|item| !items.contains(*item)) {
        Some(item) => Err(StudyError::at("distinguish.items", format!("{item:?}: there is none"))),
        None => Ok(()),
    }
}
