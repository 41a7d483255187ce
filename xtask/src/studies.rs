//! `cargo xtask studies`: the published studies, made small, and whether what they expect holds.
//!
//! What is asserted stands in the studies' own files: orderings and ratios with bands, never a time.

use crate::workspace::Workspace;
use crate::{Outcome, tools};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Runs the published studies on faster or slower networks and in simulation, and counts which of
/// their expectations hold.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// The environment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Environment {
    /// In simulated time, in one process.
    Simulation,
    /// In namespaces, with real processes and the kernel's TCP.
    Testbed,
}

/// A call of `lab run`.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// For people, and for the directory it is kept in. A call on the testbed with the name of one in simulation takes from it
    /// the runs that both make in simulation.
    name: &'static str,
    /// Behind `lab run`.
    arguments: &'static [&'static str],
    environment: Environment,
    /// Which half of the calls it belongs to, where one half is run.
    half: u64,
}

/// One after the other, so that nothing else uses the machine during a timed run.
const CALLS: &[Call] = &[
    Call {
        name: "isode-nato-2007",
        arguments: &["isode-nato-2007", "--scale", "10", "--parallel", "4"],
        environment: Environment::Testbed,
        half: 0,
    },
    Call {
        name: "isode-nato-2007",
        arguments: &["isode-nato-2007", "--simulation"],
        environment: Environment::Simulation,
        half: 0,
    },
    Call {
        name: "bern-2002-testbed",
        arguments: &[
            "bern-2002",
            "no-diffserv",
            "ef-udp",
            "af-udp",
            "--scale",
            "0.1",
            "--set",
            "test=15s",
            "--repeat",
            "1",
            "--parallel",
            "4",
        ],
        environment: Environment::Testbed,
        half: 1,
    },
    Call {
        name: "bern-2002",
        arguments: &["bern-2002", "--simulation"],
        environment: Environment::Simulation,
        half: 0,
    },
    Call {
        name: "degeb-2007-testbed",
        arguments: &["degeb-2007", "table-4-1", "--repeat", "1", "--parallel", "2"],
        environment: Environment::Testbed,
        half: 1,
    },
    Call {
        name: "degeb-2007",
        arguments: &["degeb-2007", "--simulation"],
        environment: Environment::Simulation,
        half: 0,
    },
    Call {
        name: "recommended-matrix",
        arguments: &["recommended-matrix", "--simulation"],
        environment: Environment::Simulation,
        half: 1,
    },
];

/// What is read of the numbers that a call writes.
#[derive(Debug, Default, Deserialize)]
struct Numbers {
    verdicts: Vec<Verdict>,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    experiment: String,
    what: String,
    holds: Option<bool>,
}

/// The result of a call.
#[derive(Debug, Default)]
struct Made {
    /// Its output.
    text: String,
    /// Expectations that hold.
    held: u64,
    /// What does not hold, is not known, or could not be made.
    wrong: Vec<String>,
}

/// Expectations that hold, and those that do not or are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    /// Both together.
    pub(crate) fn and(self, other: Count) -> Count {
        Count { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        tools::ensure(workspace)?;
        workspace.cargo(&["build", "-p", "mta", "-p", "xuxa-cli", "-p", "lab"]).run()?;
        let count = run_in(workspace, Environment::Simulation, None)?.and(run_in(
            workspace,
            Environment::Testbed,
            None,
        )?);
        println!("{} passed, {} failed", count.passed, count.failed);
        Ok(Outcome::from_passed(count.failed == 0))
    }
}

/// Makes the calls of one environment with the programs that were built, or the half of them that a seed names.
///
/// # Errors
/// A program could not be started, or wrote nothing.
pub(crate) fn run_in(
    workspace: &Workspace,
    environment: Environment,
    seed: Option<u64>,
) -> Result<Count> {
    let built = workspace.built("debug")?;
    let doctor = Command::new(built.join("lab")).arg("doctor").stdout(Stdio::null()).status();
    let has_namespaces = doctor.context("lab doctor")?.success();
    let mut count = Count::default();
    if environment == Environment::Testbed && !has_namespaces {
        println!("SKIPPED: runs with real processes: `lab doctor` lists what is missing");
        return Ok(count);
    }
    let wanted = |call: &&Call| {
        call.environment == environment && seed.is_none_or(|seed| seed % 2 == call.half)
    };
    for call in CALLS.iter().filter(wanted) {
        let made = twice(call, &built, workspace)?;
        print!("{}", made.text);
        for wrong in &made.wrong {
            println!("FAILED: {wrong}");
        }
        count.passed += made.held;
        count.failed += made.wrong.len() as u64;
    }
    Ok(count)
}

/// Runs a call. Experiments whose expectations do not hold run once more, one at a time: a busy machine
/// is not a finding, and an expectation that fails twice is.
fn twice(call: &Call, built: &Path, workspace: &Workspace) -> Result<Made> {
    let out = built.join("studies").join(call.name);
    empty_once(&out);
    let first = once(call, built, &out, false)?;
    let again: BTreeSet<String> =
        first.wrong.iter().filter_map(|wrong| experiment(wrong)).collect();
    if again.is_empty() {
        return counted_again(first, &out, workspace);
    }
    let kept = fs::read_dir(out.join("runs")).into_iter().flatten().flatten();
    for file in kept.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        again.iter().any(|experiment| name.starts_with(&format!("{experiment}_")))
    }) {
        fs::remove_file(file.path())?;
    }
    let mut second = once(call, built, &out, true)?;
    let list: Vec<&str> = again.iter().map(String::as_str).collect();
    second.text.insert_str(0, &format!("(made a second time: {})\n", list.join(", ")));
    for wrong in &first.wrong {
        second.text.push_str(&format!("the first time: {wrong}\n"));
    }
    counted_again(second, &out, workspace)
}

