//! Policy maps: the lines of their classes, and the policy made from them.

use super::lines::ConfigLine;
use super::matching::access::{dscp, precedence_number};
use super::matching::class::MappedClass;
use super::matching::work::WorkBudget;
use super::read::{IosConfig, IosInterface};
use super::shape::{ShapeLine, shape};
use super::wred::WredLines;
use super::{LineValue, MAX_DEPTH, Notes};
use dscp::Dscp;
use router::policy::{MeterAction, MeterProfile, Name, OctetSize, QueueLimit, RouterPolicy};
use router::time::Rate;
use std::collections::{BTreeMap, BTreeSet};

/// A policy map.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyMap {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) classes: Vec<PolicyClass>,
    /// The class that the next lines belong to, while the map is read.
    pub(super) current: Option<usize>,
}

/// A share of the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReservationLine {
    Rate(Rate),
    Percent(f64),
    RemainingPercent(f64),
    RemainingRatio(f64),
    /// Low-latency priority: rate or percent, and the burst.
    Priority(Option<Rate>, Option<f64>, Option<OctetSize>),
}

/// A `police` line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PoliceLine {
    pub(super) meter: MeterProfile,
    /// The actions for conforming, exceeding and violating packets. `None` is the default of IOS:
    /// transmit, drop, and the action for exceeding packets.
    pub(super) actions: [Option<MeterAction>; 3],
}

/// The lines of a policy map for one class.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyClass {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) set: Option<LineValue<Dscp>>,
    pub(super) drop: Option<LineValue<()>>,
    pub(super) police: Option<LineValue<PoliceLine>>,
    pub(super) reserved: Option<LineValue<ReservationLine>>,
    pub(super) shape: Option<LineValue<ShapeLine>>,
    pub(super) wred: Option<LineValue<WredLines>>,
    pub(super) limit: Option<LineValue<QueueLimit>>,
    /// `fair-queue`, with the number of queues.
    pub(super) fair: Option<LineValue<Option<usize>>>,
    pub(super) child: Option<LineValue<String>>,
}

/// The class of packets that match no other class.
pub(super) const DEFAULT: &str = "class-default";

/// Whether this is the name of the default class.
pub(super) fn is_default(name: &str) -> bool {
    name.eq_ignore_ascii_case(DEFAULT)
}

impl PolicyClass {
    pub(super) fn new(name: String, line: usize) -> PolicyClass {
        PolicyClass { name, line, ..PolicyClass::default() }
    }

    /// The lines that need a queue.
    pub(super) fn queues(&self) -> Vec<usize> {
        let lines = [
            self.reserved.as_ref().map(|at| at.line),
            self.shape.as_ref().map(|at| at.line),
            self.wred.as_ref().map(|at| at.line),
            self.limit.as_ref().map(|at| at.line),
            self.fair.as_ref().map(|at| at.line),
        ];
        lines.into_iter().flatten().collect()
    }

    /// Whether the class marks, meters or drops packets.
    pub(super) fn conditions(&self) -> bool {
        self.set.is_some() || self.drop.is_some() || self.police.is_some()
    }

    /// Reads a line of the class; `false` if it is not one.
    pub(super) fn read(&mut self, line: &ConfigLine, words: &[&str], notes: &mut Notes) -> bool {
        let number = line.number;
        let done: Result<(), String> = match words {
            ["set", "ip", "dscp", code] | ["set", "dscp", code] => {
                dscp(code).map(|value| put(&mut self.set, number, value))
            }
            ["set", "ip", "precedence", word] | ["set", "precedence", word] => {
                precedence_number(word).map(|precedence| {
                    let value = Dscp::new(precedence * 8).unwrap_or_default();
                    put(&mut self.set, number, value);
                })
            }
            ["set", other, ..] => Err(format!("{other:?} is not set by a policy")),
            ["drop"] => {
                put(&mut self.drop, number, ());
                Ok(())
            }
            ["police", rest @ ..] => police(rest).map(|value| put(&mut self.police, number, value)),
            ["conform-action" | "exceed-action" | "violate-action", ..] => match &mut self.police {
                Some(police) => police.value.act(words),
                None => Err("there is nothing policed here".to_owned()),
            },
            ["bandwidth", ..] | ["priority", ..] => {
                reserved(words).map(|value| put(&mut self.reserved, number, value))
            }
            ["shape", rest @ ..] => shape(rest).map(|value| put(&mut self.shape, number, value)),
            ["random-detect", rest @ ..] => {
                let first = LineValue { line: number, value: WredLines::default() };
                self.wred.get_or_insert(first).value.read(rest)
            }
            ["queue-limit", rest @ ..] => {
                limit(rest).map(|value| put(&mut self.limit, number, value))
            }
            ["fair-queue"] => {
                put(&mut self.fair, number, None);
                Ok(())
            }
            ["fair-queue", queues] => match queues.parse().ok() {
                Some(queues) if (1..=4096).contains(&queues) => {
                    put(&mut self.fair, number, Some(queues));
                    Ok(())
                }
                _ => Err("the number of queues is 1 to 4096".to_owned()),
            },
            ["service-policy", _] => {
                let name = line.words.get(1).cloned().unwrap_or_default();
                put(&mut self.child, number, name);
                Ok(())
            }
            _ => return false,
        };
        if let Err(why) = done {
            notes.add(number, why);
        }
        true
    }
}

