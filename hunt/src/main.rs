//! `hunt`: plays worlds from seeds until something is broken, or the time is over.

use clap::Parser;
use hunt::{Outcome, Size, World, draw, run, shrink};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Plays networks of MTAs in virtual time, each drawn from a seed with all that goes wrong in it, and checks that nothing
/// acknowledged is lost, doubled or altered.
#[derive(Debug, Parser)]
struct Args {
    /// Plays this seed alone, and prints its story
    #[arg(long)]
    seed: Option<u64>,
    /// Plays the world in this file alone
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    world: Option<PathBuf>,
    /// Writes the world that was played into this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// With --seed or --world: writes a recording of each process of each site into this directory, for `mta replay`
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// The first seed; each world has the next one
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Plays so many worlds
    #[arg(long)]
    seeds: Option<u64>,
    /// Plays worlds for so many minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// Plays worlds until it is stopped
    #[arg(long)]
    forever: bool,
    /// Plays the worlds in the files of this folder first
    #[arg(long, value_name = "FOLDER")]
    first: Option<PathBuf>,
    /// Adds a line on this run to a file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Worlds of two sites only
    #[arg(long)]
    pair: bool,
    /// Worlds at the same time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Goes on after a world that fails
    #[arg(long)]
    go_on: bool,
    /// The whole world that fails, not a smaller one
    #[arg(long)]
    whole: bool,
    /// Prints what is broken, and no story
    #[arg(long)]
    brief: bool,
}

impl Args {
    fn size(&self) -> Size {
        if self.pair { Size::PAIR } else { Size::NETWORK }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (&args.world, args.seed) {
        (Some(file), _) => read(file).and_then(|world| one(&args, world)),
        (None, Some(seed)) => one(&args, draw(seed, args.size())),
        (None, None) => kept(&args).map(|worlds| many(&args, &worlds)),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hunt: {error}");
            ExitCode::from(2)
        }
    }
}