/// Empties a directory, unless this process has: results of an earlier tree are not valid.
fn empty_once(out: &Path) {
    static EMPTIED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_first = EMPTIED.lock().is_ok_and(|mut emptied| emptied.insert(out.to_owned()));
    if is_first {
        let _ = fs::remove_dir_all(out);
    }
}

/// A second implementation of the score, over the same numbers.
const SCORE: &str = "tests/score/score.py";

/// Counts the score a second time, by another program: it agrees with the numbers and with the page.
fn counted_again(mut made: Made, out: &Path, workspace: &Workspace) -> Result<Made> {
    let page = out.join("page.txt");
    fs::write(&page, &made.text)?;
    let [numbers, page] = [out.join("numbers.json"), page].map(|path| path.display().to_string());
    let mut python = Command::new("python3");
    python.arg(workspace.root().join(SCORE)).args([numbers, page]);
    let counted = match python.stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            made.text.push_str("SKIPPED: the score is not counted again: python3 is missing\n");
            return Ok(made);
        }
        counted => counted.context("python3")?,
    };
    made.text.push_str(&String::from_utf8_lossy(&counted.stdout));
    if counted.status.success() {
        made.held += 1;
    } else {
        let complaints = String::from_utf8_lossy(&counted.stderr);
        made.wrong.push(format!("the score counted again: {}", complaints.trim()));
    }
    Ok(made)
}

/// The experiment that a line of [`Made::wrong`] is about: the word before its colon.
fn experiment(wrong: &str) -> Option<String> {
    let name = wrong.split([':', '/']).next()?;
    (!name.is_empty() && !name.contains(' ')).then(|| name.to_owned())
}

/// The arguments of a call; `alone`: one run at a time.
fn arguments(call: &Call, alone: bool) -> Vec<&'static str> {
    let mut arguments = call.arguments.to_vec();
    let at = arguments.iter().position(|argument| *argument == "--parallel");
    if let (true, Some(parallel)) = (alone, at.and_then(|at| arguments.get_mut(at + 1))) {
        *parallel = "1";
    }
    arguments
}

fn once(call: &Call, built: &Path, out: &Path, alone: bool) -> Result<Made> {
    fs::create_dir_all(out)?;
    let json = out.join("numbers.json");
    // What an earlier call wrote is not this one's.
    let _ = fs::remove_file(&json);
    let mut command = Command::new(built.join("lab"));
    command.arg("run").args(arguments(call, alone));
    command.args(["--quiet", "--out"]).arg(out).arg("--json").arg(&json);
    let output = command.stdin(Stdio::null()).output().context("lab run")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let numbers = fs::read(&json).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let numbers: Numbers = numbers.unwrap_or_default();
    let mut made = judged(&numbers, &complaints);
    if made.wrong.is_empty() && (made.held == 0 || !output.status.success()) {
        let how = format!("lab run {} ({}): {}", call.name, output.status, complaints.trim());
        made.wrong.push(how);
    }
    let head = format!("$ lab run {}\n", call.arguments.join(" "));
    made.text = head + &String::from_utf8_lossy(&output.stdout);
    Ok(made)
}

fn judged(numbers: &Numbers, complaints: &str) -> Made {
    let mut made = Made::default();
    for verdict in &numbers.verdicts {
        match verdict.holds {
            Some(true) => made.held += 1,
            holds => {
                let how = if holds.is_none() { " (not known)" } else { "" };
                made.wrong.push(format!("{}: {}{how}", verdict.experiment, verdict.what));
            }
        }
    }
    let failed = complaints.lines().filter_map(|line| line.strip_prefix("failed: "));
    made.wrong.extend(failed.map(str::to_owned));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_counted_and_all_else_is_named() {
        let numbers = r#"{"rows": [], "verdicts": [
            {"experiment": "a", "what": "one", "value": 1.0, "holds": true},
            {"experiment": "b", "what": "two", "value": 1.0, "holds": false},
            {"experiment": "c", "what": "three", "value": null, "holds": null}]}"#;
        let complaints = "progress\nfailed: d/run: no such thing: x\nreport: y\n";
        let made = judged(&serde_json::from_str(numbers).unwrap(), complaints);
        assert_eq!(made.held, 1);
        assert_eq!(made.wrong, ["b: two", "c: three (not known)", "d/run: no such thing: x"]);
        let experiments: Vec<_> = made.wrong.iter().filter_map(|wrong| experiment(wrong)).collect();
        assert_eq!(experiments, ["b", "c", "d"]);
        assert_eq!(experiment("lab run x: it could not"), None);
    }

    #[test]
    fn each_half_has_calls_on_the_testbed() {
        let of_testbed = || CALLS.iter().filter(|call| call.environment == Environment::Testbed);
        for half in [0, 1] {
            assert!(of_testbed().any(|call| call.half == half));
        }
        assert!(of_testbed().all(|call| call.half < 2));
    }

    #[test]
    fn the_second_time_runs_are_made_one_by_one() {
        for call in CALLS {
            let (first, second) = (arguments(call, false), arguments(call, true));
            assert_eq!(first, call.arguments);
            let changed: Vec<_> = first.iter().zip(&second).filter(|(a, b)| a != b).collect();
            assert!(changed.iter().all(|(_, now)| **now == "1"), "{second:?}");
            assert_eq!(changed.len(), usize::from(first.contains(&"--parallel")), "{second:?}");
        }
    }
}
