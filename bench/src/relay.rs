//! `cargo xtask bench relay`: submitted and committed at one MTA, carried over P1, committed at
//! another, delivered to a user who keeps it.

use super::disk::Disk;
use super::results::{Idle, Large, RelayResults, RelayRow};
use super::{Programs, build, close, login, user};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use load::{Login, Plan};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::clock::{self, Deadline};
use testbed::{Pair, PeerSettings, Site};

/// Seconds for which each row submits.
const SECONDS: f64 = 4.0;
/// Most associations in the table by size.
const ASSOCIATIONS: u32 = 16;
/// Sizes of the text, in octets.
const SIZES: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// The numbers of users that submit at once.
const SUBMITTERS: [usize; 3] = [1, 8, 64];
/// Associations of the channel, for the curve at 1 kB.
const CURVE: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Octets of text in one row at most: bounds the time of rows that are slow to drain.
const MAX_OCTETS: usize = 640_000_000;
/// Messages in one row at most.
const MAX_MESSAGES: usize = 60_000;
/// Messages of the latency row, one at a time.
const IDLE_MESSAGES: u64 = 200;
/// Their distance.
const IDLE_PAUSE: u64 = 20;
/// Transfers of the memory row.
const AT_ONCE: usize = 32;
/// A row fails once nothing was delivered for this long: a slow disk only makes it longer.
const DRAIN: Duration = Duration::from_secs(60);
/// Longest row: what bounds a load whose messages trickle.
const LONGEST: Duration = Duration::from_secs(1_800);
/// Interval of queries of the daemon's status: each one is a process that reads the whole queue,
/// whose cost must not be measured.
const LOOK: Duration = Duration::from_millis(500);
/// Longest opening of the first association.
const OPEN: Duration = Duration::from_secs(20);

/// Two sites on loopback, release builds, real disks: messages a second by size and number of
/// parallel submitters, by number of associations, the latency of a single one, and the memory of
/// 32 times 10 MB at once; beside what the disk itself syncs. Takes some 4 minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds for which each row submits
    #[arg(long, default_value_t = SECONDS)]
    seconds: f64,
    /// Most associations of the channel in the table by size
    #[arg(long, default_value_t = ASSOCIATIONS)]
    associations: u32,
    /// Only these parts
    #[arg(long, value_delimiter = ',', default_values_t = [Part::Sizes, Part::Curve, Part::Idle, Part::Memory])]
    only: Vec<Part>,
    /// Only these sizes in octets, in the table by size
    #[arg(long, value_delimiter = ',', default_values_t = SIZES)]
    size: Vec<usize>,
    /// Only these numbers of submitters, in the table by size
    #[arg(long, value_delimiter = ',', default_values_t = SUBMITTERS)]
    submitters: Vec<usize>,
    /// Both MTAs without `[tracking]`, for what it costs
    #[arg(long)]
    without_tracking: bool,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Sizes,
    Curve,
    Idle,
    Memory,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Sizes => "sizes",
            Part::Curve => "curve",
            Part::Idle => "idle",
            Part::Memory => "memory",
        })
    }
}

/// One thing to measure on a pair of sites.
#[derive(Clone, Copy)]
struct Task {
    size: usize,
    submitters: usize,
    associations: u32,
}

