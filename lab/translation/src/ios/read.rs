//! Reads a configuration line by line, with the mode that each line belongs to.

use super::lines::ConfigLine;
use super::map::{DEFAULT, PolicyClass, PolicyMap, is_default};
use super::matching::access::{self, AccessKind, AccessList, kind_of};
use super::matching::class::{self, ClassMap};
use super::{LineValue, Notes, meant};
use router::time::Rate;
use std::collections::BTreeMap;

/// The parts of a configuration that concern classes and queues.
#[derive(Debug, Default)]
pub(super) struct IosConfig {
    pub(super) access: BTreeMap<String, AccessList>,
    pub(super) classes: BTreeMap<String, ClassMap>,
    pub(super) policies: BTreeMap<String, PolicyMap>,
    pub(super) interfaces: BTreeMap<String, IosInterface>,
}

/// An `interface` section.
#[derive(Clone, Debug, Default)]
pub(super) struct IosInterface {
    pub(super) name: String,
    /// `bandwidth`: the base of percentages.
    pub(super) bandwidth: Option<Rate>,
    pub(super) input: Option<LineValue<String>>,
    pub(super) output: Option<LineValue<String>>,
}

/// IOS's default `bandwidth` by the type of interface, in kbit/s.
const BANDWIDTHS: [(&str, u64); 5] = [
    ("ethernet", 10_000),
    ("fastethernet", 100_000),
    ("gigabitethernet", 1_000_000),
    ("tengigabitethernet", 10_000_000),
    ("serial", 1_544),
];

impl IosInterface {
    /// The base of percentages: the configured bandwidth, or IOS's default for the type if there is
    /// one.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.bandwidth.or_else(|| usual_rate(&self.name))
    }
}

/// IOS's default bandwidth of an interface, by the type in its name.
pub(super) fn usual_rate(name: &str) -> Option<Rate> {
    let kind = name.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let own = BANDWIDTHS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
    Rate::from_bits(own?.1 * 1_000)
}

impl IosConfig {
    pub(super) fn is_empty(&self) -> bool {
        self.access.is_empty()
            && self.classes.is_empty()
            && self.policies.is_empty()
            && self.interfaces.is_empty()
    }
}

const TAKEN_BACK: &str = "what is taken back is not followed: write what holds";

enum ConfigMode {
    /// No mode, or one that does not concern classes and queues.
    Other,
    Access(String, AccessKind),
    Class(String),
    Policy(String),
    Interface(String),
}

/// Commands that begin a section which does not concern classes and queues.
const FOREIGN: [&str; 40] = [
    "aaa",
    "alias",
    "archive",
    "arp",
    "boot",
    "boot-end-marker",
    "boot-start-marker",
    "call",
    "cdp",
    "clock",
    "controller",
    "control-plane",
    "crypto",
    "default",
    "dial-peer",
    "enable",
    "end",
    "exit",
    "file",
    "hostname",
    "ip",
    "ipv6",
    "key",
    "line",
    "logging",
    "memory-size",
    "mmi",
    "no",
    "ntp",
    "route-map",
    "router",
    "scheduler",
    "service",
    "snmp-server",
    "spanning-tree",
    "tacacs-server",
    "track",
    "username",
    "version",
    "voice",
];

pub(super) fn read(lines: &[ConfigLine], notes: &mut Notes) -> IosConfig {
    let mut config = IosConfig::default();
    let mut mode = ConfigMode::Other;
    for line in lines {
        if let Some(next) = config.begins(line, notes) {
            mode = next;
            continue;
        }
        let words = line.lower();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let known = match &mode {
            ConfigMode::Other => false,
            ConfigMode::Access(name, kind) => {
                let is_entry = words.first().is_some_and(|word| {
                    matches!(*word, "permit" | "deny" | "remark" | "sequence")
                        || word.parse::<u32>().is_ok()
                });
                if is_entry && let Some(list) = config.access.get_mut(name) {
                    list.entries.extend(access::entry(line, 0, *kind));
                }
                let taken_back = words.first() == Some(&"no");
                if taken_back {
                    notes.add(line.number, TAKEN_BACK);
                }
                is_entry || taken_back
            }
            ConfigMode::Class(name) => {
                let map = config.classes.get_mut(name);
                map.is_some_and(|map| in_class(map, line, &words, notes))
            }
            ConfigMode::Policy(name) => {
                let map = config.policies.get_mut(name);
                map.is_some_and(|map| in_policy(map, line, &words, notes))
            }
            ConfigMode::Interface(name) => {
                let interface = config.interfaces.get_mut(name);
                interface.is_some_and(|interface| in_interface(interface, line, &words, notes))
            }
        };
        let foreign = words.first().is_some_and(|word| FOREIGN.contains(word));
        match (&mode, known, foreign) {
            (_, true, _) => {}
            // The lines after it are in its mode and are ignored.
            (_, false, true) => {
                mode = ConfigMode::Other;
                meant::misspelled(line, &words, notes);
            }
            (
                ConfigMode::Class(_) | ConfigMode::Policy(_) | ConfigMode::Access(..),
                false,
                false,
            ) => {
                notes.add(line.number, "the command is not known here");
            }
            (ConfigMode::Interface(_) | ConfigMode::Other, false, false) => {
                meant::misspelled(line, &words, notes);
            }
        }
    }
    config
}

