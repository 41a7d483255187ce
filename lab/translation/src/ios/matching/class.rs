//! Class maps.

use super::access::{dscp, precedence};
use super::algebra::{MAX_MATCHES, all_common, all_without, whole};
use super::work::{TOO_MUCH, WorkBudget};
use crate::ios::read::IosConfig;
use crate::ios::{MAX_DEPTH, Notes};
use dscp::Dscp;
use router::policy::Match;
use std::collections::BTreeMap;

/// A class map.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassMap {
    pub(crate) line: usize,
    pub(crate) any: bool,
    pub(crate) terms: Vec<Term>,
}

/// A `match ...` line.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) line: usize,
    not: bool,
    what: Result<MatchCondition, String>,
}

#[derive(Clone, Debug)]
enum MatchCondition {
    Any,
    AccessGroup(String),
    ClassMap(String),
    Interface(String),
    /// One of these code points, and whether of IPv4 only.
    Dscp(Vec<Dscp>, bool),
}

/// The translation of a class map.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedClass {
    pub(crate) matches: Vec<Match>,
    /// Whether packets that it should match are left out.
    partial: bool,
}

/// A `match` line from the words after `match`; names keep their case.
pub(crate) fn term(line: usize, words: &[String]) -> Term {
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let mut lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let not = lower.first() == Some(&"not");
    if not {
        lower.remove(0);
    }
    let own = |at: usize| words.get(at + usize::from(not)).cloned().unwrap_or_default();
    let codes = |words: &[&str], v4| -> Result<MatchCondition, String> {
        let all: Result<Vec<Dscp>, String> = words.iter().map(|word| dscp(word)).collect();
        match all? {
            none if none.is_empty() => Err("no code point is named".to_owned()),
            mut all => {
                all.sort();
                all.dedup();
                Ok(MatchCondition::Dscp(all, v4))
            }
        }
    };
    let precedences = |words: &[&str], v4| -> Result<MatchCondition, String> {
        let all: Result<Vec<Vec<Dscp>>, String> =
            words.iter().map(|word| precedence(word)).collect();
        let mut all = all?.concat();
        all.sort();
        all.dedup();
        Ok(MatchCondition::Dscp(all, v4))
    };
    let what = match &lower[..] {
        ["any"] => Ok(MatchCondition::Any),
        ["access-group", "name", _] => Ok(MatchCondition::AccessGroup(own(2))),
        ["access-group", _] => Ok(MatchCondition::AccessGroup(own(1))),
        ["class-map", _] => Ok(MatchCondition::ClassMap(own(1))),
        ["input-interface", rest @ ..] if !rest.is_empty() => {
            Ok(MatchCondition::Interface((0..rest.len()).map(|at| own(at + 1)).collect()))
        }
        ["ip", "dscp", rest @ ..] => codes(rest, true),
        ["dscp", rest @ ..] => codes(rest, false),
        ["ip", "precedence", rest @ ..] => precedences(rest, true),
        ["precedence", rest @ ..] => precedences(rest, false),
        ["protocol", ..] => Err("protocols are recognised by NBAR, which we have not".to_owned()),
        [other, ..] => Err(format!("a policy has no match for {other:?}")),
        [] => Err("nothing to match".to_owned()),
    };
    Term { line, not, what }
}

/// Translates all class maps; lists those that cannot be translated.
pub(crate) fn resolve_all(
    config: &IosConfig,
    notes: &mut Notes,
    work: &mut WorkBudget,
) -> BTreeMap<String, MappedClass> {
    let heights = heights(config);
    let mut known: KnownClasses = BTreeMap::new();
    // Nested class maps are translated before the maps that use them, each once.
    for height in 1..=MAX_DEPTH + 1 {
        for (name, map) in &config.classes {
            if heights.get(name.as_str()) != Some(&height) || work.is_spent() {
                continue;
            }
            let found = match height > MAX_DEPTH {
                true => Err(format!(
                    "class maps stand in one another more than {MAX_DEPTH} deep, or in a circle"
                )),
                false => resolve(config, map, &known, notes, work),
            };
            if let Err(why) = &found {
                notes.add(map.line, format!("the class is left out: {why}"));
            }
            known.insert(name.clone(), found);
        }
    }
    known.into_iter().filter_map(|(name, found)| Some((name, found.ok()?))).collect()
}

