//! `cargo xtask results`: docs/results made anew from the studies as they are.

use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::marks::{names, replace};

/// Makes the studies in simulation, stores their results in docs/results/data, and puts every
/// printed value beside ours into docs/results, between the marks: some minutes. What is stored of the
/// testbed goes onto the pages too.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these studies
    #[arg(value_name = "STUDY")]
    only: Vec<String>,
    /// Only the pages, from what is stored
    #[arg(long)]
    stored: bool,
    /// Also what rival explanations predict: some minutes more
    #[arg(long, conflicts_with = "stored")]
    hypotheses: bool,
}

/// The studies with a page in docs/results.
const STUDIES: [&str; 4] = ["isode-nato-2007", "bern-2002", "degeb-2007", MATRIX];
/// The one without printed values.
const MATRIX: &str = "recommended-matrix";
/// The one with rival explanations; docs/studies.md has their figures.
const RIVALS: &str = "isode-nato-2007";
/// The mark on a page.
const MARK: &str = "printed";

/// Where the results are stored, below the root.
const DATA: &str = "docs/results/data";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        workspace.cargo(&["build", "-p", "lab"]).run()?;
        let lab = workspace.built("debug")?.join("lab");
        let wanted = |study: &&&str| self.only.is_empty() || self.only.iter().any(|o| o == **study);
        let mut sound = true;
        for study in STUDIES.iter().filter(wanted) {
            if !self.stored {
                sound &= made(workspace, &lab, study)?;
            }
            if self.hypotheses && *study == RIVALS {
                sound &= rivals(workspace, &lab, study)?;
            }
            pages(workspace, &lab, study)?;
        }
        Ok(Outcome::from_passed(sound))
    }
}

/// Makes a study in simulation, and stores its results; whether all its expectations hold.
fn made(workspace: &Workspace, lab: &Path, study: &str) -> Result<bool> {
    let options: &[&str] = match study {
        MATRIX => &["matrix", "--simulation", "--summary"],
        _ => &["--simulation", "--fits", "--summary"],
    };
    run(workspace, lab, study, options, "simulation")
}

/// Makes the runs of rival explanations, and stores what they predict.
fn rivals(workspace: &Workspace, lab: &Path, study: &str) -> Result<bool> {
    run(workspace, lab, study, &["--hypotheses", "--json"], "hypotheses")
}

/// Runs a study with these options, of which the last one wants the name of the file to be stored.
fn run(
    workspace: &Workspace,
    lab: &Path,
    study: &str,
    options: &[&str],
    kind: &str,
) -> Result<bool> {
    let name = format!("{DATA}/{study}.{kind}.json");
    let made = Command::new(lab)
        .args(["run", study, "--again", "--quiet", "--out"])
        .arg(workspace.built("debug")?.join("results").join(format!("{study}-{kind}")))
        .args(options)
        .arg(workspace.root().join(&name))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("lab run {study}"))?;
    // 1: an expectation does not hold; 3: one is not known. The page shows it.
    if !matches!(made.code(), Some(0 | 1 | 3)) {
        bail!("lab run {study} {}: {made}", options.join(" "));
    }
    println!("wrote {name}");
    Ok(made.success())
}

/// Puts what is stored of a study between the marks of its page.
fn pages(workspace: &Workspace, lab: &Path, study: &str) -> Result<()> {
    let name = format!("docs/results/{study}.md");
    let path = workspace.root().join(&name);
    let mut page = fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
    let marks: Vec<String> = names(&page).into_iter().map(str::to_owned).collect();
    for mark in marks {
        let mut command = Command::new(lab);
        command.arg("report").current_dir(workspace.root().join(DATA));
        let mut words = mark.split(' ');
        let kinds: &[&str] = match words.next() {
            Some(MARK) => &["simulation"],
            Some("testbed") => &["testbed"],
            Some("beside") => &["simulation", "testbed"],
            Some("by") => match words.next() {
                Some("simulation") => &["simulation"],
                _ => &["testbed"],
            },
            _ => bail!("{name}: {mark:?} is none of {MARK}, testbed, beside and by"),
        };
        if mark.starts_with("by ") {
            command.args(words.next().map(|parameter| format!("--by={parameter}")));
        }
        command.args(kinds.iter().map(|kind| format!("{study}.{kind}.json")));
        command.args(words.map(|experiment| format!("--experiment={experiment}")));
        let tables = command.output().context("lab report")?;
        if !tables.status.success() {
            bail!("{name}: {mark}: {}", String::from_utf8_lossy(&tables.stderr).trim());
        }
        let tables = String::from_utf8_lossy(&tables.stdout);
        page = replace(&page, &mark, &tables).context(name.clone())?;
    }
    fs::write(&path, page).with_context(|| format!("writing {name}"))?;
    println!("wrote {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::marks::rows;

    #[test]
    fn each_study_has_a_page_with_printed_values() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let is_empty = |study: &&str| {
            let page = fs::read_to_string(root.join(format!("docs/results/{study}.md"))).unwrap();
            rows(&page, MARK).unwrap() == 0
        };
        let printed = STUDIES.into_iter().filter(|study| *study != MATRIX);
        let empty: Vec<_> = printed.filter(is_empty).collect();
        assert!(empty.is_empty(), "no row between the marks of {empty:?}: cargo xtask results");
    }
}
