//! The program `lab` at work in a namespace.

use crate::net::ns::Namespace;
use crate::process::programs::Programs;
use anyhow::{Context, Result, bail};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

/// The line that the program prints once it works.
pub const READY: &str = "ready";

/// A running `lab`. It works until its standard input ends, so it ends with us at the latest.
#[derive(Debug)]
pub(crate) struct LabTool {
    child: Child,
}

impl LabTool {
    /// Starts it inside, and waits until it works.
    pub(crate) fn start(
        namespace: &Namespace,
        programs: &Programs,
        arguments: &[&str],
    ) -> Result<LabTool> {
        let mut command = namespace.entrance().command(&programs.lab);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().context("starting lab")?;
        let mut tool = LabTool { child };
        let stdout = tool.child.stdout.as_mut().context("lab has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line.trim_end() != READY {
            bail!("lab {}: {}", arguments.join(" "), tool.complaint());
        }
        Ok(tool)
    }

    /// Closes its standard input, and waits for its end.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("the end of lab")?;
        if !status.success() {
            bail!("lab ended with {status}: {}", self.complaint());
        }
        Ok(())
    }

    fn complaint(&mut self) -> String {
        let mut printed = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut printed);
        }
        printed.trim().to_owned()
    }
}

impl Drop for LabTool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
