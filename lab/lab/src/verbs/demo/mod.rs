//! `lab demo`: two MTAs on this machine, thirty messages from one to the other, and the mark of every
//! packet between them.

mod outcome;

use crate::verbs::{note, print, print_json};
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use outcome::{CHANNELS, Carried, PRECEDENCES, SIZES};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use testbed::answer::{ReceiveOutput, SubmittedMessage};
use testbed::clock::{self, Deadline};
use testbed::{Cable, Capture, Namespace, Pair, PeerSettings, Programs};

/// Longest demo, its building apart.
const LIMIT: Duration = Duration::from_secs(110);
/// Longest bind of the receiving user, and longest opening of all associations.
const BIND: Duration = Duration::from_secs(20);

/// Starts two sites in namespaces of their own, sends messages of five sizes
/// (1 kB to 10 MB) and six precedences from one to the other, and checks what arrives and which
/// mark every packet carries; cleans up. Exit code 3 where there are no namespaces: then the sites
/// stand on loopback, and no mark is seen.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// The directory of `mta` and `xuxa`, where they are not beside this program
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let programs = match &self.programs {
            Some(directory) => Programs::in_directory(directory)?,
            None => Programs::find()?,
        };
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let cable = match Namespace::new() {
            Ok(namespace) => Some(Cable::new(namespace)?),
            Err(why) => {
                note(&why.to_string());
                note("the sites stand on loopback instead, where no mark is seen");
                None
            }
        };
        let progress = bar();
        let link = PeerSettings::per_precedence();
        let builder = match &cable {
            Some(cable) => Pair::on_cable(cable, link),
            None => Pair::on_loopback(link),
        };
        let mut pair = builder.programs(&programs).build()?;
        let carried = carry(&mut pair, cable.as_ref(), &programs, &progress);
        progress.finish_and_clear();
        if clock::is_interrupted() {
            bail!("interrupted; both daemons are ended, their directories and namespaces removed");
        }
        if !carried.as_ref().is_ok_and(Carried::is_well) {
            for path in pair.keep() {
                note(&format!("logs are kept in {}", path.join("logs").display()));
            }
        }
        let carried = carried?;
        if self.json {
            print_json(&carried)?;
        } else {
            print(&format!("{}\n{}\n", carried.table(), carried.verdict()))?;
        }
        Ok(match (carried.is_well(), cable.is_some()) {
            (false, _) => ExitCode::FAILURE,
            (true, true) => ExitCode::SUCCESS,
            (true, false) => ExitCode::from(3),
        })
    }
}

fn bar() -> ProgressBar {
    let count = PRECEDENCES.len() * SIZES.len();
    let bar = ProgressBar::new(u64::try_from(count).unwrap_or(u64::MAX));
    let template = "{spinner:.cyan} [{bar:30.cyan}] {pos:>2}/{len} {msg} ({elapsed})";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Starts both daemons, sends the messages one after the other, and listens from before the first
/// packet until after the last.
fn carry(
    pair: &mut Pair,
    cable: Option<&Cable>,
    programs: &Programs,
    progress: &ProgressBar,
) -> anyhow::Result<Carried> {
    let deadline = Deadline::after(LIMIT);
    progress.set_message("starting the sites naples and act");
    let file = pair.act.path().join("logs/capture.pcap");
    let capture = cable.map(|cable| Capture::start(&cable.act, programs, &file)).transpose()?;
    pair.act.start()?;
    pair.naples.start()?;
    progress.set_message("opening the channels");
    let all = 2 * CHANNELS.len();
    for site in [&pair.naples, &pair.act] {
        site.wait_until("all channels, both ways", BIND, |status| {
            status.associations().filter(|a| a.state == "idle").count() >= all
        })?;
    }
    let mut carried = Carried::default();
    for precedence in PRECEDENCES {
        for size in SIZES {
            let begin = clock::since_1970();
            let (sent, received) = exchange(pair, (size, precedence), &deadline, progress)?;
            carried.add(begin, &sent, &received);
            progress.inc(1);
        }
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
    if let (Some(capture), Some(cable)) = (capture, cable) {
        progress.set_message("reading the capture");
        let from = cable.naples.addresses().v4.into();
        carried.add_marks(&capture.finish()?, from);
    }
    Ok(carried)
}

/// One message: a user waits for it at ACT, another submits it at Naples.
fn exchange(
    pair: &Pair,
    (size, precedence): (&str, &str),
    deadline: &Deadline,
    progress: &ProgressBar,
) -> anyhow::Result<(SubmittedMessage, ReceiveOutput)> {
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
    progress.set_message(format!("{what}: in transit to act"));
    let run = receiver.wait(deadline.left() + BIND)?;
    let received = run.json_anyway().with_context(|| format!("xuxa receive, {what}"))?;
    Ok((sent, received))
}
