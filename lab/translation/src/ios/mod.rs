//! Translates Cisco IOS configurations into policies: access lists, class maps, policy maps and the
//! service policies of interfaces.
//!
//! Lines that a [`RouterPolicy`] cannot express are listed with the reason, and left out. Lines that do
//! not concern classes and queues (routing, logins, clocks) are ignored. Classes are exact: denied
//! entries and `match not` are subtracted from the permitted packets. If the result is not a set of
//! matches, the line is listed.
//!
//! Defaults of IOS are written out: 64 packets for a queue, WRED's drop functions by code point, a
//! policer's burst, a shaper's Bc, the bandwidth of an interface by its type.
//!
//! [`export`](export()) is the other direction.

mod branch;
mod chain;
mod checked;
mod export;
mod lines;
mod map;
mod matching;
mod meant;
mod ports;
mod read;
mod shape;
mod wred;
mod write;

pub use export::{InterfaceNames, Named, export};
pub use ports::Renamed;
pub use write::to_toml;

use lines::ConfigLine;
use matching::merged::merged;
use matching::work::WorkBudget;
use matching::{class, work};
use router::policy::{Attachment, RouterPolicy};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Lines of a configuration, at most.
pub const MAX_LINES: usize = 20_000;
/// Octets of a line, at most.
pub const MAX_LINE: usize = 1_000;
/// Nested class maps or service policies, at most.
pub const MAX_DEPTH: usize = 8;

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The policy.
    pub policy: RouterPolicy,
    /// The interfaces of the configuration, by their names in the policy.
    pub interfaces: BTreeSet<String>,
    /// Lines that could not be translated.
    pub unmapped: Vec<Unmapped>,
}

/// A line that could not be translated completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unmapped {
    /// The file name, as given.
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The reason, and what was done instead.
    pub reason: String,
}

/// The text is not a configuration, or exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct NotIos {
    /// The file name, as given.
    pub file: String,
    /// The reason.
    pub what: String,
}

/// A value, with the line that it is from.
#[derive(Clone, Debug, PartialEq)]
struct LineValue<T> {
    line: usize,
    value: T,
}

/// Collects the lines that could not be translated.
#[derive(Debug, Default)]
struct Notes {
    found: BTreeSet<(usize, String)>,
}

impl Notes {
    fn add(&mut self, line: usize, reason: impl Into<String>) {
        self.found.insert((line, reason.into()));
    }
}

/// Translates a configuration into a policy; `file` is its name in messages.
///
/// # Errors
/// The text has no line that configures access lists, classes, policies or interfaces; it exceeds
/// [`MAX_LINES`] or [`MAX_LINE`]; or its lines refer to one another so often that the translation
/// would take too long.
pub fn import(file: &str, text: &str) -> Result<Imported, NotIos> {
    import_within(file, text, WorkBudget::new(work::MAX_UNITS))
}

fn import_within(file: &str, text: &str, mut work: WorkBudget) -> Result<Imported, NotIos> {
    let not = |what: String| NotIos { file: file.to_owned(), what };
    let lines = lines::read(text).map_err(not)?;
    let mut notes = Notes::default();
    let config = read::read(&lines, &mut notes);
    if config.is_empty() {
        let what =
            "not an IOS configuration: no access list, class map, policy map or interface in it";
        return Err(not(what.to_owned()));
    }
    let classes = class::resolve_all(&config, &mut notes, &mut work);
    let mut policy =
        RouterPolicy { about: format!("Imported from {file}"), ..RouterPolicy::default() };
    let mut maker = map::PolicyMaker::new(&config, &classes, &mut policy, &mut notes, &mut work);
    for interface in config.interfaces.values() {
        let mut attachment = Attachment::default();
        if let Some(name) = &interface.input {
            attachment.input.extend(maker.input(name));
        }
        if let Some(name) = &interface.output {
            let (chain, queueing) = maker.output(name, interface);
            attachment.output.extend(chain);
            attachment.queueing = queueing;
        }
        if interface.input.is_some() || interface.output.is_some() {
            maker.policy.interfaces.insert(interface.name.clone(), attachment);
        }
    }
    maker.unattached();
    if work.is_spent() {
        return Err(not(work::TOO_MUCH.to_owned()));
    }
    for (name, class) in &classes {
        let named = policy.classes.entry(name.clone()).or_default();
        named.matches = merged(&class.matches);
    }
    let named = policy.classes.values().flat_map(|class| &class.matches);
    let named = named.filter_map(|of| of.interface.clone());
    let interfaces: BTreeSet<String> = config.interfaces.keys().cloned().chain(named).collect();
    let places: Vec<String> = interfaces.iter().cloned().collect();
    checked::leave_out_refused(&mut policy, &places, &config, &mut notes);
    let texts: BTreeMap<usize, &ConfigLine> =
        lines.iter().map(|line| (line.number, line)).collect();
    let mut unmapped: Vec<Unmapped> = notes
        .found
        .into_iter()
        .map(|(line, reason)| Unmapped {
            file: file.to_owned(),
            line,
            text: texts.get(&line).map(|line| line.words.join(" ")).unwrap_or_default(),
            reason,
        })
        .collect();
    unmapped.sort();
    Ok(Imported { policy, interfaces, unmapped })
}

#[cfg(test)]
mod tests;
