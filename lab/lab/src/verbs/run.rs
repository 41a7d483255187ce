//! `lab run`: a study, repeated.

use anyhow::{Context as _, Result};
use emulator::DataPathKind;
use runner::{RunnerOptions, RunnerOutcome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study::Scale;
use study::measured::Environment;

/// Something could not be done, and something was.
const IN_PART: u8 = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study: one of `lab list`, or a file
    study: String,
    /// Only these experiments, or runs as EXPERIMENT/RUN
    only: Vec<String>,
    /// Also the experiments that are left out unless they are named
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// Also, in simulation, the runs with values that were chosen to fit each printed one
    #[arg(long)]
    fits: bool,
    /// Compare the study's rival explanations of what was printed, all or these: each makes the runs with
    /// printed values in simulation, under its own settings, and is scored over all of them
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["only", "all", "scale", "path", "summary"])]
    hypotheses: Option<Vec<String>>,
    /// In simulation: the same router and MTA, with TCP in this program and simulated time
    #[arg(long, alias = "virtual")]
    simulation: bool,
    /// A network that is so much faster, 0.001 to 1000: every rate times this, every delay divided by
    /// it; 0.1 is slower
    #[arg(long, default_value_t = Scale::ONE)]
    scale: Scale,
    /// This parameter has this value in all runs but those that vary it; VALUE as TOML, or a bare word.
    /// May be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// For droppers, jitter, loss and load
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Make each run so many times, each with the next seed, and show medians; the study's number
    /// where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(study::MAX_REPEAT)))]
    repeat: Option<u32>,
    /// So many runs at once; the processors of this machine where absent
    #[arg(long)]
    parallel: Option<usize>,
    /// How packets get from the hosts to the routers; see `lab doctor`
    #[arg(long, value_enum)]
    path: Option<DataPathKind>,
    /// Where runs are kept, and the report; default: results/STUDY-SCALE
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Make again what is kept
    #[arg(long)]
    again: bool,
    /// Write all numbers to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the rows, the score and what is outside to this file, small enough to be kept: see `lab report`
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Show nothing while it runs
    #[arg(long)]
    quiet: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut found = runner::find(&self.study)?;
        self.set.iter().try_for_each(|set| found.set(set))?;
        ctrlc::set_handler(testbed::clock::interrupt).context("for Ctrl-C")?;
        let directory = self.out.clone().unwrap_or_else(|| {
            let environment = match (&self.hypotheses, self.simulation) {
                (Some(_), _) => "hypotheses".to_owned(),
                (None, true) => "simulation".to_owned(),
                (None, false) => format!("x{}", self.scale),
            };
            Path::new("results").join(format!("{}-{environment}", found.name))
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let options = RunnerOptions {
            only: self.only,
            all: self.all,
            fits: self.fits,
            environment: if self.simulation {
                Environment::Simulation
            } else {
                Environment::Testbed
            },
            scale: self.scale,
            seed: self.seed,
            repeat: self.repeat,
            parallel: self.parallel.unwrap_or(cores),
            path: self.path,
            directory,
            again: self.again,
            quiet: self.quiet,
        };
        let mut machine = machine();
        if !self.set.is_empty() {
            machine.more.insert("set on the command line".to_owned(), self.set.join(", "));
        }
        if let Some(names) = &self.hypotheses {
            return compare(&found, names, &options, &machine, self.json.as_deref());
        }
        let mut outcome = runner::run(&found, &options)?;
        // The headline's numbers are those of the first seed, made once.
        let is_usual = options.only.is_empty()
            && self.set.is_empty()
            && options.seed == 1
            && options.repeat.is_none();
        let floors = if is_usual {
            report::floors(&report_of(&found, &outcome, &machine))
        } else {
            Vec::new()
        };
        outcome.verdicts.extend(floors);
        let report = report_of(&found, &outcome, &machine);
        report.write(&options.directory).context("writing the report")?;
        if let Some(file) = &self.summary {
            let summary = report::Summary::from_report(&report, &found.name, found.inputs()?);
            std::fs::write(file, summary.json()?).with_context(|| file.display().to_string())?;
        }
        let printed = match &self.json {
            Some(file) if file.as_os_str() == "-" => report.json()?,
            Some(file) => {
                std::fs::write(file, report.json()?).with_context(|| file.display().to_string())?;
                report.text()
            }
            None => report.text(),
        };
        for set in &self.set {
            super::note(&format!("set on the command line: {set}"));
        }
        super::print(&format!("{}\n", printed.trim_end()))?;
        for (id, why) in &outcome.failed {
            super::note(&format!("failed: {id}: {why}"));
        }
        if outcome.interrupted {
            super::note("stopped: the same command makes what is missing");
        }
        super::note(&format!("report: {}", options.directory.join("report.html").display()));
        Ok(code(&outcome, options.only.is_empty()))
    }
}

