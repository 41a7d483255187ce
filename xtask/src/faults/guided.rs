//! `cargo xtask guided`: the fuzz targets under libFuzzer, which keeps inputs that reach new code.
//!
//! It runs on the stable toolchain: the coverage is that of LLVM's pass, which `-C passes` adds, and libFuzzer is built from
//! its crate by a C++ compiler. What it has reached is kept in `target/guided/` from run to run, and the time of each target
//! is added up in the log.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::Outcome;
use crate::command::Cmd;
use crate::workspace::Workspace;

/// Counters at each edge, the comparisons that decide them, and the code as checked as in the tests.
const FLAGS: &str = "-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Flags are for the target only, not for what runs while it is built.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Octets of the largest input.
const MOST: &str = "-max_len=65536";

/// Inputs that are kept for the repository: so small, and so many of each target.
const SMALL: u64 = 4_096;
const KEPT: usize = 48;

/// Runs the fuzz targets under libFuzzer on the stable toolchain, and prints for each how much code it reaches. What was
/// reached is kept, so that runs add up. Takes a C++ compiler (`apt-get install g++`).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Targets, with commas between; without, all
    #[arg(long, value_name = "NAMES")]
    only: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Targets at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Adds the time, the executions and the coverage of each target up in this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Runs nothing: writes the smallest inputs that reach what the corpus does not into fuzz/reached/
    #[arg(long)]
    keep: bool,
}

/// What is known of a target, of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    seconds: u64,
    executions: u64,
    /// Edges that the committed corpus reaches, and that are reached now.
    seeds: u64,
    reached: u64,
    findings: u64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let program = build(workspace)?;
        let targets = targets(workspace, self.only.as_deref())?;
        if self.keep {
            for target in &targets {
                let kept = Guided::new(workspace, &program, target).keep()?;
                println!("{target:16} {kept} inputs kept");
            }
            return Ok(Outcome::from_passed(true));
        }
        let rows = self.log.as_ref().map(|log| fs::read_to_string(log).unwrap_or_default());
        let mut rows = parse(&rows.unwrap_or_default());
        let (mut findings, seconds) = (0, self.seconds);
        println!(
            "{:16} {:>9} {:>12} {:>8} {:>8}  findings",
            "target", "seconds", "executions", "seeds", "edges"
        );
        for some in targets.chunks(self.jobs.max(1)) {
            let ended: Vec<anyhow::Result<Row>> = std::thread::scope(|scope| {
                let mut running = Vec::new();
                for target in some {
                    let guided = Guided::new(workspace, &program, target);
                    running.push(scope.spawn(move || guided.run(seconds)));
                }
                let lost = || Err(anyhow::anyhow!("the run of a target panicked"));
                running.into_iter().map(|one| one.join().unwrap_or_else(|_| lost())).collect()
            });
            for (target, row) in some.iter().zip(ended) {
                let row = row.with_context(|| target.clone())?;
                findings += row.findings;
                println!(
                    "{target:16} {:>9} {:>12} {:>8} {:>8}  {}",
                    row.seconds, row.executions, row.seeds, row.reached, row.findings
                );
                let all = rows.entry(target.clone()).or_default();
                all.seconds += row.seconds;
                all.executions += row.executions;
                all.findings += row.findings;
                (all.seeds, all.reached) = (row.seeds, all.reached.max(row.reached));
            }
            if let Some(log) = &self.log {
                fs::write(log, written(&rows)).with_context(|| format!("{}", log.display()))?;
            }
        }
        println!("{} targets, {findings} findings", targets.len());
        Ok(Outcome::from_passed(findings == 0))
    }
}

fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let found = Cmd::new("c++", &["--version"]).result().is_ok_and(|(works, _)| works);
    ensure!(found, "libFuzzer takes a C++ compiler: apt-get install g++");
    let built = workspace.root().join("target/guided/built");
    let manifest = "fuzz/guided/Cargo.toml";
    let arguments = ["build", "--release", "--target", HOST, "--manifest-path", manifest];
    let cargo = workspace.cargo(&arguments).env("RUSTFLAGS", FLAGS);
    cargo.env("CARGO_TARGET_DIR", &built.to_string_lossy()).run()?;
    Ok(built.join(HOST).join("release/guided"))
}

/// The targets of this name, or all.
fn targets(workspace: &Workspace, only: Option<&str>) -> anyhow::Result<Vec<String>> {
    let listed = workspace.cargo(&["run", "--quiet", "-p", "fuzz"]).output()?;
    let all: Vec<String> = (listed.lines())
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    let Some(only) = only else { return Ok(all) };
    let chosen: Vec<String> = only.split(',').map(str::to_owned).collect();
    match chosen.iter().find(|name| !all.contains(name)) {
        Some(name) => bail!("{name} names nothing: {}", all.join(" ")),
        None => Ok(chosen),
    }
}

/// A target under libFuzzer.
struct Guided<'a> {
    workspace: &'a Workspace,
    program: &'a Path,
    target: &'a str,
    fuzz: PathBuf,
    /// What was reached in all runs.
    reached: PathBuf,
    /// The committed corpus, as octets.
    seeds: PathBuf,
}

