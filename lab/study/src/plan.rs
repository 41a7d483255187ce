//! From a study's file to runs, each with all it needs.

mod check;
mod covering;
mod shared;
mod variant;

use crate::file::{
    AboveScale, Environments, Experiment, Headline, Mail, Parameter, RouterPath, Study, StudyLoad,
    StudyMessage, StudyRun,
};
use crate::{PlannedTcp, Scale, StudyError};
use network::Topology;
use router::policy::{Name, Queueing, RouterPolicy};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use toml::{Table, Value};
use toml_path::{PathError, PathStep, TomlPath};
use variant::Values;

pub(crate) use check::{NO_NAME, is_name};
pub(crate) use variant::{count as combinations, variants};

/// Where topologies and policies are found by their names.
pub trait Library {
    /// The text of a topology.
    ///
    /// # Errors
    /// Why there is none.
    fn topology(&self, name: &str) -> Result<String, String>;

    /// The text of a policy.
    ///
    /// # Errors
    /// Why there is none.
    fn policy(&self, name: &str) -> Result<String, String>;
}

/// A run with all it needs, for either environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// `experiment/run`, or `experiment/run[parameter=value]` where one is varied.
    pub id: String,
    /// The experiment's place in the study.
    pub experiment: usize,
    /// The table its rows belong to.
    pub table: Name,
    /// The part of `id` behind the experiment.
    pub run: String,
    /// The environments in which the run can be made.
    pub environments: Environments,
    /// The values of all parameters here.
    pub settings: BTreeMap<Name, Value>,
    /// Those that are others than the parameters' own and the headline's.
    pub special: BTreeMap<Name, Value>,
    /// Of a run that is made a second time to fit what is printed: the values that are chosen for that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fitted: BTreeMap<Name, Value>,
    /// The reasons for which they differ.
    pub why: Vec<String>,
    /// The network.
    pub topology: Topology,
    /// The policies that its routers name.
    pub policies: BTreeMap<Name, RouterPolicy>,
    /// The hosts' TCP, where parameters set it.
    #[serde(default, skip_serializing_if = "PlannedTcp::is_unset")]
    pub tcp: PlannedTcp,
    /// The MTAs, where messages are sent.
    pub mail: Option<Mail>,
    /// The messages, each with a name.
    pub messages: Vec<StudyMessage>,
    /// The loads that are sent beside the messages.
    pub loads: Vec<StudyLoad>,
    /// The time after which the run is given up.
    pub limit: Duration,
    /// The number of times the run is made, each with the next seed.
    pub repeat: u32,
    /// The most that its network is made faster.
    pub scale_most: Scale,
    /// What is made where a faster network is asked for.
    pub above_scale: AboveScale,
    /// The ports at which what passes is captured and analysed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysed: Option<RouterPath>,
}

impl Planned {
    /// How long paths are probed before all begins.
    pub fn probing(&self) -> Duration {
        self.loads
            .iter()
            .filter_map(|load| load.probing)
            .map(|span| span.0)
            .max()
            .unwrap_or_default()
    }

