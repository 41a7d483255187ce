//! One trial: the world, the traffic and the faults at the same time, then calm, then the verdict.

use crate::act::{Event, FaultRecord, Probe, Striker};
use crate::fault::{Draw, Fault, Parts};
use crate::layout::{self, Wanted};
use crate::ledger::seconds;
use crate::report::{Report, Takeover};
use crate::time::Start;
use crate::traffic::Traffic;
use crate::watcher::Watcher;
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;
use testbed::Programs;
use testbed::clock::{Deadline, is_interrupted, pause};

/// How often clients are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Longest time without an error before the first fault: all associations are opened.
const CALM: Duration = Duration::from_secs(3);
/// How long it stays quiet in the end: what is delivered twice has time to come.
const QUIET: Duration = Duration::from_secs(10);

/// Most that start, end, and faults that take long to end add to the time of a trial.
const PREPARATION: Duration = Duration::from_secs(900);

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long there are faults.
    pub time: Duration,
    /// Of messages and faults.
    pub seed: u64,
    /// Faults that are made before those that are drawn.
    pub first: Vec<(Fault, Duration)>,
    /// Nodes of the site.
    pub nodes: usize,
    /// One node on the embedded store, and no database: a check of the trial itself.
    pub embedded: bool,
    /// Each server of the database has a disk of its own of so many MB, which can be filled.
    pub disk: Option<u32>,
    /// Messages go to a mailbox of the message store, too.
    pub mailbox: bool,
    /// Seconds of a lease.
    pub lease: u32,
    /// Between two submissions of one originator, on average.
    pub pace: Duration,
    /// Longest time until all has arrived, once nothing is wrong any longer.
    pub settle: Duration,
    /// Keeps the directories also where all is well.
    pub keep: bool,
    /// The daemon and the client.
    pub programs: Programs,
    /// Shows how far it is.
    pub progress: bool,
}

/// What the faults have reported so far.
#[derive(Debug, Default)]
struct Record {
    faults: Vec<FaultRecord>,
    probes: Vec<Probe>,
    ended: Vec<String>,
}

impl Record {
    fn take(&mut self, events: &Receiver<Event>, traffic: &mut Traffic) {
        for event in events.try_iter() {
            match event {
                Event::Fault(fault) => self.faults.push(fault),
                Event::Ended(text) => self.ended.push(text),
                Event::Held(hold) => traffic.ledger.holds(hold),
                Event::Queued(probe) => {
                    traffic.probed(&probe.message, probe.answer.clone());
                    self.probes.push(probe);
                }
            }
        }
    }

    /// How long each Flash took whose node was killed.
    fn takeovers(&self, traffic: &Traffic) -> Takeover {
        let mut takeover = Takeover::default();
        for probe in &self.probes {
            let (Some(answer), Some(killed)) = (&probe.answer, probe.killed) else { continue };
            let user = probe.message.to.first().map(|user| user.shown()).unwrap_or_default();
            match traffic.ledger.arrival(&user, &answer.mts_identifier) {
                // Its peer belongs to another node: nothing was taken over for it.
                Some(arrival) if arrival <= killed => takeover.elsewhere += 1,
                Some(arrival) => {
                    takeover.queued += 1;
                    takeover.delays.push(arrival.saturating_sub(killed));
                }
                None => takeover.queued += 1,
            }
        }
        takeover.delays.sort();
        takeover
    }
}

/// Runs a trial.
///
/// # Errors
/// PostgreSQL is [`Missing`](database::Missing); something could not be started, made or ended, with the directories
/// that are kept.
pub fn run(plan: &Plan) -> Result<Report> {
    let home = tempfile::Builder::new().prefix("cluster-").tempdir().context("a directory")?;
    let lifetime = plan.time + plan.settle + PREPARATION;
    let watcher = Watcher::start(home.path(), lifetime)?;
    let wanted = Wanted {
        directory: home.path().to_owned(),
        programs: plan.programs.clone(),
        nodes: plan.nodes,
        embedded: plan.embedded,
        disk: plan.disk,
        lease: plan.lease,
        lifetime,
    };
    let mut world = layout::build(&wanted)?;
    let mut outcome = world.start().and_then(|()| play(plan, &mut world));
    if let Ok(report) = &mut outcome {
        report.duplicates_dropped = world.duplicates_dropped();
    }
    let is_kept = outcome.as_ref().is_ok_and(|report| report.verdict.is_kept());
    if is_kept && !plan.keep {
        return outcome;
    }
    watcher.keep();
    let kept = keep(&mut world, home);
    match outcome {
        Ok(report) => Ok(Report { kept, ..report }),
        Err(error) => Err(error.context(format!("the directories are kept: {kept:?}"))),
    }
}