impl<'a> Guided<'a> {
    fn new(workspace: &'a Workspace, program: &'a Path, target: &'a str) -> Guided<'a> {
        let of = |kind: &str| workspace.root().join("target/guided").join(kind).join(target);
        let fuzz = workspace.root().join("fuzz");
        Guided { workspace, program, target, fuzz, reached: of("reached"), seeds: of("seeds") }
    }

    /// Writes the committed corpus as octets.
    fn prepare(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.reached)?;
        fs::create_dir_all(self.artifacts())?;
        if self.seeds.exists() {
            fs::remove_dir_all(&self.seeds)?;
        }
        let seeds = self.seeds.to_string_lossy();
        let arguments = ["run", "--quiet", "-p", "fuzz", "--", self.target, "--octets", &seeds];
        self.workspace.cargo(&arguments).output()?;
        Ok(())
    }

    fn artifacts(&self) -> PathBuf {
        self.fuzz.join("artifacts").join(self.target)
    }

    /// Runs libFuzzer with these arguments; whether it ended well, and what it printed.
    fn fuzz(&self, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        let prefix = format!("-artifact_prefix={}/", self.artifacts().display());
        let mut all = vec![prefix.as_str(), MOST, "-timeout=20", "-rss_limit_mb=2048"];
        all.extend(arguments);
        let fuzz = Cmd::new(&self.program.to_string_lossy(), &all);
        fuzz.env("FUZZ_TARGET", self.target).complaint()
    }

    fn run(&self, seconds: u64) -> anyhow::Result<Row> {
        self.prepare()?;
        let (reached, seeds) = (self.reached.to_string_lossy(), self.seeds.to_string_lossy());
        let (is_well, first) = self.fuzz(&["-runs=0", &seeds])?;
        ensure!(is_well, "the committed corpus fails:\n{}", end_of(&first));
        let time = format!("-max_total_time={seconds}");
        let (is_well, printed) = self.fuzz(&[&time, "-print_final_stats=1", &reached, &seeds])?;
        if !is_well {
            println!("{}: {}", self.target, end_of(&printed));
        }
        Ok(Row {
            seconds,
            executions: number_after(&printed, "stat::number_of_executed_units:").unwrap_or(0),
            seeds: number_after(&first, " cov: ").unwrap_or(0),
            reached: number_after(&printed, " cov: ").unwrap_or(0),
            findings: u64::from(!is_well),
        })
    }

    /// Writes the smallest inputs that reach what the committed corpus does not.
    fn keep(&self) -> anyhow::Result<usize> {
        self.prepare()?;
        let before: Vec<_> = names(&self.seeds)?;
        let (seeds, reached) = (self.seeds.to_string_lossy(), self.reached.to_string_lossy());
        let (is_well, printed) = self.fuzz(&["-merge=1", &seeds, &reached])?;
        ensure!(is_well, "{}", end_of(&printed));
        let mut new: Vec<(u64, String)> = Vec::new();
        for name in names(&self.seeds)?.into_iter().filter(|name| !before.contains(name)) {
            new.push((fs::metadata(self.seeds.join(&name))?.len(), name));
        }
        new.sort();
        let folder = self.fuzz.join("reached").join(self.target);
        let mut kept = 0;
        for (_, name) in new.iter().filter(|(octets, _)| *octets <= SMALL).take(KEPT) {
            fs::create_dir_all(&folder)?;
            let short: String = name.chars().take(12).collect();
            fs::copy(self.seeds.join(name), folder.join(format!("{short}.bin")))?;
            kept += 1;
        }
        Ok(kept)
    }
}

fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let files = fs::read_dir(folder)?;
    files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect()
}

/// The last number behind this text.
fn number_after(printed: &str, text: &str) -> Option<u64> {
    let at = printed.rfind(text)? + text.len();
    printed.get(at..)?.split_whitespace().next()?.parse().ok()
}

fn end_of(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().collect();
    lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n")
}

const HEADER: &str = "target\tseconds\texecutions\tedges of the corpus\tedges\tfindings\n";

fn written(rows: &BTreeMap<String, Row>) -> String {
    let mut text = HEADER.to_owned();
    for (target, row) in rows {
        let Row { seconds, executions, seeds, reached, findings } = row;
        let _ = writeln!(text, "{target}\t{seconds}\t{executions}\t{seeds}\t{reached}\t{findings}");
    }
    text
}

fn parse(text: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split('\t');
        let Some(target) = fields.next() else { continue };
        let mut number = || fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
        let (seconds, executions) = (number(), number());
        let (seeds, reached, findings) = (number(), number(), number());
        rows.insert(target.to_owned(), Row { seconds, executions, seeds, reached, findings });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_as_it_was_written() {
        let row = Row { seconds: 60, executions: 7, seeds: 100, reached: 120, findings: 1 };
        let rows = BTreeMap::from([("session".to_owned(), row)]);
        assert_eq!(parse(&written(&rows)), rows);
    }

    #[test]
    fn numbers_are_the_last_that_libfuzzer_prints() {
        let printed = "#5 INITED cov: 3 ft: 4\n#9 DONE cov: 12 ft: 15 corp: 2/3b\n";
        assert_eq!(number_after(printed, " cov: "), Some(12));
        assert_eq!(number_after(printed, "stat::"), None);
    }
}
