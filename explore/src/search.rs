//! A breadth-first search over the states of a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// What is explored: a state, its moves, and what has to hold in it.
pub trait Model: Clone {
    /// A move.
    type Move: Clone + Debug;

    /// The moves that could be made.
    fn moves(&self) -> Vec<Self::Move>;
    /// The state after a move; `None` where the state does not allow it.
    fn after(&self, step: &Self::Move) -> Option<Self>;
    /// The same for states that differ in nothing that matters.
    fn fingerprint(&self) -> u128;
    /// Whether nothing more happens.
    fn is_final(&self) -> bool;
    /// Whether a move keeps things going by itself, in contrast to a cut or an abort.
    fn is_ordinary(step: &Self::Move) -> bool;
    /// What has to hold.
    ///
    /// # Errors
    /// What does not.
    fn check(&self) -> Result<(), String>;
    /// The named states that are reached in it.
    fn names(&self) -> Vec<String>;
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Moves made, also those to a state that was known.
    pub moves: usize,
    /// Moves from the first state to the last that was found.
    pub depth: usize,
    /// States in which nothing more happens.
    pub finals: usize,
    /// Whether there are no further states.
    pub complete: bool,
    /// How often each named state was reached.
    pub reached: BTreeMap<String, usize>,
    /// What was broken first, and the shortest path to it.
    pub broken: Option<Broken>,
}

/// A promise that does not hold.
#[derive(Debug)]
pub struct Broken {
    /// What does not hold.
    pub what: String,
    /// The moves that lead there.
    pub path: Vec<String>,
}

impl Explored {
    /// Those of `required` that were not reached.
    pub fn unreached<'a>(&self, required: &[&'a str]) -> Vec<&'a str> {
        required.iter().copied().filter(|name| !self.reached.contains_key(*name)).collect()
    }
}

/// How a state was found: the number of the one before, and the move.
type Parents = Vec<(usize, String)>;

/// Explores from `first` on: to `depth` moves, and no more than `most` states.
pub fn explore<M: Model>(first: M, depth: usize, most: usize) -> Explored {
    let mut found = Explored::default();
    let mut known = BTreeSet::from([first.fingerprint()]);
    let mut parents: Parents = vec![(0, String::new())];
    let mut layer = vec![(0, first)];
    let mut beyond = false;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (number, state) in std::mem::take(&mut layer) {
            found.states += 1;
            for name in state.names() {
                *found.reached.entry(name).or_default() += 1;
            }
            if let Err(what) = state.check() {
                found.broken = Some(Broken { what, path: path(&parents, number) });
                return found;
            }
            if state.is_final() {
                found.finals += 1;
            }
            let mut ordinary = false;
            for step in state.moves() {
                let Some(after) = state.after(&step) else { continue };
                found.moves += 1;
                ordinary |= M::is_ordinary(&step);
                let room = found.depth < depth && known.len() < most;
                if room && known.insert(after.fingerprint()) {
                    parents.push((number, format!("{step:?}")));
                    next.push((parents.len() - 1, after));
                } else if !room && !known.contains(&after.fingerprint()) {
                    beyond = true;
                }
            }
            if !ordinary && !state.is_final() {
                let what = "deadlock: only a cut or an abort goes on from here".to_owned();
                found.broken = Some(Broken { what, path: path(&parents, number) });
                return found;
            }
        }
        if !next.is_empty() {
            found.depth += 1;
        }
        layer = next;
    }
    found.complete = !beyond;
    found
}

fn path(parents: &Parents, mut number: usize) -> Vec<String> {
    let mut steps = Vec::new();
    while number != 0 {
        let (before, step) = &parents[number];
        steps.push(step.clone());
        number = *before;
    }
    steps.reverse();
    steps
}
