//! A load that runs beside us, as a process of its own.

use super::Programs;
use anyhow::{Context as _, Result, bail};
use load::Plan;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A load that runs beside us.
pub(super) struct Load {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Load {
    /// Started, and all its users bound; the plan is put into this directory, under this name.
    pub(super) fn start(
        programs: &Programs,
        directory: &Path,
        name: &str,
        plan: &Plan,
    ) -> Result<Load> {
        let path = directory.join(format!("{name}.json"));
        std::fs::write(&path, serde_json::to_vec(plan)?).context("writing the plan")?;
        let mut command = Command::new(&programs.load);
        command.arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("starting the load")?;
        let output = child.stdout.take().context("the load's output")?;
        let mut load = Load { child, output: BufReader::new(output) };
        let mut line = String::new();
        load.output.read_line(&mut line).context("the load's output")?;
        if line.trim() != "ready" {
            bail!("the load failed");
        }
        Ok(load)
    }

    /// Starts the submissions.
    pub(super) fn begin(mut self) -> Result<Load> {
        let input = self.child.stdin.as_mut().context("the load's input")?;
        input.write_all(b"\n").context("starting the load's submissions")?;
        Ok(self)
    }

    /// The outcome, once all is delivered.
    pub(super) fn end(mut self) -> Result<load::Outcome> {
        let mut line = String::new();
        self.output.read_line(&mut line).context("the load's output")?;
        if !self.child.wait().context("the load")?.success() {
            bail!("the load failed");
        }
        let outcome: load::Outcome = serde_json::from_str(&line).context("the load's output")?;
        if outcome.delivered != outcome.accepted || outcome.again > 0 {
            bail!(
                "{} of {} delivered, {} repeated",
                outcome.delivered,
                outcome.accepted,
                outcome.again
            );
        }
        Ok(outcome)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Ended long ago, unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