struct Bench<'a> {
    programs: &'a Programs,
    seconds: f64,
    tracks: bool,
    progress: ProgressBar,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let report = self.measure(&programs)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", report.text());
        }
        Ok(Outcome::from_passed(report.is_sound()))
    }

    /// All that is to be done by default.
    pub(super) fn whole() -> Args {
        Args {
            json: true,
            seconds: SECONDS,
            associations: ASSOCIATIONS,
            only: vec![Part::Sizes, Part::Curve, Part::Idle, Part::Memory],
            size: SIZES.to_vec(),
            submitters: SUBMITTERS.to_vec(),
            without_tracking: false,
            programs: None,
        }
    }

    /// Does what is wanted.
    pub(super) fn measure(&self, programs: &Programs) -> Result<RelayResults> {
        let tracks = !self.without_tracking;
        let progress = bar(self.steps());
        let bench = Bench { programs, seconds: self.seconds, tracks, progress };
        let report = bench.all(self);
        bench.progress.finish_and_clear();
        if clock::is_interrupted() {
            bail!("interrupted; both daemons are ended and their directories removed");
        }
        report
    }

    fn steps(&self) -> usize {
        let wants = |part| usize::from(self.only.contains(&part));
        wants(Part::Sizes) * self.size.len() * self.submitters.len()
            + wants(Part::Curve) * CURVE.len()
            + wants(Part::Idle)
            + wants(Part::Memory)
    }
}

fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(steps).unwrap_or(u64::MAX));
    let template = "{spinner:.cyan} [{bar:30.cyan}] {pos:>2}/{len} {msg} ({elapsed}, {eta} left)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

