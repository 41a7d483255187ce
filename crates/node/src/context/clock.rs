//! The wall clock against the clock of timers. Deferral, expiry and alerts are wall-clock times, but
//! waited for by timers: where somebody sets the wall clock, as NTP does on a machine that started
//! without the time, what is queued follows it.
//!
//! A clock that jumped may be wrong, and what is given up by it is given up for good. So after a
//! step beyond a bound the clock is *doubted*: nothing expires, no key is forgotten, and no order of
//! MINIMIZE ends, until the clock was steady for a while or an operator accepts it. Steps
//! within the bound that follow each other count together. The queue follows a step back at once,
//! since it only gives more time, and a step forward once the clock is trusted.
//!
//! The time by the clock that was trusted last is durable, so that a start with a wrong clock is
//! noticed, too, and so is the time that the queue goes by: what was deferred until then may have left. Until a clock that is ahead at a start is trusted, what is queued goes by the time at
//! which the MTA last ran: nothing leaves early.

use crate::api::event::{Kind, LogLevel};
use crate::api::operator::Operator;
use crate::api::site_orders::{ACCEPTED, ClockAccepted};
use crate::commits::FORGET_EVERY;
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use base::{Instant, Now};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use scheduler::Shift;
use scheduler::wall::{CLOCK, Doubt, Noted, reckoned, size, step, way};
use std::time::Duration;

/// How far the clocks may part, at most, before what is queued follows.
const APART: Duration = Duration::from_secs(2);

/// How often we look where nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How often the time is made durable, where something waits; else every [`FORGET_EVERY`].
const WRITE_EVERY: Duration = Duration::from_secs(60);

impl Context {
    /// Looks at the clocks before anything else is done. Gives the time that what happens now is
    /// stamped with.
    pub(crate) fn watch_clock(&mut self, now: Now) -> Now {
        let (wall, rules) = (&mut self.queue.wall, self.config.times.clock);
        wall.looked = now.mono;
        let Some(at) = wall.at else {
            (wall.at, wall.trusted) = (Some(now), Some(now));
            return now;
        };
        if let Some(doubt) = &mut wall.doubt {
            let again = step(doubt.steady, now);
            if size(again) > APART {
                doubt.steady = now;
                self.set_while_doubted(now, again);
            } else if now.mono.since(doubt.steady.mono) >= rules.steady {
                self.trust_clock(now, "it was steady");
            }
            return self.queue.wall.stamp(now);
        }
        let shift = step(at, now);
        if size(shift) <= APART {
            return now;
        }
        if now.mono.since(wall.last_step) >= rules.steady {
            wall.stepped = Duration::ZERO;
        }
        (wall.stepped, wall.last_step) = (wall.stepped + size(shift), now.mono);
        if wall.stepped > rules.step {
            let (whole, by) = (wall.stepped.as_secs(), size(shift).as_secs());
            let together =
                if whole == by { String::new() } else { format!(" ({whole} s together)") };
            let because = format!("it was set {} by {by} s{together}", way(shift));
            self.doubt_clock(now, LogLevel::Warning, because);
            if let Shift::Later(_) = shift {
                self.follow(now);
            }
        } else {
            self.queue.wall.trusted = Some(now);
            self.log_clock_set(shift);
            self.follow(now);
        }
        self.queue.wall.stamp(now)
    }

    fn log_clock_set(&mut self, shift: Shift) {
        let (count, by) = (self.queue.scheduler.len(), size(shift).as_secs());
        let way = way(shift);
        let detail =
            format!("the wall clock was set {way} by {by} s: {count} queued messages follow it");
        self.event(LogLevel::Warning, Kind::ClockSet, detail);
    }

    /// It was set once more.
    fn set_while_doubted(&mut self, now: Now, shift: Shift) {
        let (way, by) = (way(shift), size(shift).as_secs());
        let until = self.waits_until(now);
        let detail = format!("the wall clock was set {way} by {by} s again; {until}");
        self.event(LogLevel::Warning, Kind::ClockDoubted, detail);
        let at = self.queue.wall.at.unwrap_or(now);
        if let Shift::Later(by) = step(at, now)
            && by > APART
        {
            self.follow(now);
        }
    }

