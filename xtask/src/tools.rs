//! Programs that the tests need beside cargo, and how to get them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::workspace::Workspace;

/// A program, the Debian package that brings it, and what it is for.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
    /// The tests that need it are left out where it is not there; all others run.
    optional: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "tshark",
        package: "tshark",
        purpose: "the independent reader that decodes every kind of PDU we send",
        optional: false,
    },
    Tool {
        program: "ip",
        package: "iproute2",
        purpose: "sets up the interfaces and namespaces of the end-to-end tests",
        optional: false,
    },
    Tool {
        program: "ping",
        package: "iputils-ping",
        purpose: "asks across the laboratory's networks whether a host is there",
        optional: false,
    },
    Tool {
        program: "tmux",
        package: "tmux",
        purpose: "the terminal in which the tests type and read as a user of xuxa tui",
        optional: false,
    },
    Tool {
        program: "postgres",
        package: POSTGRESQL,
        purpose: "the database of a site of several nodes",
        optional: true,
    },
];

const POSTGRESQL: &str = "postgresql";
/// Where Debian keeps the releases of PostgreSQL: the programs are in `RELEASE/bin`, outside PATH.
const RELEASES: &str = "/usr/lib/postgresql";
/// What Debian's package reads before it makes and starts a server of its own, and how it does not.
const OWN_SERVER: &str = "/etc/postgresql-common/createcluster.conf";
const NO_SERVER: &str = "create_main_cluster = false\n";

/// Where Debian keeps programs that a user's PATH may leave out.
const SYSTEM_DIRECTORIES: &str = "/usr/sbin:/sbin";

/// PATH with the system's directories behind it.
pub(crate) fn search_path() -> String {
    match std::env::var("PATH") {
        Ok(path) if !path.is_empty() => format!("{path}:{SYSTEM_DIRECTORIES}"),
        _ => SYSTEM_DIRECTORIES.to_owned(),
    }
}

/// As [`search_path`], with the directories of PostgreSQL's releases: only to find what is there.
fn tool_path() -> String {
    let releases = std::fs::read_dir(RELEASES).into_iter().flatten().flatten();
    let directories = releases.map(|release| release.path().join("bin").display().to_string());
    [search_path()].into_iter().chain(directories).collect::<Vec<_>>().join(":")
}

/// Makes sure that all tools are there, installing them as root where apt-get can; an error names
/// each that is missing, its package and its purpose. Without an optional one it goes on.
pub(crate) fn ensure(workspace: &Workspace) -> anyhow::Result<()> {
    ensure_all(workspace, &TOOLS.iter().collect::<Vec<_>>())
}

/// As [`ensure`], for PostgreSQL alone, which is optional.
pub(crate) fn try_postgresql(workspace: &Workspace) -> anyhow::Result<()> {
    let of_it = TOOLS.iter().filter(|tool| tool.package == POSTGRESQL);
    ensure_all(workspace, &of_it.collect::<Vec<_>>())
}

fn ensure_all(workspace: &Workspace, tools: &[&Tool]) -> anyhow::Result<()> {
    let wanted = missing(&tool_path(), tools);
    if wanted.is_empty() {
        return Ok(());
    }
    if nix::unistd::geteuid().is_root() && found(&search_path(), "apt-get").is_some() {
        for tool in &wanted {
            println!("{} is missing ({}): installing {}", tool.program, tool.purpose, tool.package);
        }
        let apt = |arguments: &[&str]| {
            workspace.command("apt-get", arguments).env("DEBIAN_FRONTEND", "noninteractive").run()
        };
        if wanted.iter().any(|tool| tool.package == POSTGRESQL) {
            keep_from_serving(Path::new(OWN_SERVER))?;
        }
        if let Err(error) = install(&apt, &wanted) {
            println!("apt-get: {error:#}");
        }
    }
    let left = missing(&tool_path(), &wanted);
    let (optional, needed): (Vec<_>, Vec<_>) = left.into_iter().partition(|tool| tool.optional);
    if !needed.is_empty() {
        bail!("{}", complaint(&needed));
    }
    for tool in optional {
        let Tool { program, package, purpose, .. } = tool;
        println!("{program} is missing ({purpose}): tests that need it are left out; {package}");
    }
    Ok(())
}