    /// The name of its experiment.
    pub fn experiment_name(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The queueing that a policy attaches to a port, named as `router.port`. The policy names the port
    /// itself or `*`, all ports. `None` if no policy attaches a queueing to it.
    pub fn queueing(&self, port: &str) -> Option<&Queueing> {
        let (router, port) = port.split_once('.')?;
        let policy = self.topology.routers.get(router)?.policy.as_ref()?;
        let policy = self.policies.get(policy)?;
        let attached = policy.interfaces.get(port).or(policy.interfaces.get("*"))?;
        policy.queueings.get(attached.queueing.as_ref()?)
    }
}

/// Makes the runs of a study, in its order.
///
/// # Errors
/// An unknown name, a path without a place, an invalid topology or policy. With the key.
pub fn plan(study: &Study, library: &dyn Library) -> Result<Vec<Planned>, StudyError> {
    let mut used = BTreeSet::new();
    let planned = planned(study, library, &mut used)?;
    // What only hypotheses give a value is checked where they are tried.
    let tried = |name: &Name| {
        study.hypotheses.iter().any(|of| of.with.contains_key(name) || of.vary.contains_key(name))
    };
    for (name, parameter) in study.parameters.iter().filter(|(name, _)| !tried(name)) {
        let unused = parameter.sets.iter().find(|path| !used.contains(path.as_str()));
        if let Some(path) = unused {
            let what = format!("{path}: there is none in any run");
            return Err(StudyError::at(format!("parameters.{name}.sets"), what));
        }
    }
    check::planned(study, &planned)?;
    Ok(planned)
}

/// The runs of a study of which these values are to be set somewhere.
pub(crate) fn plan_with(
    study: &Study,
    library: &dyn Library,
    values: &Values,
) -> Result<Vec<Planned>, StudyError> {
    let mut used = BTreeSet::new();
    let planned = planned(study, library, &mut used)?;
    let is_used = |name: &Name| {
        let sets = study.parameters.get(name).into_iter().flat_map(|parameter| &parameter.sets);
        sets.into_iter().any(|path| used.contains(path.as_str()))
    };
    match values.keys().find(|name| !is_used(name)) {
        Some(name) => {
            let what = "there is no place for it in any run with printed values";
            Err(StudyError::at(format!("parameters.{name}.sets"), what))
        }
        None => Ok(planned),
    }
}

fn planned<'a>(
    study: &'a Study,
    library: &'a dyn Library,
    used: &mut BTreeSet<&'a str>,
) -> Result<Vec<Planned>, StudyError> {
    check::study(study)?;
    shared::check(study)?;
    let mut planned: Vec<Planned> = Vec::new();
    let mut ids = BTreeSet::new();
    for (number, experiment) in study.experiments.iter().enumerate() {
        for (place, run) in experiment.runs.iter().enumerate() {
            let path = format!("experiment[{number}].run[{place}]");
            let maker = Maker { study, library, number, experiment, run, path };
            let room = check::MAX_RUNS - planned.len().min(check::MAX_RUNS);
            let count = variant::count(&run.vary);
            let varied = match run.cells {
                None if count.is_some_and(|count| count <= room) => variants(&run.vary),
                Some(most) if most <= room => maker.cells(count, most)?,
                _ => {
                    let what = format!("more than {} runs in all", check::MAX_RUNS);
                    return Err(maker.wrong("vary", &what));
                }
            };
            for (suffix, varied) in varied {
                let made = maker.make(&suffix, &varied, &Values::new(), used)?;
                if !ids.insert(made.id.clone()) {
                    return Err(maker.wrong("vary", "two runs of the same values"));
                }
                planned.push(made);
                if !run.fit.is_empty() {
                    let suffix = with_fit(&suffix);
                    let made = maker.make(&suffix, &varied, &run.fit, used)?;
                    planned.push(Planned { environments: Environments::Simulation, ..made });
                }
            }
        }
    }
    Ok(planned)
}

/// Makes runs of one entry.
struct Maker<'a> {
    study: &'a Study,
    library: &'a dyn Library,
    number: usize,
    experiment: &'a Experiment,
    run: &'a StudyRun,
    /// Of the run in the file.
    path: String,
}

impl<'a> Maker<'a> {
    fn make(
        &self,
        suffix: &str,
        varied: &Values,
        fit: &Values,
        used: &mut BTreeSet<&'a str>,
    ) -> Result<Planned, StudyError> {
        let mut special = self.special(varied)?;
        special.extend(fit.clone());
        let settings = self.settings(&special);
        let mut document = self.document()?;
        self.apply([&settings, &special], &mut document, used, |root| root != "policy")?;
        let topology: Topology = self.read(&document, "network")?;
        let policies = self.policies(&topology)?;
        document.insert("policy".to_owned(), policies);
        self.apply([&settings, &special], &mut document, used, |root| root == "policy")?;
        let name = format!("{}{suffix}", self.run.name);
        let fit_why = if fit.is_empty() { "" } else { &self.run.fit_why };
        let why = [self.experiment.why.as_str(), &self.run.why, fit_why].into_iter();
        let why = why.filter(|why| !why.is_empty()).map(str::to_owned).collect();
        let mut planned = Planned {
            id: format!("{}/{name}", self.experiment.name),
            experiment: self.number,
            table: self.experiment.table.clone().unwrap_or(self.experiment.name.clone()),
            run: name,
            environments: self.experiment.environment,
            settings,
            special,
            fitted: fit.clone(),
            why,
            topology,
            policies: self.read(&document, "policy")?,
            tcp: self.read(&document, "tcp")?,
            mail: match &self.study.mail {
                Some(_) if !self.run.messages.is_empty() => Some(self.read(&document, "mail")?),
                _ => None,
            },
            messages: self.read(&document, "messages")?,
            loads: self.read(&document, "loads")?,
            limit: self.run.limit.0,
            repeat: self.run.repeat,
            scale_most: self.run.scale_most.map_or(Scale::MAX, Scale::whole),
            above_scale: self.run.above_scale,
            analysed: self.run.analysed.clone(),
        };
        planned.tcp.apply(&mut planned.topology);
        let sent = planned.messages.iter().enumerate().filter(|(_, message)| message.sent);
        let places: Vec<usize> = sent.map(|(place, _)| place).collect();
        planned.messages.retain(|message| message.sent);
        for message in &mut planned.messages {
            if message.name.is_empty() {
                message.name = message.precedence.name().to_owned();
            }
            message.base = message.base.take().map(|base| with_values(base, &planned.settings));
        }
        check::run(&planned)
            .map_err(|wrong| self.wrong(&in_file(&wrong.path, &places), &wrong.what))?;
        Ok(planned)
    }

