//! Executes the inputs of one target, while the main thread watches for one that does not come back
//! and for memory that only grows. One process has one target, so that what is measured is its own.

use crate::meter;
use anyhow::{Context, Result};
use fuzz::{Target, corpus, hash, hex};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer is a finding.
const SLOW: Duration = Duration::from_secs(1);
/// An input that takes longer, of the processor or (where it only waits) ten times as long by the
/// clock, ends the target.
const HANGS: Duration = Duration::from_secs(10);
/// Growth of the peak of memory within [`EVERY`] executions that is a finding, in KiB.
const GROWTH: u64 = 64 * 1024;
/// How many executions pass between two looks at the peak.
const EVERY: u64 = 256;
/// Growth of live memory from the first tenth of a run to its last that is a finding, in KiB: means
/// of samples, so what one input needs while it runs does not count.
const LEAK: u64 = 16 * 1024;
/// Live memory that ends the target, in KiB.
const TOO_MUCH: u64 = 1 << 20;
/// Pause between two samples of live memory, and between two looks for a hang.
const SAMPLE: Duration = Duration::from_millis(500);
/// Findings of one kind that are kept.
const KEPT: usize = 3;

/// What to execute.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) target: &'static Target,
    pub(crate) corpus: Vec<Vec<u8>>,
    pub(crate) seed: u64,
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) time: Duration,
    /// Records the number of each input before it is executed, for a process that does not survive
    /// it.
    pub(crate) progress: Option<PathBuf>,
}

/// The outcome of a target.
#[derive(Debug)]
pub(crate) struct RunOutcome {
    pub(crate) executions: u64,
    pub(crate) time: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
    /// Mean of live memory in the first tenth of the run.
    pub(crate) first_kib: u64,
    /// And in its last.
    pub(crate) last_kib: u64,
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
    /// WorkerMessage and place of the last panic of this thread.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the thread is at: the number of its input.
type Current = Arc<Mutex<Option<u64>>>;

enum WorkerMessage {
    /// The number of inputs that were executed.
    Done(u64),
    /// Number of the input, kind and description.
    Found(u64, String, String),
}

/// Executes inputs until the time is over.
pub(crate) fn run(plan: RunPlan) -> Result<RunOutcome> {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string());
    }));
    let start = meter::now();
    let plan = Arc::new(plan);
    let (sender, receiver) = mpsc::channel();
    let current = Current::default();
    let (of_thread, at) = (Arc::clone(&plan), Arc::clone(&current));
    let work = move || {
        let done = work(&of_thread, start, &at, &sender);
        // Nobody listens any more where the run was ended.
        let _ = sender.send(WorkerMessage::Done(done));
    };
    // The stack is small, so that recursion without bound is found.
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).context("no thread")?;
    let mut executions = 0;
    let mut found = Found::default();
    let mut watch = Watch::default();
    let mut samples = Vec::new();
    loop {
        match receiver.recv_timeout(SAMPLE) {
            Ok(WorkerMessage::Done(done)) => executions += done,
            Ok(WorkerMessage::Found(number, kind, what)) => {
                found.keep(&plan, number, kind, what)?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                samples.push(meter::live_kib());
                let number = *current.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((number, what)) = watch.look(number, samples.last().copied()) {
                    found.keep(&plan, number, "ended".to_owned(), what)?;
                    break;
                }
            }
        }
    }
    let _ = std::panic::take_hook();
    let (first_kib, last_kib) = tenths(&samples);
    if last_kib > first_kib + LEAK {
        let what = format!(
            "live memory grew over the run: {} MiB in its first tenth, {} MiB in its last",
            first_kib / 1024,
            last_kib / 1024
        );
        found.keep(&plan, plan.from, "leak".to_owned(), what)?;
    }
    Ok(RunOutcome {
        executions,
        time: meter::now().saturating_duration_since(start),
        cpu: meter::cpu(),
        peak_kib: meter::peak_kib(),
        first_kib,
        last_kib,
        findings: found.0.into_values().flatten().collect(),
    })
}

/// Means of the first tenth of the samples and of the last; the same where there are too few.
fn tenths(samples: &[u64]) -> (u64, u64) {
    let size = samples.len() / 10;
    let mean = |some: &[u64]| some.iter().sum::<u64>() / (some.len().max(1) as u64);
    if size == 0 {
        let all = mean(samples);
        return (all, all);
    }
    let (first, _) = samples.split_at(size);
    let (_, last) = samples.split_at(samples.len() - size);
    (mean(first), mean(last))
}

/// Looks for an input that does not come back.
#[derive(Debug, Default)]
struct Watch {
    /// The input that was executed at the last looks, and since when: by processor and by clock.
    since: Option<(u64, Duration, Instant)>,
}

impl Watch {
    /// A reason to end: the input and what is wrong with it.
    fn look(&mut self, number: Option<u64>, live_kib: Option<u64>) -> Option<(u64, String)> {
        let Some(number) = number else {
            self.since = None;
            return None;
        };
        if let Some(live) = live_kib.filter(|live| *live > TOO_MUCH) {
            return Some((number, format!("{} MiB of memory are in use", live / 1024)));
        }
        match self.since {
            Some((same, cpu, at)) if same == number => {
                let cpu = meter::cpu().saturating_sub(cpu);
                let wall = meter::now().saturating_duration_since(at);
                (cpu > HANGS || wall > 10 * HANGS)
                    .then(|| (number, format!("does not return within {} s", wall.as_secs())))
            }
            _ => {
                self.since = Some((number, meter::cpu(), meter::now()));
                None
            }
        }
    }
}