/// Has Debian's package of PostgreSQL make and start no server: a build machine wants its programs only.
/// What an administrator wrote there stays.
fn keep_from_serving(file: &Path) -> anyhow::Result<()> {
    if file.exists() {
        return Ok(());
    }
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(file, NO_SERVER).with_context(|| format!("writing {}", file.display()))
}

/// Installs each optional tool, whose failure is only reported, then the needed ones. Also where the lists cannot be made anew: one mirror that does not answer is
/// enough for that, and the lists there are may do.
fn install(apt: &dyn Fn(&[&str]) -> anyhow::Result<()>, tools: &[&Tool]) -> anyhow::Result<()> {
    if let Err(error) = apt(&["update", "-q"]) {
        println!("apt-get update: {error:#}; installing from the lists that are here");
    }
    let install = ["install", "-q", "-y", "--no-install-recommends"];
    let (optional, needed): (Vec<&Tool>, Vec<&Tool>) = tools.iter().partition(|tool| tool.optional);
    for tool in optional {
        // By itself: a mirror without it must not keep the others away.
        if let Err(error) = apt(&[&install[..], &[tool.package]].concat()) {
            println!("apt-get install {}: {error:#}", tool.package);
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    let mut arguments = install.to_vec();
    arguments.extend(needed.iter().map(|tool| tool.package));
    apt(&arguments)
}

/// The tools that stand in no directory of the path.
fn missing<'a, T: AsRef<Tool>>(path: &str, tools: &'a [T]) -> Vec<&'a Tool> {
    tools.iter().map(AsRef::as_ref).filter(|tool| found(path, tool.program).is_none()).collect()
}

impl AsRef<Tool> for Tool {
    fn as_ref(&self) -> &Tool {
        self
    }
}

fn found(path: &str, program: &str) -> Option<PathBuf> {
    path.split(':').map(|dir| Path::new(dir).join(program)).find(|full| full.is_file())
}

fn complaint(tools: &[&Tool]) -> String {
    let mut text = "the tests need what is not installed here:".to_owned();
    for tool in tools {
        text.push_str(&format!("\n  {} ({})", tool.program, tool.purpose));
    }
    let packages: Vec<_> = tools.iter().map(|tool| tool.package).collect();
    text.push_str(&format!("\non Debian, as root: apt-get install {}", packages.join(" ")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_cannot_be_made_anew_do_not_stop_the_installation() {
        let asked = std::cell::RefCell::new(Vec::new());
        let apt = |arguments: &[&str]| {
            asked.borrow_mut().push(arguments.join(" "));
            if arguments[0] == "update" {
                bail!("a mirror does not answer")
            }
            Ok(())
        };
        install(&apt, &[&TOOLS[0]]).unwrap();
        let install = "install -q -y --no-install-recommends tshark";
        assert_eq!(*asked.borrow(), ["update -q", install]);
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package_and_purpose() {
        let empty = tempfile::tempdir().unwrap();
        let path = empty.path().to_str().unwrap();
        let text = complaint(&missing(path, TOOLS));
        assert!(text.contains("tshark (the independent reader"));
        assert!(text.ends_with("apt-get install tshark iproute2 iputils-ping tmux postgresql"));

        std::fs::write(empty.path().join("tshark"), "").unwrap();
        let left: Vec<_> = missing(path, TOOLS).iter().map(|tool| tool.program).collect();
        assert_eq!(left, ["ip", "ping", "tmux", "postgres"]);
    }

    #[test]
    fn an_optional_tool_is_installed_by_itself_and_its_failure_stops_nothing() {
        let asked = std::cell::RefCell::new(Vec::new());
        let apt = |arguments: &[&str]| {
            asked.borrow_mut().push(arguments.join(" "));
            if arguments.contains(&POSTGRESQL) {
                bail!("no such package")
            }
            Ok(())
        };
        let tools: Vec<&Tool> = TOOLS.iter().collect();
        install(&apt, &tools).unwrap();
        let install = "install -q -y --no-install-recommends";
        let needed = format!("{install} tshark iproute2 iputils-ping tmux");
        assert_eq!(*asked.borrow(), ["update -q", &format!("{install} postgresql"), &needed]);
    }

    #[test]
    fn postgresql_is_kept_from_serving_unless_somebody_decided_it() {
        let etc = tempfile::tempdir().unwrap();
        let file = etc.path().join("postgresql-common/createcluster.conf");
        keep_from_serving(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), NO_SERVER);
        std::fs::write(&file, "ssl = on\n").unwrap();
        keep_from_serving(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ssl = on\n");
    }
}
