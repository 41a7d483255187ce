//! The mutation test of the tables: each cell with another content in turn, without a rebuild. The
//! test program runs itself with the variable that [`super::overrides`] reads; what the tests of the
//! layer do not notice survives, and has to stand in `survivors.txt` with its reason.
//!
//! An ordinary run takes a sample. `LONG=1` takes every cell, asks for 95 % caught in each layer, and
//! for a list without entries that are caught.

use super::overrides::{OverrideKind, VARIABLE, predicates};
use super::tests::arms;
use super::{Step, Table};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A sample is one of so many mutants.
const SAMPLE: usize = 40;
/// Most seconds that the tests of a layer take with a wrong cell, and most KiB of memory.
const LIMITS: (u32, u32) = (60, 4_000_000);
/// Mutants tried at a time.
const AT_A_TIME: usize = 2;

/// Mutants that no test notices, and why.
const SURVIVORS: &str = include_str!("survivors.txt");

/// The tests of each layer: filters of the test program.
const LAYERS: [(&str, &[&str]); 6] = [
    ("transport", &["cotp::machine", "lower::tests"]),
    ("session", &["session::machine", "lower::tests"]),
    ("presentation", &["presentation::machine", "stack::tests"]),
    ("acse", &["acse::machine", "stack::tests"]),
    ("rtse", &["rtse::machine", "stack::tests"]),
    ("rose", &["rose::machine", "stack::tests"]),
];

/// One wrong cell.
#[derive(Clone, Debug)]
struct Mutant {
    layer: &'static str,
    /// `layer/state/event/predicates/kind`.
    name: String,
    value: String,
}

/// The one after `one`, the first after the last.
fn next<T: Copy + Eq>(all: &[T], one: Option<T>) -> T {
    let at = one.and_then(|one| all.iter().position(|other| *other == one));
    all[at.map_or(0, |at| (at + 1) % all.len())]
}

/// Every mutant of a table: its cells without action, with another action, with another next state.
fn mutants<T: Table>() -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for &state in T::STATES {
        for &event in T::EVENTS {
            for row in arms::<T>(state, event).into_iter().flatten().map(|n| &T::ROWS[n]) {
                let cell = format!("{}/{state:?}/{event:?}/{}", T::LAYER, predicates(row));
                for kind in OverrideKind::ALL {
                    let value = match kind {
                        OverrideKind::Omitted if row.action.is_none() => continue,
                        OverrideKind::Omitted => format!("{:?}", Step::<()>::Nothing),
                        OverrideKind::Action => format!("{:?}", next(T::ACTIONS, row.action)),
                        OverrideKind::Next => {
                            format!("{:?}", next(T::STATES, Some(row.next.unwrap_or(state))))
                        }
                    };
                    mutants.push(Mutant {
                        layer: T::LAYER,
                        name: format!("{cell}/{kind:?}"),
                        value,
                    });
                }
            }
        }
    }
    mutants
}

fn all() -> Vec<Mutant> {
    let mut all = Vec::new();
    all.extend(mutants::<crate::cotp::table::Table>());
    all.extend(mutants::<crate::session::table::Table>());
    all.extend(mutants::<crate::presentation::table::Table>());
    all.extend(mutants::<crate::acse::table::Table>());
    all.extend(mutants::<crate::rtse::table::Table>());
    all.extend(mutants::<crate::rose::table::Table>());
    all
}

/// Runs the tests of a layer with this override; whether one fails.
fn is_caught(layer: &str, value: &str) -> bool {
    let (seconds, kilobytes) = LIMITS;
    let script =
        format!("ulimit -c 0; ulimit -v {kilobytes}; exec timeout {seconds} \"$0\" \"$@\"");
    let program = std::env::current_exe().unwrap();
    let filters = LAYERS.iter().find(|(name, _)| *name == layer).unwrap().1;
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(program)
        .args(filters)
        .args(["--test-threads=1", "--quiet"])
        .env(VARIABLE, value)
        .env("INSTA_UPDATE", "no")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    !status.success()
}

/// Names of the survivors listed, each with its reason.
fn listed() -> BTreeMap<&'static str, &'static str> {
    let lines = SURVIVORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").expect("name: reason")).collect()
}

/// Those that survive.
fn survivors(mutants: &[Mutant]) -> Vec<&Mutant> {
    let (at, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(at.fetch_add(1, Ordering::Relaxed)) {
                    if !is_caught(mutant.layer, &format!("{}/{}", mutant.name, mutant.value)) {
                        survivors.lock().unwrap().push(mutant);
                    }
                }
            });
        }
    });
    survivors.into_inner().unwrap()
}

#[test]
fn a_wrong_cell_makes_a_test_of_its_layer_fail() {
    let long = std::env::var_os("LONG").is_some_and(|long| long == "1");
    let step = if long { 1 } else { SAMPLE };
    let mutants: Vec<Mutant> = all().into_iter().step_by(step).collect();
    // Without a wrong cell they pass, or nothing would be proved.
    for (layer, _) in LAYERS.iter().filter(|_| long) {
        assert!(!is_caught(layer, "none/none/none/-/Omitted/Nothing"), "{layer}");
    }
    let survivors = survivors(&mutants);
    let listed = listed();
    for (layer, _) in LAYERS {
        let of = |all: &mut dyn Iterator<Item = &str>| all.filter(|l| *l == layer).count();
        let tried = of(&mut mutants.iter().map(|m| m.layer));
        let lived = of(&mut survivors.iter().map(|m| m.layer));
        println!("{layer}: {tried} mutants, {} caught, {lived} survived", tried - lived);
        assert!(!long || lived * 20 <= tried, "{layer}: {lived} of {tried} survive");
    }
    let unlisted: Vec<String> = survivors
        .iter()
        .filter(|mutant| !listed.contains_key(mutant.name.as_str()))
        .map(|mutant| format!("{}/{}", mutant.name, mutant.value))
        .collect();
    assert!(unlisted.is_empty(), "no test notices:\n{}", unlisted.join("\n"));
    let lived = |name: &&&str| survivors.iter().any(|mutant| mutant.name == **name);
    let stale: Vec<&&str> = listed.keys().filter(|name| !lived(name)).collect();
    assert!(!long || stale.is_empty(), "these do not survive: {stale:?}");
}
