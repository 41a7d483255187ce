//! `cargo xtask bench backlog`: what a long queue of Routine does to a Flash.

use super::figures::{aligned, thousands};
use super::running::Load;
use super::stages::{Passages, Stage};
use super::{Programs, build, close, login, user};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use base::Precedence;
use load::{Plan, Summary};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use testbed::clock::{self, Deadline};
use testbed::{Pair, PeerSettings};

/// Users who submit, and users who receive, the Routine.
const USERS: usize = 16;
/// The user of the Flash at each site.
const CHIEF: &str = "CHIEF";
/// Octets of each message.
const SIZE: usize = 1_000;
/// Distance of the Flashes of a round.
const PAUSE_MS: u64 = 20;
/// Routine queued beyond those that shall still wait when the last Flash of a round is delivered.
const LEAD: u64 = 1_500;
/// Longest wait for anything.
const LONG: Duration = Duration::from_secs(120);
/// How often the daemon is asked how many it has.
const LOOK: Duration = Duration::from_millis(50);

/// Two sites on loopback, one channel for each precedence. In each round some Flashes pass while
/// nothing else is there; then Routine are queued while the receiving MTA stands still, it goes on,
/// and as many Flashes pass while they drain, with at least 5,000 waiting all the time. Takes about
/// a minute.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of tables
    #[arg(long)]
    json: bool,
    /// How many Routine wait
    #[arg(long, default_value_t = 5_000)]
    routine: u64,
    /// How many rounds
    #[arg(long, default_value_t = 4)]
    rounds: u64,
    /// Flashes of a round, each kind
    #[arg(long, default_value_t = 5)]
    flashes: u64,
    /// Only these settings of `precedence.hold`
    #[arg(long, value_delimiter = ',', default_values_t = ["conserving".to_owned(), "off".to_owned()])]
    hold: Vec<String>,
    /// Most associations of a channel
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    associations: Vec<u32>,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All that was measured.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct BacklogResults {
    /// The number of Routine messages that waited.
    routine: u64,
    pub(super) rows: Vec<BacklogRow>,
}

/// One setting.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct BacklogRow {
    /// `precedence.hold`.
    hold: String,
    /// Most associations of a channel.
    associations_max: u32,
    /// How many Flashes of each kind there were.
    flashes: u64,
    /// The fewest Routine that waited after a Flash was delivered.
    left: u64,
    /// Routine delivered a second while they drained.
    routine_per_s: f64,
    /// On an empty system.
    empty: Times,
    /// With the queue.
    backlog: Times,
    /// Of the medians from submission to delivery.
    ratio: f64,
}

/// The Flashes of one kind.
#[derive(Debug, Deserialize, Serialize)]
struct Times {
    accepted_ms: Summary,
    delivered_ms: Summary,
    stages: Vec<Stage>,
}

/// Times of submission to answer, and to delivery, in microseconds.
#[derive(Default)]
struct Flights {
    accepted: Vec<u64>,
    delivered: Vec<u64>,
}

impl Flights {
    fn add(&mut self, outcome: &load::Outcome) {
        self.accepted.extend(&outcome.accepted_each_us);
        self.delivered.extend(&outcome.delivered_each_us);
    }

    fn times(self, stages: Vec<Stage>) -> Times {
        let (accepted_ms, delivered_ms) =
            (Summary::from_micros(self.accepted), Summary::from_micros(self.delivered));
        Times { accepted_ms, delivered_ms, stages }
    }
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
        Ok(Outcome::from_passed(true))
    }

    /// All that is to be done by default.
    pub(super) fn whole() -> Args {
        Args {
            json: true,
            routine: 5_000,
            rounds: 4,
            flashes: 5,
            hold: ["conserving", "off"].map(str::to_owned).to_vec(),
            associations: vec![1, 8],
            programs: None,
        }
    }

    /// Does what is wanted.
    pub(super) fn measure(&self, programs: &Programs) -> Result<BacklogResults> {
        let mut report = BacklogResults { routine: self.routine, rows: Vec::new() };
        for &associations in &self.associations {
            for hold in &self.hold {
                eprintln!("hold = {hold:?}, up to {associations} associations a channel");
                let mut pair = pair(programs, hold, associations)?;
                let measured = self.row(programs, &mut pair, (hold, associations));
                report.rows.push(close(&mut pair, measured)?);
            }
        }
        Ok(report)
    }

    fn row(
        &self,
        programs: &Programs,
        pair: &mut Pair,
        (hold, associations_max): (&str, u32),
    ) -> Result<BacklogRow> {
        let (mut empty, mut backlog) = (Flights::default(), Flights::default());
        let (mut left, mut drained, mut seconds) = (u64::MAX, 0, 0.0);
        for round in 0..self.rounds {
            empty.add(&self.load(programs, pair, &self.flash(pair))?.begin()?.end()?);
            // Bound before the receiver stands still; begun when it goes on.
            let flash = self.load(programs, pair, &self.flash(pair))?;
            let routine = self.load(programs, pair, &self.filling(pair))?;
            pair.act.signal(Signal::SIGSTOP)?;
            let routine = routine.begin()?;
            let filled = (round + 1) * (self.routine + LEAD + 2 * self.flashes) - self.flashes;
            let queued = wait_until_submitted(pair, filled);
            pair.act.signal(Signal::SIGCONT)?;
            queued?;
            backlog.add(&flash.begin()?.end()?);
            left = left.min(pair.naples.status()?.queued());
            let outcome = routine.end()?;
            drained += outcome.delivered;
            seconds += outcome.seconds - outcome.accepting_seconds;
        }
        let passages = Passages::read([&pair.naples, &pair.act], "flash")?;
        let of_round = |at: usize| u64::try_from(at).unwrap_or(0) / self.flashes.max(1) % 2;
        let empty = empty.times(passages.stages(|at| of_round(at) == 0));
        let backlog = backlog.times(passages.stages(|at| of_round(at) == 1));
        Ok(BacklogRow {
            hold: hold.to_owned(),
            associations_max,
            flashes: self.flashes * self.rounds,
            left,
            routine_per_s: drained as f64 / seconds.max(1e-6),
            ratio: backlog.delivered_ms.median / empty.delivered_ms.median.max(1e-6),
            empty,
            backlog,
        })
    }

    fn load(&self, programs: &Programs, pair: &Pair, plan: &Plan) -> Result<Load> {
        let name = format!("plan-{}", plan.precedence);
        Load::start(programs, pair.naples.path(), &name, plan)
    }

    fn flash(&self, pair: &Pair) -> Plan {
        Plan {
            submitters: vec![login(&pair.naples, CHIEF)],
            receivers: vec![login(&pair.act, CHIEF)],
            precedence: Precedence::Flash,
            count: self.flashes,
            pause_ms: Some(PAUSE_MS),
            delivery_file: pair.act.path().join("deliveries-flash"),
            ..self.filling(pair)
        }
    }

    fn filling(&self, pair: &Pair) -> Plan {
        Plan {
            submitters: (0..USERS).map(|n| login(&pair.naples, &user(n))).collect(),
            receivers: (0..USERS).map(|n| login(&pair.act, &user(n))).collect(),
            size: SIZE,
            precedence: Precedence::Routine,
            seconds: LONG.as_secs_f64(),
            count: self.routine + LEAD,
            pause_ms: None,
            rate: None,
            drain_seconds: LONG.as_secs_f64(),
            delivery_file: pair.act.path().join("deliveries"),
            held: true,
        }
    }
}

