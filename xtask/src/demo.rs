//! `cargo xtask demo`: two MTAs on this machine, one message of each size from one to the other.

use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, bail};
use comfy_table::{CellAlignment, Table, TableComponent, presets};
use indicatif::{ProgressBar, ProgressStyle};
use lab::answer::{Message, Received, Submitted, elapsed};
use lab::clock::{self, Deadline};
use lab::{Link, Pair, Programs};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The canned sizes, decimal, each at a precedence of its own, so that each takes another channel.
const MESSAGES: &[(&str, &str)] = &[
    ("1kB", "override"),
    ("10kB", "flash"),
    ("100kB", "immediate"),
    ("1MB", "priority"),
    ("10MB", "routine"),
];
/// Longest demo, its building apart.
const LIMIT: Duration = Duration::from_secs(110);
/// Longest bind of the receiving user.
const BIND: Duration = Duration::from_secs(20);

/// Builds the programs, starts two sites on this machine, sends one message of each size from
/// 1 kB to 10 MB from one to the other, and checks what arrives; cleans up.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Unoptimised programs: built sooner, and slower
    #[arg(long)]
    debug: bool,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let programs = build(workspace, self.debug)?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let progress = spinner();
        let mut pair = Pair::builder(Link::per_precedence())?.programs(&programs).build()?;
        let carried = carry(&mut pair, &progress);
        progress.finish_and_clear();
        if clock::is_interrupted() {
            bail!("interrupted; both daemons are ended and their directories removed");
        }
        if !carried.as_ref().is_ok_and(Carried::is_well) {
            for path in pair.keep() {
                eprintln!("logs are kept in {}", path.join("logs").display());
            }
        }
        let carried = carried?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&carried)?);
        } else {
            println!("{}", carried.table());
            println!("{}", carried.verdict());
        }
        Ok(Outcome::of(carried.is_well()))
    }
}