    /// What is queued goes by the wall clock as it is now.
    fn follow(&mut self, now: Now) {
        let at = self.queue.wall.at.replace(now).unwrap_or(now);
        let shift = step(at, now);
        if !size(shift).is_zero() {
            self.queue.scheduler.shift(now.mono, shift);
            self.queue.deferred.shift(now.mono, shift);
        }
    }

    fn doubt_clock(&mut self, now: Now, level: LogLevel, because: String) {
        self.log_doubt(now, level, &because);
        self.begin_doubt(now, because);
    }

    fn begin_doubt(&mut self, now: Now, because: String) {
        self.queue.scheduler.let_expiry_wait(now.mono, true);
        self.queue.wall.doubt = Some(Doubt { since: now.utc, because, steady: now });
    }

    fn log_doubt(&mut self, now: Now, level: LogLevel, because: &str) {
        let until = self.waits_until(now);
        let detail = format!("the wall clock is not trusted: {because}; {until}");
        self.event(level, Kind::ClockDoubted, detail);
    }

    fn waits_until(&self, now: Now) -> String {
        let steady = self.config.times.clock.steady;
        format!(
            "nothing expires before it was steady for {} s, at {}, or an operator accepts it \
             (mta clock accept)",
            steady.as_secs(),
            now.utc + steady
        )
    }

    /// The clock is right: what is due by it happens.
    fn trust_clock(&mut self, now: Now, because: &str) {
        if self.queue.wall.doubt.take().is_none() {
            return;
        }
        let wall = &mut self.queue.wall;
        (wall.trusted, wall.stepped) = (Some(now), Duration::ZERO);
        self.follow(now);
        let late = self.queue.scheduler.spared_count();
        self.queue.scheduler.let_expiry_wait(now.mono, false);
        let detail = format!("the wall clock is trusted again: {because}; {late} messages expire");
        self.event(LogLevel::Info, Kind::ClockTrusted, detail);
        self.write_clock(now);
    }

