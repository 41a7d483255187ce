//! `cargo xtask bench router`: packets a second from host to host and the one-way delay, over
//! each data path of the lab beside the kernel's own forwarding; through the pipeline alone; and how
//! near a shaper keeps to its rate.

mod accuracy;
mod network;
mod paths;
mod pipeline;

use super::figures::{aligned, thousands};
use crate::workspace::Workspace;
use accuracy::Accuracy;
use anyhow::{Context as _, Result};
use paths::RouterRow;
use pipeline::Pipeline;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use testbed::clock;

/// Of the kernel's packets a second end to end: what a data path should come to at least.
const RATIO_AIM: f64 = 0.8;
/// Packets of 128 octets a second through the pipeline alone, on one core: likewise.
const PIPELINE_AIM: f64 = 1e6;
/// Sends as much as a host can to another one, with UDP, over each data path by turns; measures round
/// trips on an idle network; runs the bench `pipeline` of the crate `router`; and measures shapers
/// that are offered more than their rate.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Seconds of each load
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often all paths are measured by turns; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each shaper's load, at 512 kbit/s, 2, 10 and 100 Mbit/s; 0 for none
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=600))]
    accuracy_seconds: u64,
    /// Without the pipeline
    #[arg(long)]
    no_pipeline: bool,
    /// The program `lab` as it is built, from this directory, instead of building it
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All that was measured.
#[derive(Debug, Default, Serialize)]
struct RouterResults {
    seconds: u64,
    rounds: usize,
    rows: Vec<RouterRow>,
    pipeline: Vec<Pipeline>,
    accuracy: Vec<Accuracy>,
    ratio_aim: f64,
    pipeline_aim: f64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<crate::Outcome> {
        let directory = match &self.programs {
            Some(directory) => directory.clone(),
            None => {
                workspace.cargo(&["build", "--release", "-p", "lab"]).run_aside()?;
                workspace.built("release")?
            }
        };
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let mut report = RouterResults {
            seconds: self.seconds,
            rounds: self.rounds.max(1),
            ..RouterResults::default()
        };
        (report.ratio_aim, report.pipeline_aim) = (RATIO_AIM, PIPELINE_AIM);
        report.rows = paths::measure(&directory.join("lab"), self.seconds, report.rounds)?;
        if self.accuracy_seconds > 0 {
            report.accuracy = accuracy::measure(&directory.join("lab"), self.accuracy_seconds)?;
        }
        if !self.no_pipeline {
            report.pipeline = pipeline::measure(workspace)?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", report.text());
        }
        Ok(crate::Outcome::from_passed(true))
    }
}

impl RouterResults {
    fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            vec![
                if row.path == "tc" { "kernel (tc)" } else { row.path }.to_owned(),
                row.size.to_string(),
                thousands(row.packets_per_second as u64),
                format!("{:.2}", row.ratio_to_kernel),
                thousands(row.sent),
                thousands(row.lost_in_transit),
                thousands(row.dropped_at_receiver),
                if row.load_limited { "load-limited" } else { "" }.to_owned(),
                format!("{:.0}", row.one_way_ms * 1e3),
                format!("{:.0}", row.added_ms * 1e3),
            ]
        });
        let header = [
            "path",
            "octets",
            "packets/s",
            "to kernel",
            "sent",
            "lost",
            "receiver's",
            "",
            "one way us",
            "added us",
        ];
        let paths = aligned(&header, &rows.collect::<Vec<_>>());
        let rows = self.pipeline.iter().map(|row| {
            vec![row.policy.clone(), row.size.to_string(), thousands(row.packets_per_second as u64)]
        });
        let pipeline = aligned(&["pipeline", "octets", "packets/s"], &rows.collect::<Vec<_>>());
        let mut text = format!(
            "{paths}aim: {RATIO_AIM} of the kernel's packets/s. lost: in transit, in all rounds; \
             receiver's: dropped by its socket.\nload-limited: nothing was lost in transit in some \
             round, so the path may carry more than it was offered.\n"
        );
        if !self.pipeline.is_empty() {
            let aim = thousands(PIPELINE_AIM as u64);
            let _ = write!(text, "\n{pipeline}aim: {aim} packets/s of 128 octets, on one core\n");
        }
        if !self.accuracy.is_empty() {
            let _ = write!(text, "\n{}", accuracy::text(&self.accuracy));
        }
        text
    }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(4.0));
        assert_eq!(median(Vec::new()), None);
    }
}
