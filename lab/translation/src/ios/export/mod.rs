//! Writes a policy as a configuration of Cisco IOS, which [`import`](super::import) reads back to
//! the same policy.
//!
//! What the policy has and IOS has not is a fault at its key; nothing is approximated or left out.
//! The faults are collected, so that all of them are shown at once. At the end the text is read
//! back and compared: policies that differ in what is written, and not in what they do, are the
//! same ([`normal`]).

mod access;
mod cases;
mod checked;
mod map;
mod names;
mod normal;
mod queue;

pub use names::{InterfaceNames, Named};

use router::policy::{KeyFault, Name, Queueing, RouterPolicy};
use router::time::Rate;
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a class map, policy map or access list in IOS, in octets.
const MAX_NAME: usize = 40;
/// The longest line of a comment, in characters.
const COMMENT: usize = 96;

/// The configuration of a policy; `source` is the name of its file in comments, `names` are those
/// of its interfaces.
///
/// # Errors
/// All parts of the policy that IOS has not, each at its key.
pub fn export(
    policy: &RouterPolicy,
    source: &str,
    names: &InterfaceNames,
) -> Result<String, Vec<KeyFault>> {
    let mut exporter = Exporter::new(policy, names);
    let text = exporter.text(source);
    // A router would refuse it whatever IOS has.
    let all: Vec<Name> = names::of_policy(policy).into_iter().collect();
    if let Err(fault) = policy.check(&all)
        && !exporter.faults.iter().any(|other| other.path == fault.path)
    {
        exporter.faults.push(fault);
    }
    let sections = [&exporter.access, &exporter.classes, &exporter.policies, &exporter.interfaces];
    if exporter.faults.is_empty() && sections.iter().all(|section| section.is_empty()) {
        exporter.fault("interfaces", "there is nothing in it for a configuration");
    }
    if exporter.faults.is_empty() {
        exporter.faults = checked::read_back(policy, names, &text, &exporter.owners);
    }
    if exporter.faults.is_empty() { Ok(text) } else { Err(exporter.faults) }
}

/// Makes the configuration of a policy.
struct Exporter<'p> {
    policy: &'p RouterPolicy,
    names: &'p InterfaceNames,
    faults: Vec<KeyFault>,
    /// Names of access lists and of policy maps that are taken.
    lists: BTreeSet<String>,
    maps: BTreeSet<String>,
    /// The sections of the configuration: access lists, class maps, policy maps, interfaces.
    access: Vec<String>,
    classes: Vec<String>,
    policies: Vec<String>,
    interfaces: Vec<String>,
    /// The part of the policy that each policy map is from.
    owners: BTreeMap<String, String>,
}

