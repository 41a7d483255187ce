//! The wall clock against the clock of timers. Deferral, expiry and alerts are wall-clock times, but
//! waited for by timers: where somebody sets the wall clock, as NTP does on a machine that started
//! without the time, what is queued follows it.

use crate::event::{Kind, Level};
use crate::node::Node;
use base::{Instant, Now, Utc};
use scheduler::Shift;
use std::time::Duration;

/// How far the clocks may part, at most, before what is queued follows.
const APART: Duration = Duration::from_secs(2);
/// How often we look where nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How the two clocks stood when the times of what is queued were last reckoned: all of them by the
/// same, so that neither jitter nor a slow drift adds up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wall {
    at: Option<Now>,
    looked: Instant,
}

impl Wall {
    /// A wall-clock time on the clock of timers.
    pub(crate) fn instant(&self, at: Utc) -> Instant {
        let Now { mono, utc } = self.at.unwrap_or_default();
        if at > utc { mono + at.since(utc) } else { mono - utc.since(at) }
    }

    /// Looks at the clocks; gives how wall-clock times move where they have come apart.
    fn look(&mut self, now: Now) -> Option<Shift> {
        self.looked = now.mono;
        let Some(then) = self.at else {
            self.at = Some(now);
            return None;
        };
        let expected = then.utc + now.mono.since(then.mono);
        let (forward, back) = (now.utc.since(expected), expected.since(now.utc));
        if forward.max(back) <= APART {
            return None;
        }
        self.at = Some(now);
        Some(if back.is_zero() { Shift::Sooner(forward) } else { Shift::Later(back) })
    }
}

impl Node {
    pub(crate) fn watch_clock(&mut self, now: Now) {
        let Some(shift) = self.queue.wall.look(now) else { return };
        self.queue.scheduler.shift(now.mono, shift);
        let (way, by) = match shift {
            Shift::Sooner(by) => ("forward", by.as_secs()),
            Shift::Later(by) => ("back", by.as_secs()),
        };
        let count = self.queue.scheduler.len();
        let detail =
            format!("the wall clock was set {way} by {by} s: {count} queued messages follow it");
        self.event(Level::Warning, Kind::ClockSet, detail);
    }

    /// When to look at the clocks though nothing happens.
    pub(crate) fn clock_deadline(&self) -> Option<Instant> {
        let waits = self.started && !self.queue.scheduler.is_empty();
        waits.then(|| self.queue.wall.looked + LOOK_AGAIN)
    }
}
