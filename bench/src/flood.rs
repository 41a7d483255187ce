//! `cargo xtask bench flood`: how a flood of Routine at both MTAs affects a Flash on its own channel.

mod results;

pub(super) use results::FloodResults;
#[cfg(test)]
pub(super) use results::PARTS;

use self::results::{FloodRow, Load as Kind, Times};
use super::running::Load;
use super::stages::Passages;
use super::{Programs, all, build, close, login, user};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use base::Precedence;
use load::Plan;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::clock;
use testbed::{Pair, PeerSettings, Site};

/// Users at each site who submit the Routine, and as many who receive it.
const USERS: usize = 16;
/// Most associations of a channel, and how many must wait for a further one: so many that the
/// processors and the disk are the limit, and not the confirm of each transfer.
const ASSOCIATIONS: (u32, u32) = (16, 1);
/// The user of the Flash at each site.
const CHIEF: &str = "CHIEF";
/// Octets of a Flash.
const FLASH: usize = 1_000;
/// Distance of the Flashes of a phase, after each is delivered.
const PAUSE_MS: u64 = 20;
/// Seconds of flood before the first Flash.
const RAMP: f64 = 0.7;
/// Part of the flood that the relay keeps up with.
const SHARE: f64 = 0.7;
/// Longest wait for anything.
const LONG: Duration = Duration::from_secs(180);

/// Two sites on loopback, one channel for each precedence. Users at both submit Routine for the
/// other, first as fast as they are accepted: what is delivered a second is the saturation. Then, in
/// each round, Flashes of 1 kB pass one at a time while nothing else is there, while Routine floods at
/// 70 % of the saturation, again while nothing else is there, and while it floods as fast as it is
/// accepted. With `--before` each round is made with an older `mta` too, beside. Takes some three
/// minutes, twice that with `--before`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of tables
    #[arg(long)]
    json: bool,
    /// Writes the tables into docs/performance.md
    #[arg(long)]
    write: bool,
    /// Takes the figures from this file, which an earlier `--json` made, instead of measuring
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// An older `mta`, to be measured in turn with the one of today
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// How many rounds
    #[arg(long, default_value_t = ROUNDS)]
    rounds: u64,
    /// Most Flashes of a phase
    #[arg(long, default_value_t = FLASHES)]
    flashes: u64,
    /// Seconds of a phase
    #[arg(long, default_value_t = SECONDS)]
    seconds: f64,
    /// Octets of text of a Routine
    #[arg(long, value_delimiter = ',', default_values_t = SIZES)]
    size: Vec<usize>,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

const ROUNDS: u64 = 4;
const FLASHES: u64 = 40;
const SECONDS: f64 = 3.0;
const SIZES: [usize; 2] = [1_000, 1_000_000];

/// One `mta` that is measured, with its two daemons.
struct Bed {
    name: &'static str,
    programs: Programs,
    pair: Pair,
    /// Messages a second, each way, at which the relay is at its limit.
    saturation: f64,
    /// What was measured, by phase, in the order of [`Kind::ALL`].
    phases: Vec<Phase>,
    /// The kind of each Flash so far, in order.
    flashes: Vec<Kind>,
}

/// The Flashes under one kind of load, and the load.
#[derive(Default)]
struct Phase {
    accepted: Vec<u64>,
    delivered: Vec<u64>,
    routine: u64,
    seconds: f64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let report = match &self.from {
            Some(file) => {
                let text =
                    std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
                serde_json::from_slice(&text)
                    .with_context(|| format!("{} holds no figures", file.display()))?
            }
            None => {
                let programs = build(workspace, self.programs.as_deref())?;
                ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
                self.measure(&programs)?
            }
        };
        if self.write {
            let path = workspace.root().join(all::PAGE);
            let page = std::fs::read_to_string(&path).context("reading the page")?;
            std::fs::write(&path, report.put_into(&page)?).context("writing the page")?;
            eprintln!("wrote {}", all::PAGE);
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else if !self.write {
            print!("{}", report.text());
        }
        Ok(Outcome::from_passed(true))
    }

    /// All that is to be done by default.
    pub(super) fn whole(before: Option<PathBuf>) -> Args {
        Args {
            json: true,
            write: false,
            from: None,
            before,
            rounds: ROUNDS,
            flashes: FLASHES,
            seconds: SECONDS,
            size: SIZES.to_vec(),
            programs: None,
        }
    }

    /// Does what is wanted.
    pub(super) fn measure(&self, programs: &Programs) -> Result<FloodResults> {
        let mut report = FloodResults::default();
        for &size in &self.size {
            let mut beds = vec![Bed::start("now", programs, None)?];
            if let Some(before) = &self.before {
                beds.push(Bed::start("before", programs, Some(before))?);
            }
            let measured = self.rounds(&mut beds, size);
            for bed in beds {
                report.rows.extend(bed.finish(size, &measured)?);
            }
            measured?;
        }
        Ok(report)
    }

    fn rounds(&self, beds: &mut [Bed], size: usize) -> Result<()> {
        for bed in &mut *beds {
            // Twice: the first one warms up.
            for _ in 0..2 {
                bed.saturation = bed.saturate(size, self.seconds)?;
            }
            eprintln!("{}: {size} octets: {:.0} messages/s each way", bed.name, bed.saturation);
        }
        for round in 0..self.rounds {
            for kind in Kind::ROUND {
                for bed in &mut *beds {
                    eprintln!("round {}, {}: {}", round + 1, kind.name(), bed.name);
                    bed.phase(kind, size, self)?;
                }
            }
        }
        Ok(())
    }
}

