//! `cargo xtask bench restart`: how long a daemon with a long queue takes to start, after an orderly
//! stop and after kill -9, until it has read all of it, and until the first message goes out; and how
//! much memory a queued message takes.

use super::figures::{aligned, markdown, thousands};
use super::{Programs, build};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testbed::answer::MtaStatus;
use testbed::clock::{self, Deadline, timed};
use testbed::{Pair, PeerSettings, Site};

/// The shorter queue, to separate the memory of a message from that of the daemon.
const FEW: u64 = 100_000;
/// Longest start.
const START: Duration = Duration::from_secs(300);

/// Fills the store of a site with messages for a peer that is not there, stops a daemon on it in order,
/// starts it until it answers, kills it and starts it again, once more with the peer there, until the first
/// message goes out; and measures its memory. Takes about 3 minutes with a million messages.
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
    /// After it.
    after_stop: Start,
    /// After kill -9.
    after_kill: Start,
    /// After kill -9, from the start of the process until the first transfer started, with the peer there:
    /// of the highest precedence, Override, behind which all others are held.
    first_ms: f64,
    /// Processor time from the start until all was read.
    cpu_ms: f64,
    /// Resident octets then, and the most until then.
    resident: u64,
    peak: u64,
    /// Of the queue on disk.
    queue: u64,
}

/// From the start of the process.
#[derive(Debug, Deserialize, Serialize)]
struct Start {
    /// Until it answers.
    ready_ms: f64,
    /// Until it has read all of the queue.
    read_ms: f64,
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
    let json = ["--log-format", "json"];
    let Pair { naples: mut site, act: mut peer, .. } =
        builder.each(|site| site.run_with(&json)).build()?;
    fill(programs, &site, messages, size)?;
    let log = site.path().join("data/queue/log");
    let files = std::fs::read_dir(log).context("the log that was filled")?;
    let queue = files.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    ready(&mut site, messages)?;
    let (stopped, stop) = timed(|| site.stop());
    if !stopped?.success() {
        bail!("it did not stop in order; its log ends:\n{}", site.log_tail());
    }
    let after_stop = ready(&mut site, messages)?;
    let (memory, cpu) = (site.memory()?, site.processor_time()?);
    site.kill()?;
    let after_kill = ready(&mut site, messages)?;
    site.kill()?;
    let first = first_transfer(&mut site, &mut peer)?;
    site.kill()?;
    peer.kill()?;
    Ok(RestartRow {
        messages,
        stop_ms: ms(stop),
        after_stop,
        after_kill,
        first_ms: ms(first),
        cpu_ms: ms(cpu),
        resident: memory.resident,
        peak: memory.peak,
        queue,
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

/// Starts the daemon; how long it took to answer, and to have all messages in its queue.
fn ready(site: &mut Site, messages: u64) -> Result<Start> {
    let (all_read, read) = timed(|| {
        let (answered, ready) = timed(|| {
            site.launch()?;
            answer(site, |_| true)
        });
        answered?;
        answer(site, |status| !status.reading_queue).map(|status| (status.queued(), ready))
    });
    let (queued, ready) = all_read?;
    if queued != messages {
        bail!("{queued} of {messages} messages were queued; its log ends:\n{}", site.log_tail());
    }
    Ok(Start { ready_ms: ms(ready), read_ms: ms(read) })
}

/// Waits for an answer like this.
fn answer(site: &mut Site, wanted: impl Fn(&MtaStatus) -> bool) -> Result<MtaStatus> {
    Deadline::after(START).wait_for("an answer of the daemon", || {
        if !site.is_running()? {
            bail!("it ended; its log ends:\n{}", site.log_tail());
        }
        Ok(site.status().ok().filter(&wanted))
    })
}

/// How long after its start the daemon begins the first transfer to a peer that is there.
fn first_transfer(site: &mut Site, peer: &mut Site) -> Result<Duration> {
    peer.start()?;
    let before = site.events()?.len();
    let (sent, took) = timed(|| {
        site.launch()?;
        site.wait_for_events("a transfer", START, |events| {
            events.iter().skip(before).find(|e| e.is_on("transfer_started", "override")).map(drop)
        })
    });
    sent?;
    Ok(took)
}

/// The headings of the table.
const HEADER: [&str; 10] = [
    "queued",
    "stop, s",
    "serves after it, s",
    "all read, s",
    "serves after kill -9, s",
    "all read, s",
    "first goes out, s",
    "CPU, s",
    "resident, MB",
    "queue, MB",
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
        let seconds = |ms: f64| format!("{:.2}", ms / 1e3);
        vec![
            thousands(self.messages),
            seconds(self.stop_ms),
            seconds(self.after_stop.ready_ms),
            seconds(self.after_stop.read_ms),
            seconds(self.after_kill.ready_ms),
            seconds(self.after_kill.read_ms),
            seconds(self.first_ms),
            seconds(self.cpu_ms),
            mb(self.resident),
            mb(self.queue),
        ]
    }
}