fn keep(world: &mut crate::world::World, home: TempDir) -> Vec<PathBuf> {
    let mut kept = vec![home.keep()];
    kept.extend(world.keep());
    // The sites' directories are in the first one.
    let first = kept.first().cloned().unwrap_or_default();
    kept.retain(|path| *path == first || !path.starts_with(&first));
    kept
}

fn play(plan: &Plan, world: &mut crate::world::World) -> Result<Report> {
    let start = Start::now();
    let mut traffic = Traffic::new(plan.seed, start.clone(), plan.pace, plan.mailbox);
    let (sender, events) = channel();
    let bar = bar(plan);
    let parts = Parts { nodes: plan.nodes, database: !plan.embedded, disks: plan.disk.is_some() };
    let mut draw = Draw::new(plan.seed, parts);
    let mut record = Record::default();
    let entrance = world.entrance();
    // The clients need no more than the world's files, and the faults all of the world.
    let clients = world.clients.clone();
    std::thread::scope(|scope| -> Result<()> {
        let striker = start.clone();
        let until = CALM + plan.time;
        let faults = scope.spawn(move || {
            Striker::new(world, striker, plan.seed, sender).run(&plan.first, &mut draw, until)
        });
        while !faults.is_finished() {
            traffic.tend(&clients, true)?;
            record.take(&events, &mut traffic);
            show(&bar, &start, &traffic, &record);
            pause(LOOK);
        }
        match faults.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("the thread of the faults panicked"),
        }
    })?;
    record.take(&events, &mut traffic);
    let settled = settle(plan, &clients, &mut traffic, &bar)?;
    bar.finish_and_clear();
    let troubles: Vec<_> = record.faults.iter().map(|fault| (fault.from, fault.until)).collect();
    Ok(Report {
        seed: plan.seed,
        nodes: plan.nodes,
        embedded: plan.embedded,
        entrance,
        seconds: start.elapsed().as_secs_f64(),
        settled,
        verdict: traffic.ledger.verdict(&troubles),
        takeover: record.takeovers(&traffic),
        duplicates_dropped: 0,
        resubmitted: traffic.repeated,
        octets: traffic.octets,
        faults: record.faults,
        ended: record.ended,
        kept: Vec::new(),
    })
}

/// Waits until all is answered and has arrived, and then for what comes twice; how long it took, or nothing where
/// something is missing.
fn settle(
    plan: &Plan,
    clients: &crate::client::Clients,
    traffic: &mut Traffic,
    bar: &ProgressBar,
) -> Result<Option<Duration>> {
    let start = Start::now();
    // What they know of reports.
    traffic.stop_receiving(clients)?;
    let deadline = Deadline::after(plan.settle);
    let mut settled = None;
    while !deadline.has_passed() {
        let is_open = traffic.tend(clients, false)?;
        let (sent, copies) = traffic.ledger.counts();
        let left = seconds(deadline.left());
        bar.set_message(format!("calm: {sent} messages, {copies} copies, {left} left"));
        if is_interrupted() {
            bail!("interrupted");
        }
        if !is_open && !traffic.ledger.is_waiting() {
            settled = Some(start.elapsed());
            break;
        }
        pause(LOOK);
    }
    let quiet = Deadline::after(QUIET);
    while settled.is_some() && !quiet.has_passed() && !is_interrupted() {
        traffic.tend(clients, false)?;
        pause(LOOK);
    }
    traffic.stop_receiving(clients)?;
    Ok(settled)
}

fn bar(plan: &Plan) -> ProgressBar {
    if !plan.progress {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new((CALM + plan.time).as_secs());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, start: &Start, traffic: &Traffic, record: &Record) {
    let (sent, copies) = traffic.ledger.counts();
    bar.set_position(start.elapsed().as_secs());
    bar.set_message(format!("{} faults, {sent} messages, {copies} copies", record.faults.len()));
}
