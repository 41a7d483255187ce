//! `lab run`: a study, repeated.

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};
use lab::run::{self, Options, Outcome};
use lab::up::Kind;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study::Row;
use study::measured::Ground;

/// Something could not be done, and something was.
const IN_PART: u8 = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study: one of `lab list`, or a file
    study: String,
    /// Only these experiments, or runs as EXPERIMENT/RUN
    only: Vec<String>,
    /// Also the experiments that are left out unless they are named
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// In virtual time: the same router and MTA, and TCP in this program
    #[arg(long = "virtual")]
    in_virtual_time: bool,
    /// A network that is so much faster: every rate times this, every delay divided by it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    scale: u32,
    /// For droppers, jitter, loss and load
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many runs at once; the processors of this machine where absent
    #[arg(long)]
    parallel: Option<usize>,
    /// How packets get from the hosts to the routers; see `lab doctor`
    #[arg(long, value_enum)]
    path: Option<Kind>,
    /// Where runs are kept, and the report; default: results/STUDY-SCALE
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Make again what is kept
    #[arg(long)]
    again: bool,
    /// Write all numbers to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show nothing while it runs
    #[arg(long)]
    quiet: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let found = run::find(&self.study)?;
        ctrlc::set_handler(lab::clock::interrupt).context("for Ctrl-C")?;
        let directory = self.out.clone().unwrap_or_else(|| {
            let ground = if self.in_virtual_time {
                "virtual".to_owned()
            } else {
                format!("x{}", self.scale)
            };
            Path::new("results").join(format!("{}-{ground}", found.name))
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let options = Options {
            only: self.only,
            all: self.all,
            ground: if self.in_virtual_time { Ground::Virtual } else { Ground::Real },
            scale: self.scale,
            seed: self.seed,
            parallel: self.parallel.unwrap_or(cores),
            path: self.path,
            directory,
            again: self.again,
            quiet: self.quiet,
        };
        let outcome = run::run(&found, &options)?;
        let numbers = json!({
            "study": found.name,
            "scale": options.scale,
            "seed": options.seed,
            "rows": outcome.rows,
            "verdicts": outcome.verdicts,
            "failed": outcome.failed,
            "measured": outcome.measured,
        });
        match &self.json {
            Some(file) if file.as_os_str() == "-" => super::print(&format!("{numbers}\n"))?,
            Some(file) => {
                std::fs::write(file, numbers.to_string())
                    .with_context(|| file.display().to_string())?;
                super::print(&text(&outcome))?;
            }
            None => super::print(&text(&outcome))?,
        }
        Ok(code(&outcome))
    }
}

fn code(outcome: &Outcome) -> ExitCode {
    let broken = outcome.verdicts.iter().any(|verdict| verdict.holds == Some(false));
    if outcome.measured.is_empty() || broken {
        ExitCode::FAILURE
    } else if outcome.interrupted || !outcome.failed.is_empty() {
        ExitCode::from(IN_PART)
    } else {
        ExitCode::SUCCESS
    }
}

/// The end's short table.
fn text(outcome: &Outcome) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "table",
        "row",
        "dscp",
        "paper s",
        "s",
        "ratio",
        "paper kbit/s",
        "kbit/s",
        "ground",
    ]);
    for column in table.column_iter_mut().skip(3).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in &outcome.rows {
        table.add_row(cells(row));
    }
    let mut text = format!("{table}\n");
    for verdict in &outcome.verdicts {
        let mark = match verdict.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not known",
        };
        let value = verdict.value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        text += &format!("{mark}: {}: {} ({value})\n", verdict.experiment, verdict.what);
    }
    for (id, why) in &outcome.failed {
        text += &format!("failed: {id}: {why}\n");
    }
    text
}

fn cells(row: &Row) -> [String; 9] {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or(String::new(), |value| format!("{value:.digits$}"))
    };
    let paper = |key: &str| row.paper.get(key).copied();
    let bound = |value: Option<f64>, more: Option<f64>, sign: &str| match (value, more) {
        (None, Some(more)) => format!("{sign} {more:.1}"),
        (value, _) => number(value, 2),
    };
    [
        row.table.clone(),
        row.row.clone(),
        row.dscp_name.clone(),
        bound(row.paper_seconds, paper("seconds_more_than"), ">"),
        bound(row.seconds, row.seconds_more_than, ">"),
        number(row.ratio, 2),
        bound(paper("kbit_s"), paper("kbit_s_less_than"), "<"),
        bound(row.kbit_s, row.kbit_s_less_than, "<"),
        row.ground.name().to_owned(),
    ]
}
