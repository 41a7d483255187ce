//! `lab run`: makes the runs of a study in parallel, keeps their results, and compares them with the
//! printed values.
//!
//! The results of a run are kept in a file, under a key of everything that decides them. So a study
//! that was stopped continues, and only changed runs are made again.

mod hypotheses;
mod idle;
mod keep;
mod library;
mod passed;
mod progress;
mod simulation_run;
mod sites;
mod testbed_run;

pub use hypotheses::{Contest, Tried, compete};
pub use library::{FoundStudy, find, names, policies, topologies};

use anyhow::{Context as _, Result, bail};
use emulator::DataPathKind;
use keep::Keep;
use progress::Progress;
use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use study::file::{AboveScale, Environments};
use study::measured::Environment;
use study::{Measured, Planned, Scale, StudyRow, Verdict};
use testbed::Programs;
use testbed::clock::is_interrupted;
use testbed_run::TestbedRunner;
use text::UsageError;

/// The options of `lab run`.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// Names of experiments, or of runs as `experiment/run`. Empty: all that are not optional.
    pub only: Vec<String>,
    /// Also the optional ones, and those that fit.
    pub all: bool,
    /// Also the runs that are made a second time to fit what is printed.
    pub fits: bool,
    /// The environment of runs that can be made in either.
    pub environment: Environment,
    /// The factor by which rates are multiplied and delays divided.
    pub scale: Scale,
    /// The seed; of a run that is made several times, that of the first.
    pub seed: u64,
    /// How often each run is made, in place of the number in the study.
    pub repeat: Option<u32>,
    /// The number of runs that are made at once, from 1.
    pub parallel: usize,
    /// The data path of the testbed.
    pub path: Option<DataPathKind>,
    /// The directory in which the results of runs are kept.
    pub directory: PathBuf,
    /// Whether runs with kept results are made again.
    pub again: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
}

/// How much faster than real time a simulation is expected to run, for the time left.
const VIRTUAL: u32 = 50;

/// The results of a study.
#[derive(Debug)]
pub struct RunnerOutcome {
    /// The selected runs, in the study's order.
    pub planned: Vec<Planned>,
    /// Their results, new or kept. A run that is made several times has several.
    pub measured: Vec<Measured>,
    /// The results beside the printed values.
    pub rows: Vec<StudyRow>,
    /// The results of the study's expectations.
    pub verdicts: Vec<Verdict>,
    /// Runs that could not be made, and why.
    pub failed: Vec<(String, String)>,
    /// Whether the user stopped it before the end.
    pub interrupted: bool,
}

/// A run to make.
struct Job {
    planned: Planned,
    environment: Environment,
    scale: Scale,
    seed: u64,
    /// Which of the times it is made, from 1.
    time: u32,
    expected: Duration,
}

impl Job {
    /// The name to show.
    fn name(&self) -> String {
        let again =
            if self.planned.repeat > 1 { format!(" #{}", self.time) } else { String::new() };
        format!("{}{again}", self.planned.id)
    }
}

/// Makes the selected runs of a study.
///
/// # Errors
/// The study is invalid, or has none of the selected runs ([`text::UsageError`]); a program is missing; the
/// directory cannot be written. [`RunnerOutcome::failed`] has the runs that fail.
pub fn run(found: &FoundStudy, options: &RunnerOptions) -> Result<RunnerOutcome> {
    let all = found.plan()?;
    let planned = wanted(found, &all, options)?;
    let keep = Keep::at(&options.directory, options.path)?;
    let mut jobs = Vec::new();
    for planned in &planned {
        for time in 1..=planned.repeat {
            jobs.push(job(planned, time, options)?);
        }
    }
    let kept = jobs.iter().map(|job| if options.again { None } else { keep.find(job) });
    let mut measured: Vec<Option<Measured>> = kept.collect();
    let progress = Progress::new(&jobs, &measured, options);
    let mut left: Vec<usize> =
        measured.iter().enumerate().filter(|(_, kept)| kept.is_none()).map(|(n, _)| n).collect();
    // Runs in real time first, the longest before the others. Then simulations: they keep a processor
    // busy, which would disturb what is timed.
    left.sort_by_key(|place| jobs.get(*place).map(|job| (job.environment, Reverse(job.expected))));
    for job in left.iter().filter_map(|place| jobs.get(*place)) {
        check(job).map_err(|wrong| UsageError::error(format!("{}: {wrong:#}", job.planned.id)))?;
    }
    let results = make_all(&jobs, &left, &keep, &progress, options)?;
    drop(progress);
    let mut failed = Vec::new();
    for (place, result) in results {
        match (result, measured.get_mut(place), jobs.get(place)) {
            (Ok(made), Some(slot), _) => *slot = Some(made),
            (Err(_), _, _) if is_interrupted() => {}
            (Err(error), _, Some(job)) => failed.push((job.name(), format!("{error:#}"))),
            _ => {}
        }
    }
    let measured: Vec<Measured> = measured.into_iter().flatten().collect();
    let rows = study::rows(&found.study, &planned, &measured);
    let verdicts = judged(found, &planned, &rows);
    Ok(RunnerOutcome { planned, measured, rows, verdicts, failed, interrupted: is_interrupted() })
}

