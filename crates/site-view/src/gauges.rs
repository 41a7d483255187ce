//! Figures as metrics.

use crate::watcher::{Figures, StandbyFigures};
use std::time::Duration;

/// A metric that goes up and down.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Its value, or one for each standby with its name.
    pub values: Vec<(Option<String>, f64)>,
}

fn one(name: &'static str, help: &'static str, value: f64) -> Gauge {
    Gauge { name, help, values: vec![(None, value)] }
}

/// Far below 2^53.
fn count(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

impl Figures {
    /// All of them.
    #[must_use]
    pub fn gauges(&self) -> Vec<Gauge> {
        let seconds = |time: Duration| time.as_secs_f64();
        let mut all = vec![
            one(
                "mta_database_away_seconds",
                "For how long the database has not answered; 0 while it does",
                seconds(self.away),
            ),
            one(
                "mta_database_standbys_following",
                "Standbys that follow, and that commits may wait for",
                count(self.following),
            ),
            one(
                "mta_database_standbys_needed",
                "Standbys that each commit waits for",
                count(self.needed),
            ),
            one(
                "mta_database_may_be_lost",
                "Servers that may be lost without a loss of what was acknowledged",
                count(self.may_be_lost),
            ),
            one(
                "mta_database_commits_waiting",
                "Commits that wait for standbys",
                self.waiting.into(),
            ),
            one(
                "mta_database_commit_wait_seconds",
                "For how long the first of them waits",
                seconds(self.waits),
            ),
            one("mta_site_nodes", "Nodes whose leases last", count(self.nodes)),
        ];
        let each = |name, help, value: fn(&StandbyFigures) -> f64| Gauge {
            name,
            help,
            values: self.standbys.iter().map(|s| (Some(s.name.clone()), value(s))).collect(),
        };
        all.extend([
            each("mta_database_standby_follows", "1 while the standby follows", |standby| {
                f64::from(u8::from(standby.follows))
            }),
            each(
                "mta_database_standby_lag_bytes",
                "Octets of the log that the standby does not have on its disk",
                // Far below 2^53.
                |standby| standby.lag_octets as f64,
            ),
            each(
                "mta_database_standby_lag_seconds",
                "How long what is written takes until it is on the disk of the standby",
                |standby| standby.lag_seconds,
            ),
        ]);
        all
    }
}
