//! Child processes: each is shown before its start, and named in its error.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// One command line.
#[derive(Debug)]
pub struct Cmd {
    inner: Command,
    shown: String,
    shown_program: usize,
}

impl Cmd {
    /// `program` with `arguments`.
    pub fn new(program: &str, arguments: &[&str]) -> Cmd {
        let mut inner = Command::new(program);
        inner.args(arguments);
        let mut shown = program.to_owned();
        for argument in arguments {
            shown.push(' ');
            shown.push_str(argument);
        }
        Cmd { inner, shown, shown_program: program.len() }
    }

    /// Shows the program by this name instead of its path.
    pub fn called(mut self, name: &str) -> Cmd {
        self.shown.replace_range(..self.shown_program, name);
        self.shown_program = name.len();
        self
    }

    /// Runs in this directory.
    pub fn directory(mut self, directory: &Path) -> Cmd {
        self.inner.current_dir(directory);
        self
    }

    /// With this environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Cmd {
        self.inner.env(name, value);
        self
    }

    /// Shows the command line and runs it with our own standard streams; whether it ended with 0.
    pub fn succeeds(self) -> anyhow::Result<bool> {
        Ok(self.code()? == Some(0))
    }

    /// As [`Cmd::succeeds`]; the code it ended with, `None` if a signal ended it.
    pub fn code(mut self) -> anyhow::Result<Option<i32>> {
        println!("$ {}", self.shown);
        let status = self.inner.status().with_context(|| format!("cannot run `{}`", self.shown))?;
        Ok(status.code())
    }

    /// As [`Cmd::succeeds`]; anything but 0 is an error.
    pub fn run(self) -> anyhow::Result<()> {
        let shown = self.shown.clone();
        if !self.succeeds()? {
            bail!("`{shown}` failed");
        }
        Ok(())
    }

    /// As [`Cmd::run`], but all of it on standard error: standard output is for a result.
    pub fn run_aside(mut self) -> anyhow::Result<()> {
        eprintln!("$ {}", self.shown);
        let aside = std::io::stderr().as_fd().try_clone_to_owned()?;
        let status = self.inner.stdout(aside).status();
        if !status.with_context(|| format!("cannot run `{}`", self.shown))?.success() {
            bail!("`{}` failed", self.shown);
        }
        Ok(())
    }

    /// Shows the command line on standard error and replaces this process by the program. Returns only
    /// the error if it cannot.
    pub fn become_it(mut self) -> anyhow::Error {
        eprintln!("$ {}", self.shown);
        let error = self.inner.exec();
        anyhow::Error::new(error).context(format!("cannot run `{}`", self.shown))
    }

    /// Shows the command line, passes on the standard output line by line, and gives each line to
    /// `line`; whether it ended with 0.
    pub fn lines(mut self, mut line: impl FnMut(&str)) -> anyhow::Result<bool> {
        println!("$ {}", self.shown);
        let mut child = self
            .inner
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.shown))?;
        let pipe = child.stdout.take().context("the child has no standard output")?;
        // Octets, not text: a test may print what is not UTF-8. The lock is for a line: others may run beside it.
        for octets in BufReader::new(pipe).split(b'\n') {
            let octets = octets.with_context(|| format!("reading from `{}`", self.shown))?;
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&octets)?;
            stdout.write_all(b"\n")?;
            drop(stdout);
            line(&String::from_utf8_lossy(&octets));
        }
        Ok(child.wait()?.success())
    }

    /// Runs it silently; whether it ended with 0, and its standard output.
    pub fn result(mut self) -> anyhow::Result<(bool, String)> {
        let output = self.inner.output().with_context(|| format!("cannot run `{}`", self.shown))?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Runs it silently; whether it ended with 0, and what it printed on standard error.
    pub fn complaint(mut self) -> anyhow::Result<(bool, String)> {
        let output = self.inner.output().with_context(|| format!("cannot run `{}`", self.shown))?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// Runs it silently and returns its standard output; anything but 0 is an error that carries
    /// its standard error.
    pub fn output(mut self) -> anyhow::Result<String> {
        let output = self.inner.output().with_context(|| format!("cannot run `{}`", self.shown))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` failed: {}", self.shown, complaint.trim());
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("the output of `{}` is not UTF-8", self.shown))
    }
}