    /// An operator accepts the clock. The other nodes of the site learn it from the store.
    pub(crate) fn accept_clock(&mut self, now: Now, by: &Operator) {
        // Not the time that is stamped meanwhile.
        let right = self.queue.wall.doubt.as_ref().map(|doubt| reckoned(doubt.steady, now.mono));
        let now = Now { utc: right.unwrap_or(now.utc), ..now };
        self.trust_clock(now, "an operator accepted it");
        let accepted = ClockAccepted { at: now.utc, by: by.to_string() };
        let value = Bytes::from(accepted.encode());
        let batch = vec![Op::PutMeta { name: ACCEPTED.to_owned(), value }];
        let retry = PendingRetry::alone(batch);
        self.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// An operator accepted the clock of another node. If this one is doubted and shows the same time, as far as the
    /// clocks of a site may part, it is accepted too: the acceptance is later than the step, and not of the future.
    pub(crate) fn recovered_acceptance(&mut self, now: Now, value: &[u8]) {
        let Some(ClockAccepted { at, by }) = ClockAccepted::decode(value) else { return };
        let Some(doubt) = &self.queue.wall.doubt else { return };
        let (steady, most) = (doubt.steady, self.config.times.clock.step);
        let here = reckoned(steady, now.mono);
        if steady.utc.since(at) <= most && at.since(here) <= most {
            let now = Now { utc: here, ..now };
            self.trust_clock(now, &format!("{by} accepted that of another node"));
        }
    }

    /// What the store has of the time we were last there; before the entries.
    pub(crate) fn recovered_clock(&mut self, now: Now, value: &[u8]) {
        let Some(noted) = Noted::read(value) else { return };
        let then = Now { mono: now.mono, utc: noted.trusted };
        let (shift, most) = (step(then, now), self.config.times.clock.step);
        // The queue may have gone on after that, and have followed a step.
        self.queue.wall.gone = Some(noted.gone + WRITE_EVERY + most);
        self.queue.wall.noted = Some(noted);
        let by = size(shift).as_secs();
        match shift {
            // It ran on after it had noted the time.
            Shift::Sooner(ahead) if ahead > most + WRITE_EVERY => {
                // It may be the wrong time: nothing leaves by it.
                (self.queue.wall.at, self.queue.wall.trusted) = (Some(then), Some(then));
                let because = format!(
                    "it is {by} s ahead of when this MTA last ran, which was stopped so long if the \
                     clock is right"
                );
                self.begin_doubt(now, because);
            }
            Shift::Later(behind) if behind > most => {
                self.queue.wall.trusted = Some(then);
                let because = format!("it is {by} s behind of when this MTA last ran");
                self.begin_doubt(now, because);
            }
            Shift::Sooner(_) | Shift::Later(_) => {}
        }
    }

    /// All that was stored is there. An MTA with nothing in its queue notes the time every
    /// [`FORGET_EVERY`] only: it may have run until then and been killed, which is not a reason for a doubt.
    pub(crate) fn log_clock_at_start(&mut self, now: Now) {
        let wall = &mut self.queue.wall;
        let Some(Doubt { steady, because, .. }) = wall.doubt.clone() else {
            return self.write_clock(now);
        };
        let shift = wall.believed(steady.mono).map(|utc| step(Now { utc, ..steady }, steady));
        let most = self.config.times.clock.step + FORGET_EVERY;
        match shift {
            Some(Shift::Sooner(by)) if by <= most && self.queue.scheduler.is_empty() => {
                let now = Now { utc: reckoned(steady, now.mono), ..now };
                (wall.at, wall.trusted, wall.doubt) = (Some(now), Some(now), None);
                self.queue.scheduler.let_expiry_wait(now.mono, false);
                self.write_clock(now);
            }
            Some(Shift::Later(_)) => self.log_doubt(now, LogLevel::Warning, &because),
            _ => self.log_doubt(now, LogLevel::Info, &because),
        }
    }

    /// What makes the time durable, in a commit that is made anyway, if it is time.
    pub(crate) fn put_clock(&mut self, batch: &mut Batch) {
        let wall = &mut self.queue.wall;
        let due = |written: Instant| wall.looked.since(written) >= WRITE_EVERY;
        if !wall.written.is_none_or(due) {
            return;
        }
        // While it is doubted, the last time it was trusted stays: another start doubts it, too.
        let trusted = match wall.is_doubted() {
            true => wall.noted.map(|noted| noted.trusted).or(wall.trusted.map(|then| then.utc)),
            false => wall.believed(wall.looked),
        };
        let Some((trusted, now)) = trusted.zip(wall.queue_time(wall.looked)) else { return };
        let gone = wall.noted.map_or(now, |noted| noted.gone.max(now));
        let noted = Noted { trusted, gone };
        (wall.written, wall.noted) = (Some(wall.looked), Some(noted));
        let value = Bytes::copy_from_slice(&noted.encode());
        batch.push(Op::PutMeta { name: CLOCK.to_owned(), value });
    }

    /// Makes the time durable where something waits and nothing else is committed: a start after a
    /// kill is then no jump.
    pub(crate) fn keep_clock(&mut self, now: Now) {
        let due = |written: Instant| now.mono.since(written) >= WRITE_EVERY;
        let waits = self.life.is_running() && !self.queue.scheduler.is_empty();
        if waits && self.queue.wall.written.is_none_or(due) {
            self.write_clock(now);
        }
    }

    /// Makes the time durable now: when stopping, and when it is trusted again.
    pub(crate) fn write_clock(&mut self, now: Now) {
        self.queue.wall.looked = now.mono;
        self.queue.wall.written = None;
        // It is put into every commit that is due for it.
        let retry = PendingRetry::alone(Batch::new());
        self.commit(Batch::new(), PendingAnswer::Retry(retry));
    }

    /// When to look at the clocks though nothing happens.
    pub(crate) fn clock_deadline(&self) -> Option<Instant> {
        let wall = &self.queue.wall;
        let waits =
            self.life.is_started() && (wall.is_doubted() || !self.queue.scheduler.is_empty());
        let look = waits.then(|| wall.looked + LOOK_AGAIN);
        let writes = self.life.is_running() && !self.queue.scheduler.is_empty();
        let write = wall.written.filter(|_| writes).map(|at| at + WRITE_EVERY);
        look.into_iter().chain(write).chain(wall.trusted_at(self.config.times.clock.steady)).min()
    }
}
