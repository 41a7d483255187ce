//! One setting of messaging and hosts for all rows with printed values: what a study with a headline
//! may not do.

use crate::StudyError;
use crate::file::{Experiment, Headline, Parameter, ParameterKind, Study, StudyRun};
use router::policy::{Name, OctetSize, Span};
use router::time::Rate;
use std::collections::BTreeMap;
use toml::Value;

/// Kinds and ranges of parameters, the headline's values, and that no row with printed values has others.
pub(super) fn check(study: &Study) -> Result<(), StudyError> {
    for (number, experiment) in study.experiments.iter().enumerate() {
        for (place, run) in experiment.runs.iter().enumerate() {
            fit(study, run, &format!("experiment[{number}].run[{place}]"))?;
        }
    }
    let Some(headline) = &study.headline else { return Ok(()) };
    for (name, parameter) in &study.parameters {
        open(parameter).map_err(|what| StudyError::at(format!("parameters.{name}"), what))?;
    }
    for (name, value) in &headline.with {
        let parameter = study.parameters.get(name);
        let parameter =
            parameter.filter(|parameter| parameter.kind.is_some_and(ParameterKind::is_shared));
        let Some(parameter) = parameter else {
            let what = format!("there is no parameter {name} of kind messaging or host");
            return Err(StudyError::at("headline.with", what));
        };
        in_range(parameter, value)
            .map_err(|what| StudyError::at(format!("headline.with.{name}"), what))?;
    }
    for (number, experiment) in study.experiments.iter().enumerate() {
        rows(study, headline, experiment, number)?;
    }
    Ok(())
}

/// A parameter has a kind; and, where its value is not printed, a range that it is in.
fn open(parameter: &Parameter) -> Result<(), String> {
    if parameter.kind.is_none() {
        return Err("a study with a headline gives each parameter a kind".to_owned());
    }
    if !parameter.printed && parameter.range.is_empty() {
        return Err("its value is not printed: range has the values it may have".to_owned());
    }
    readable(&parameter.range)?;
    parameter.value.as_ref().map_or(Ok(()), |value| in_range(parameter, value))
}

/// Two quantities, the lower one first; or values of which each stands for itself.
fn readable(range: &[Value]) -> Result<(), String> {
    let [least, most] = range else { return Ok(()) };
    match (quantity(least), quantity(most)) {
        (Some(least), Some(most)) if least <= most => Ok(()),
        (Some(_), Some(_)) => Err("range: the lower value comes first".to_owned()),
        (Some(_), None) => Err(format!("range: {least} is a quantity, and {most} is not")),
        (None, Some(_)) => Err(format!("range: {most} is a quantity, and {least} is not")),
        (None, None) => Ok(()),
    }
}

/// A quantity is not outside of the range of its parameter.
fn in_range(parameter: &Parameter, value: &Value) -> Result<(), String> {
    let [least, most] = parameter.range.as_slice() else { return Ok(()) };
    let quantities = (quantity(value), quantity(least), quantity(most));
    let (Some(number), Some(from), Some(to)) = quantities else { return Ok(()) };
    match (from..=to).contains(&number) {
        true => Ok(()),
        false => Err(format!("its value {value} is outside its range of {least} to {most}")),
    }
}

/// A number, or a text of percent, seconds, bits a second or octets.
fn quantity(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Integer(whole) => return Some(*whole as f64),
        Value::Float(number) => return Some(*number).filter(|number| number.is_finite()),
        Value::String(text) => text,
        _ => return None,
    };
    let span = || text.parse().ok().map(|Span(span)| span.as_secs_f64());
    let rate = || text.parse().ok().map(|rate: Rate| rate.bits() as f64);
    let octets = || text.parse().ok().map(|OctetSize(octets)| octets as f64);
    let zero = (text == "0").then_some(0.0);
    let percent = text.strip_suffix(" percent").and_then(|percent| percent.parse().ok());
    zero.or(percent).or_else(span).or_else(rate).or_else(octets)
}

/// No value of an experiment or a run fits messaging or hosts to what is printed of it.
fn rows(
    study: &Study,
    headline: &Headline,
    experiment: &Experiment,
    number: usize,
) -> Result<(), StudyError> {
    let is_shared = |name: &Name| {
        let kind = study.parameters.get(name).and_then(|parameter| parameter.kind);
        headline.with.contains_key(name) || kind.is_some_and(ParameterKind::is_shared)
    };
    for (place, run) in experiment.runs.iter().enumerate().filter(|(_, run)| run.is_printed()) {
        let path = format!("experiment[{number}].run[{place}]");
        let given = [
            (format!("experiment[{number}].with"), keys(&experiment.with)),
            (format!("{path}.with"), keys(&run.with)),
            (format!("{path}.vary"), run.vary.keys().collect()),
        ];
        for (path, names) in given {
            if let Some(name) = names.into_iter().find(|name| is_shared(name)) {
                let what = format!(
                    "a run with printed values has the study's one setting; what fits it goes into `fit` of the run ({})",
                    run.name
                );
                return Err(StudyError::at(format!("{path}.{name}"), what));
            }
        }
        if experiment.headline == Some(false) {
            let what = "its runs have printed values, and so the headline's setting";
            return Err(StudyError::at(format!("experiment[{number}].headline"), what));
        }
    }
    Ok(())
}

fn keys(values: &BTreeMap<Name, Value>) -> Vec<&Name> {
    values.keys().collect()
}

/// Values that fit are of parameters, have a reason, and have something printed to fit.
fn fit(study: &Study, run: &StudyRun, path: &str) -> Result<(), StudyError> {
    for (name, value) in &run.fit {
        let Some(parameter) = study.parameters.get(name) else {
            let what = format!("there is no parameter {name}");
            return Err(StudyError::at(format!("{path}.fit"), what));
        };
        in_range(parameter, value)
            .map_err(|what| StudyError::at(format!("{path}.fit.{name}"), what))?;
    }
    if run.fit.is_empty() != run.fit_why.is_empty() {
        return Err(StudyError::at(path, "fit and fit_why go together"));
    }
    if !run.fit.is_empty() && !run.is_printed() {
        return Err(StudyError::at(format!("{path}.fit"), "nothing is printed that it could fit"));
    }
    Ok(())
}