impl Bed {
    fn start(name: &'static str, programs: &Programs, mta: Option<&Path>) -> Result<Bed> {
        let mut site = programs.site.clone();
        if let Some(mta) = mta {
            site.mta = mta.to_owned();
        }
        let names: Vec<String> = (0..USERS).map(user).chain([CHIEF.to_owned()]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let peer =
            PeerSettings { associations: Some(ASSOCIATIONS), ..PeerSettings::per_precedence() };
        let channels = peer.channels.len();
        let builder = Pair::builder(peer)?.programs(&site);
        let builder = builder.each(|site| site.users(&names).run_with(&["--log-format", "json"]));
        let pair = builder.start()?;
        for site in [&pair.naples, &pair.act] {
            site.wait_until("all associations", LONG, |status| {
                status.associations().filter(|a| a.state == "idle").count() >= 2 * channels
            })?;
        }
        let phases = Kind::ALL.iter().map(|_| Phase::default()).collect();
        let programs = programs.clone();
        Ok(Bed { name, programs, pair, saturation: 0.0, phases, flashes: Vec::new() })
    }

    /// Messages delivered a second, each way, of those submitted as fast as they are accepted.
    fn saturate(&self, size: usize, seconds: f64) -> Result<f64> {
        let [there, back] = self.flood(size, seconds, None)?.map(Load::end);
        let (there, back) = (there?, back?);
        let rate = |o: &load::Outcome| o.delivered as f64 / o.seconds.max(1e-6);
        Ok(f64::midpoint(rate(&there), rate(&back)))
    }

    /// Begins a flood both ways; so many a second each way.
    fn flood(&self, size: usize, seconds: f64, rate: Option<f64>) -> Result<[Load; 2]> {
        let (a, b) = (&self.pair.naples, &self.pair.act);
        let start = |from: &Site, to: &Site| {
            let plan = plan(from, to, size, seconds, rate);
            Load::start(&self.programs, from.path(), "plan-routine", &plan)
        };
        let (there, back) = (start(a, b)?, start(b, a)?);
        Ok([there.begin()?, back.begin()?])
    }

    fn phase(&mut self, kind: Kind, size: usize, args: &Args) -> Result<()> {
        if clock::is_interrupted() {
            bail!("interrupted");
        }
        let flash = Plan {
            submitters: vec![login(&self.pair.naples, CHIEF)],
            receivers: vec![login(&self.pair.act, CHIEF)],
            precedence: Precedence::Flash,
            count: args.flashes,
            pause_ms: Some(PAUSE_MS),
            delivery_file: self.pair.act.path().join("deliveries-flash"),
            ..plan(&self.pair.naples, &self.pair.act, FLASH, args.seconds - RAMP, None)
        };
        let flash = Load::start(&self.programs, self.pair.act.path(), "plan-flash", &flash)?;
        let rate = match kind {
            Kind::Idle => None,
            Kind::Paced => Some(Some(self.saturation * SHARE)),
            Kind::Saturated => Some(None),
        };
        let flood = rate.map(|rate| self.flood(size, args.seconds, rate)).transpose()?;
        if flood.is_some() {
            clock::pause(Duration::from_secs_f64(RAMP));
        }
        let outcome = flash.begin()?.end()?;
        let Some(phase) = self.phases.get_mut(kind.place()) else { return Ok(()) };
        for _ in 0..outcome.delivered {
            self.flashes.push(kind);
        }
        phase.accepted.extend(outcome.accepted_each_us);
        phase.delivered.extend(outcome.delivered_each_us);
        for load in flood.into_iter().flatten() {
            let outcome = load.end()?;
            phase.routine += outcome.delivered;
            phase.seconds += outcome.seconds / 2.0;
        }
        Ok(())
    }

    fn finish(mut self, size: usize, measured: &Result<()>) -> Result<Vec<FloodRow>> {
        if measured.is_err() {
            // The caller reports the error.
            for path in self.pair.keep() {
                eprintln!("logs are kept in {}", path.join("logs").display());
            }
            return Ok(Vec::new());
        }
        let passages = Passages::read([&self.pair.naples, &self.pair.act], "flash")?;
        let flashes = std::mem::take(&mut self.flashes);
        let mut times =
            Kind::ALL.iter().zip(std::mem::take(&mut self.phases)).map(|(kind, phase)| {
                let stages = passages.stages(|at| flashes.get(at) == Some(kind));
                Times::new(
                    phase.accepted,
                    phase.delivered,
                    stages,
                    phase.routine as f64 / phase.seconds,
                )
            });
        let Some(idle) = times.next() else { return Ok(Vec::new()) };
        let loads = Kind::ALL.iter().skip(1).zip(times);
        let rows = loads
            .map(|(kind, times)| {
                FloodRow::new(self.name, *kind, (size, self.saturation), idle.clone(), times)
            })
            .collect();
        close(&mut self.pair, Ok(rows))
    }
}

fn plan(from: &Site, to: &Site, size: usize, seconds: f64, rate: Option<f64>) -> Plan {
    Plan {
        submitters: (0..USERS).map(|n| login(from, &user(n))).collect(),
        receivers: (0..USERS).map(|n| login(to, &user(n))).collect(),
        size,
        precedence: Precedence::Routine,
        seconds,
        count: u64::MAX,
        pause_ms: None,
        rate,
        drain_seconds: LONG.as_secs_f64(),
        delivery_file: to.path().join("deliveries"),
        held: true,
    }
}