fn read(file: &Path) -> Result<World, String> {
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The worlds in the folder that is to be played first.
fn kept(args: &Args) -> Result<Vec<World>, String> {
    let Some(folder) = &args.first else { return Ok(Vec::new()) };
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(named)?;
    let files: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut files = files.map_err(named)?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

/// Plays one world, and prints its story.
fn one(args: &Args, world: World) -> Result<ExitCode, String> {
    let mut world = world;
    let outcome = run(&world, None, false);
    if !outcome.failures.is_empty() && !args.whole {
        world = shrink(&world, None, 400);
    }
    testkit::record_nodes(args.record.is_some());
    let outcome = run(&world, None, true);
    if let Some(directory) = &args.record {
        write_recordings(directory, &world, &outcome)?;
    }
    print_story(&world, &outcome);
    let is_well = outcome.failures.is_empty();
    if let Some(file) = &args.save {
        let text = serde_json::to_string_pretty(&world).map_err(|error| error.to_string())?;
        std::fs::write(file, text + "\n").map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_story(world: &World, outcome: &Outcome) {
    println!("{world}\n{}", outcome.story);
    for failure in &outcome.failures {
        println!("{failure}");
    }
    let is_well = outcome.failures.is_empty();
    println!("seed {}: {}", world.seed, if is_well { "all is well" } else { "broken" });
}

/// A file for each process of each site: `seed-5-site-0-process-1.record`.
fn write_recordings(directory: &Path, world: &World, outcome: &Outcome) -> Result<(), String> {
    for (site, processes) in outcome.recordings.iter().enumerate() {
        for (recording, process) in processes.iter().zip(1..) {
            let name = format!("seed-{}-site-{site}-process-{process}.record", world.seed);
            let file = directory.join(name);
            std::fs::write(&file, recording).map_err(|e| format!("{}: {e}", file.display()))?;
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Sums {
    is_pair: bool,
    worlds: u64,
    broken: Vec<u64>,
    lasted: Duration,
    longest: Option<(Duration, u64)>,
    deliveries: usize,
    reports: usize,
    deaths: usize,
    /// How often each kind of event was drawn.
    events: BTreeMap<String, u64>,
    /// When progress was shown last.
    shown: Duration,
    /// The first worlds that failed: their stories are printed.
    failed: Vec<World>,
}

impl Sums {
    /// A line for the log, which is made if there is none.
    fn log(&self, file: &Path, args: &Args, seconds: f64) -> std::io::Result<()> {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        if log.metadata()?.len() == 0 {
            log.write_all(HEADER.as_bytes())?;
        }
        let events: Vec<String> =
            self.events.iter().map(|(kind, times)| format!("{kind} {times}")).collect();
        let broken: Vec<String> = self.broken.iter().map(u64::to_string).collect();
        let line = format!(
            "{}\t{}\t{}\t{:.1}\t{:.0}\t{}\t{}\t{}\t{}\t{}\n",
            args.from,
            self.worlds,
            if args.pair { "2" } else { "2-6" },
            seconds / 60.0,
            self.lasted.as_secs_f64() / 3600.0,
            self.deliveries,
            self.reports,
            self.deaths,
            events.join(", "),
            if broken.is_empty() { "none".to_owned() } else { broken.join(" ") }
        );
        log.write_all(line.as_bytes())
    }

    /// A line that is written over, where somebody looks.
    fn show_progress(&mut self, elapsed: Duration) {
        if std::io::stderr().is_terminal() && elapsed >= self.shown + Duration::from_secs(1) {
            self.shown = elapsed;
            let (worlds, broken, seconds) = (self.worlds, self.broken.len(), elapsed.as_secs());
            eprint!("\r{worlds} worlds, {broken} broken, {seconds} s ");
        }
    }

    fn add(&mut self, world: &World, outcome: &Outcome) {
        let seed = world.seed;
        self.worlds += 1;
        for event in &world.events {
            let kind = format!("{:?}", event.what);
            let kind = kind.split('(').next().unwrap_or_default().to_lowercase();
            *self.events.entry(kind).or_default() += 1;
        }
        self.lasted += outcome.lasted;
        self.deliveries += outcome.deliveries;
        self.reports += outcome.reports;
        self.deaths += outcome.deaths;
        self.longest = self.longest.max(outcome.drained.map(|time| (time, seed)));
        if !outcome.failures.is_empty() {
            self.broken.push(seed);
            if self.failed.len() < STORIES {
                self.failed.push(world.clone());
            }
            println!("seed {seed}: {} failures", outcome.failures.len());
            for failure in outcome.failures.iter().take(4) {
                println!("    {failure}");
            }
            println!(
                "    again: cargo xtask hunt{} --seed {seed}",
                if self.is_pair { " --pair" } else { "" }
            );
        }
    }
}

/// Of so many worlds that fail the stories are printed.
const STORIES: usize = 2;

const HEADER: &str = "first seed\tworlds\tsites\tminutes\thours of virtual time\tdeliveries\treports\tdeaths\tevents\tbroken\n";

/// Plays worlds until the time is over or one is broken.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for the person who waits")]
fn many(args: &Args, kept: &[World]) -> ExitCode {
    let begin = Instant::now();
    let limit = args.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let last = args.seeds.map(|seeds| args.from + seeds);
    let (next, stops) = (AtomicU64::new(args.from), AtomicBool::new(false));
    let mut first = Sums { is_pair: args.pair, ..Sums::default() };
    for world in kept {
        first.add(world, &run(world, None, false));
    }
    stops.store(!first.broken.is_empty() && !args.go_on, Ordering::Relaxed);
    let sums = Mutex::new(first);
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = limit.is_some_and(|limit| begin.elapsed() >= limit)
                        || last.is_some_and(|last| seed >= last)
                        || stops.load(Ordering::Relaxed);
                    if is_over {
                        return;
                    }
                    let world = draw(seed, args.size());
                    let outcome = run(&world, None, false);
                    let failed = !outcome.failures.is_empty();
                    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                    sums.add(&world, &outcome);
                    sums.show_progress(begin.elapsed());
                    drop(sums);
                    if failed && !args.go_on {
                        stops.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = begin.elapsed().as_secs_f64();
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    println!(
        "{} worlds in {seconds:.1} s ({:.1}/s), {:.1} h of virtual time, {} deliveries, {} reports, {} deaths, \
         longest drain {}, {} broken {}",
        sums.worlds,
        sums.worlds as f64 / seconds,
        sums.lasted.as_secs_f64() / 3600.0,
        sums.deliveries,
        sums.reports,
        sums.deaths,
        sums.longest.map_or("none".to_owned(), |(time, seed)| format!("{time:.0?} (seed {seed})")),
        sums.broken.len(),
        sums.broken.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    );
    for world in sums.failed.iter().filter(|_| !args.brief) {
        println!("\nseed {} made small:", world.seed);
        let world = if args.whole { world.clone() } else { shrink(world, None, 400) };
        print_story(&world, &run(&world, None, true));
    }
    if let Some(file) = &args.log
        && let Err(error) = sums.log(file, args, seconds)
    {
        eprintln!("hunt: {}: {error}", file.display());
        return ExitCode::from(2);
    }
    if sums.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
