//! `cargo xtask bench all`: every bench, and the tables of docs/performance.md made from what came
//! of them.

use super::backlog::{self, HEADER, STAGES};
use super::figures::markdown;
use super::{build, relay, report, restart};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use lab::clock;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// The page the tables are in.
const PAGE: &str = "docs/performance.md";

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
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All figures of one machine and one day.
#[derive(Debug, Deserialize, Serialize)]
struct Figures {
    machine: Machine,
    relay: report::Report,
    backlog: backlog::Report,
    restart: restart::Report,
}

/// What it was measured on.
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
            let path = workspace.root().join(PAGE);
            let page = fs::read_to_string(&path).with_context(|| format!("reading {PAGE}"))?;
            fs::write(&path, figures.put_into(&page)?)
                .with_context(|| format!("writing {PAGE}"))?;
            eprintln!("wrote {PAGE}");
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&figures)?);
        } else if !self.write {
            let Figures { relay, backlog, restart, .. } = &figures;
            println!("{}\n{}\n{}", relay.text(), backlog.text(), restart.text());
        }
        Ok(Outcome::of(figures.relay.is_sound()))
    }

    fn measure(&self, workspace: &Workspace) -> Result<Figures> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let machine = Machine::here(workspace)?;
        let relay = relay::Args::whole().measure(&programs)?;
        let backlog = backlog::Args::whole().measure(&programs)?;
        let restart = restart::measure(&programs, 1_000_000, 1_000)?;
        Ok(Figures { machine, relay, backlog, restart })
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
        let backlog: Vec<_> = self.backlog.rows.iter().map(backlog::Row::cells).collect();
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
        replace(&page, "restart", &self.restart.markdown())
    }
}

/// The page with other lines between `<!-- figures: NAME -->` and the next `<!-- end -->`.
fn replace(page: &str, name: &str, by: &str) -> Result<String> {
    let begin = format!("<!-- figures: {name} -->\n");
    let Some((before, rest)) = page.split_once(&begin) else {
        bail!("{PAGE} has no line {:?}", begin.trim());
    };
    let Some((_, after)) = rest.split_once("<!-- end -->\n") else {
        bail!("{PAGE} has no line \"<!-- end -->\" after {:?}", begin.trim());
    };
    Ok(format!("{before}{begin}\n{}\n\n<!-- end -->\n{after}", by.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn figures_go_between_their_marks_and_nowhere_else() {
        let page =
            "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n";
        let new = replace(page, "x", "new\n").unwrap();
        let whole =
            "a\n<!-- figures: x -->\n\nnew\n\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n";
        assert_eq!(new, whole);
        assert_eq!(replace(&new, "x", "new").unwrap(), whole, "as often as wanted");
        let error = replace(page, "z", "").unwrap_err().to_string();
        assert!(error.contains("figures: z"), "{error}");
    }

    #[test]
    fn the_page_has_a_mark_for_each_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let names = ["machine", "backlog", "stages", "restart"];
        for name in names.into_iter().chain(report::PARTS) {
            replace(&page, name, "").unwrap();
        }
        assert_eq!(page.matches("<!-- figures: ").count(), names.len() + report::PARTS.len());
    }
}