fn put<T>(slot: &mut Option<LineValue<T>>, line: usize, value: T) {
    *slot = Some(LineValue { line, value });
}

pub(super) fn number(word: Option<&&str>, what: &str) -> Result<u64, String> {
    let number = word.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("{what} is missing, or no number"))
}

pub(super) fn rate(bits: u64) -> Result<Rate, String> {
    Rate::from_bits(bits).ok_or_else(|| format!("invalid rate {bits} bit/s: 1 Tbit/s at most"))
}

fn kbit(word: &str) -> Result<Rate, String> {
    rate(number(Some(&word), "the rate in kbit/s")?.saturating_mul(1_000))
}

fn percent(word: &str) -> Result<f64, String> {
    let percent: Option<f64> = word.parse().ok();
    percent
        .filter(|p| (0.0..=100.0).contains(p))
        .ok_or_else(|| format!("{word:?} is not 0 to 100 percent"))
}

fn reserved(words: &[&str]) -> Result<ReservationLine, String> {
    Ok(match words {
        ["bandwidth", "percent", p] => ReservationLine::Percent(percent(p)?),
        ["bandwidth", "remaining", "percent", p] => ReservationLine::RemainingPercent(percent(p)?),
        ["bandwidth", "remaining", "ratio", n] => {
            let ratio = number(Some(n), "the ratio")?;
            if !(1..=1_000).contains(&ratio) {
                return Err("a ratio is 1 to 1000".to_owned());
            }
            ReservationLine::RemainingRatio(ratio as f64)
        }
        ["bandwidth", n] => ReservationLine::Rate(kbit(n)?),
        ["priority"] => ReservationLine::Priority(None, None, None),
        ["priority", "level", ..] => return Err("levels of priority are not mapped".to_owned()),
        ["priority", "percent", "0", ..] => return Err("a priority is 1 to 100 percent".to_owned()),
        ["priority", "percent", p, rest @ ..] => {
            ReservationLine::Priority(None, Some(percent(p)?), burst(rest)?)
        }
        ["priority", n, rest @ ..] => ReservationLine::Priority(Some(kbit(n)?), None, burst(rest)?),
        _ => return Err("this form is not mapped".to_owned()),
    })
}

/// A burst in octets, if there is one.
fn burst(words: &[&str]) -> Result<Option<OctetSize>, String> {
    match words {
        [] => Ok(None),
        [octets] => {
            Ok(Some(OctetSize(number(Some(octets), "the burst in octets")?.min(MAX_BURST))))
        }
        _ => Err("more than one burst".to_owned()),
    }
}

/// The largest burst of a policy, in octets.
pub(super) const MAX_BURST: u64 = 1_000_000_000;

fn limit(words: &[&str]) -> Result<QueueLimit, String> {
    let count = number(words.first(), "the limit")?;
    if let Some(more) = words.get(2) {
        return Err(format!("{more:?} after the limit is not known"));
    }
    match words.get(1) {
        None | Some(&"packets") => {
            let packets = usize::try_from(count.min(1_000_000)).ok();
            Ok(QueueLimit { packets, ..QueueLimit::default() })
        }
        Some(&"bytes") => Ok(QueueLimit {
            octets: Some(OctetSize(count.min(MAX_BURST))),
            ..QueueLimit::default()
        }),
        Some(other) => Err(format!("a limit in {other:?} is not mapped: packets or bytes")),
    }
}