/// Findings by kind.
#[derive(Default)]
struct Found(BTreeMap<String, Vec<Finding>>);

impl Found {
    /// Keeps the first findings of each kind, and writes their inputs.
    fn keep(&mut self, plan: &RunPlan, number: u64, kind: String, what: String) -> Result<()> {
        let alike = self.0.entry(kind).or_default();
        if alike.len() < KEPT {
            alike.push(finding(plan, number, what)?);
        }
        Ok(())
    }
}

/// Writes the input.
pub(crate) fn finding(plan: &RunPlan, number: u64, what: String) -> Result<Finding> {
    let input = fuzz::input(plan.target, &plan.corpus, plan.seed, number);
    let directory = corpus::root().join("artifacts").join(plan.target.name);
    std::fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{:016x}.hex", hash(&input)));
    std::fs::write(&file, hex::encode(&input))?;
    let (target, seed) = (plan.target.name, plan.seed);
    Ok(Finding { target, seed, number, what, file: Some(file) })
}

/// Executes; gives how many inputs it were.
fn work(plan: &RunPlan, start: Instant, at: &Current, sender: &Sender<WorkerMessage>) -> u64 {
    let set = |value| *at.lock().unwrap_or_else(PoisonError::into_inner) = value;
    let progress = plan.progress.as_ref().and_then(|path| File::create(path).ok());
    let mut peak = meter::peak_kib();
    let mut done = 0;
    let mut begin = meter::now();
    while begin.saturating_duration_since(start) < plan.time && done < plan.count {
        let number = plan.from.wrapping_add(done);
        let input = fuzz::input(plan.target, &plan.corpus, plan.seed, number);
        set(Some(number));
        if let Some(file) = &progress {
            // It only helps to find the input faster.
            let _ = file.write_all_at(&number.to_le_bytes(), 0);
        }
        let result = catch_unwind(AssertUnwindSafe(|| (plan.target.run)(&input)));
        let end = meter::now();
        done += 1;
        let found = |kind: String, what: String| {
            // The receiver is gone only where the run was ended.
            let _ = sender.send(WorkerMessage::Found(number, kind, what));
        };
        if result.is_err() {
            let what = PANIC.with_borrow(Clone::clone);
            // The place is the kind; what was found there differs.
            found(what.lines().next().unwrap_or_default().to_owned(), what);
        }
        // A busy machine makes any input slow by the clock: what counts is the processor's time.
        if end.saturating_duration_since(begin) > SLOW
            && let took = again(plan, &input).min(again(plan, &input))
            && took > SLOW
        {
            found("slow".to_owned(), format!("took {} ms", took.as_millis()));
        }
        set(None);
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

/// The time of a repeated input: of the processor, if the system shows it.
fn again(plan: &RunPlan, input: &[u8]) -> Duration {
    let (begin, cpu) = (meter::now(), meter::cpu_of_thread());
    // What it breaks was found before.
    let _ = catch_unwind(AssertUnwindSafe(|| (plan.target.run)(input)));
    let used = meter::cpu_of_thread().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    used.unwrap_or_else(|| meter::now().saturating_duration_since(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(run: fn(&[u8])) -> RunPlan {
        let target = Target { name: "test", about: "", run };
        RunPlan {
            target: Box::leak(Box::new(target)),
            corpus: vec![vec![1, 2, 3]],
            seed: 1,
            from: 5,
            count: 300,
            time: Duration::from_secs(60),
            progress: None,
        }
    }

    #[test]
    fn a_broken_invariant_is_found_once_for_each_place_and_number() {
        let outcome = run(plan(|octets| assert!(octets.len() < 3, "long"))).unwrap();
        assert_eq!((outcome.executions, outcome.findings.len()), (300, KEPT));
        let output = outcome.findings[0].to_string();
        assert!(output.contains("long") && output.contains("--seed 1 --from "), "{output}");
        assert!(run(plan(|_| {})).unwrap().findings.is_empty());
    }

    #[test]
    fn growth_is_measured_from_the_first_tenth_to_the_last() {
        let grows: Vec<u64> = (0..100).map(|n| n * 1_000).collect();
        assert_eq!(tenths(&grows), (4_500, 94_500));
        // One high sample is not growth, and few samples have no result.
        assert_eq!(tenths(&[5; 40]), (5, 5));
        assert_eq!(tenths(&[0, 90]), (45, 45));
    }

    #[test]
    fn what_stays_at_one_input_or_takes_all_memory_is_ended() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(Some(7), Some(1)), None);
        assert_eq!(watch.look(Some(7), Some(1)), None, "not yet");
        let long_ago = meter::now().checked_sub(11 * HANGS).unwrap();
        watch.since = Some((7, meter::cpu(), long_ago));
        assert_eq!(watch.look(Some(8), Some(1)), None, "it is another input");
        watch.since = Some((8, meter::cpu(), long_ago));
        assert!(watch.look(Some(8), Some(1)).is_some_and(|(n, _)| n == 8));
        assert!(watch.look(Some(9), Some(TOO_MUCH + 1)).is_some());
        assert_eq!(watch.look(None, Some(TOO_MUCH + 1)), None);
    }
}