impl IosConfig {
    /// The mode that a line begins, in any mode.
    fn begins(&mut self, line: &ConfigLine, notes: &mut Notes) -> Option<ConfigMode> {
        let lower = line.lower();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let own = |at: usize| line.words.get(at).cloned().unwrap_or_default();
        match &lower[..] {
            ["no", rest @ ..] if self.taken_back(line, rest) => Some(ConfigMode::Other),
            ["access-list", number, _, ..] => {
                match kind_of(number) {
                    Some(kind) => {
                        let list = self.access.entry(own(1)).or_default();
                        list.entries.extend(access::entry(line, 2, kind));
                    }
                    None => notes.add(line.number, "lists of this number are not for IP"),
                }
                Some(ConfigMode::Other)
            }
            ["ip", "access-list", kind @ ("standard" | "extended"), _] => {
                let kind =
                    if *kind == "standard" { AccessKind::Standard } else { AccessKind::Extended };
                self.access.entry(own(3)).or_default();
                Some(ConfigMode::Access(own(3), kind))
            }
            ["ipv6", "access-list", _] => {
                self.access.entry(own(2)).or_default();
                Some(ConfigMode::Access(own(2), AccessKind::Six))
            }
            ["class-map", ..] => Some(self.begin_class_map(line, &lower, notes)),
            ["policy-map", rest @ ..] if !rest.is_empty() => {
                Some(self.begin_policy_map(line, &lower, notes))
            }
            ["interface", rest @ ..] if !rest.is_empty() => {
                // `FastEthernet 0/1` is `FastEthernet0/1`.
                let parts = line.words.iter().skip(1).map(String::as_str);
                let name: String = parts.take_while(|word| *word != "point-to-point").collect();
                let interface = self.interfaces.entry(name.clone()).or_default();
                interface.name.clone_from(&name);
                Some(ConfigMode::Interface(name))
            }
            _ => None,
        }
    }

    fn begin_class_map(
        &mut self,
        line: &ConfigLine,
        lower: &[&str],
        notes: &mut Notes,
    ) -> ConfigMode {
        if lower.contains(&"type") {
            notes.add(line.number, "class maps of a type are not for queueing");
            return ConfigMode::Other;
        }
        let any = lower.contains(&"match-any");
        let name = line.words.last().cloned().unwrap_or_default();
        let map = self.classes.entry(name.clone()).or_default();
        // A class map that is opened again keeps its kind, unless the line states one.
        if map.line == 0 || any || lower.contains(&"match-all") {
            map.any = any;
        }
        map.line = line.number;
        ConfigMode::Class(name)
    }

    fn begin_policy_map(
        &mut self,
        line: &ConfigLine,
        lower: &[&str],
        notes: &mut Notes,
    ) -> ConfigMode {
        if lower.contains(&"type") {
            notes.add(line.number, "policy maps of a type are not for queueing");
            return ConfigMode::Other;
        }
        let name = line.words.last().cloned().unwrap_or_default();
        let map = self.policies.entry(name.clone()).or_default();
        map.line = line.number;
        map.current = None;
        map.name.clone_from(&name);
        ConfigMode::Policy(name)
    }
}

impl IosConfig {
    /// Applies a global `no ...` line; `false` if it is not one.
    fn taken_back(&mut self, line: &ConfigLine, words: &[&str]) -> bool {
        let own = |at: usize| line.words.get(at).map(String::as_str).unwrap_or_default();
        let last = line.words.last().map(String::as_str).unwrap_or_default();
        match words {
            ["ip", "access-list", "standard" | "extended", _] => drop(self.access.remove(last)),
            ["ipv6", "access-list", _] => drop(self.access.remove(last)),
            // `no` with any entry of a numbered list removes the whole list.
            ["access-list", _, ..] => drop(self.access.remove(own(2))),
            ["class-map", _, ..] => drop(self.classes.remove(last)),
            ["policy-map", _, ..] => drop(self.policies.remove(last)),
            _ => return false,
        }
        true
    }
}

