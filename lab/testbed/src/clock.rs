//! The only place of this crate that reads the clock, or waits.

#![expect(clippy::disallowed_methods, reason = "other processes live in real time")]

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the state of another process is polled: it sends no event.
const POLL: Duration = Duration::from_millis(10);

/// Set once this program is asked to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends every wait of this program, present and future, with an error. For signal handlers.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Whether [`interrupt`] was called.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The time by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// A deadline this long from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { at: Instant::now() + limit, limit }
    }

    /// The time left; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Polls `ask` until it returns a value, or the deadline has passed.
    ///
    /// # Errors
    /// The error of `ask`, at once; the program was interrupted; or `what` did not happen in time.
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

/// Sleeps, where the time itself matters.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The time since 1970, by the system's clock.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The result of `work`, and how long it took.
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