fn police(words: &[&str]) -> Result<PoliceLine, String> {
    let mut words = words.to_vec();
    if words.first() == Some(&"cir") {
        words.remove(0);
    }
    if matches!(words.first(), Some(&("percent" | "rate"))) {
        return Err("police in percent or as `rate` is not mapped: write bit/s".to_owned());
    }
    let cir = rate(number(words.first(), "the rate in bit/s")?)?;
    let mut words = words.get(1..).unwrap_or_default();
    let (mut sizes, mut pir, mut place) = ([None; 2], None, 0);
    while let Some(word) = words.first() {
        let mut used = 2;
        match *word {
            "bc" => sizes[0] = Some(number(words.get(1), "bc in octets")?),
            "be" => sizes[1] = Some(number(words.get(1), "be in octets")?),
            "pir" => pir = Some(rate(number(words.get(1), "pir in bit/s")?)?),
            number if number.parse::<u64>().is_ok() => {
                let Some(size) = sizes.get_mut(place) else {
                    return Err("more than two bursts".to_owned());
                };
                (*size, place, used) = (number.parse().ok(), place + 1, 1);
            }
            _ => break,
        }
        words = words.get(used..).unwrap_or_default();
    }
    // IOS's default: the octets of a quarter of a second, at least 1,500.
    let own = |rate: Rate| rate.octets_in(250_000_000).max(1_500);
    let cbs = OctetSize(sizes[0].unwrap_or_else(|| own(cir)).clamp(1, MAX_BURST));
    let excess = |rate: Rate| OctetSize(sizes[1].unwrap_or_else(|| own(rate)).clamp(1, MAX_BURST));
    let mut actions = [None; 3];
    while let Some(word) = words.first() {
        let place = place_of(word).ok_or_else(|| format!("{word:?} is not mapped"))?;
        let (action, used) = action(words.get(1..).unwrap_or_default())?;
        if let Some(slot) = actions.get_mut(place) {
            *slot = Some(action);
        }
        words = words.get(1 + used..).unwrap_or_default();
    }
    let meter = match pir {
        Some(pir) if pir < cir => return Err("pir is below cir".to_owned()),
        Some(pir) => MeterProfile::TwoRate { cir, cbs, pir, pbs: excess(pir), colour_aware: false },
        None if actions[2].is_some() || sizes[1].is_some() => {
            MeterProfile::SingleRate { cir, cbs, ebs: excess(cir), colour_aware: false }
        }
        None => MeterProfile::TokenBucket { rate: cir, burst: cbs },
    };
    Ok(PoliceLine { meter, actions })
}

fn place_of(word: &str) -> Option<usize> {
    ["conform-action", "exceed-action", "violate-action"].iter().position(|name| *name == word)
}

/// An action, and the number of its words.
fn action(words: &[&str]) -> Result<(MeterAction, usize), String> {
    match words {
        ["transmit", ..] => Ok((MeterAction::Pass, 1)),
        ["drop", ..] => Ok((MeterAction::Drop, 1)),
        ["set-dscp-transmit", code, ..] => Ok((MeterAction::Mark(dscp(code)?), 2)),
        ["set-prec-transmit", word, ..] => {
            let dscp = Dscp::new(precedence_number(word)? * 8).unwrap_or_default();
            Ok((MeterAction::Mark(dscp), 2))
        }
        [other, ..] => Err(format!("the action {other:?} is not mapped")),
        [] => Err("an action is missing".to_owned()),
    }
}

impl PoliceLine {
    /// A separate line `conform-action ...`.
    fn act(&mut self, words: &[&str]) -> Result<(), String> {
        let (first, rest) = words.split_first().ok_or("an action is missing")?;
        let (action, _) = action(rest)?;
        if let Some(slot) = place_of(first).and_then(|place| self.actions.get_mut(place)) {
            *slot = Some(action);
        }
        if let MeterProfile::TokenBucket { rate, burst } = self.meter
            && self.actions[2].is_some()
        {
            let ebs = OctetSize(rate.octets_in(250_000_000).max(1_500));
            self.meter =
                MeterProfile::SingleRate { cir: rate, cbs: burst, ebs, colour_aware: false };
        }
        Ok(())
    }
}

/// Makes the policy from a configuration.
pub(super) struct PolicyMaker<'c> {
    pub(super) config: &'c IosConfig,
    pub(super) classes: &'c BTreeMap<String, MappedClass>,
    pub(super) policy: &'c mut RouterPolicy,
    pub(super) notes: &'c mut Notes,
    pub(super) work: &'c mut WorkBudget,
    /// Policy maps that were looked up.
    pub(super) visited: BTreeSet<String>,
    /// The policy maps around the current one, from the outermost.
    pub(super) above: Vec<String>,
    /// The policy maps in which packets wait, directly or in nested maps.
    pub(super) queueing: BTreeSet<&'c str>,
    /// The queueings made, by policy map and rate of the line in bit/s.
    queued: BTreeMap<(String, Option<u64>), Name>,
}