impl IosInterface {
    /// A line `no service-policy ...`; `false` if it names another policy than the attached one.
    fn detach(&mut self, line: &ConfigLine, direction: &str) -> bool {
        let slot = if direction == "input" { &mut self.input } else { &mut self.output };
        let named = line.words.get(3);
        let same = named.is_none_or(|name| slot.as_ref().is_none_or(|at| at.value == *name));
        if same {
            *slot = None;
        }
        same
    }
}

fn in_class(map: &mut ClassMap, line: &ConfigLine, words: &[&str], notes: &mut Notes) -> bool {
    match words {
        ["match", ..] => {
            let term = class::term(line.number, line.words.get(1..).unwrap_or_default());
            map.terms.push(term);
            true
        }
        ["description", ..] => true,
        ["no", ..] => {
            notes.add(line.number, TAKEN_BACK);
            true
        }
        _ => false,
    }
}

fn in_policy(map: &mut PolicyMap, line: &ConfigLine, words: &[&str], notes: &mut Notes) -> bool {
    match words {
        ["description", ..] => true,
        ["class", rest @ ..] if !rest.is_empty() => {
            let own = line.words.get(1).cloned().unwrap_or_default();
            let name = if is_default(&own) { DEFAULT.to_owned() } else { own };
            if rest.len() > 1 {
                notes.add(line.number, "only the name of a class is followed");
            }
            map.current = match map.classes.iter().position(|class| class.name == name) {
                Some(place) => Some(place),
                None => {
                    map.classes.push(PolicyClass::new(name, line.number));
                    Some(map.classes.len() - 1)
                }
            };
            true
        }
        ["no", ..] => {
            notes.add(line.number, TAKEN_BACK);
            true
        }
        // Leaves the class for the policy map.
        ["exit"] if map.current.is_some() => {
            map.current = None;
            true
        }
        _ => {
            let current = map.current.and_then(|place| map.classes.get_mut(place));
            current.is_some_and(|class| class.read(line, words, notes))
        }
    }
}

fn in_interface(
    interface: &mut IosInterface,
    line: &ConfigLine,
    words: &[&str],
    notes: &mut Notes,
) -> bool {
    let own = |at: usize| {
        let value = line.words.get(at).cloned().unwrap_or_default();
        Some(LineValue { line: line.number, value })
    };
    match words {
        ["service-policy", "input", _] => interface.input = own(2),
        ["service-policy", "output", _] => interface.output = own(2),
        ["no", "service-policy", direction @ ("input" | "output"), ..] => {
            if !interface.detach(line, direction) {
                notes.add(line.number, "another policy stands here: it stays");
            }
        }
        ["hold-queue" | "tx-ring-limit" | "tx-queue-limit", ..] => {
            notes.add(line.number, "left out: queues have their length in the policy map alone");
        }
        ["max-reserved-bandwidth", ..] => {
            notes.add(line.number, "left out: all of an interface can be reserved");
        }
        ["service-policy", ..] => {
            notes.add(line.number, "neither input nor output of a policy map");
        }
        ["bandwidth", kbit] => {
            let kbit: Option<u64> = kbit.parse().ok();
            interface.bandwidth = kbit.and_then(|k| Rate::from_bits(k.saturating_mul(1_000)));
            if interface.bandwidth.is_none() {
                notes.add(line.number, "no rate in kbit/s, up to 1 Tbit/s");
            }
        }
        ["ip" | "ipv6", "access-group" | "traffic-filter", ..] => {
            notes.add(line.number, "filters are not a part of a policy");
        }
        [
            "rate-limit" | "traffic-shape" | "fair-queue" | "random-detect" | "priority-group"
            | "custom-queue-list",
            ..,
        ] => {
            notes.add(line.number, "queueing without a policy map is not mapped");
        }
        // Names that begin another mode are not mistaken for lines of the interface.
        ["ip" | "ipv6" | "no", ..] => meant::misspelled(line, words, notes),
        ["crypto" | "logging" | "default" | "arp" | "cdp", _, ..] => {}
        _ => return false,
    }
    true
}