impl<'p> Exporter<'p> {
    fn new(policy: &'p RouterPolicy, names: &'p InterfaceNames) -> Exporter<'p> {
        let maps = policy.chains.keys().chain(policy.queueings.keys()).cloned().collect();
        Exporter {
            policy,
            names,
            faults: Vec::new(),
            lists: BTreeSet::new(),
            maps,
            access: Vec::new(),
            classes: Vec::new(),
            policies: Vec::new(),
            interfaces: Vec::new(),
            owners: BTreeMap::new(),
        }
    }

    fn text(&mut self, source: &str) -> String {
        let policy = self.policy;
        for name in policy.tables.keys() {
            let what = "IOS has no tables of flows: write a class for each flow, and what is done \
                to it as a case of a first-match step";
            self.fault(key("tables", name), what);
        }
        for (name, class) in &policy.classes {
            self.class(name, class);
        }
        self.policy_maps();
        for name in policy.interfaces.keys() {
            self.interface(name);
        }
        let sections = [&self.access, &self.classes, &self.policies, &self.interfaces];
        let mut text = self.comments(source);
        for section in sections.into_iter().flatten() {
            text.push_str("!\n");
            text.push_str(section);
        }
        text + "!\nend\n"
    }

    fn fault(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.faults.push(KeyFault::at(path, what));
    }

    fn comments(&self, source: &str) -> String {
        let mut comments = vec![format!("Made by `lab export-ios` from {source}.")];
        comments.extend(self.policy.about.lines().map(str::to_owned));
        comments.extend(self.names.unnamed(self.policy).iter().map(|port| {
            format!("{port}: a name of the policy, not of IOS (give --interface {port}=NAME)")
        }));
        comments.iter().flat_map(|comment| wrapped(comment)).collect()
    }

    /// The policy maps of all chains and queueings.
    fn policy_maps(&mut self) {
        let policy = self.policy;
        for (name, steps) in &policy.chains {
            let path = key("chains", name);
            let queueing = policy.queueings.get(name).filter(|_| self.at_one_output(name));
            if policy.queueings.contains_key(name) && queueing.is_none() {
                let what = "a queueing has that name too, and both would be policy maps: rename \
                    one of them";
                self.fault(&path, what);
                continue;
            }
            self.named_map(name, &path);
            let Some(cases) = self.chain(steps, &path) else { continue };
            let queueing_path = key("queueings", name);
            let queueing = queueing.map(|of| (of, queueing_path.as_str()));
            self.map(name, &cases, queueing, 1);
        }
        for (name, of) in
            policy.queueings.iter().filter(|(name, _)| !policy.chains.contains_key(*name))
        {
            let path = key("queueings", name);
            self.named_map(name, &path);
            self.map(name, &[], Some((of, &path)), 1);
        }
        let attached: BTreeSet<&Name> =
            policy.interfaces.values().filter_map(|of| of.queueing.as_ref()).collect();
        for (name, of) in policy.queueings.iter().filter(|(name, _)| !attached.contains(name)) {
            if let Queueing::ClassBased { rate: Some(_), .. } = of {
                let what =
                    "IOS shares the bandwidth of an interface, and no interface uses this queueing";
                self.fault(format!("{}.rate", key("queueings", name)), what);
            }
        }
    }

    fn named_map(&mut self, name: &str, path: &str) {
        self.owners.insert(name.to_owned(), path.to_owned());
        if let Some(what) = refused_name(name, &["type"]) {
            self.fault(path, what);
        }
    }

    /// Whether an interface has both the chain and the queueing of this name at its output: they
    /// are one policy map.
    fn at_one_output(&self, name: &Name) -> bool {
        let here = std::slice::from_ref(name);
        let mut interfaces = self.policy.interfaces.values();
        interfaces.any(|of| of.output == here && of.queueing.as_ref() == Some(name))
    }

    fn interface(&mut self, name: &Name) {
        let policy = self.policy;
        let Some(of) = policy.interfaces.get(name) else { return };
        let path = key("interfaces", name);
        if name == "*" {
            self.fault(path, "IOS has no policy for all interfaces: name each of them");
            return;
        }
        let ios = self.names.name_in_ios(name);
        if let Some(what) = refused_name(&ios, &[]) {
            self.fault(&path, format!("{what}; give --interface {name}=NAME"));
        }
        let mut lines = vec![format!("interface {ios}")];
        match &of.input[..] {
            [] => {}
            [chain] => lines.push(format!(" service-policy input {chain}")),
            _ => {
                let what =
                    "IOS has one policy map at an input: write the chains as one first-match step";
                self.fault(format!("{path}.input"), what);
            }
        }
        match (&of.output[..], &of.queueing) {
            ([], None) => {}
            ([], Some(map)) => lines.push(format!(" service-policy output {map}")),
            ([chain], queueing) if queueing.as_ref().is_none_or(|queueing| queueing == chain) => {
                lines.push(format!(" service-policy output {chain}"));
            }
            ([_], Some(queueing)) => {
                let what = format!(
                    "IOS has one policy map at an output, for the chain and the queueing: name the \
                     chain {queueing} too"
                );
                self.fault(format!("{path}.output"), what);
            }
            _ => {
                let what =
                    "IOS has one policy map at an output: write the chains as one first-match step";
                self.fault(format!("{path}.output"), what);
            }
        }
        if let Some(queueing) = &of.queueing
            && let Some(Queueing::ClassBased { rate, .. }) = policy.queueings.get(queueing)
        {
            let bandwidth = self.bandwidth(queueing, *rate, &ios);
            lines.splice(1..1, bandwidth);
        }
        if lines.len() > 1 {
            self.interfaces.push(lines.join("\n") + "\n");
        }
    }

    /// The `bandwidth` line of an interface whose rate is shared.
    fn bandwidth(&mut self, queueing: &str, rate: Option<Rate>, ios: &str) -> Option<String> {
        let path = key("queueings", queueing);
        match (rate, super::read::usual_rate(ios)) {
            (Some(rate), _) => {
                Some(format!(" bandwidth {}", self.kbit(rate, &format!("{path}.rate"))?))
            }
            (None, Some(usual)) => {
                let what = format!(
                    "write rate = \"{usual}\": in IOS {ios} has that bandwidth, which is shared"
                );
                self.fault(path, what);
                None
            }
            (None, None) => None,
        }
    }

    /// A rate in whole kbit/s.
    fn kbit(&mut self, rate: Rate, path: &str) -> Option<u64> {
        let bits = rate.bits();
        if bits.is_multiple_of(1_000) && bits > 0 {
            return Some(bits / 1_000);
        }
        self.fault(path, format!("{rate}: IOS has whole kbit/s here"));
        None
    }

    /// A name for a policy map of its own, for a map inside `name`.
    fn inner_name(&mut self, name: &str, class: Option<&str>) -> String {
        let inner = fresh(&format!("{name}-{}", class.unwrap_or("classes")), &mut self.maps);
        let owner = self.owners.get(name).cloned().unwrap_or_default();
        self.owners.insert(inner.clone(), owner);
        inner
    }
}

