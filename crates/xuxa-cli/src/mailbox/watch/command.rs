//! The program of `--exec`: one at a time, for the highest precedence first. What others wrote is in its
//! environment only, never in a command line.

use super::Line;
use crate::profile::Wrong;
use crate::terminal;
use base::Precedence;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tokio::task::JoinHandle;
use ua::Interrupted;

/// Longest value in the environment, octets.
const MAX_VALUE: usize = 4 << 10;

/// Whether the program is there and can be run: a file, or a name that one of the directories of `PATH` has.
pub(super) fn check(program: &Path) -> Result<(), Wrong> {
    let is_named = program.components().count() == 1 && !program.as_os_str().is_empty();
    let has_directory = program.as_os_str().as_encoded_bytes().contains(&b'/');
    let shown = program.display();
    let is_runnable = |path: &Path| {
        path.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    if is_named && !has_directory {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return match std::env::split_paths(&path).any(|dir| is_runnable(&dir.join(program))) {
            true => Ok(()),
            false => Err(Wrong(format!(
                "--exec: no directory of PATH has a program {shown}; one of this directory is ./{shown}"
            ))),
        };
    }
    match program.metadata() {
        _ if is_runnable(program) => Ok(()),
        Ok(_) => Err(Wrong(format!("--exec: {shown} cannot be run: it is not an executable file"))),
        Err(error) => Err(Wrong(format!("--exec: {shown}: {error}"))),
    }
}

/// Entries for which the program is to run.
#[derive(Debug)]
pub(super) struct Commands {
    program: Option<PathBuf>,
    waiting: BTreeMap<(Reverse<Option<Precedence>>, u64), Line>,
    pushed: u64,
    running: Option<JoinHandle<std::io::Result<ExitStatus>>>,
}

impl Commands {
    pub(super) fn new(program: Option<PathBuf>) -> Commands {
        Commands { program, waiting: BTreeMap::new(), pushed: 0, running: None }
    }

    /// Runs the program for this entry, once those before it have ended.
    pub(super) fn push(&mut self, precedence: Option<Precedence>, line: Line) {
        if self.program.is_some() {
            self.pushed += 1;
            self.waiting.insert((Reverse(precedence), self.pushed), line);
            self.start();
        }
    }

    fn start(&mut self) {
        let Some(program) = self.program.as_deref().filter(|_| self.running.is_none()) else {
            return;
        };
        if let Some((_, line)) = self.waiting.pop_first() {
            let mut command = command(program, &line);
            self.running = Some(tokio::task::spawn_blocking(move || command.status()));
        }
    }

    /// Returns once the running program has ended, and starts the next. The future can be dropped.
    pub(super) async fn ended(&mut self) {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let outcome = running.await;
        self.running = None;
        let shown = self.program.as_deref().unwrap_or(Path::new("")).display();
        match outcome {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => terminal::report_error(&format!("{shown}: {status}")),
            Ok(Err(error)) => terminal::report_error(&format!("cannot run {shown}: {error}")),
            Err(_) => terminal::report_error(&format!("{shown} was not waited for")),
        }
        self.start();
    }

    /// Waits for all of them, unless interrupted.
    pub(super) async fn finish(&mut self, interrupted: &Interrupted) {
        while self.running.is_some() && !interrupted.is_set() {
            tokio::select! {
                () = self.ended() => {}
                () = interrupted.wait() => {}
            }
        }
    }
}

/// The program with the entry's fields. Characters that a terminal obeys become spaces, for programs print what they
/// are given.
fn command(program: &Path, line: &Line) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    let number = line.number.to_string();
    let size = line.content_length.map(|size| size.to_string());
    let precedence = line.precedence.map(|precedence| precedence.to_string());
    for (name, value) in [
        ("XUXA_NUMBER", Some(&number)),
        ("XUXA_KIND", Some(&line.kind)),
        ("XUXA_PRECEDENCE", precedence.as_ref()),
        ("XUXA_ORIGINATOR", line.originator.as_ref()),
        ("XUXA_SUBJECT", line.subject.as_ref()),
        ("XUXA_MTS_IDENTIFIER", line.mts_identifier.as_ref()),
        ("XUXA_CONTENT_TYPE", line.content_type.as_ref()),
        ("XUXA_CONTENT_LENGTH", size.as_ref()),
        ("XUXA_DELIVERY_TIME", line.delivery_time.as_ref()),
    ] {
        // A value from our own environment must not pass for one of the entry.
        let value = value.map(String::as_str).unwrap_or_default();
        let harmless = |c| if base::shown::is_obeyed(c) { ' ' } else { c };
        let value: String = value.chars().map(harmless).collect();
        let end = (0..=value.len().min(MAX_VALUE)).rev().find(|at| value.is_char_boundary(*at));
        command.env(name, value.get(..end.unwrap_or(0)).unwrap_or_default());
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, subject: &str) -> Line {
        Line { number, subject: Some(subject.to_owned()), ..Line::default() }
    }

    #[tokio::test]
    async fn the_program_runs_for_each_the_highest_first_and_text_is_no_command() {
        let dir = tempfile::tempdir().unwrap();
        let (program, out) = (dir.path().join("program"), dir.path().join("out"));
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$XUXA_NUMBER $XUXA_SUBJECT\" >>{}\n",
            out.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut commands = Commands::new(Some(program));
        // The first runs at once.
        commands.push(None, line(1, "first"));
        commands.push(Some(Precedence::Flash), line(2, "`touch x`; $(touch y)\u{0}"));
        commands.push(Some(Precedence::Override), line(3, "third\nforged"));
        commands.finish(&Interrupted::default()).await;
        let text = std::fs::read_to_string(&out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "1 first"), "{text}");
        assert!(
            lines[1].starts_with("3 third") && lines[2].starts_with("2 `touch x`; $(touch y)"),
            "{text}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_does_not_end_the_watch() {
        let mut commands = Commands::new(Some("/does/not/exist".into()));
        commands.push(None, line(1, "x"));
        commands.push(None, line(2, "x"));
        commands.finish(&Interrupted::default()).await;
        assert!(commands.running.is_none() && commands.waiting.is_empty());
    }
}