    /// Some of the combinations.
    fn cells(
        &self,
        count: Option<usize>,
        most: usize,
    ) -> Result<Vec<(String, Values)>, StudyError> {
        if self.run.vary.is_empty() || most == 0 {
            return Err(self.wrong("cells", "at least one, of a run that varies parameters"));
        }
        let most_of = (covering::MAX_COMBINATIONS, covering::MAX_PARAMETERS);
        if count.is_none_or(|count| count > most_of.0) || self.run.vary.len() > most_of.1 {
            let what =
                format!("chosen of at most {} combinations of {} parameters", most_of.0, most_of.1);
            return Err(self.wrong("cells", &what));
        }
        Ok(variant::cells(&self.run.vary, most))
    }

    fn wrong(&self, path: &str, what: &str) -> StudyError {
        let path = match path {
            "" => self.path.clone(),
            path => format!("{}.{path}", self.path),
        };
        StudyError::at(path, what)
    }

    /// The values that are not the parameters' own.
    fn special(&self, varied: &Values) -> Result<Values, StudyError> {
        let mut special = Values::new();
        let given = [("with", &self.experiment.with), ("with", &self.run.with), ("vary", varied)];
        for (key, values) in given {
            for (name, value) in values {
                if !self.study.parameters.contains_key(name) {
                    return Err(self.wrong(key, &format!("there is no parameter {name}")));
                }
                special.insert(name.clone(), value.clone());
            }
        }
        Ok(special)
    }

