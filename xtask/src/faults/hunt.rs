//! `cargo xtask hunt`: networks of MTAs in virtual time, each drawn from a seed with all that goes wrong in it.

use crate::Outcome;
use crate::workspace::Workspace;

/// Plays networks of MTAs with real stores in virtual time, each drawn from a seed with its traffic and all that goes wrong,
/// until something is broken or the time is over. A world that fails is made smaller and its story printed by
/// `cargo xtask hunt --seed N`. Without arguments: one minute.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Play this seed alone, and print its story
    #[arg(long, conflicts_with_all = ["forever", "from"])]
    seed: Option<u64>,
    /// Play the world in this file alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "forever", "from"])]
    world: Option<String>,
    /// With --seed or --world: write the world that was played into this file
    #[arg(long, value_name = "FILE")]
    save: Option<String>,
    /// With --seed or --world: write a recording of each process of each site into this directory, for mta replay
    #[arg(long, value_name = "DIR")]
    record: Option<String>,
    /// Play worlds for so many minutes
    #[arg(long, default_value_t = 1.0, conflicts_with = "forever")]
    minutes: f64,
    /// Play worlds until Ctrl-C
    #[arg(long)]
    forever: bool,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Add a line on this run to a file: worlds, faults drawn, findings
    #[arg(long, value_name = "FILE")]
    log: Option<String>,
    /// Worlds of two sites only
    #[arg(long)]
    pair: bool,
    /// Go on after a world that fails
    #[arg(long)]
    go_on: bool,
    /// With --seed: the whole world, also if it fails
    #[arg(long)]
    whole: bool,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let mut arguments: Vec<String> =
            ["run", "--release", "--quiet", "-p", "hunt", "--"].map(str::to_owned).to_vec();
        let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        match (self.seed, self.world) {
            (Some(seed), _) => add("--seed", seed.to_string()),
            (None, Some(world)) => add("--world", world),
            (None, None) => {
                add("--from", self.from.to_string());
                if !self.forever {
                    add("--minutes", self.minutes.to_string());
                }
            }
        }
        if let Some(file) = self.save {
            add("--save", file);
        }
        if let Some(file) = self.log {
            add("--log", file);
        }
        if let Some(directory) = self.record {
            add("--record", directory);
        }
        arguments.extend(self.forever.then(|| "--forever".to_owned()));
        for (is_set, name) in
            [(self.pair, "--pair"), (self.go_on, "--go-on"), (self.whole, "--whole")]
        {
            arguments.extend(is_set.then(|| name.to_owned()));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        workspace.cargo(&arguments).succeeds().map(Outcome::from_passed)
    }
}
