//! `cargo xtask test`: everything the tests need, all of them, the published studies in simulation,
//! every fuzz target for a short time; then the minutes of each step, and one closing line.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use crate::ci::timed;
use crate::command::Cmd;
use crate::studies::{self, Environment};
use crate::workspace::Workspace;
use crate::{Outcome, tools};

/// Installs what the tests need, builds the programs, runs every test, the published studies in
/// simulation, and every fuzz target for 2 seconds; closes with the minutes of each step and with
/// `N passed, N failed`, where an expectation of a study counts as one, and a fuzz target.
#[derive(Default, clap::Args)]
pub(crate) struct Args {
    /// All there is, in an hour or more: precedence at the published study's own 512 kbit/s, kills
    /// of the daemons at 300 moments instead of 24 (both by LONG=1), the studies on the testbed, two
    /// minutes of the soak, a
    /// minute for each fuzz target
    #[arg(long)]
    long: bool,
    /// Add a part of what --long does
    #[arg(long, value_enum, value_name = "PART")]
    with: Vec<Share>,
    /// Leave out a part
    #[arg(long, value_enum, value_name = "PART")]
    skip: Vec<Part>,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The published studies and what they expect
    Studies,
    /// New input for the fuzz targets (the tests replay what once broke one in any case)
    Fuzz,
}

/// What can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Share {
    /// Half of the published studies on the testbed, made small, that of this commit's seed: 2 or 8 minutes
    Studies,
    /// Daemons killed for a minute more, by `cargo xtask soak` with seeds of this commit
    Soak,
    /// A minute of `cargo xtask hunt`, with seeds of this commit
    Hunt,
    /// The crash matrix at a sixth of the operations of the disks, those of this commit's seed: a minute or more
    Matrix,
    /// Three minutes of `cargo xtask cluster`, with a seed of this commit, beside the parts before and after; nothing
    /// without PostgreSQL
    Cluster,
    /// Three planted faults that `cargo xtask mutants` must find, others for each commit: some minutes, most of them to
    /// compile
    Mutants,
}

/// The targets, two at once.
const FUZZ: &[&str] = &["all", "--jobs", "2", "--seconds"];

/// Another one for each commit, the same each time it is tested; 1 where there is no repository.
fn seed(workspace: &Workspace) -> String {
    let head = workspace.command("git", &["rev-parse", "--short=12", "HEAD"]).output();
    let seed = head.ok().and_then(|head| u64::from_str_radix(head.trim(), 16).ok());
    seed.unwrap_or(1).to_string()
}

/// How long daemons are killed with [`Share::Soak`].
const SOAK: Duration = Duration::from_secs(60);

/// Kills daemons; whether nothing was lost, doubled or altered.
fn soak(workspace: &Workspace) -> (Tally, bool) {
    let first = seed(workspace).parse().unwrap_or(1) % 1_000_000;
    match crate::faults::soak::rounds_for(workspace, first, SOAK) {
        Ok(passed) => (Tally { passed, ..Tally::default() }, true),
        Err(error) => {
            eprintln!("{error:#}");
            (Tally { failed: 1, ..Tally::default() }, false)
        }
    }
}

/// Minutes of [`Share::Hunt`].
const HUNT: &str = "1";

/// Plays networks drawn from seeds of this commit; whether nothing was broken.
fn hunt(workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
    let program = workspace.built("debug")?.join("hunt");
    let seed = seed(workspace);
    let arguments = ["--minutes", HUNT, "--from", &seed, "--go-on"];
    let held =
        workspace.command(&program.to_string_lossy(), &arguments).called("hunt").succeeds()?;
    Ok((Tally { passed: u64::from(held), failed: u64::from(!held), ..Tally::default() }, held))
}

/// Minutes of [`Share::Cluster`].
const CLUSTER: &str = "3";

/// Has a site of several nodes fail in all ways that it survives; whether nothing was lost, doubled or altered. Without
/// PostgreSQL nothing is tried.
fn cluster(workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
    let program = workspace.built("debug")?.join("cluster");
    let seed = seed(workspace);
    let arguments = ["--minutes", CLUSTER, "--seed", &seed];
    let code =
        workspace.command(&program.to_string_lossy(), &arguments).called("cluster").code()?;
    let (held, tried) = (matches!(code, Some(0 | 3)), code != Some(3));
    let tally =
        Tally { passed: u64::from(held && tried), failed: u64::from(!held), ..Tally::default() };
    Ok((tally, held))
}

