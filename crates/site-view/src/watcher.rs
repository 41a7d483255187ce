//! The thread by which each node looks at the database once a second: what is new goes to the log, and the figures to
//! who asks for metrics.

use crate::alarms::{Alarms, Level, Observed};
use crate::words::WAITING;
use postgres_store::{Options, Survey, Surveyor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use store::StoreError;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// The longest that a look may take.
const LIMIT: Duration = Duration::from_secs(3);

/// A standby in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandbyFigures {
    /// Its name.
    pub name: String,
    /// It follows.
    pub follows: bool,
    /// Octets of the log that it does not have on its disk.
    pub lag_octets: u64,
    /// How long what is written takes until it is there, in seconds.
    pub lag_seconds: f64,
}

/// What the last look found, in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// For how long no look was answered; zero while they are.
    pub away: Duration,
    /// The standbys that are connected.
    pub standbys: Vec<StandbyFigures>,
    /// Standbys that follow and that commits may wait for.
    pub following: usize,
    /// Commits wait for so many.
    pub needed: usize,
    /// So many servers may be lost without a loss.
    pub may_be_lost: usize,
    /// Commits that wait for standbys.
    pub waiting: u32,
    /// For how long the first of them waits.
    pub waits: Duration,
    /// Nodes whose leases last.
    pub nodes: usize,
}

impl Figures {
    /// Why no commit is possible now, in words; `None` as long as commits end.
    #[must_use]
    pub fn no_commits(&self) -> Option<String> {
        let Figures { away, following, needed, waits, .. } = self;
        if !away.is_zero() {
            return Some(format!("the database has not answered for {:.1} s", away.as_secs_f64()));
        }
        if following < needed {
            return Some(format!("commits wait for {needed} standbys, and {following} follow"));
        }
        (*waits >= WAITING).then(|| {
            format!("a commit has waited for its standbys for {:.1} s", waits.as_secs_f64())
        })
    }
}

#[derive(Debug, Default)]
struct Shared {
    ends: AtomicBool,
    last: Mutex<Option<(Figures, Option<Duration>)>>,
}

/// The thread. It ends after this is dropped.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    thread: Thread,
    now: fn() -> Duration,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Watcher {
    /// Begins to look at the database of this url; `now` is a clock that never goes back.
    ///
    /// # Errors
    /// It is not a url, or the system starts no thread.
    pub fn start(
        url: &str,
        options: &Options,
        now: fn() -> Duration,
    ) -> Result<Watcher, StoreError> {
        let options = Options { time_limit: LIMIT, connect_limit: LIMIT, ..options.clone() };
        let surveyor = Surveyor::new(url, &options)?;
        let shared = Arc::<Shared>::default();
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("site watch".to_owned())
            .spawn(move || watch(&surveyor, &its, now))
            .map_err(|e| StoreError::Io { doing: "starting a thread", source: Arc::new(e) })?;
        Ok(Watcher { shared, thread: thread.thread().clone(), now })
    }

    /// The figures of the last look; `None` before the first one has ended.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map(|(figures, away)| Figures {
            away: away.map_or(Duration::ZERO, |since| (self.now)().saturating_sub(since)),
            ..figures
        })
    }
}

fn watch(surveyor: &Surveyor, shared: &Shared, now: fn() -> Duration) {
    let mut alarms = Alarms::default();
    while !shared.ends.load(Ordering::Acquire) {
        let looked = surveyor.look_at_servers();
        let found = looked.as_ref().map(Observed::new).map_err(ToString::to_string);
        let lines = alarms.observe(now(), found);
        if shared.ends.load(Ordering::Acquire) {
            return;
        }
        for line in lines {
            match line.level {
                Level::Info => tracing::info!("{}", line.text),
                Level::Warning => tracing::warn!("{}", line.text),
                Level::Error => tracing::error!("{}", line.text),
            }
        }
        let mut last = shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = match looked {
            Ok(survey) => figures(&survey),
            // What stood there is the last that is known.
            Err(_) => last.take().map(|(figures, _)| figures).unwrap_or_default(),
        };
        *last = Some((figures, alarms.away_since()));
        drop(last);
        thread::park_timeout(EVERY);
    }
}

fn figures(survey: &Survey) -> Figures {
    let observed = Observed::new(survey);
    let standby = |row: &postgres_store::StandbyRow| StandbyFigures {
        name: row.name.clone(),
        follows: row.state.as_deref() == Some("streaming"),
        lag_octets: row.lag_octets.unwrap_or(0),
        lag_seconds: row.lag.unwrap_or_default().as_secs_f64(),
    };
    Figures {
        away: Duration::ZERO,
        standbys: survey.standbys.iter().map(standby).collect(),
        following: observed.following.len(),
        needed: observed.needed,
        may_be_lost: observed.durability().may_be_lost,
        waiting: observed.waiting,
        waits: observed.waits,
        nodes: survey
            .nodes
            .iter()
            .filter(|node| node.died.is_none() && !node.lease_left.is_zero())
            .count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_commit_is_possible_without_database_or_standbys() {
        let fine = Figures { following: 1, needed: 1, ..Figures::default() };
        assert_eq!(fine.no_commits(), None);
        assert_eq!(Figures::default().no_commits(), None, "without standbys by choice");
        let of = |figures: Figures| figures.no_commits().unwrap_or_default();
        let seconds = Duration::from_secs;
        assert!(
            of(Figures { away: seconds(3), ..fine.clone() }).contains("not answered for 3.0 s")
        );
        assert!(of(Figures { following: 0, ..fine.clone() }).contains("1 standbys, and 0 follow"));
        assert!(of(Figures { waits: seconds(4), ..fine }).contains("for 4.0 s"));
    }
}