/// Makes the jobs at these places, in their order, and keeps their results.
fn make_all(
    jobs: &[Job],
    left: &[usize],
    keep: &Keep,
    progress: &Progress,
    options: &RunnerOptions,
) -> Result<Vec<(usize, Result<Measured>)>> {
    let mut to_make = left.iter().filter_map(|place| jobs.get(*place));
    let on_testbed = to_make.any(|job| job.environment == Environment::Testbed);
    let runner = TestbedRunner {
        programs: if on_testbed { Programs::find()? } else { Programs::default() },
        path: options.path,
        seed: options.seed,
    };
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.parallel.clamp(1, 64).min(left.len()) {
            scope.spawn(|| {
                while let Some(place) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_interrupted() {
                        break;
                    }
                    let Some(job) = jobs.get(*place) else { break };
                    let line = progress.begin(job);
                    let result = make(&runner, job, &|what| line.set_message(what));
                    line.end(&result);
                    let kept = result.and_then(|measured| keep.put(job, measured));
                    if let Ok(mut results) = results.lock() {
                        results.push((*place, kept));
                    }
                }
            });
        }
    });
    Ok(results.into_inner().unwrap_or_default())
}

/// Finds faults that would otherwise only appear during a run.
fn check(job: &Job) -> Result<()> {
    network::NetworkMachine::new(&job.planned.topology, &job.planned.policies, job.seed)?;
    match job.environment {
        Environment::Testbed => match job.planned.tcp.simulated_only() {
            Some(name) => bail!("tcp.{name}: in simulation only"),
            None => Ok(()),
        },
        Environment::Simulation => simulation_run::check(&job.planned, job.seed),
    }
}

fn make(runner: &TestbedRunner, job: &Job, on_stage: testbed_run::OnStage<'_>) -> Result<Measured> {
    match job.environment {
        Environment::Testbed => {
            let runner = TestbedRunner { seed: job.seed, ..runner.clone() };
            runner.measure(&job.planned, job.scale, on_stage)
        }
        Environment::Simulation => simulation_run::measure(&job.planned, job.seed, on_stage),
    }
}

/// The selected runs.
fn wanted(found: &FoundStudy, all: &[Planned], options: &RunnerOptions) -> Result<Vec<Planned>> {
    let names = |planned: &Planned, name: &str| {
        let run = planned.id.split('[').next().unwrap_or_default();
        planned.experiment_name() == name || planned.id == name || run == name
    };
    let unknown = options.only.iter().find(|name| !all.iter().any(|one| names(one, name)));
    if let Some(name) = unknown {
        return Err(UsageError::error(format!(
            "{} has no experiment or run {name}: `lab list {}` has all",
            found.name, found.name
        )));
    }
    let is_further = |planned: &Planned| {
        found
            .study
            .experiments
            .get(planned.experiment)
            .is_some_and(|experiment| experiment.optional)
    };
    let is_wanted = |planned: &&Planned| {
        if !planned.fitted.is_empty() && !options.fits && !options.all {
            // Named as `experiment/run[fit]`.
            options.only.contains(&planned.id)
        } else if options.only.is_empty() {
            options.all || !is_further(planned)
        } else {
            options.only.iter().any(|name| names(planned, name))
        }
    };
    let repeated = |planned: &Planned| Planned {
        repeat: options.repeat.unwrap_or(planned.repeat),
        ..planned.clone()
    };
    Ok(all.iter().filter(is_wanted).map(repeated).collect())
}

