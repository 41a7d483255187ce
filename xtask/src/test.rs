//! `cargo xtask test`: everything the tests need, then all of them, then the published studies made
//! small, then every fuzz target for a while, then one closing line.

use crate::command::Cmd;
use crate::workspace::Workspace;
use crate::{Outcome, studies, tools};

/// Installs what the tests need, builds the programs, runs every test, the published studies, and
/// every fuzz target for 6 seconds; closes with `N passed, N failed`, where an expectation of a study
/// counts as one, and a fuzz target.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// Test precedence at the published study's own 512 kbit/s, and kill the daemons at 300 moments
    /// instead of 30: some 20 minutes more (sets LONG=1)
    #[arg(long)]
    long: bool,
    /// Leave out a part
    #[arg(long, value_enum)]
    skip: Vec<Part>,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The published studies, made small, and what they expect.
    Studies,
    /// Input for the fuzz targets that is new with each commit; what ever broke one is replayed by
    /// the tests in any case.
    Fuzz,
}

/// The targets, two at once: the debug build with its overflow checks, which the tests made already.
const FUZZ: &[&str] =
    &["run", "-q", "-p", "fuzz", "--", "all", "--seconds", "6", "--jobs", "2", "--seed"];

/// Another one for each commit, the same each time it is tested; 1 where there is no repository.
fn seed(workspace: &Workspace) -> String {
    let head = workspace.command("git", &["rev-parse", "--short=12", "HEAD"]).output();
    let seed = head.ok().and_then(|head| u64::from_str_radix(head.trim(), 16).ok());
    seed.unwrap_or(1).to_string()
}

/// The variable that tests with a longer form look at.
const LONG: &str = "LONG";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        tools::ensure(workspace)?;
        // End-to-end tests run the programs as a site does, so these must be of this tree.
        let programs = ["build", "-p", "mta", "-p", "xuxa-cli", "-p", "lab", "-p", "bench"];
        workspace.cargo(&programs).run()?;
        let mut tally = Tally::default();
        let tests = workspace
            .cargo(&["test", "--workspace", "--no-fail-fast"])
            .env("PATH", &tools::search_path());
        let succeeded = self.sized(tests).lines(|line| tally.add(line))?;
        let mut tally = tally.closed(succeeded);
        let mut succeeded = succeeded;
        if !self.skip.contains(&Part::Studies) {
            let count = studies::all(workspace)?;
            tally.passed += count.passed;
            tally.failed += count.failed;
        }
        if !self.skip.contains(&Part::Fuzz) {
            let mut targets = Tally::default();
            let seed = seed(workspace);
            let held = workspace
                .cargo(&[FUZZ, &[&seed]].concat())
                .lines(|line| targets.add_target(line))?;
            let targets = targets.closed(held);
            tally.passed += targets.passed;
            tally.failed += targets.failed;
            succeeded &= held;
        }
        if tally.ignored > 0 {
            println!("{} ignored", tally.ignored);
        }
        println!("{} passed, {} failed", tally.passed, tally.failed);
        Ok(Outcome::of(succeeded && tally.failed == 0))
    }

    /// The tests, in the size that was asked for.
    fn sized(&self, tests: Cmd) -> Cmd {
        if self.long { tests.env(LONG, "1") } else { tests }
    }
}

/// What all test programs together reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line of libtest: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) =
            line.strip_prefix("test result: ").and_then(|verdict| verdict.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let Some(number) = words.next().and_then(|n| n.parse::<u64>().ok()) else { continue };
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Adds a fuzz target's row: `| name | ... | findings |`, without findings `0`.
    fn add_target(&mut self, line: &str) {
        let Some(cells) = line.strip_prefix("| ").and_then(|l| l.strip_suffix(" |")) else {
            return;
        };
        let mut cells = cells.split('|').map(str::trim);
        let (name, findings) = (cells.next(), cells.next_back());
        match (name, findings) {
            (Some("target" | "---"), _) | (_, None) => {}
            (_, Some("0")) => self.passed += 1,
            _ => self.failed += 1,
        }
    }

    /// The final tally. Where cargo failed though no test did, a program did not compile or ended
    /// without a verdict: that counts as one failure, so that the closing line tells the truth.
    fn closed(self, succeeded: bool) -> Tally {
        if succeeded || self.failed > 0 {
            return self;
        }
        println!("a test program did not compile or ended without a verdict: counted as 1 failed");
        Tally { failed: 1, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "7 passed; 9 failed",
            "test a::test result ... ok",
        ] {
            tally.add(line);
        }
        assert_eq!(tally, Tally { passed: 15, failed: 2, ignored: 1 });
        assert_eq!(tally.closed(false), tally);
    }

    #[test]
    fn a_fuzz_target_counts_as_a_test() {
        let mut tally = Tally::default();
        for line in [
            "| target           | seed | findings |",
            "| --- | --: | --: |",
            "| ber              |    1 |        0 |",
            "| tpkt             |    1 | 2: panicked at x; again with: fuzz tpkt |",
            "$ cargo run -p fuzz",
        ] {
            tally.add_target(line);
        }
        assert_eq!(tally, Tally { passed: 1, failed: 1, ignored: 0 });
    }

    #[test]
    fn long_is_what_was_asked_for() {
        let seen = |long: bool| {
            let shell = Cmd::new("sh", &["-c", "echo ${LONG-unset}"]).env(LONG, "as before");
            Args { long, skip: Vec::new() }.sized(shell).output().unwrap().trim().to_owned()
        };
        assert_eq!((seen(true).as_str(), seen(false).as_str()), ("1", "as before"));
    }

    #[test]
    fn a_program_without_a_verdict_is_a_failure() {
        let tally = Tally { passed: 4, failed: 0, ignored: 0 };
        assert_eq!(tally.closed(false).failed, 1);
        assert_eq!(tally.closed(true), tally);
    }
}
