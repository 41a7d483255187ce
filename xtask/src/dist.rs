//! `cargo xtask dist`: what is given to others: the wheel of the Python bindings, built and tried.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::Outcome;
use crate::workspace::Workspace;

/// Where the bindings are.
const BINDINGS: &str = "bindings/python";
/// What builds the wheel, and what checks its types. Both are fetched with pip.
const BUILDS: [&str; 2] = ["maturin>=1.9,<2", "mypy>=1.10,<3"];

/// Builds the wheel of the Python bindings into target/dist, and tries it in a virtual environment of its own:
/// imports, error classes, types of the examples, and every operation against a message store of the tests and against
/// a daemon. Needs python3 (3.10 or later) with venv, and a package index for maturin and mypy.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the wheel is put
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let target = workspace.root().join("target");
        let into = self.into.unwrap_or_else(|| target.join("dist"));
        fs::create_dir_all(&into).with_context(|| format!("creating {}", into.display()))?;
        let tools = environment(workspace, "python-build", &BUILDS)?;
        let bindings = workspace.root().join(BINDINGS);
        let manifest = bindings.join("Cargo.toml");
        let before = wheels(&into)?;
        for wheel in before {
            fs::remove_file(&wheel).with_context(|| format!("removing {}", wheel.display()))?;
        }
        let (manifest, out) = (manifest.to_string_lossy(), into.to_string_lossy());
        let build = ["build", "--release", "--locked", "--manifest-path", &manifest, "--out", &out];
        workspace
            .command(&tools.join("maturin").to_string_lossy(), &build)
            .called("maturin")
            .run()?;
        let Some(wheel) = wheels(&into)?.pop() else { bail!("maturin built no wheel") };
        let wheel = wheel.to_string_lossy().into_owned();
        let tried = environment(workspace, "python-try", &["--force-reinstall", &wheel])?;
        let python = tried.join("python").to_string_lossy().into_owned();
        let smoke = bindings.join("smoke.py").to_string_lossy().into_owned();
        workspace.command(&python, &[&smoke]).called("python").run()?;
        let [examples, scripts] = ["examples", "tests"]
            .map(|folder| bindings.join(folder).to_string_lossy().into_owned());
        let types = ["--strict", "--python-executable", &python, &smoke, &examples, &scripts];
        workspace.command(&tools.join("mypy").to_string_lossy(), &types).called("mypy").run()?;
        let store = ["test", "-p", "xuxa-cli", "--test", "python", "--", "--ignored"];
        workspace.cargo(&store).env("XUXA_PYTHON", &python).run()?;
        workspace.cargo(&["build", "-p", "mta", "-p", "xuxa-cli"]).run()?;
        let site = ["test", "-p", "tests", "--test", "all", "--", "--ignored", "bindings::"];
        workspace.cargo(&site).env("XUXA_PYTHON", &python).run()?;
        println!("{wheel}");
        Ok(Outcome::from_passed(true))
    }
}

/// A virtual environment with these packages; returns its folder of programs.
fn environment(workspace: &Workspace, name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = workspace.root().join("target").join(name);
    let shown = folder.to_string_lossy();
    workspace.command("python3", &["-m", "venv", &shown]).run()?;
    let programs = folder.join("bin");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let python = programs.join("python");
    workspace
        .command(&python.to_string_lossy(), &[&install, packages].concat())
        .called("pip")
        .run()?;
    Ok(programs)
}

/// The wheels in a folder.
fn wheels(folder: &std::path::Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            found.push(path);
        }
    }
    Ok(found)
}
