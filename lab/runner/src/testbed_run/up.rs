//! The network of a run, kept up by a process of its own.

use super::{PATIENCE, TestbedRunner};
use anyhow::{Context as _, Result, bail};
use emulator::client::ControlClient;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use study::Planned;
use tempfile::TempDir;
use testbed::child::Child;
use testbed::clock::Deadline;
use testbed::ns::Entrance;
use toml::Value;

/// A directory whose files are in memory.
const MEMORY: &str = "/dev/shm";

/// Names of directories of runs begin so; the process and a number follow.
const PREFIX: &str = "lab-run-";

/// A network that is up, and the directory of its run.
#[derive(Debug)]
pub(super) struct Network {
    client: ControlClient,
    child: Child,
    lab: PathBuf,
    directory: TempDir,
}

impl Network {
    /// Brings it up.
    ///
    /// # Errors
    /// It does not come up; with its output.
    pub(super) fn up(runner: &TestbedRunner, planned: &Planned) -> Result<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("run-{}-{number}", std::process::id());
        let directory = directory()?;
        let topology = directory.path().join("topology.toml");
        write(&topology, &planned.topology)?;
        let mut policies = Vec::new();
        for (name, policy) in &planned.policies {
            // A policy may be called `topology`, or anything else that is here.
            let file = directory.path().join(format!("policy-{name}.toml"));
            write(&file, policy)?;
            policies.push(format!("{name}={}", file.display()));
        }
        let longest = planned.limit + 4 * PATIENCE;
        let mut command = Command::new(&runner.programs.lab);
        command.arg("up").arg(&topology).args(["--name", &name, "--quiet", "--with-input"]);
        command.args(policies.iter().flat_map(|policy| ["--policy", policy]));
        command.args(["--seed", &runner.seed.to_string()]);
        // No network stays up for ever, even if this process is killed.
        command.args(["--for", &format!("{}ms", longest.as_millis().min(3_600_000))]);
        if let Some(path) = runner.path {
            command.args(["--path", &path.to_string()]);
        }
        command.stdin(Stdio::piped());
        let log = directory.path().join("up.log");
        let mut child = Child::spawn(command, &directory.path().join("up.out"), &log)?;
        let client = Deadline::after(PATIENCE).wait_for("the network", || {
            if let Some(status) = child.ended()? {
                let output = fs::read_to_string(&log).unwrap_or_default();
                bail!("lab up ended at once ({status}): {}", output.trim());
            }
            let up = ControlClient::find(Some(&name)).ok();
            Ok(up.filter(|client| client.status().is_ok()))
        })?;
        Ok(Network { client, child, lab: runner.programs.lab.clone(), directory })
    }

    pub(super) fn client(&self) -> &ControlClient {
        &self.client
    }

    /// For files of the run.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// How to run programs in a host that are to end with the network.
    pub(super) fn entrance(&self, host: &str) -> Entrance {
        Entrance::by_exec(&self.lab, self.client.name(), host)
    }

    /// How to run programs in a host that handle signals and have a time limit themselves.
    pub(super) fn direct(&self, host: &str) -> Result<Entrance> {
        let access = self.client.enter(host)?;
        Ok(Entrance::by_path(&access.network, access.user.as_deref()))
    }

    /// Properties of the testbed that decide the results and are not in the study.
    pub(super) fn how(&self, planned: &Planned) -> Vec<(String, String)> {
        let controls: std::collections::BTreeSet<&str> = planned
            .topology
            .hosts
            .values()
            .filter_map(|h| h.congestion_control.as_deref())
            .collect();
        let controls: Vec<&str> = controls.into_iter().collect();
        let tcp =
            if controls.is_empty() { "the machine's".to_owned() } else { controls.join(", ") };
        let disk = if self.directory().starts_with(MEMORY) { "memory" } else { "disk" };
        let all =
            [("tcp", "kernel".to_owned()), ("congestion_control", tcp), ("store", disk.to_owned())];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.client.down().is_ok() {
            let _ = self.child.wait(PATIENCE);
        }
    }
}

/// A directory in memory, where there is one: a study is of networks, and several runs at once would
/// wait for each other's disk.
fn directory() -> Result<TempDir> {
    sweep();
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let in_memory = tempfile::Builder::new().prefix(&prefix).tempdir_in(MEMORY);
    match in_memory {
        Ok(directory) => Ok(directory),
        Err(_) => tempfile::Builder::new().prefix(&prefix).tempdir().context("a directory"),
    }
}

/// Removes what a process that was killed has left in memory.
fn sweep() {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let process = process.and_then(|process| process.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn write(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    fs::write(path, text(value)?).with_context(|| path.display().to_string())
}

/// As TOML; by way of JSON, whose keys are texts also where ours are code points.
fn text(value: &impl serde::Serialize) -> Result<String> {
    let mut value = serde_json::to_value(value).context("as JSON")?;
    without_nothing(&mut value);
    // And of a value: a struct's own order may have tables before values.
    let value = Value::try_from(value).context("as TOML")?;
    Ok(toml::to_string(&value)?)
}

/// TOML has no word for what is absent.
fn without_nothing(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(without_nothing);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(without_nothing),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::Topology;
    use router::policy::RouterPolicy;

    #[test]
    fn written_files_are_read_as_what_was_planned() {
        for planned in crate::find("isode-nato-2007").unwrap().plan().unwrap() {
            let topology = text(&planned.topology).unwrap();
            assert_eq!(Topology::read(&topology).unwrap(), planned.topology, "{}", planned.id);
            for (name, policy) in &planned.policies {
                let read: RouterPolicy = toml::from_str(&text(policy).unwrap()).unwrap();
                assert_eq!(read, *policy, "{}: {name}", planned.id);
            }
        }
    }
}