fn pair(programs: &Programs, hold: &str, associations: u32) -> Result<Pair> {
    let peer =
        PeerSettings { associations: Some((associations, 1)), ..PeerSettings::per_precedence() };
    let channels = peer.channels.len();
    let names: Vec<String> = (0..USERS).map(user).chain([CHIEF.to_owned()]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let builder = Pair::builder(peer)?.programs(&programs.site).each(|site| {
        let site = site.users(&names).set("precedence.hold", hold);
        site.run_with(&["--log-format", "json"])
    });
    let pair = builder.start()?;
    // Its own and the peer's, on each channel.
    for site in [&pair.naples, &pair.act] {
        site.wait_until("all associations", LONG, |status| {
            status.associations().filter(|a| a.state == "idle").count() >= 2 * channels
        })?;
    }
    Ok(pair)
}

fn wait_until_submitted(pair: &Pair, count: u64) -> Result<()> {
    Deadline::after(LONG).wait_for("all Routine to be accepted", || {
        clock::pause(LOOK);
        Ok((pair.naples.status()?.counters.submitted >= count).then_some(()))
    })
}

/// The headings of the table.
pub(super) const HEADER: [&str; 9] = [
    "hold",
    "associations",
    "Routine waiting",
    "Routine/s",
    "empty, ms",
    "p99",
    "backlog, ms",
    "p99",
    "ratio",
];

impl BacklogResults {
    /// For people.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(BacklogRow::cells).collect();
        let mut text = format!(
            "a Flash of 1 kB, submission to delivery, empty and with {} Routine of 1 kB\n{}",
            thousands(self.routine),
            aligned(&HEADER, &rows)
        );
        for row in &self.rows {
            text.push_str(&format!(
                "\nhold = {:?}, {} associations\n{}",
                row.hold,
                row.associations_max,
                aligned(&STAGES, &row.stages())
            ));
        }
        text
    }
}

/// The headings of the stages.
pub(super) const STAGES: [&str; 4] = ["median of", "empty, ms", "backlog, ms", "more, ms"];

impl BacklogRow {
    /// One line of the table.
    pub(super) fn cells(&self) -> Vec<String> {
        let ms = |ms: f64| format!("{ms:.2}");
        let (empty, backlog) = (&self.empty.delivered_ms, &self.backlog.delivered_ms);
        vec![
            self.hold.clone(),
            self.associations_max.to_string(),
            format!("{} and more", thousands(self.left)),
            thousands(self.routine_per_s as u64),
            ms(empty.median),
            ms(empty.p99),
            ms(backlog.median),
            ms(backlog.p99),
            ms(self.ratio),
        ]
    }

    /// The time that each stage takes.
    pub(super) fn stages(&self) -> Vec<Vec<String>> {
        let line = |name: &str, empty: f64, backlog: f64| {
            let [empty_, backlog_, more] =
                [empty, backlog, backlog - empty].map(|ms| format!("{ms:.2}"));
            vec![name.to_owned(), empty_, backlog_, more]
        };
        let (empty, backlog) = (&self.empty, &self.backlog);
        let of = |name: &str, at: fn(&Times) -> &Summary| {
            line(name, at(empty).median, at(backlog).median)
        };
        let mut lines = vec![of("submission, to its answer", |t| &t.accepted_ms)];
        let stages = empty.stages.iter().zip(&backlog.stages);
        lines.extend(stages.map(|(e, b)| line(&e.name, e.ms.median, b.ms.median)));
        lines.push(of("submission, to delivery", |t| &t.delivered_ms));
        lines
    }
}
