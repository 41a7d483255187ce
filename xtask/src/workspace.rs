//! Where the workspace is, what it contains, and which crates make up its tiers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::command::Cmd;

/// The crates without async, clock, sockets, files and randomness: those of the MTA (`crates/`),
/// lowest first, then those of the laboratory (`lab/`).
pub const PURE: &[&str] = &[
    "base",
    "osi",
    "explain",
    "p1",
    "p7",
    "p772",
    "dscp",
    "scheduler",
    "guard",
    "status",
    "engine",
    "membership",
    "settings",
    "mailbox",
    "mailbox-file",
    "node-api",
    "ownership",
    "association",
    "node",
    "record",
    "router",
    "network",
    "study",
    "toml-path",
    "virtual-tcp",
    "sim",
    "load-header",
    "analyse",
];

/// The checkout this binary was started from.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// A package of the workspace.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the workspace, with `/` between its parts.
    pub folder: String,
}

/// A text file of the project.
#[derive(Debug)]
pub struct TextFile {
    /// Path relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl TextFile {
    /// Whether it is Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

impl Workspace {
    /// The workspace of the `cargo xtask` that runs us.
    pub fn find() -> anyhow::Result<Workspace> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask has no parent directory")?;
        Ok(Workspace { root: root.to_owned() })
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A command that runs in the workspace's root.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Cmd {
        Cmd::new(program, arguments).directory(&self.root)
    }

    /// `cargo` with these arguments: the one that runs us, so that toolchains do not mix.
    pub fn cargo(&self, arguments: &[&str]) -> Cmd {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let cmd = self.command(&cargo, arguments).called("cargo");
        // Incremental artefacts cost a throw-away machine time and disk, and save it nothing.
        if std::env::var_os("CI").is_some() { cmd.env("CARGO_INCREMENTAL", "0") } else { cmd }
    }

    fn metadata(&self) -> anyhow::Result<serde_json::Value> {
        let json = self.cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
        serde_json::from_str(&json).context("cargo metadata is not JSON")
    }

    /// Where cargo puts what it builds with this profile, `debug` or `release`.
    pub fn built(&self, profile: &str) -> anyhow::Result<PathBuf> {
        let metadata = self.metadata()?;
        let target = metadata.get("target_directory").and_then(|t| t.as_str());
        Ok(Path::new(target.context("no target directory in cargo metadata")?).join(profile))
    }

    /// The members of the workspace.
    pub fn members(&self) -> anyhow::Result<Vec<Member>> {
        let metadata = self.metadata()?;
        let packages =
            metadata.get("packages").and_then(|p| p.as_array()).context("no packages in it")?;
        let text = |package: &serde_json::Value, key: &str| {
            package.get(key).and_then(|value| value.as_str()).map(str::to_owned)
        };
        let member = |package| {
            let manifest = PathBuf::from(text(package, "manifest_path")?);
            let relative = manifest.parent()?.strip_prefix(&self.root).ok()?;
            Some(Member {
                name: text(package, "name")?,
                folder: relative.to_string_lossy().into_owned(),
            })
        };
        packages.iter().map(|p| member(p).context("a package without name or path")).collect()
    }

    /// The names of the members' test targets, in order: what `cargo test --test` takes.
    pub fn test_targets(&self) -> anyhow::Result<BTreeSet<String>> {
        let metadata = self.metadata()?;
        let packages =
            metadata.get("packages").and_then(|p| p.as_array()).context("no packages in it")?;
        let targets = packages.iter().filter_map(|p| p.get("targets")?.as_array()).flatten();
        let name = |target: &serde_json::Value| {
            let kinds = target.get("kind")?.as_array()?;
            let name = target.get("name")?.as_str()?;
            kinds.iter().any(|kind| kind == "test").then(|| name.to_owned())
        };
        Ok(targets.filter_map(name).collect())
    }

    /// Every text file that is tracked or could be (not ignored), in order of path.
    pub fn files(&self) -> anyhow::Result<Vec<TextFile>> {
        let list = self
            .command("git", &["ls-files", "--cached", "--others", "--exclude-standard"])
            .output()
            .context("the list of files comes from git")?;
        let mut paths: Vec<&str> = list.lines().collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let full = self.root.join(path);
            if !full.is_file() {
                continue; // removed, and the removal not yet committed
            }
            let octets = fs::read(&full).with_context(|| format!("reading {path}"))?;
            if let Ok(text) = String::from_utf8(octets) {
                files.push(TextFile { path: path.to_owned(), text });
            }
        }
        if files.is_empty() {
            bail!("git lists no file here");
        }
        Ok(files)
    }
}

/// The crate in `crates/` or `lab/` whose source the path is, if any: `crates/osi/src/api.rs`
/// belongs to `osi`.
pub fn crate_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("crates/").or_else(|| path.strip_prefix("lab/"))?;
    let (name, rest) = rest.split_once('/')?;
    rest.starts_with("src/").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_crate() {
        assert_eq!(crate_of("crates/osi/src/session/mod.rs"), Some("osi"));
        assert_eq!(crate_of("lab/router/src/lib.rs"), Some("router"));
        assert_eq!(crate_of("crates/osi/Cargo.toml"), None);
        assert_eq!(crate_of("xtask/src/main.rs"), None);
    }
}
