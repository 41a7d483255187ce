//! `cargo xtask results`: docs/results made anew from the studies as they are.

use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::marks::replace;

/// Makes the published studies in simulation, stores their results in docs/results/data, and puts every
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
}

/// The studies with a page in docs/results.
const STUDIES: [&str; 3] = ["isode-nato-2007", "bern-2002", "degeb-2007"];
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
            pages(workspace, &lab, study)?;
        }
        Ok(Outcome::from_passed(sound))
    }
}

/// Makes a study in simulation, and stores its results; whether all its expectations hold.
fn made(workspace: &Workspace, lab: &Path, study: &str) -> Result<bool> {
    let summary = workspace.root().join(DATA).join(format!("{study}.simulation.json"));
    let made = Command::new(lab)
        .args(["run", study, "--simulation", "--fits", "--again", "--quiet", "--out"])
        .arg(workspace.built("debug")?.join("results").join(study))
        .arg("--summary")
        .arg(&summary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("lab run {study}"))?;
    // 1: an expectation does not hold; 3: one is not known. The page shows it.
    if !matches!(made.code(), Some(0 | 1 | 3)) {
        bail!("lab run {study} --simulation: {made}");
    }
    println!("wrote {DATA}/{study}.simulation.json");
    Ok(made.success())
}

/// Puts what is stored of a study between the marks of its page.
fn pages(workspace: &Workspace, lab: &Path, study: &str) -> Result<()> {
    let name = format!("docs/results/{study}.md");
    let path = workspace.root().join(&name);
    let mut page = fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
    for (kind, mark) in [("simulation", MARK), ("testbed", "testbed")] {
        let stored = workspace.root().join(DATA).join(format!("{study}.{kind}.json"));
        if !stored.exists() {
            continue;
        }
        let tables = Command::new(lab).arg("report").arg(&stored).output().context("lab report")?;
        if !tables.status.success() {
            bail!("lab report: {}", String::from_utf8_lossy(&tables.stderr).trim());
        }
        let tables = String::from_utf8_lossy(&tables.stdout);
        page = replace(&page, mark, &tables).context(name.clone())?;
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
        let empty: Vec<_> = STUDIES.into_iter().filter(is_empty).collect();
        assert!(empty.is_empty(), "no row between the marks of {empty:?}: cargo xtask results");
    }
}