/// Hunts planted faults; whether each was found.
fn mutants(workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
    let seed = seed(workspace).parse().unwrap_or(1);
    let (passed, failed) = crate::faults::mutants::sample(workspace, seed)?;
    Ok((Tally { passed, failed, ..Tally::default() }, failed == 0))
}

/// Of so many operations the crash matrix takes one, where a run of its own follows.
const SAMPLE: &str = "12";

/// Runs the crash matrix at a sixth of the operations; other commits have the others. Whether it held.
fn matrix(workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
    let mut tally = Tally::default();
    let test = ["test", "--workspace", "--test", "matrix", "--", &threads()];
    let test = workspace.cargo(&test).env("EVERY", "6").env("SEED", &seed(workspace));
    let held = test.lines(|line| tally.add(line))?;
    Ok((tally.closed(held), held))
}

/// The variable that tests with a longer form look at.
const LONG: &str = "LONG";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let mut minutes = Minutes::default();
        minutes.measure("tools", || tools::ensure(workspace))?;
        let compiled = minutes.measure("compile", || workspace.cargo(COMPILED).succeeds())?;
        let (tests, mut succeeded) = minutes.measure("tests", || self.tests(workspace))?;
        succeeded &= compiled;
        let mut tally = tests;
        if !self.skip.contains(&Part::Studies) {
            let simulated = || studies::run_in(workspace, Environment::Simulation, None);
            tally.add_studies(minutes.measure("studies in simulation", simulated)?);
            if self.has(Share::Studies) {
                let half = if self.long { None } else { seed(workspace).parse().ok() };
                let made = || studies::run_in(workspace, Environment::Testbed, half);
                tally.add_studies(minutes.measure("studies on the testbed", made)?);
            }
        }
        // Its processes wait for most of their time: others run beside it.
        let site = self.has(Share::Cluster).then(|| {
            let workspace = workspace.clone();
            std::thread::spawn(move || cluster(&workspace))
        });
        if !self.long && self.has(Share::Matrix) {
            let (matrix, held) = minutes.measure("crash matrix", || matrix(workspace))?;
            tally.join(matrix);
            succeeded &= held;
        }
        if self.has(Share::Hunt) {
            let (worlds, held) = minutes.measure("hunt", || hunt(workspace))?;
            tally.join(worlds);
            succeeded &= held;
        }
        if self.has(Share::Mutants) {
            let (faults, held) = minutes.measure("planted faults", || mutants(workspace))?;
            tally.join(faults);
            succeeded &= held;
        }
        if self.has(Share::Soak) {
            let (rounds, held) = minutes.measure("soak", || soak(workspace));
            tally.join(rounds);
            succeeded &= held;
        }
        if let Some(site) = site {
            let ended = minutes.measure("the rest of cluster", || site.join());
            let (site, held) = ended.map_err(|_| anyhow::anyhow!("cluster: a panic"))??;
            tally.join(site);
            succeeded &= held;
        }
        if !self.skip.contains(&Part::Fuzz) {
            let (targets, held) = minutes.measure("fuzz targets", || self.fuzz(workspace))?;
            tally.join(targets);
            succeeded &= held;
        }
        println!("{}", minutes.table());
        if tally.ignored > 0 {
            println!("{} ignored", tally.ignored);
        }
        println!("{} passed, {} failed", tally.passed, tally.failed);
        Ok(Outcome::from_passed(succeeded && tally.failed == 0))
    }

    /// Whether a part is asked for.
    fn has(&self, share: Share) -> bool {
        self.long || self.with.contains(&share)
    }

    /// Runs the tests, the end-to-end ones beside all others: they mostly wait for daemons and networks. Whether cargo
    /// succeeded.
    fn tests(&self, workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
        let mut others = vec!["--lib".to_owned(), "--bins".to_owned()];
        for name in workspace.test_targets()?.into_iter().filter(|name| name != END_TO_END) {
            others.extend(["--test".to_owned(), name]);
        }
        let lane = |targets: &[String]| {
            let mut tally = Tally::default();
            let mut arguments = vec!["test", "--workspace", "--no-fail-fast"];
            arguments.extend(targets.iter().map(String::as_str));
            let threads = threads();
            arguments.extend(["--", &threads]);
            let tests = workspace.cargo(&arguments).env("PATH", &tools::search_path());
            let tests = match self.with.contains(&Share::Matrix) {
                true => tests.env("EVERY", SAMPLE),
                false => tests,
            };
            let succeeded = self.sized(tests).lines(|line| tally.add(line))?;
            anyhow::Ok((tally.closed(succeeded), succeeded))
        };
        let end_to_end = ["--test".to_owned(), END_TO_END.to_owned()];
        let documentation = ["--doc".to_owned()];
        let (first, second) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| lane(&end_to_end));
            let first = lane(&others).and_then(|others| Ok([others, lane(&documentation)?]));
            (first, beside.join())
        });
        let second = second.map_err(|_| anyhow::anyhow!("the end-to-end tests: a panic"))??;
        let mut tally = Tally::default();
        let mut succeeded = true;
        for (count, held) in first?.into_iter().chain([second]) {
            tally.join(count);
            succeeded &= held;
        }
        Ok((tally, succeeded))
    }

    /// Runs the fuzz targets; whether all of them held.
    fn fuzz(&self, workspace: &Workspace) -> anyhow::Result<(Tally, bool)> {
        let mut tally = Tally::default();
        let seconds = if self.long { "60" } else { "2" };
        let seed = seed(workspace);
        let arguments = [FUZZ, &[seconds, "--seed", &seed]].concat();
        // The debug build, with its overflow checks.
        let program = workspace.built("debug")?.join("fuzz");
        let fuzz = workspace.command(&program.to_string_lossy(), &arguments).called("fuzz");
        let held = fuzz.lines(|line| tally.add_target(line))?;
        Ok((tally.closed(held), held))
    }

    /// The tests, in the size that was asked for.
    fn sized(&self, tests: Cmd) -> Cmd {
        if self.long { tests.env(LONG, "1") } else { tests }
    }
}

