//! `cargo xtask bench restart`: how long a daemon with a long queue takes to start, after an orderly
//! stop and after kill -9, and how much memory a queued message takes.

use super::figures::{aligned, markdown, thousands};
use super::{Programs, build};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testbed::clock::{self, Deadline, timed};
use testbed::{Pair, PeerSettings, Site};

/// The shorter queue, to separate the memory of a message from that of the daemon.
const FEW: u64 = 100_000;
/// The daemon's log line for a database that must be read whole.
const REPAIR: &str = "all of it is read to open it";
/// Longest start.
const START: Duration = Duration::from_secs(300);

/// Fills the store of a site with messages for a peer that is not there, stops a daemon on it in order,
/// starts it until it answers, kills it and starts it again; shows whether the database had to be
/// repaired, and measures its memory. Takes about 3 minutes with a million messages.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// How many messages are queued, beside the row with 100,000
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Octets of a message's content
    #[arg(long, default_value_t = 1_000)]
    size: u64,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All that was measured.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct RestartResults {
    /// Octets of a content.
    size: u64,
    rows: Vec<RestartRow>,
    /// Resident octets a queued message: the difference between the rows.
    memory_per_message: Option<f64>,
}

/// One length of the queue.
#[derive(Debug, Deserialize, Serialize)]
struct RestartRow {
    messages: u64,
    /// The duration of an orderly stop, in ms.
    stop_ms: f64,
    /// After it, from the start of the process until it answers with all of them.
    after_stop: Start,
    /// The same after kill -9.
    after_kill: Start,
    /// Processor time from the start until it answered.
    cpu_ms: f64,
    /// Resident octets then, and the most until then.
    resident: u64,
    peak: u64,
    /// Of the database on disk.
    database: u64,
}

/// A start of the daemon.
#[derive(Debug, Deserialize, Serialize)]
struct Start {
    ready_ms: f64,
    /// Whether the database was read whole to open it.
    repaired: bool,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let report = measure(&programs, self.messages, self.size)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", report.text());
        }
        Ok(Outcome::from_passed(true))
    }
}

/// Measures with so many messages queued, and with 100,000 where that is less.
pub(super) fn measure(programs: &Programs, messages: u64, size: u64) -> Result<RestartResults> {
    let mut report = RestartResults { size, ..RestartResults::default() };
    let few = Some(FEW).filter(|few| *few < messages);
    for messages in few.into_iter().chain([messages]) {
        eprintln!("{} messages queued", thousands(messages));
        report.rows.push(row(programs, messages, size)?);
    }
    if let [few, .., many] = &report.rows[..] {
        let more = many.resident.saturating_sub(few.resident) as f64;
        report.memory_per_message = Some(more / (many.messages - few.messages).max(1) as f64);
    }
    Ok(report)
}

fn row(programs: &Programs, messages: u64, size: u64) -> Result<RestartRow> {
    let builder = Pair::builder(PeerSettings::per_precedence())?.programs(&programs.site);
    let mut site = builder.build()?.naples;
    fill(programs, &site, messages, size)?;
    let log = site.path().join("data/queue/log");
    let files = std::fs::read_dir(log).context("the log that was filled")?;
    let database = files.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    ready(&mut site, messages)?;
    let (stopped, stop) = timed(|| site.stop());
    if !stopped?.success() {
        bail!("it did not stop in order; its log ends:\n{}", site.log_tail());
    }
    let after_stop = ready(&mut site, messages)?;
    let (memory, cpu) = (site.memory()?, site.processor_time()?);
    site.kill()?;
    let after_kill = ready(&mut site, messages)?;
    site.stop()?;
    Ok(RestartRow {
        messages,
        stop_ms: ms(stop),
        after_stop,
        after_kill,
        cpu_ms: ms(cpu),
        resident: memory.resident,
        peak: memory.peak,
        database,
    })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn fill(programs: &Programs, site: &Site, messages: u64, size: u64) -> Result<()> {
    let mut command = Command::new(&programs.fill);
    let domain = |site: &str| format!("/C=IT/ADMD=NET/PRMD={site}");
    command.arg(site.path().join("data/queue")).arg(messages.to_string());
    command.arg("act").arg(domain("NAPLES")).arg(domain("ACT")).arg(size.to_string());
    let status = command.status().context("starting the program that fills a store")?;
    if !status.success() {
        bail!("{} ended with {status}", programs.fill.display());
    }
    Ok(())
}

/// Starts the daemon; how long it took to answer with as many messages as there are.
fn ready(site: &mut Site, messages: u64) -> Result<Start> {
    let before = repairs(site);
    let (answered, took) = timed(|| {
        site.launch()?;
        Deadline::after(START).wait_for("an answer of the daemon", || {
            if !site.is_running()? {
                bail!("it ended; its log ends:\n{}", site.log_tail());
            }
            Ok(site.status().ok())
        })
    });
    let queued = answered?.queued();
    if queued != messages {
        bail!("{queued} of {messages} messages were queued; its log ends:\n{}", site.log_tail());
    }
    Ok(Start { ready_ms: ms(took), repaired: repairs(site) > before })
}

/// Number of repairs of the database in the daemon's log.
fn repairs(site: &Site) -> usize {
    std::fs::read_to_string(site.log()).map_or(0, |log| log.matches(REPAIR).count())
}

/// The headings of the table.
const HEADER: [&str; 10] = [
    "queued",
    "stop, s",
    "ready after it, s",
    "repair",
    "after kill -9, s",
    "repair",
    "CPU, s",
    "resident, MB",
    "peak, MB",
    "database, MB",
];

impl RestartResults {
    /// For people.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(RestartRow::cells).collect();
        format!(
            "started with messages of {} octets queued\n{}{}",
            thousands(self.size),
            aligned(&HEADER, &rows),
            self.each()
        )
    }

    /// For the page.
    pub(super) fn markdown(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(RestartRow::cells).collect();
        format!("{}\n{}", markdown(&HEADER, &rows), self.each())
    }

    fn each(&self) -> String {
        let each = |octets: f64| format!("{octets:.0} octets resident for each message more.\n");
        self.memory_per_message.map(each).unwrap_or_default()
    }
}

impl RestartRow {
    fn cells(&self) -> Vec<String> {
        let mb = |octets: u64| format!("{:.1}", octets as f64 / 1e6);
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let seconds = |ms: f64| format!("{:.2}", ms / 1e3);
        vec![
            thousands(self.messages),
            seconds(self.stop_ms),
            seconds(self.after_stop.ready_ms),
            yes(self.after_stop.repaired),
            seconds(self.after_kill.ready_ms),
            yes(self.after_kill.repaired),
            seconds(self.cpu_ms),
            mb(self.resident),
            mb(self.peak),
            mb(self.database),
        ]
    }
}