    /// The headline, where its setting is this run's.
    fn headline(&self) -> Option<&'a Headline> {
        let study: &'a Study = self.study;
        let has_it = self.experiment.headline.unwrap_or_else(|| self.run.is_printed());
        study.headline.as_ref().filter(|_| has_it)
    }

    fn settings(&self, special: &Values) -> Values {
        let headline = self.headline();
        let parameters = self.study.parameters.iter();
        let all = parameters.filter_map(|(name, parameter)| {
            let shared = headline.and_then(|headline| headline.with.get(name));
            let value = special.get(name).or(shared).or(parameter.value.as_ref())?;
            Some((name.clone(), value.clone()))
        });
        all.collect()
    }

    fn document(&self) -> Result<Table, StudyError> {
        let name = &self.study.network.topology;
        let wrong = |what: &str| StudyError::at("network.topology", format!("{name}: {what}"));
        let text = self.library.topology(name).map_err(|what| wrong(&what))?;
        Topology::read(&text).map_err(|error| wrong(&format!("{}: {}", error.path, error.what)))?;
        let network: Table = toml::from_str(&text).map_err(|error| wrong(error.message()))?;
        let mut document = Table::new();
        document.insert("network".to_owned(), Value::Table(network));
        document.insert("messages".to_owned(), self.value(&self.run.messages)?);
        document.insert("loads".to_owned(), self.value(&self.run.loads)?);
        document.insert("tcp".to_owned(), Value::Table(Table::new()));
        if let Some(mail) = &self.study.mail {
            document.insert("mail".to_owned(), self.value(mail)?);
        }
        Ok(document)
    }

    fn value<T: Serialize>(&self, of: &T) -> Result<Value, StudyError> {
        Value::try_from(of).map_err(|error| self.wrong("", &error.to_string()))
    }

    fn read<T: DeserializeOwned>(&self, document: &Table, key: &str) -> Result<T, StudyError> {
        let value = document.get(key).cloned().unwrap_or(Value::Table(Table::new()));
        value.try_into().map_err(|error: toml::de::Error| {
            self.wrong("", &format!("{key}, with its parameters: {}", error.message()))
        })
    }

    fn policies(&self, topology: &Topology) -> Result<Value, StudyError> {
        let named = topology.routers.values().filter_map(|router| router.policy.as_ref());
        let mut policies = Table::new();
        for name in named {
            let wrong =
                |what: &str| StudyError::at("network.topology", format!("policy {name}: {what}"));
            let text = self.library.policy(name).map_err(|what| wrong(&what))?;
            let policy = toml::from_str::<RouterPolicy>(&text).and_then(|_| toml::from_str(&text));
            let policy = policy.map_err(|error| wrong(error.to_string().trim_end()))?;
            policies.insert(name.clone(), Value::Table(policy));
        }
        Ok(Value::Table(policies))
    }

    /// Sets the parameters below the roots that are wanted.
    fn apply(
        &self,
        [settings, special]: [&Values; 2],
        document: &mut Table,
        used: &mut BTreeSet<&'a str>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), StudyError> {
        let parameters = self.study.parameters.iter();
        let sets = parameters.flat_map(|(name, parameter): (_, &'a Parameter)| {
            parameter.sets.iter().map(move |path| (name, path.as_str(), parameter))
        });
        for (name, text, parameter) in sets {
            let invalid = |error: PathError| {
                StudyError::at(format!("parameters.{name}.sets"), error.to_string())
            };
            let path: TomlPath = text.parse().map_err(invalid)?;
            let root = path.root();
            if !ROOTS.contains(&root) {
                let what = format!("{root} is none of {}", ROOTS.join(", "));
                return Err(StudyError::at(format!("parameters.{name}.sets"), what));
            }
            let Some(value) = settings.get(name).filter(|_| wanted(root)) else { continue };
            if root == "policy" && !is_loaded(document, &path) {
                let parameter = self.study.parameters.get(name);
                let paths = parameter.into_iter().flat_map(|parameter| &parameter.sets);
                let mut paths = paths.filter_map(|path| path.parse::<TomlPath>().ok());
                if special.contains_key(name) && !paths.any(|path| is_loaded(document, &path)) {
                    let what = format!("{name}: no router has the policy it is set in");
                    return Err(self.wrong("with", &what));
                }
                continue;
            }
            let named = value.as_str().and_then(|value| parameter.values.get(value));
            match toml_path::set(document, text, named.unwrap_or(value).clone()) {
                Ok(()) => {
                    used.insert(text);
                }
                // Not every run has this message or load.
                Err(_) if matches!(root, "messages" | "loads") => {}
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(())
    }
}

/// What a parameter can be set in.
const ROOTS: [&str; 6] = ["network", "policy", "mail", "messages", "loads", "tcp"];

/// Begins what stands behind the name of a run that fits.
const FIT: &str = "[fit";

/// The id of the run that fits beside a run: `run[fit]`, or `run[fit,` and what is varied.
pub(crate) fn with_fit(run: &str) -> String {
    match run.split_once('[') {
        Some((name, varied)) => format!("{name}{FIT},{varied}"),
        None => format!("{run}{FIT}]"),
    }
}

/// The item of the run that a fitting one stands beside.
pub(crate) fn without_fit(item: &str) -> String {
    item.replacen(&format!("{FIT}]"), "", 1).replacen(&format!("{FIT},"), "[", 1)
}

/// A reference with the values of parameters in place of `{NAME}`.
fn with_values(reference: String, settings: &Values) -> String {
    settings.iter().fold(reference, |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), &variant::plain(value))
    })
}

/// Whether `policy.NAME` is a policy of this run.
fn is_loaded(document: &Table, path: &TomlPath) -> bool {
    let Some(PathStep::Key(name) | PathStep::Bracketed(name)) = path.steps().get(1) else {
        return false;
    };
    document.get("policy").and_then(|policies| policies.get(name)).is_some()
}

/// The path of a message as it is counted in the file, where some are not sent.
fn in_file(path: &str, sent: &[usize]) -> String {
    let inside = || {
        let (number, rest) = path.strip_prefix("messages[")?.split_once(']')?;
        let place = sent.get(number.parse::<usize>().ok()?)?;
        Some(format!("messages[{place}]{rest}"))
    };
    inside().unwrap_or_else(|| path.to_owned())
}