/// What is made of a run the n-th time, from 1.
fn job(planned: &Planned, time: u32, options: &RunnerOptions) -> Result<Job> {
    let environment = match planned.environments {
        // What it does would not be seen on so fast a network.
        Environments::Any
            if planned.above_scale == AboveScale::Simulation
                && options.scale > planned.scale_most =>
        {
            Environment::Simulation
        }
        Environments::Any => options.environment,
        Environments::Testbed => Environment::Testbed,
        Environments::Simulation => Environment::Simulation,
    };
    // in the simulation nothing is won by a faster network.
    let scale = if environment == Environment::Testbed {
        options.scale.min(planned.scale_most)
    } else {
        Scale::ONE
    };
    let faster = planned.faster(scale).with_context(|| planned.id.clone());
    let faster = faster.map_err(|error| UsageError::error(format!("{error:#}")))?;
    // What was printed is as at the study's own rates.
    let expected = match planned.messages.is_empty() {
        true => expected(&faster).time,
        false => scale.time(expected(planned).time),
    };
    let expected = match environment {
        Environment::Testbed => expected,
        Environment::Simulation => expected / VIRTUAL,
    };
    let seed = options.seed.wrapping_add(u64::from(time.saturating_sub(1)));
    Ok(Job { planned: faster, environment, scale, seed, time, expected })
}

/// How long a run is likely to take at the study's own rates, each time it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// As long as was printed, or as its loads last; else as long as it may.
    pub time: Duration,
    /// Whether that is only the limit.
    pub at_most: bool,
}

/// How long a run is likely to take.
pub fn expected(planned: &Planned) -> Expected {
    let known = |time: Duration| Expected { time: time.min(planned.limit), at_most: false };
    let at_most = Expected { time: planned.limit, at_most: true };
    let printed = planned.messages.iter().map(|message| {
        let seconds = ["seconds", "seconds_more_than"].map(|key| message.paper.get(key).copied());
        seconds.into_iter().flatten().next()
    });
    let times = planned.loads.iter().filter_map(|load| Some(load.time?.0 + load.start.0));
    match printed.collect::<Option<Vec<f64>>>() {
        Some(printed) if !printed.is_empty() => {
            let longest = printed.into_iter().fold(0.0, f64::max);
            known(Duration::from_secs_f64(longest.clamp(0.0, 86_400.0)))
        }
        _ if planned.messages.is_empty() => times.max().map_or(at_most, known),
        _ => at_most,
    }
}

