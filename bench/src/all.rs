//! `cargo xtask bench all`: every bench, and the tables of docs/performance.md made from the
//! results.

use super::backlog::{self, HEADER, STAGES};
use super::figures::markdown;
use super::{build, flood, relay, restart, results, resume};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use testbed::clock;
use xtask::marks::replace;

/// The page the tables are in.
pub(super) const PAGE: &str = "docs/performance.md";

/// Runs every bench, one after the other, some 10 minutes on a machine that has nothing else to do;
/// then `--write` puts the tables into docs/performance.md, between its marks.
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
    /// An older `mta`, for the bench of the flood: beside the one of today
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All figures of one machine and one day.
#[derive(Debug, Deserialize, Serialize)]
struct Figures {
    machine: Machine,
    relay: results::RelayResults,
    backlog: backlog::BacklogResults,
    #[serde(default)]
    flood: Option<flood::FloodResults>,
    restart: restart::RestartResults,
    resume: resume::ResumeResults,
}

/// The machine that was measured.
#[derive(Debug, Deserialize, Serialize)]
struct Machine {
    processors: usize,
    model: String,
    kernel: String,
    /// Of the source that was measured.
    commit: String,
    /// The load average of a minute before anything began: a quiet machine has less than 0.5.
    load: String,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let figures = match &self.from {
            Some(file) => {
                let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
                serde_json::from_slice(&text)
                    .with_context(|| format!("{} holds no figures", file.display()))?
            }
            None => self.measure(workspace)?,
        };
        if self.write {
            write_page(workspace, |page| figures.put_into(page))?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&figures)?);
        } else if !self.write {
            let Figures { relay, backlog, flood, restart, resume, .. } = &figures;
            let flood = flood.as_ref().map(flood::FloodResults::text).unwrap_or_default();
            println!("{}\n{}\n{flood}\n{}", relay.text(), backlog.text(), restart.text());
            println!("{}", resume.text());
        }
        Ok(Outcome::from_passed(figures.relay.is_sound()))
    }

    fn measure(&self, workspace: &Workspace) -> Result<Figures> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let machine = Machine::here(workspace)?;
        let relay = relay::Args::whole().measure(&programs)?;
        let backlog = backlog::Args::whole().measure(&programs)?;
        let flood = flood::Args::whole(self.before.clone()).measure(&programs)?;
        let restart = restart::measure(&programs, 1_000_000, 1_000)?;
        let resume = resume::measure(&programs)?;
        Ok(Figures { machine, relay, backlog, flood: Some(flood), restart, resume })
    }
}

impl Machine {
    fn here(workspace: &Workspace) -> Result<Machine> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| format!("reading {path}"));
        let cpus = read("/proc/cpuinfo")?;
        let models =
            || cpus.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = read("/proc/loadavg")?;
        let commit = workspace.command("git", &["rev-parse", "--short", "HEAD"]).output();
        Ok(Machine {
            processors: models().count(),
            model: models().next().map_or_else(String::new, |(_, model)| model.to_owned()),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            commit: commit.unwrap_or_default().trim().to_owned(),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        })
    }

    fn text(&self) -> String {
        format!(
            "Machine: {} processors ({}), Linux {}; load average before: {}. Commit {}.\n",
            self.processors, self.model, self.kernel, self.load, self.commit
        )
    }
}

impl Figures {
    /// The page with these figures between its marks.
    fn put_into(&self, page: &str) -> Result<String> {
        let backlog: Vec<_> = self.backlog.rows.iter().map(backlog::BacklogRow::cells).collect();
        let mut page = replace(page, "machine", &self.machine.text())?;
        for (name, text) in self.relay.parts() {
            page = replace(&page, name, &text)?;
        }
        page = replace(&page, "backlog", &markdown(&HEADER, &backlog))?;
        let stages = self.backlog.rows.iter().map(|row| {
            let [name, associations, ..] = &row.cells()[..] else { return String::new() };
            format!(
                "`hold = \"{name}\"`, {associations} associations:\n\n{}",
                markdown(&STAGES, &row.stages())
            )
        });
        page = replace(&page, "stages", &stages.collect::<Vec<_>>().join("\n"))?;
        if let Some(flood) = &self.flood {
            page = flood.put_into(&page)?;
        }
        page = replace(&page, "restart", &self.restart.markdown())?;
        replace(&page, "resume", &self.resume.markdown())
    }
}

/// Writes the page anew.
fn write_page(workspace: &Workspace, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let path = workspace.root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("reading {PAGE}"))?;
    fs::write(&path, change(&page)?).with_context(|| format!("writing {PAGE}"))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}

/// Puts one table into the page.
pub(super) fn write_part(workspace: &Workspace, name: &str, by: &str) -> Result<()> {
    write_page(workspace, |page| replace(page, name, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use xtask::marks::{between, rows};

    #[test]
    fn the_page_has_a_row_in_each_table_and_a_mark_for_no_other() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let slow = super::super::slow::PART;
        let names = ["machine", "backlog", "stages", "restart", "resume", slow];
        // These are sentences.
        let words = ["machine", "disk", "idle", "memory"];
        let all = names.into_iter().chain(results::PARTS).chain(flood::PARTS);
        let is_empty = |name: &&str| match words.contains(name) {
            true => between(&page, name).unwrap().trim().is_empty(),
            false => rows(&page, name).unwrap() == 0,
        };
        let empty: Vec<_> = all.filter(is_empty).collect();
        assert!(empty.is_empty(), "nothing between the marks of {empty:?} in {PAGE}");
        let all = names.len() + results::PARTS.len() + flood::PARTS.len();
        assert_eq!(page.matches("<!-- figures: ").count(), all);
    }
}
