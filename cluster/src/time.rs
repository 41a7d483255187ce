//! The time of a trial: all that happens is noted as the time since its start.

use base::Utc;
use std::time::Duration;
use testbed::answer::elapsed;
use testbed::clock::since_1970;

/// The start of a trial.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    at: Duration,
    text: String,
}

impl Start {
    /// Now.
    pub(crate) fn now() -> Start {
        let at = since_1970();
        let micros = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
        Start { at, text: Utc(micros).to_string() }
    }

    /// The time since then.
    pub(crate) fn elapsed(&self) -> Duration {
        since_1970().saturating_sub(self.at)
    }

    /// The time from then to one that a program wrote, at most a day later.
    pub(crate) fn until(&self, written: &str) -> Duration {
        elapsed(&self.text, written).unwrap_or_else(|| self.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_write_is_the_time_since_the_start() {
        let start = Start { at: Duration::ZERO, text: "2026-05-04T03:02:01.000000Z".to_owned() };
        assert_eq!(start.until("2026-05-04T03:02:02.500000Z"), Duration::from_millis(1500));
        let now = Start::now();
        assert!(now.until(&now.text).is_zero());
    }
}