/// The expectations of experiments that were wanted whole or in part.
fn judged(found: &FoundStudy, planned: &[Planned], rows: &[StudyRow]) -> Vec<Verdict> {
    let mut verdicts = study::judge(&found.study, rows);
    verdicts.retain(|verdict| planned.iter().any(|p| p.experiment_name() == verdict.experiment));
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEATED: &str = r#"
title = "A load with chance in it"
network.topology = "pair"
[[experiment]]
name = "load"
title = "Chance"
shows = "What seeds do."
[[experiment.run]]
name = "udp"
limit = "10s"
repeat = 3
loads = [{ name = "udp", from = "alice", to = "bob", rate = "8Mbit", jitter_percent = 50, time = "1s" }]
"#;

    fn options(environment: Environment, scale: u32) -> RunnerOptions {
        RunnerOptions {
            only: Vec::new(),
            all: false,
            fits: false,
            environment,
            scale: Scale::whole(scale),
            seed: 7,
            repeat: None,
            parallel: 2,
            path: None,
            directory: PathBuf::new(),
            again: false,
            quiet: true,
        }
    }

    #[test]
    fn a_run_is_made_where_it_shows_something() {
        let planned = find("isode-nato-2007").unwrap().plan().unwrap();
        let planned = |id: &str| planned.iter().find(|planned| planned.id == id).unwrap();
        let made = |id: &str, environment, scale| {
            let job = job(planned(id), 1, &options(environment, scale)).unwrap();
            (job.environment, job.scale.factor() as u32)
        };
        assert_eq!(
            made("round2-wred-loaded/immediate-1MB", Environment::Testbed, 10),
            (Environment::Testbed, 10)
        );
        // On a faster network only the programs would be measured.
        assert_eq!(made("round1-single/1kB", Environment::Testbed, 10), (Environment::Testbed, 1));
        assert_eq!(
            made("round1-parallel/five", Environment::Testbed, 4),
            (Environment::Testbed, 4)
        );
        assert_eq!(
            made("round1-parallel/five", Environment::Testbed, 5),
            (Environment::Simulation, 1)
        );
        assert_eq!(
            made("round1-single/1MB", Environment::Simulation, 10),
            (Environment::Simulation, 1)
        );
        assert_eq!(
            made("round2-loaded-routine/routine-1MB", Environment::Testbed, 1).0,
            Environment::Simulation
        );
        // What is printed, else what its load lasts, else only the limit is known.
        let time = |id: &str| {
            let expected = expected(planned(id));
            (expected.time.as_secs(), expected.at_most)
        };
        assert_eq!(time("round1-parallel/two"), (177, false));
        assert_eq!(time("load-alone/load"), (60, false));
        assert_eq!(time("c3-one-queue/overlap"), (1_200, true));
    }

    #[test]
    fn a_run_that_is_repeated_has_a_seed_and_a_file_for_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("study.toml");
        std::fs::write(&file, REPEATED).unwrap();
        let found = find(file.to_str().unwrap()).unwrap();
        let mut options = options(Environment::Simulation, 1);
        options.directory = directory.path().join("out");
        let first = run(&found, &options).unwrap();
        let seeds: Vec<u64> = first.measured.iter().map(|measured| measured.seed).collect();
        assert_eq!((seeds, first.rows.len()), (vec![7, 8, 9], 1));
        let row = first.rows.first().unwrap();
        assert_eq!(row.repeats, 3);
        let rates: Vec<f64> =
            first.measured.iter().flat_map(|m| &m.loads).map(|load| load.kbit_s).collect();
        let mut sorted = rates.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(row.kbit_s, sorted.get(1).copied());
        assert_eq!(row.range["kbit_s"], (sorted.first().copied(), sorted.last().copied()));
        assert!(sorted.first() < sorted.last(), "another seed is another run: {rates:?}");

        // What is kept stands for itself, and a fourth time is one run more.
        let kept = || std::fs::read_dir(directory.path().join("out/runs")).unwrap().count();
        assert_eq!(kept(), 3);
        options.repeat = Some(4);
        let four = run(&found, &options).unwrap();
        assert_eq!((four.measured.get(..3), kept()), (Some(&first.measured[..]), 4));
        options.repeat = Some(1);
        let once = run(&found, &options).unwrap();
        assert_eq!((once.measured.first(), once.measured.len()), (first.measured.first(), 1));
        assert_eq!(once.rows.first().map(|row| (row.repeats, row.range.len())), Some((0, 0)));
    }

    #[test]
    fn a_simulated_row_that_lost_packets_has_the_factor_of_its_tcp() {
        let directory = tempfile::tempdir().unwrap();
        let mut found = find("tcp-models").unwrap();
        found.set("octets=200kB").unwrap();
        let mut options = options(Environment::Simulation, 1);
        options.directory = directory.path().to_owned();
        let made = run(&found, &options).unwrap();
        let more = |item: &str| {
            let row = made.rows.iter().find(|row| row.item == item).unwrap();
            ["tcp_factor", "tcp_loss_percent"].map(|name| row.more.get(name).copied())
        };
        assert_eq!(more("one/whole/flow"), [None, None]);
        let [factor, loss] = more("one/lossy/flow").map(Option::unwrap_or_default);
        // The line loses 1 percent by chance; it is the share of its own 200 segments and more.
        assert!(factor > 0.5 && loss > 0.0 && loss < 4.0, "{factor} {loss}");
    }

    #[test]
    fn the_studies_that_come_with_the_program_can_be_planned() {
        for name in names() {
            let found = find(name).unwrap();
            let planned = found.plan().unwrap();
            assert!(planned.len() > 10, "{name}");
            for planned in planned {
                let policies = &planned.policies;
                network::NetworkMachine::new(&planned.topology, policies, 1)
                    .unwrap_or_else(|wrong| panic!("{}: {wrong}", planned.id));
                planned.faster(Scale::whole(10)).unwrap();
                planned.faster("0.1".parse().unwrap()).unwrap();
            }
        }
        let error = find("no-such-study").unwrap_err();
        assert!(
            error.is::<UsageError>() && error.to_string().contains("isode-nato-2007"),
            "{error}"
        );
    }
}