/// The policy maps in which packets wait, directly or in nested maps.
fn queueing(config: &IosConfig) -> BTreeSet<&str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for _ in 0..MAX_DEPTH {
        for (name, map) in &config.policies {
            let mut inner = map.classes.iter().filter_map(|class| class.child.as_ref());
            if map.classes.iter().any(|class| !class.queues().is_empty())
                || inner.any(|child| found.contains(child.value.as_str()))
            {
                found.insert(name);
            }
        }
    }
    found
}

impl<'c> PolicyMaker<'c> {
    pub(super) fn new(
        config: &'c IosConfig,
        classes: &'c BTreeMap<String, MappedClass>,
        policy: &'c mut RouterPolicy,
        notes: &'c mut Notes,
        work: &'c mut WorkBudget,
    ) -> PolicyMaker<'c> {
        let (visited, above, queued) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
        let queueing = queueing(config);
        PolicyMaker { config, classes, policy, notes, work, visited, above, queueing, queued }
    }

    /// Whether packets of a class have a queue of their own, and do not wait in the queue of
    /// class-default.
    pub(super) fn has_queue(&self, class: &PolicyClass) -> bool {
        let child = class.child.as_ref().map(|name| name.value.as_str());
        !class.queues().is_empty() || child.is_some_and(|name| self.queueing.contains(name))
    }

    /// The policy map with this name, or a note at the line that names it.
    pub(super) fn map(&mut self, name: &LineValue<String>) -> Option<&'c PolicyMap> {
        let map = self.config.policies.get(&name.value);
        self.visited.insert(name.value.clone());
        if map.is_none() {
            self.notes.add(name.line, format!("there is no policy map {}", name.value));
        }
        map
    }

    /// The chain of an input service policy.
    pub(super) fn input(&mut self, name: &LineValue<String>) -> Option<Name> {
        let map = self.map(name)?;
        self.nothing_waits(map);
        self.chain(map)
    }

    fn nothing_waits(&mut self, map: &PolicyMap) {
        if !self.enter(map) {
            return;
        }
        for class in &map.classes {
            for line in class.queues() {
                self.notes.add(line, "nothing waits at the input: left out there");
            }
            if let Some(child) = class.child.as_ref().and_then(|name| self.map(name)) {
                self.nothing_waits(child);
            }
        }
        self.above.pop();
    }

    /// Chain and queueing of an output service policy.
    pub(super) fn output(
        &mut self,
        name: &LineValue<String>,
        interface: &IosInterface,
    ) -> (Option<Name>, Option<Name>) {
        let Some(map) = self.map(name) else { return (None, None) };
        let chain = self.chain(map);
        if !self.queueing.contains(map.name.as_str()) {
            return (chain, None);
        }
        let place = (map.name.clone(), interface.rate().map(|rate| rate.bits()));
        if let Some(same) = self.queued.get(&place) {
            return (chain, Some(same.clone()));
        }
        let queueing = self.queueing(map, interface.rate(), 1);
        let taken = self.policy.queueings.get(&map.name).is_some_and(|other| *other != queueing);
        let name = match taken {
            true => format!("{}@{}", map.name, interface.name),
            false => map.name.clone(),
        };
        self.policy.queueings.insert(name.clone(), queueing);
        self.queued.insert(place, name.clone());
        (chain, Some(name))
    }

    /// Translates policy maps that neither an interface nor another map uses, so that they are in
    /// the result.
    pub(super) fn unattached(&mut self) {
        let config = self.config;
        let at_interfaces =
            config.interfaces.values().flat_map(|i| i.input.iter().chain(&i.output));
        let maps = config.policies.values();
        let inside = maps.flat_map(|map| map.classes.iter().filter_map(|c| c.child.as_ref()));
        let used: BTreeSet<&str> =
            at_interfaces.chain(inside).map(|name| name.value.as_str()).collect();
        let (inner, roots): (Vec<_>, Vec<_>) =
            config.policies.values().partition(|map| used.contains(map.name.as_str()));
        // Of the nested maps, those that are only used by one another.
        for map in roots.into_iter().chain(inner) {
            if !self.visited.contains(&map.name) {
                let name = LineValue { line: map.line, value: map.name.clone() };
                self.output(&name, &IosInterface::default());
            }
        }
    }
}
