//! Runs targets, a process each, several at once.

use crate::log::{Log, LogRow};
use crate::worker::{self, RunPlan};
use anyhow::{Context, Result};
use fuzz::{Target, corpus};
use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What all targets have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) jobs: usize,
}

/// Runs the targets, each for its full time, `jobs` at once; shows and logs each when it ends. Returns
/// whether nothing was found.
pub(crate) fn run(targets: Vec<&'static Target>, run: Run, log: Log) -> Result<bool> {
    let queue = Mutex::new(VecDeque::from(targets));
    let log = Mutex::new(log);
    let one_after_the_other = || -> Result<bool> {
        let mut clean = true;
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(target) = next else { return Ok(clean) };
            let row = one(target, run)?;
            // A line each: standard output is locked for as long as it takes.
            println!("{row}");
            log.lock().unwrap_or_else(PoisonError::into_inner).add(&row)?;
            clean &= row.is_clean();
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..run.jobs).map(|_| scope.spawn(one_after_the_other)).collect();
        let mut clean = true;
        for thread in threads {
            clean &=
                thread.join().map_err(|_| anyhow::anyhow!("a thread of the pool is lost"))??;
        }
        Ok(clean)
    })
}

/// A target in a process of its own.
fn one(target: &'static Target, run: Run) -> Result<LogRow> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(target.name)
        .arg("--alone")
        .args(["--seconds".to_owned(), run.seconds.to_string()])
        .args(["--seed".to_owned(), run.seed.to_string()])
        .args(["--from".to_owned(), run.from.to_string()])
        .args(["--count".to_owned(), run.count.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("no process")?;
    let id = child.id();
    let (output, status) = ended(&mut child)?;
    let row = output.lines().find_map(LogRow::read);
    let progress = std::fs::read(progress(id)).unwrap_or_default();
    let _ = std::fs::remove_file(self::progress(id));
    if let Some(row) = row {
        return Ok(row);
    }
    let number = progress.try_into().map_or(run.from, u64::from_le_bytes);
    let plan = plan(target, run, None)?;
    let what = format!("the process was lost: {}", how(status));
    let finding = worker::finding(&plan, number, what)?;
    Ok(LogRow::lost(target.name, run.seed, run.seconds, &finding.to_string()))
}

fn ended(child: &mut Child) -> Result<(String, ExitStatus)> {
    let mut output = String::new();
    if let Some(stdout) = &mut child.stdout {
        std::io::Read::read_to_string(stdout, &mut output)?;
    }
    Ok((output, child.wait()?))
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

/// The progress file of the process with this number.
pub(crate) fn progress(id: u32) -> std::path::PathBuf {
    corpus::root().join("artifacts").join(format!("current-{id}"))
}

/// What one process executes.
pub(crate) fn plan(
    target: &'static Target,
    run: Run,
    progress: Option<std::path::PathBuf>,
) -> Result<RunPlan> {
    Ok(RunPlan {
        target,
        corpus: corpus::inputs(target)?.into_iter().map(|(_, octets)| octets).collect(),
        seed: run.seed,
        from: run.from,
        count: run.count,
        time: Duration::from_secs(run.seconds),
        progress,
    })
}
