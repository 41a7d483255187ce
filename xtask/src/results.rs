//! `cargo xtask results`: docs/results made anew from the studies as they are.

use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::process::{Command, Stdio};
use xtask::marks::replace;

/// Makes the published studies in simulation and puts every printed value beside ours into
/// docs/results, between the marks: some minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these studies
    #[arg(value_name = "STUDY")]
    only: Vec<String>,
}

/// The studies with a page in docs/results.
const STUDIES: [&str; 3] = ["isode-nato-2007", "bern-2002", "degeb-2007"];
/// The mark on a page.
const MARK: &str = "printed";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        workspace.cargo(&["build", "-p", "lab"]).run()?;
        let lab = workspace.built("debug")?.join("lab");
        let wanted = |study: &&&str| self.only.is_empty() || self.only.iter().any(|o| o == **study);
        let mut sound = true;
        for study in STUDIES.iter().filter(wanted) {
            let out = workspace.built("debug")?.join("results").join(study);
            // What an earlier call left is not this one's.
            let _ = fs::remove_file(out.join("printed.md"));
            let made = Command::new(&lab)
                .args(["run", study, "--simulation", "--again", "--quiet", "--out"])
                .arg(&out)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .with_context(|| format!("lab run {study}"))?;
            // 1: an expectation does not hold; 3: one is not known. The page shows it.
            if !matches!(made.code(), Some(0 | 1 | 3)) {
                bail!("lab run {study} --simulation: {made}");
            }
            sound &= made.success();
            let printed = fs::read_to_string(out.join("printed.md"))?;
            let name = format!("docs/results/{study}.md");
            let path = workspace.root().join(&name);
            let page = fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
            let page = replace(&page, MARK, &without_place(&printed)).context(name.clone())?;
            fs::write(&path, page).with_context(|| format!("writing {name}"))?;
            println!("wrote {name}");
        }
        Ok(Outcome::from_passed(sound))
    }
}

/// Without where on this machine the numbers were kept.
fn without_place(printed: &str) -> String {
    let line =
        |line: &str| match line.strip_prefix("Made with `").and_then(|l| l.strip_suffix("`.")) {
            Some(command) => {
                let mut words = Vec::new();
                let mut rest = command.split(' ');
                while let Some(word) = rest.next() {
                    match word {
                        "--out" => _ = rest.next(),
                        "--again" | "--quiet" => {}
                        word => words.push(word),
                    }
                }
                format!("Made with `{}` (`cargo xtask results`).\n", words.join(" "))
            }
            None => format!("{line}\n"),
        };
    printed.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::marks::rows;

    #[test]
    fn each_study_has_a_page_with_printed_values() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let is_empty = |study: &&str| {
            let page = fs::read_to_string(root.join(format!("docs/results/{study}.md"))).unwrap();
            rows(&page, MARK).unwrap() == 0
        };
        let empty: Vec<_> = STUDIES.into_iter().filter(is_empty).collect();
        assert!(empty.is_empty(), "no row between the marks of {empty:?}: cargo xtask results");
    }

    #[test]
    fn the_command_is_one_that_anybody_can_give() {
        let printed =
            "Made with `lab run x --simulation --again --quiet --out /somewhere/x`.\n\n| a |\n";
        let page = "Made with `lab run x --simulation` (`cargo xtask results`).\n\n| a |\n";
        assert_eq!(without_place(printed), page);
    }
}