/// A name that is not taken; it is now.
fn fresh(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    // Named access lists begin with a letter: a number is that of a numbered list.
    let letter = wanted.starts_with(|c: char| c.is_ascii_alphabetic());
    let wanted = if letter { wanted.to_owned() } else { format!("of-{wanted}") };
    let cut = |most: usize| wanted.chars().take(most).collect::<String>();
    let numbered = (2..).map(|number| format!("{}-{number}", cut(MAX_NAME - 6)));
    let mut names = std::iter::once(cut(MAX_NAME)).chain(numbered);
    // One of them is free: they are more than the taken ones.
    let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// Why IOS cannot have a name.
fn refused_name(name: &str, keywords: &[&str]) -> Option<String> {
    let good = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '"' | '\'' | '`' | '!');
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(good) {
        return Some(format!(
            "a name in IOS is 1 to {MAX_NAME} printable ASCII characters, without blanks, quotes, \
             ? and !"
        ));
    }
    let keyword = keywords.iter().find(|word| word.eq_ignore_ascii_case(name))?;
    Some(format!("{keyword} is a word of IOS at that place: rename it"))
}

/// The path of a key in a table of the policy.
fn key(table: &str, name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        format!("{table}.{name}")
    } else {
        format!("{table}[{name}]")
    }
}

/// The lines of a comment.
fn wrapped(comment: &str) -> Vec<String> {
    let clean: String =
        comment.chars().map(|c| if base::shown::is_obeyed(c) { ' ' } else { c }).collect();
    let mut lines = vec!["!".to_owned()];
    for word in clean.split_whitespace() {
        let word: Vec<char> = word.chars().collect();
        for part in word.chunks(COMMENT) {
            let part: String = part.iter().collect();
            match lines.last_mut() {
                Some(line) if line.chars().count() + part.chars().count() < COMMENT => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(format!("!   {part}")),
            }
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests;