fn report_of<'a>(
    found: &'a runner::FoundStudy,
    outcome: &'a RunnerOutcome,
    machine: &'a report::Machine,
) -> report::StudyReport<'a> {
    report::StudyReport {
        study: &found.study,
        planned: &outcome.planned,
        measured: &outcome.measured,
        rows: &outcome.rows,
        verdicts: &outcome.verdicts,
        machine,
    }
}

/// Compares the rival explanations of a study.
fn compare(
    found: &runner::FoundStudy,
    names: &[String],
    options: &RunnerOptions,
    machine: &report::Machine,
    json: Option<&Path>,
) -> Result<ExitCode> {
    let contest = runner::compete(found, names, options)?;
    let distinguishing = &found.study.distinguish.items;
    let made = contest.tried.iter().filter(|one| !one.rows.is_empty());
    let scores: Vec<report::HypothesisScore> = made
        .map(|one| {
            report::HypothesisScore::new(&one.rival, &one.planned, &one.rows, distinguishing)
        })
        .collect();
    let is_whole = scores.len() == contest.tried.len();
    let is_empty = scores.is_empty();
    let all = report::Hypotheses::new(&found.study, machine, found.hypotheses_inputs()?, scores);
    let report = report::StudyReport {
        study: &found.study,
        planned: &[],
        measured: &[],
        rows: &[],
        verdicts: &[],
        machine,
    };
    all.write(&options.directory, &report).context("writing the report")?;
    let printed = match json {
        Some(file) if file.as_os_str() == "-" => all.json()?,
        Some(file) => {
            std::fs::write(file, all.json()?).with_context(|| file.display().to_string())?;
            all.text()
        }
        None => all.text(),
    };
    super::print(&format!("{}\n", printed.trim_end()))?;
    for (id, why) in &contest.failed {
        super::note(&format!("failed: {id}: {why}"));
    }
    super::note(&format!("report: {}", options.directory.join("report.html").display()));
    Ok(
        match (
            is_empty && !contest.interrupted,
            is_whole && contest.failed.is_empty() && !contest.interrupted,
        ) {
            (true, _) => ExitCode::FAILURE,
            (false, true) => ExitCode::SUCCESS,
            (false, false) => ExitCode::from(IN_PART),
        },
    )
}

/// The machine, the command and the time of the run.
fn machine() -> report::Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let memory = read("/proc/meminfo");
    let memory = memory.lines().next().and_then(|line| line.split_whitespace().nth(1));
    let memory = memory.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default();
    let micros = u64::try_from(testbed::clock::since_1970().as_micros()).unwrap_or_default();
    let mut arguments = std::env::args().skip(1);
    report::Machine {
        date: base::Utc(micros).to_string(),
        command: arguments.by_ref().fold("lab".to_owned(), |all, one| format!("{all} {one}")),
        kernel: read("/proc/sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism().map_or(0, usize::from).to_string(),
        memory: format!("{} MiB", memory / 1_024),
        ..report::Machine::default()
    }
}

fn code(outcome: &RunnerOutcome, is_all: bool) -> ExitCode {
    let broken = outcome.verdicts.iter().any(|verdict| verdict.holds == Some(false));
    let is_nothing = outcome.measured.is_empty() && !outcome.interrupted;
    if is_nothing || broken {
        ExitCode::FAILURE
    } else if outcome.interrupted || !outcome.failed.is_empty() || (is_all && unknown(outcome)) {
        ExitCode::from(IN_PART)
    } else {
        ExitCode::SUCCESS
    }
}

/// Whether an expectation is not known though all its experiment's runs were made.
fn unknown(outcome: &RunnerOutcome) -> bool {
    let is_whole = |experiment: &str| {
        let mut planned = outcome.planned.iter().filter(|p| p.experiment_name() == experiment);
        planned.all(|planned| outcome.measured.iter().any(|measured| measured.id == planned.id))
    };
    let mut unknown = outcome.verdicts.iter().filter(|verdict| verdict.holds.is_none());
    unknown.any(|verdict| is_whole(&verdict.experiment))
}
