//! A child process that ends with its owner. Its output goes to files, and each wait for it has a
//! limit.

use crate::clock::Deadline;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running program.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    name: String,
}

impl Child {
    /// Starts a program; its output is appended to these files.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(mut command: Command, stdout: &Path, stderr: &Path) -> Result<Child> {
        let name = Path::new(command.get_program())
            .file_name()
            .map_or_else(|| "child".to_owned(), |name| name.to_string_lossy().into_owned());
        let inner = command
            .stdout(append(stdout)?)
            .stderr(append(stderr)?)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Child { inner, name })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.inner.try_wait().with_context(|| format!("asking whether {} runs", self.name))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still runs after `limit`; it is left running.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        Deadline::after(limit).wait_for(&what, || self.ended())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        // After the wait the process id is free: another process may have it.
        if let Some(status) = self.ended()? {
            bail!("{} has ended ({status}) before {signal}", self.name);
        }
        let pid = i32::try_from(self.id()).context("a process id")?;
        kill(Pid::from_raw(pid), signal).with_context(|| format!("{signal} to {}", self.name))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.inner.kill();
        let _ = self.inner.wait();
    }
}

fn append(path: &Path) -> Result<Stdio> {
    let file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    Ok(Stdio::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_output_is_kept_and_a_wait_has_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let (out, err) = (directory.path().join("out"), directory.path().join("err"));
        let mut command = Command::new("sh");
        command.args(["-c", "echo printed; echo complained >&2; exec sleep 600"]);
        let mut child = Child::spawn(command, &out, &err).unwrap();
        Deadline::after(Duration::from_secs(20))
            .wait_for("output", || Ok((std::fs::read(&err)?.ends_with(b"\n")).then_some(())))
            .unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "printed\n");
        assert_eq!(std::fs::read_to_string(&err).unwrap(), "complained\n");
        let error = child.wait(Duration::from_millis(20)).unwrap_err().to_string();
        assert_eq!(error, "the end of sh: not within 20ms");
        child.signal(Signal::SIGTERM).unwrap();
        assert_eq!(child.wait(Duration::from_secs(20)).unwrap().code(), None);
        assert!(child.signal(Signal::SIGTERM).is_err());
    }
}
