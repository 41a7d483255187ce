//! The mutants that the hunt does not find: the test that each names fails with it, and passes without.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;

use super::{Mutant, Table, folder, plant};
use crate::Outcome;
use crate::ci::timed;
use crate::command::Cmd;
use crate::workspace::Workspace;

/// Builds the tests with all mutants in what they test, and runs the test of each of these that has one.
pub(super) fn check(
    workspace: &Workspace,
    table: &Table,
    chosen: &[(u32, Mutant)],
) -> anyhow::Result<Outcome> {
    let folder = folder(workspace)?;
    let (tree, built) = (folder.join("tree"), folder.join("tested"));
    plant(workspace, table, &tree)?;
    // Of all packages at once, so that cargo chooses the same features for each.
    let packages: BTreeSet<&str> =
        table.mutant.iter().filter_map(|mutant| Some(mutant.test()?.0)).collect();
    let tests = Tests { workspace, tree: &tree, built: &built, packages };
    tests.cargo(&["--no-run"]).run()?;
    let mut wrong = 0;
    let tested =
        chosen.iter().filter_map(|(number, mutant)| Some((*number, mutant, mutant.test()?)));
    let tested: Vec<_> = tested.collect();
    ensure!(!tested.is_empty(), "no such mutant names a test");
    for (number, mutant, (_, test)) in &tested {
        let (verdict, time) = timed(|| tests.verdict(*number, test));
        let verdict = verdict?;
        wrong += usize::from(verdict != Verdict::Finds);
        println!(
            "{number:3} {:60} {:6.1} s  {test} {}",
            mutant.name,
            time.as_secs_f64(),
            verdict.text()
        );
    }
    println!("{} mutants with a test, {wrong} not found by it", tested.len());
    Ok(Outcome::from_passed(wrong == 0))
}

/// What the test of a mutant shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It fails with the mutant, and passes without.
    Finds,
    /// It passes with it.
    Passes,
    /// It fails without it.
    Fails,
    /// No test has this name.
    Missing,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Finds => "finds it",
            Verdict::Passes => "PASSES with it",
            Verdict::Fails => "FAILS without it",
            Verdict::Missing => "IS NOT THERE",
        }
    }
}

/// The tests of the copy.
struct Tests<'a> {
    workspace: &'a Workspace,
    tree: &'a Path,
    built: &'a Path,
    packages: BTreeSet<&'a str>,
}

impl Tests<'_> {
    fn cargo(&self, more: &[&str]) -> Cmd {
        let mut arguments = vec!["test", "--tests", "--no-fail-fast"];
        arguments.extend(self.packages.iter().flat_map(|package| ["-p", package]));
        arguments.extend(more);
        let cargo = self.workspace.cargo(&arguments).directory(self.tree);
        cargo.env("CARGO_TARGET_DIR", &self.built.to_string_lossy())
    }

    fn verdict(&self, number: u32, test: &str) -> anyhow::Result<Verdict> {
        let run = |planted: u32| {
            let test = self.cargo(&["--", "--exact", test]);
            test.env("PLANTED", &planted.to_string()).result()
        };
        let (passed, output) = run(0)?;
        // In which of the test programs it is does not matter.
        let is_there = output.lines().any(|line| line.starts_with(&format!("test {test} ... ")));
        Ok(match passed {
            _ if !is_there => Verdict::Missing,
            false => Verdict::Fails,
            true if run(number)?.0 => Verdict::Passes,
            true => Verdict::Finds,
        })
    }
}
