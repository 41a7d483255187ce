//! Cisco IOS configurations into policies: access lists, class maps, policy maps and the service
//! policies of interfaces.
//!
//! What IOS would do and a [`Policy`] cannot say is listed with its line and the reason, and left
//! out; what has nothing to do with classes and queues (routing, logins, clocks) is passed over.
//! Classes are kept exactly: denied entries and `match not` are taken out of what is permitted, and
//! where the rest is no set of matches any more, the line is listed.
//!
//! Where IOS has a default, it is written out: 64 packets a queue, WRED's lines by code point, a
//! policer's burst, a shaper's Bc, the bandwidth of an interface by its type.

mod branch;
mod chain;
mod checked;
mod lines;
mod map;
mod matching;
mod ports;
mod read;
mod shape;
mod wred;
mod write;

pub use ports::Renamed;
pub use write::to_toml;

use lines::ConfigLine;
use matching::work::Work;
use matching::{class, work};
use router::policy::{Attachment, Policy};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The longest configuration, in lines.
pub const MAX_LINES: usize = 20_000;
/// The longest line, in octets.
pub const MAX_LINE: usize = 1_000;
/// How deep class maps and service policies may stand inside one another.
pub const MAX_DEPTH: usize = 8;

/// What was made of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The policy.
    pub policy: Policy,
    /// The interfaces that the configuration names, by their names in the policy.
    pub interfaces: BTreeSet<String>,
    /// What could not be mapped, by line.
    pub unmapped: Vec<Unmapped>,
}

/// A line that could not be mapped, whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unmapped {
    /// The file, as given.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// Why not, and what was done instead.
    pub reason: String,
}

/// The text is no configuration, or one beyond the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct NotIos {
    /// The file, as given.
    pub file: String,
    /// Why.
    pub what: String,
}

/// Something of a line.
#[derive(Clone, Debug, PartialEq)]
struct At<T> {
    line: usize,
    value: T,
}

/// Collects what could not be mapped.
#[derive(Debug, Default)]
struct Notes {
    found: BTreeSet<(usize, String)>,
}

impl Notes {
    fn add(&mut self, line: usize, reason: impl Into<String>) {
        self.found.insert((line, reason.into()));
    }
}

/// Makes a policy of a configuration; `file` is its name in what is said.
///
/// # Errors
/// The text has no line that configures access lists, classes, policies or interfaces, is beyond
/// [`MAX_LINES`] or [`MAX_LINE`], or has a few lines that stand for so many classes or queues that to
/// follow them takes too long.
pub fn import(file: &str, text: &str) -> Result<Imported, NotIos> {
    import_within(file, text, Work::new(work::MAX_UNITS))
}

fn import_within(file: &str, text: &str, mut work: Work) -> Result<Imported, NotIos> {
    let not = |what: String| NotIos { file: file.to_owned(), what };
    let lines = lines::read(text).map_err(not)?;
    let mut notes = Notes::default();
    let config = read::read(&lines, &mut notes);
    if config.is_empty() {
        let what = "no IOS configuration: no access list, class map, policy map or interface in it";
        return Err(not(what.to_owned()));
    }
    let classes = class::resolve_all(&config, &mut notes, &mut work);
    let mut policy = Policy { about: format!("Imported from {file}"), ..Policy::default() };
    let mut maker = map::Maker::new(&config, &classes, &mut policy, &mut notes, &mut work);
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
        named.matches.clone_from(&class.matches);
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
