//! The only place of this crate that reads the clock, or waits.

#![expect(clippy::disallowed_methods, reason = "other processes live in real time")]

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a foreign process is asked again. It gives no event, so it is asked.
const POLL: Duration = Duration::from_millis(10);

/// Set once someone wants this program to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends every wait of this program with an error, now and from now on. For handlers of signals.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Whether [`interrupt`] was called.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A moment by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { at: Instant::now() + limit, limit }
    }

    /// What is left; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Asks until there is an answer, or the deadline has passed.
    ///
    /// # Errors
    /// The asking's own, at once; or that `what` did not happen in time.
    pub fn wait_for<T>(&self, what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        loop {
            if let Some(answer) = ask()? {
                return Ok(answer);
            }
            if is_interrupted() {
                bail!("interrupted");
            }
            if self.has_passed() {
                bail!("{what}: not within {:?}", self.limit);
            }
            std::thread::sleep(POLL.min(self.left()));
        }
    }
}

/// Lets time pass, where the time is what matters.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The time since 1970, as the system has it.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What a piece of work gave, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_answer_the_error_or_the_deadline() {
        let mut asked = 0;
        let soon = Deadline::after(Duration::from_secs(60));
        let answer = soon.wait_for("three", || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        });
        assert_eq!(answer.unwrap(), 3);
        let error = soon.wait_for("x", || -> Result<Option<()>> { bail!("broken") }).unwrap_err();
        assert_eq!(error.to_string(), "broken");
        let now = Deadline::after(Duration::ZERO);
        let error = now.wait_for("the daemon's answer", || Ok(None::<()>)).unwrap_err();
        assert_eq!(error.to_string(), "the daemon's answer: not within 0ns");
    }
}