fn build(workspace: &Workspace, debug: bool) -> anyhow::Result<Programs> {
    let mut arguments = vec!["build", "-p", "mta", "-p", "xuxa-cli"];
    if !debug {
        arguments.push("--release");
    }
    workspace.cargo(&arguments).run_aside()?;
    Programs::in_directory(&workspace.built(if debug { "debug" } else { "release" })?)
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// What came of all messages.
#[derive(Debug, Default, Serialize)]
struct Carried {
    messages: Vec<Line>,
    /// Accepted but not delivered.
    lost: usize,
    /// Delivered more than once.
    duplicated: usize,
}

/// What came of one message.
#[derive(Debug, Serialize)]
struct Line {
    precedence: String,
    /// Octets of the body.
    size: u64,
    mts_identifier: String,
    submit_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit_to_delivered_ms: Option<f64>,
    /// Of the content, from submission to delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    kbit_s: Option<f64>,
    /// Of the content as submitted.
    content_sha256: String,
    content_matches: bool,
}

/// Starts both daemons and sends the messages one after the other.
fn carry(pair: &mut Pair, progress: &ProgressBar) -> anyhow::Result<Carried> {
    let deadline = Deadline::after(LIMIT);
    progress.set_message("starting the sites naples and act");
    pair.act.start()?;
    pair.naples.start()?;
    let mut carried = Carried::default();
    for (size, precedence) in MESSAGES {
        let (sent, received) = exchange(pair, (size, precedence), &deadline, progress)?;
        carried.add(&sent, &received);
    }
    progress.set_message("looking for messages delivered twice");
    let late = pair.act.receive_waiting("OPS")?;
    carried.add_late(late.messages());
    progress.set_message("stopping both");
    for site in [&mut pair.naples, &mut pair.act] {
        let status = site.stop()?;
        if !status.success() {
            bail!("the daemon of {} ended with {status}", site.name());
        }
    }
    Ok(carried)
}

/// One message: a user waits for it at ACT, another submits it at Naples.
fn exchange(
    pair: &Pair,
    (size, precedence): (&str, &str),
    deadline: &Deadline,
    progress: &ProgressBar,
) -> anyhow::Result<(Submitted, Received)> {
    let what = format!("{size}, {precedence}");
    progress.set_message(format!("{what}: waiting for it at act"));
    let seconds = deadline.left().as_secs().max(1).to_string();
    let arguments = ["--json", "receive", "--count", "1", "--timeout", &seconds];
    let mut receiver = pair.act.xuxa_beside("OPS", &arguments)?;
    Deadline::after(BIND).wait_for("the receiving user's bind", || {
        let bound = pair.act.status()?.bound() > 0 || receiver.ended()?;
        Ok(bound.then_some(()))
    })?;
    progress.set_message(format!("{what}: submitting at naples"));
    let to = pair.act.address("OPS");
    let subject = format!("Demonstration, {size}");
    let arguments =
        ["--to", &to, "--precedence", precedence, "--size", size, "--subject", &subject];
    let mut sent = pair.naples.send("OPS", &arguments)?;
    let Some(sent) = sent.messages.pop() else { bail!("xuxa send names no message") };
    progress.set_message(format!("{what}: on its way to act"));
    let run = receiver.wait(deadline.left() + BIND)?;
    let received = run.json_anyway().with_context(|| format!("xuxa receive, {what}"))?;
    Ok((sent, received))
}

impl Carried {
    fn add(&mut self, sent: &Submitted, received: &Received) {
        let of_it: Vec<&Message> =
            received.messages().filter(|m| m.mts_identifier == sent.mts_identifier).collect();
        let first = of_it.first();
        self.lost += usize::from(first.is_none());
        self.duplicated += of_it.len().saturating_sub(1);
        let elapsed = first.and_then(|m| elapsed(&sent.submitted_at, &m.received_at));
        let ms = elapsed.map(|e| rounded(e.as_secs_f64() * 1e3));
        self.messages.push(Line {
            precedence: sent.precedence.clone(),
            size: sent.size,
            mts_identifier: sent.mts_identifier.clone(),
            submit_ms: rounded(sent.submit_ms),
            submit_to_delivered_ms: ms,
            kbit_s: ms.map(|ms| rounded(sent.content_length as f64 * 8.0 / ms.max(1e-3))),
            content_sha256: sent.content_sha256.clone(),
            content_matches: first.is_some_and(|m| {
                m.content_sha256 == sent.content_sha256 && m.content_length == sent.content_length
            }),
        });
    }

    /// What still came after all were delivered.
    fn add_late<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) {
        let known: BTreeSet<&str> =
            self.messages.iter().map(|line| line.mts_identifier.as_str()).collect();
        let again = messages.filter(|m| known.contains(m.mts_identifier.as_str())).count();
        self.duplicated += again;
    }

    fn is_well(&self) -> bool {
        let identifiers: BTreeSet<&str> =
            self.messages.iter().map(|line| line.mts_identifier.as_str()).collect();
        self.lost == 0
            && self.duplicated == 0
            && self.messages.len() == MESSAGES.len()
            && identifiers.len() == MESSAGES.len()
            && self.messages.iter().all(|line| line.content_matches)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.set_header([
            "size",
            "precedence",
            "submit ms",
            "submit to delivered ms",
            "kbit/s",
            "hash",
            "MTS identifier",
        ]);
        for line in &self.messages {
            let number = |n: Option<f64>, digits: usize| {
                n.map_or_else(|| "-".to_owned(), |n| format!("{n:.digits$}"))
            };
            table.add_row([
                decimal(line.size),
                line.precedence.clone(),
                number(Some(line.submit_ms), 1),
                number(line.submit_to_delivered_ms, 1),
                number(line.kbit_s, 0),
                if line.content_matches { "ok" } else { "DIFFERS" }.to_owned(),
                line.mts_identifier.clone(),
            ]);
        }
        for column in [0, 2, 3, 4] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn verdict(&self) -> String {
        let (all, lost, again) = (self.messages.len(), self.lost, self.duplicated);
        format!("{all} messages: {lost} lost, {again} delivered twice")
    }
}

/// To three decimals: microseconds of milliseconds.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// A size as people write it, decimal.
fn decimal(octets: u64) -> String {
    match octets {
        1_000_000.. if octets.is_multiple_of(1_000_000) => format!("{} MB", octets / 1_000_000),
        1_000.. if octets.is_multiple_of(1_000) => format!("{} kB", octets / 1_000),
        _ => format!("{octets} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(number: usize) -> Submitted {
        serde_json::from_value(serde_json::json!({
            "mts_identifier": format!("id-{number}"), "content_identifier": "c",
            "precedence": "flash", "size": 1_000, "content_length": 1_100,
            "content_sha256": "ab", "submitted_at": "2026-05-04T03:02:01.000000Z",
            "submit_ms": 1.5, "tries": 1,
        }))
        .unwrap()
    }

    fn received(number: usize, sha256: &str, times: usize) -> Received {
        let one = serde_json::json!({
            "kind": "message", "mts_identifier": format!("id-{number}"), "originator": "/S=A",
            "priority": "urgent", "content_type": "P772", "sics": [], "size": 1_000,
            "content_length": 1_100, "content_sha256": sha256,
            "received_at": "2026-05-04T03:02:01.004000Z", "duplicate": false,
        });
        serde_json::from_value(serde_json::json!({ "deliveries": vec![one; times] })).unwrap()
    }

    fn all(sha256: &str, times: usize) -> Carried {
        let mut carried = Carried::default();
        for number in 0..MESSAGES.len() {
            carried.add(&submitted(number), &received(number, sha256, times));
        }
        carried
    }

    #[test]
    fn all_is_well_only_if_each_came_once_and_unchanged() {
        let well = all("ab", 1);
        assert!(well.is_well());
        assert_eq!(well.messages[0].submit_to_delivered_ms, Some(4.0));
        assert_eq!(well.messages[0].kbit_s, Some(2_200.0));
        assert!(!all("cd", 1).is_well(), "changed");
        assert_eq!(all("ab", 0).lost, MESSAGES.len());
        assert!(!all("ab", 0).is_well(), "lost");
        assert_eq!(all("ab", 2).duplicated, MESSAGES.len());
        let mut late = all("ab", 1);
        late.add_late(received(3, "ab", 1).messages());
        assert!(!late.is_well() && late.verdict().ends_with("0 lost, 1 delivered twice"));
    }

    #[test]
    fn sizes_are_decimal() {
        assert_eq!([1_000, 10_000_000, 1_024].map(decimal), ["1 kB", "10 MB", "1024 B"]);
    }
}
