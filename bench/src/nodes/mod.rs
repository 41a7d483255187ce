//! `cargo xtask bench nodes`: one node on its own files, one on PostgreSQL, several on PostgreSQL, side by side.

mod model;
mod results;
mod world;

use super::running::Load;
use super::{Programs, build, login, user};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use indicatif::ProgressBar;
use load::Plan;
use model::Machines;
use results::{NodesResults, Row};
use std::path::PathBuf;
use std::time::Duration;
use testbed::clock;
use world::{Store, World};

/// Users who submit at once, and as many who receive.
const SUBMITTERS: usize = 64;
/// Octets of text.
const SIZE: usize = 1_000;
/// Most associations to the peer.
const ASSOCIATIONS: u32 = 16;
/// Messages of one run at most.
const MESSAGES: u64 = 60_000;
/// A run fails once nothing was delivered for this long.
const DRAIN: Duration = Duration::from_secs(60);

/// A site of one node on its own files, of one on PostgreSQL with and without waiting for a standby, and of several,
/// on this machine: messages a second, and for each message the processor time at the nodes and at the servers of the
/// database, and octets of its log. From these, what more nodes on machines of their own would carry. All setups are
/// measured in turn, several times.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds for which each run submits
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How often each setup is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Nodes of the site of several
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// The model's machines: processors of each
    #[arg(long, default_value_t = 4.0)]
    processors: f64,
    /// The model's network from the primary to its standbys, millions of bits a second
    #[arg(long, default_value_t = 1_000.0)]
    network: f64,
    /// The model's disks: millions of octets a second, written and synced
    #[arg(long, default_value_t = 200.0)]
    disk: f64,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let results = self.measure(&programs)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&results)?);
        } else {
            print!("{}", results.text());
        }
        Ok(Outcome::from_passed(results.is_sound()))
    }

    fn setups(&self) -> [(Store, usize); 4] {
        [
            (Store::Embedded, 1),
            (Store::Database, 1),
            (Store::Quorum, 1),
            (Store::Quorum, self.nodes.max(1)),
        ]
    }

    fn measure(&self, programs: &Programs) -> Result<NodesResults> {
        let setups = self.setups();
        let mut rows: Vec<Row> =
            setups.iter().map(|(store, nodes)| Row::new(*store, *nodes)).collect();
        let runs = self.rounds.max(1) * setups.len();
        let bar = ProgressBar::new(u64::try_from(runs).unwrap_or(u64::MAX));
        bar.enable_steady_tick(Duration::from_millis(100));
        for _ in 0..self.rounds.max(1) {
            for ((store, nodes), row) in setups.into_iter().zip(&mut rows) {
                bar.set_message(row.name());
                self.once(programs, (store, nodes), row)
                    .with_context(|| format!("measuring {}", row.name()))?;
                bar.inc(1);
                if clock::is_interrupted() {
                    bail!("interrupted; all processes are ended and their directories removed");
                }
            }
        }
        bar.finish_and_clear();
        let machines = Machines {
            processors: self.processors,
            network: self.network * 1e6 / 8.0,
            disk: self.disk * 1e6,
            standbys: 2.0,
            load: results::LOAD,
        };
        Ok(NodesResults::new(rows, machines))
    }

    /// One run of one setup, in directories of its own.
    fn once(&self, programs: &Programs, setup: (Store, usize), row: &mut Row) -> Result<()> {
        let names: Vec<String> = (0..SUBMITTERS).map(user).collect();
        let mut world = World::start(programs, setup.0, setup.1, &names, ASSOCIATIONS)?;
        let submitters: Result<Vec<load::Login>> =
            names.iter().enumerate().map(|(n, name)| world.login(n, name)).collect();
        let plan = Plan {
            submitters: submitters?,
            receivers: names.iter().map(|name| login(&world.act, name)).collect(),
            size: SIZE,
            precedence: base::Precedence::Routine,
            seconds: self.seconds,
            count: MESSAGES,
            pause_ms: None,
            rate: None,
            drain_seconds: DRAIN.as_secs_f64(),
            delivery_file: world.act.path().join("deliveries"),
            held: true,
        };
        let load = Load::start(programs, world.act.path(), "plan", &plan)?;
        // What the binds took does not count.
        let (before, written) = (world.spent()?, world.written()?);
        let outcome = load.begin()?.end()?;
        let (after, then) = (world.spent()?, world.written()?);
        let written = written.zip(then).map(|(a, b)| (b.0 - a.0, b.1 - a.1));
        row.add(&outcome, before, after, written);
        world.stop()
    }
}
