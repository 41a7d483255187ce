//! Programs that the tests need beside cargo, and how to get them.

use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::workspace::Workspace;

/// A program, the Debian package that brings it, and what it is for.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "tshark",
        package: "tshark",
        purpose: "the independent reader that decodes every kind of PDU we send",
    },
    Tool {
        program: "ip",
        package: "iproute2",
        purpose: "sets up the interfaces and namespaces of the end-to-end tests",
    },
    Tool {
        program: "ping",
        package: "iputils-ping",
        purpose: "asks across the laboratory's networks whether a host is there",
    },
    Tool {
        program: "tmux",
        package: "tmux",
        purpose: "the terminal in which the tests type and read as a user of xuxa tui",
    },
];

/// Where Debian keeps programs that a user's PATH may leave out.
const SYSTEM_DIRECTORIES: &str = "/usr/sbin:/sbin";

/// PATH with the system's directories behind it.
pub(crate) fn search_path() -> String {
    match std::env::var("PATH") {
        Ok(path) if !path.is_empty() => format!("{path}:{SYSTEM_DIRECTORIES}"),
        _ => SYSTEM_DIRECTORIES.to_owned(),
    }
}

/// Makes sure that all tools are there, installing them as root where apt-get can; an error names
/// each that is missing, its package and its purpose.
pub(crate) fn ensure(workspace: &Workspace) -> anyhow::Result<()> {
    let wanted = missing(&search_path(), TOOLS);
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
        if let Err(error) = install(&apt, &wanted) {
            println!("apt-get: {error:#}");
        }
    }
    let left = missing(&search_path(), &wanted);
    if left.is_empty() {
        return Ok(());
    }
    bail!("{}", complaint(&left));
}

/// Installs the tools, also where the lists cannot be made anew: one mirror that does not answer is
/// enough for that, and the lists there are may do.
fn install(apt: &dyn Fn(&[&str]) -> anyhow::Result<()>, tools: &[&Tool]) -> anyhow::Result<()> {
    if let Err(error) = apt(&["update", "-q"]) {
        println!("apt-get update: {error:#}; installing from the lists that are here");
    }
    let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
    arguments.extend(tools.iter().map(|tool| tool.package));
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
        assert!(text.ends_with("apt-get install tshark iproute2 iputils-ping tmux"));

        std::fs::write(empty.path().join("tshark"), "").unwrap();
        let left: Vec<_> = missing(path, TOOLS).iter().map(|tool| tool.program).collect();
        assert_eq!(left, ["ip", "ping", "tmux"]);
    }
}