/// Translated class maps by name; for the others, the reason.
type KnownClasses = BTreeMap<String, Result<MappedClass, String>>;

/// The depth of nesting of each class map: 1 without nested maps, at most [`MAX_DEPTH`] + 1. Maps
/// in a circle get this maximum too.
fn heights(config: &IosConfig) -> BTreeMap<&str, usize> {
    let mut heights: BTreeMap<&str, usize> =
        config.classes.keys().map(|name| (name.as_str(), 1)).collect();
    for _ in 0..MAX_DEPTH {
        for (name, map) in &config.classes {
            let inner = map.terms.iter().filter_map(|term| match &term.what {
                Ok(MatchCondition::ClassMap(inner)) => heights.get(inner.as_str()).copied(),
                _ => None,
            });
            let height = inner.max().map_or(1, |inner| (inner + 1).min(MAX_DEPTH + 1));
            heights.insert(name, height);
        }
    }
    heights
}

fn resolve(
    config: &IosConfig,
    map: &ClassMap,
    known: &KnownClasses,
    notes: &mut Notes,
    work: &mut WorkBudget,
) -> Result<MappedClass, String> {
    if map.terms.is_empty() {
        return Err("it has no match, so nothing belongs to it".to_owned());
    }
    let mut class = MappedClass::default();
    let mut all = vec![Match::default()];
    for term in &map.terms {
        if work.is_spent() {
            return Err(TOO_MUCH.to_owned());
        }
        match term.matches(config, known, notes, work) {
            Ok(found) if map.any => {
                class.partial |= found.partial;
                class.matches.extend(found.matches);
                if class.matches.len() > MAX_MATCHES {
                    return Err(format!("it would take more than {MAX_MATCHES} matches"));
                }
            }
            Ok(found) => {
                class.partial |= found.partial;
                all = all_common(&all, &found.matches, work)?;
            }
            Err(why) if map.any => {
                notes.add(term.line, format!("left out, the rest of the class stays: {why}"));
                class.partial = true;
            }
            Err(why) => {
                notes.add(term.line, why);
                return Err(format!("line {} has to match too, and is not mapped", term.line));
            }
        }
    }
    if !map.any {
        class.matches = all;
    }
    if class.matches.is_empty() {
        return Err("nothing can belong to it".to_owned());
    }
    work.keeps(class.matches.len());
    Ok(class)
}

impl Term {
    fn matches(
        &self,
        config: &IosConfig,
        known: &KnownClasses,
        notes: &mut Notes,
        work: &mut WorkBudget,
    ) -> Result<MappedClass, String> {
        let class = match self.what.as_ref().map_err(Clone::clone)? {
            MatchCondition::Any => MappedClass { matches: vec![Match::default()], partial: false },
            MatchCondition::AccessGroup(name) => {
                let list = config.access.get(name);
                let list = list.ok_or_else(|| format!("there is no access list {name}"))?;
                let (matches, partial) = list.permitted(notes, work)?;
                MappedClass { matches, partial }
            }
            MatchCondition::ClassMap(name) => {
                let inner = known.get(name).cloned();
                inner.unwrap_or_else(|| Err(format!("there is no class map {name}")))?
            }
            MatchCondition::Interface(name) => {
                let matches = Match { interface: Some(name.clone()), ..Match::default() };
                MappedClass { matches: vec![matches], partial: false }
            }
            MatchCondition::Dscp(dscp, v4) => {
                let source = if *v4 { whole(true) } else { None };
                let matches = Match { dscp: dscp.clone(), source, ..Match::default() };
                MappedClass { matches: vec![matches], partial: false }
            }
        };
        if !self.not {
            return Ok(class);
        }
        if class.partial {
            return Err("`not` of packets that a policy cannot express completely".to_owned());
        }
        let matches = all_without(&[Match::default()], &class.matches, work)?;
        Ok(MappedClass { matches, partial: false })
    }
}
