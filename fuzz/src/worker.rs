//! Executes inputs in threads, while the main thread watches for one that does not come back.

use crate::meter;
use anyhow::{Context, Result};
use fuzz::{Target, corpus, hash, hex};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer is a finding.
const SLOW: Duration = Duration::from_secs(1);
/// An input that takes longer ends the target.
const HANGS: Duration = Duration::from_secs(10);
/// Growth of the peak of memory within [`EVERY`] executions that is a finding, in KiB.
const GROWTH: u64 = 64 * 1024;
/// How many executions pass between two looks at the memory.
const EVERY: u64 = 256;
/// Findings of one kind that are kept.
const KEPT: usize = 3;

/// What to execute.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: &'static Target,
    pub(crate) corpus: Vec<Vec<u8>>,
    pub(crate) seed: u64,
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) jobs: u64,
    pub(crate) time: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) executions: u64,
    pub(crate) time: Duration,
    pub(crate) peak_kib: u64,
    pub(crate) findings: Vec<Finding>,
}

/// An input that broke something.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    target: &'static str,
    seed: u64,
    number: u64,
    what: String,
    file: Option<PathBuf>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { target, seed, number, what, .. } = self;
        writeln!(f, "{target}: {what}")?;
        if let Some(file) = &self.file {
            writeln!(f, "  {}", file.display())?;
        }
        write!(f, "  again with: fuzz {target} --seed {seed} --from {number} --count 1")
    }
}

thread_local! {
    /// What the last panic of this thread said, and where.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What a thread is at: the number of its input, and since when.
type Current = Arc<Mutex<Option<(u64, Instant)>>>;

/// Executes inputs until the time is over.
pub(crate) fn run(plan: Plan) -> Result<Outcome> {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string());
    }));
    let start = meter::now();
    let plan = Arc::new(plan);
    let (sender, receiver) = mpsc::channel();
    let mut current: Vec<Current> = Vec::new();
    for job in 0..plan.jobs {
        let (plan, sender, at) = (Arc::clone(&plan), sender.clone(), Current::default());
        current.push(Arc::clone(&at));
        let work = move || {
            let done = work(&plan, job, start, &at, &sender);
            // Nobody listens any more where another thread hung.
            let _ = sender.send(Message::Done(done));
        };
        // The stack is small, so that recursion without bound is found.
        std::thread::Builder::new().stack_size(1 << 20).spawn(work).context("no thread")?;
    }
    drop(sender);
    let mut executions = 0;
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    loop {
        match receiver.recv_timeout(Duration::from_millis(500)) {
            Ok(Message::Done(done)) => executions += done,
            Ok(Message::Found(number, kind, what)) => keep(&plan, &mut found, number, kind, what)?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(number) = current.iter().find_map(hanging) {
                    let what = format!("does not return within {} s", HANGS.as_secs());
                    keep(&plan, &mut found, number, "hang".to_owned(), what)?;
                    break;
                }
            }
        }
    }
    let _ = std::panic::take_hook();
    Ok(Outcome {
        executions,
        time: meter::now().saturating_duration_since(start),
        peak_kib: meter::peak_kib(),
        findings: found.into_values().flatten().collect(),
    })
}

enum Message {
    /// How many were executed.
    Done(u64),
    /// Number of the input, kind and description.
    Found(u64, String, String),
}

/// Keeps the first findings of each kind, and writes their inputs.
fn keep(
    plan: &Plan,
    found: &mut BTreeMap<String, Vec<Finding>>,
    number: u64,
    kind: String,
    what: String,
) -> Result<()> {
    let alike = found.entry(kind).or_default();
    if alike.len() >= KEPT {
        return Ok(());
    }
    let input = fuzz::input(plan.target, &plan.corpus, plan.seed, number);
    let directory = corpus::root().join("artifacts").join(plan.target.name);
    std::fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{:016x}.hex", hash(&input)));
    std::fs::write(&file, hex::encode(&input))?;
    let (target, seed) = (plan.target.name, plan.seed);
    alike.push(Finding { target, seed, number, what, file: Some(file) });
    Ok(())
}

fn hanging(current: &Current) -> Option<u64> {
    let at = current.lock().unwrap_or_else(PoisonError::into_inner);
    let (number, since) = (*at)?;
    (meter::now().saturating_duration_since(since) > HANGS).then_some(number)
}

/// The inputs of one thread; gives how many.
fn work(plan: &Plan, job: u64, start: Instant, at: &Current, sender: &Sender<Message>) -> u64 {
    let set = |value| *at.lock().unwrap_or_else(PoisonError::into_inner) = value;
    let mut peak = meter::peak_kib();
    let mut done = 0;
    let mut begin = meter::now();
    while begin.saturating_duration_since(start) < plan.time {
        let index = job + done * plan.jobs;
        if index >= plan.count {
            break;
        }
        let number = plan.from.wrapping_add(index);
        let input = fuzz::input(plan.target, &plan.corpus, plan.seed, number);
        set(Some((number, begin)));
        let result = catch_unwind(AssertUnwindSafe(|| (plan.target.run)(&input)));
        let end = meter::now();
        set(None);
        done += 1;
        let found = |kind: String, what: String| {
            // The receiver is gone only where another thread hung.
            let _ = sender.send(Message::Found(number, kind, what));
        };
        if result.is_err() {
            let what = PANIC.with_borrow(Clone::clone);
            // The place is the kind; what was found there differs.
            found(what.lines().next().unwrap_or_default().to_owned(), what);
        }
        let took = end.saturating_duration_since(begin);
        // A busy machine makes any input slow once: what counts is the quickest of three times.
        if took > SLOW
            && let took = took.min(again(plan, &input)).min(again(plan, &input))
            && took > SLOW
        {
            found("slow".to_owned(), format!("took {} ms", took.as_millis()));
        }
        if done % EVERY == 0 {
            let now = meter::peak_kib();
            if now > peak + GROWTH {
                let grown = (now - peak) / 1024;
                found(
                    "memory".to_owned(),
                    format!("{grown} MiB more, here or within {EVERY} inputs before"),
                );
            }
            peak = peak.max(now);
        }
        begin = meter::now();
    }
    done
}

/// How long an input takes another time.
fn again(plan: &Plan, input: &[u8]) -> Duration {
    let begin = meter::now();
    // What it breaks was found before.
    let _ = catch_unwind(AssertUnwindSafe(|| (plan.target.run)(input)));
    meter::now().saturating_duration_since(begin)
}