impl Bench<'_> {
    fn all(&self, args: &Args) -> Result<RelayResults> {
        let mut report = RelayResults::default();
        let wants = |part| args.only.contains(&part);
        if wants(Part::Sizes) || wants(Part::Idle) {
            let most = args.submitters.iter().copied().max().unwrap_or(1);
            let mut pair = self.pair(args.associations, most)?;
            let measured = self.sizes(&pair, args, &mut report);
            close(&mut pair, measured)?;
        }
        if wants(Part::Curve) {
            for associations in CURVE {
                let submitters = SUBMITTERS[2];
                let mut pair = self.pair(associations, submitters)?;
                let task = Task { size: SIZES[0], submitters, associations };
                let measured = self.row(&pair, task);
                report.curve.push(close(&mut pair, measured)?);
            }
        }
        if wants(Part::Memory) {
            let associations = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
            let mut pair = self.pair(associations, AT_ONCE)?;
            let measured = self.large(&pair);
            report.large = Some(close(&mut pair, measured)?);
        }
        Ok(report)
    }

    /// What is measured without other settings of the sites.
    fn sizes(&self, pair: &Pair, args: &Args, report: &mut RelayResults) -> Result<()> {
        report.disk_before = Some(Disk::measure(pair.naples.path())?);
        if args.only.contains(&Part::Idle) {
            report.idle = Some(self.idle(pair)?);
        }
        if args.only.contains(&Part::Sizes) {
            for &size in &args.size {
                for &submitters in &args.submitters {
                    let task = Task { size, submitters, associations: args.associations };
                    report.sizes.push(self.row(pair, task)?);
                }
            }
        }
        report.disk_after = Some(Disk::measure(pair.naples.path())?);
        Ok(())
    }

    /// Two sites with so many users each, joined by one channel for all precedences.
    fn pair(&self, associations: u32, users: usize) -> Result<Pair> {
        self.progress.set_message(format!("{users} users at each of two sites"));
        let peer =
            PeerSettings { associations: Some((associations, 1)), ..PeerSettings::default() };
        let names: Vec<String> = (0..users).map(user).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let builder = Pair::builder(peer)?.programs(&self.programs.site);
        let with =
            |site: testbed::SiteBuilder| site.users(&names).set("tracking.enabled", self.tracks);
        let pair = builder.each(with).start()?;
        let first = |site: &Site| {
            site.wait_until("an association", OPEN, |status| {
                status.associations().any(|a| a.state == "idle")
            })
        };
        first(&pair.naples)?;
        first(&pair.act)?;
        Ok(pair)
    }

    fn plan(&self, pair: &Pair, task: Task) -> Plan {
        let users = |site: &Site| -> Vec<Login> {
            (0..task.submitters).map(|n| login(site, &user(n))).collect()
        };
        let most = (MAX_OCTETS / task.size).clamp(task.submitters, MAX_MESSAGES);
        Plan {
            submitters: users(&pair.naples),
            receivers: users(&pair.act),
            size: task.size,
            precedence: base::Precedence::Routine,
            seconds: self.seconds,
            count: u64::try_from(most).unwrap_or(u64::MAX),
            pause_ms: None,
            rate: None,
            drain_seconds: DRAIN.as_secs_f64(),
            delivery_file: pair.act.path().join("deliveries"),
            held: false,
        }
    }

    /// Runs the load beside us; `look` is called now and then while it runs.
    fn load(&self, pair: &Pair, plan: &Plan, mut look: impl FnMut()) -> Result<load::Outcome> {
        let path = pair.naples.path().join("plan.json");
        std::fs::write(&path, serde_json::to_vec(plan)?).context("writing the plan")?;
        let mut command = Command::new(&self.programs.load);
        command.arg(&path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("starting the load")?;
        let limit = Duration::from_secs_f64(plan.seconds) + LONGEST + OPEN;
        let mut next = Deadline::after(LOOK);
        let ended = Deadline::after(limit).wait_for("the end of the load", || {
            if next.has_passed() {
                look();
                next = Deadline::after(LOOK);
            }
            Ok(child.try_wait()?)
        });
        if ended.is_err() {
            let _ = child.kill();
        }
        let output = child.wait_with_output().context("the load")?;
        if !ended?.success() {
            bail!("the load failed");
        }
        serde_json::from_slice(&output.stdout).context("the load's output")
    }

    fn row(&self, pair: &Pair, task: Task) -> Result<RelayRow> {
        let Task { size, submitters, associations } = task;
        self.progress.set_message(format!(
            "{size} octets, {submitters} submitters, up to {associations} associations"
        ));
        let spent = |site: &Site| site.processor_time();
        let before = (spent(&pair.naples)?, spent(&pair.act)?);
        let mut used = 0;
        let plan = self.plan(pair, task);
        let outcome = self.load(pair, &plan, || used = used.max(transferring(&pair.naples)))?;
        let naples = spent(&pair.naples)?.saturating_sub(before.0);
        let act = spent(&pair.act)?.saturating_sub(before.1);
        self.progress.inc(1);
        Ok(RelayRow::new((size, submitters), (associations, used), &outcome, [naples, act]))
    }

    fn idle(&self, pair: &Pair) -> Result<Idle> {
        self.progress.set_message("one message at a time".to_owned());
        let task = Task { size: SIZES[0], submitters: 1, associations: 1 };
        let plan = Plan {
            pause_ms: Some(IDLE_PAUSE),
            count: IDLE_MESSAGES,
            seconds: DRAIN.as_secs_f64(),
            ..self.plan(pair, task)
        };
        let outcome = self.load(pair, &plan, || {})?;
        self.progress.inc(1);
        Ok(Idle::new(&outcome))
    }

    fn large(&self, pair: &Pair) -> Result<Large> {
        self.progress.set_message(format!("{AT_ONCE} times 10 MB at once"));
        let idle = [pair.naples.memory()?.resident, pair.act.memory()?.resident];
        let task = Task { size: SIZES[4], submitters: AT_ONCE, associations: 32 };
        let count = u64::try_from(4 * AT_ONCE).unwrap_or(u64::MAX);
        let plan = Plan { seconds: DRAIN.as_secs_f64(), count, ..self.plan(pair, task) };
        let mut used = 0;
        let outcome = self.load(pair, &plan, || used = used.max(transferring(&pair.naples)))?;
        self.progress.inc(1);
        let peak = [pair.naples.memory()?.peak, pair.act.memory()?.peak];
        Ok(Large::new(used, &outcome, idle, peak))
    }
}

/// Associations of a site that carry a message now.
fn transferring(site: &Site) -> usize {
    let status = site.status();
    status.map_or(0, |s| s.associations().filter(|a| a.state == "sending").count())
}