/// The test target of the end-to-end tests.
const END_TO_END: &str = "all";

/// Tests at once: two for each processor, as those with daemons and networks mostly wait.
fn threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("--test-threads={}", 2 * processors)
}

/// Compiles all that [`Args::run`] runs, at once: cargo decides for the packages of one call which features
/// their dependencies have, and another call would compile half of the workspace again. End-to-end tests
/// run the programs as a site does, so these must be of this tree.
pub(crate) const COMPILED: &[&str] = &["build", "--workspace", "--bins", "--tests", "--examples"];

/// The duration of each step.
#[derive(Debug, Default)]
struct Minutes {
    steps: Vec<(&'static str, Duration)>,
}

impl Minutes {
    /// Runs a step and records its time.
    fn measure<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let (result, time) = timed(step);
        self.steps.push((name, time));
        result
    }

    /// The steps with their minutes and seconds, and the sum.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["step", "minutes"]);
        for (name, time) in &self.steps {
            table.add_row([(*name).to_owned(), minutes(*time)]);
        }
        let sum = self.steps.iter().map(|(_, time)| *time).sum();
        table.add_row(["together".to_owned(), minutes(sum)]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// `7:05` for seven minutes and five seconds.
fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
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

    /// Adds those of another part.
    fn join(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Adds the expectations of studies.
    fn add_studies(&mut self, count: studies::Count) {
        self.passed += count.passed;
        self.failed += count.failed;
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
    /// without a verdict: that counts as one failure, so that the closing line is true.
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
            Args { long, ..Args::default() }.sized(shell).output().unwrap().trim().to_owned()
        };
        assert_eq!((seen(true).as_str(), seen(false).as_str()), ("1", "as before"));
    }

    #[test]
    fn every_step_has_its_minutes() {
        let mut steps = Minutes::default();
        assert_eq!(steps.measure("compile", || 7), 7);
        steps.steps = vec![("compile", Duration::from_secs(425)), ("run", Duration::from_secs(59))];
        let table = steps.table().to_string();
        for row in [["compile", "7:05"], ["run", "0:59"], ["together", "8:04"]] {
            let found = table.lines().any(|line| line.split_whitespace().eq(row));
            assert!(found, "{row:?} in\n{table}");
        }
    }

    #[test]
    fn a_program_without_a_verdict_is_a_failure() {
        let tally = Tally { passed: 4, failed: 0, ignored: 0 };
        assert_eq!(tally.closed(false).failed, 1);
        assert_eq!(tally.closed(true), tally);
    }
}
