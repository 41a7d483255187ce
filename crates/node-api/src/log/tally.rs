//! Counts of events since the start: each event counts once, when it is given out.

use crate::api::event::{Kind, LogEvent};
use base::{EntryId, PeerId, Precedence, Utc};
use scheduler::ChannelId;
use status::Counters;
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of the classes of a duration, in seconds.
pub const BOUNDS: [f64; 14] =
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

/// How often it happened, and with how many octets of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// How many.
    pub events: u64,
    /// Their octets.
    pub bytes: u64,
}

/// Durations by class; the last class has no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durations {
    /// How many took no longer than each bound, and how many took longer.
    pub classes: [u64; BOUNDS.len() + 1],
    /// The sum of all.
    pub seconds: f64,
}

impl Durations {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let class = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.classes.get_mut(class) {
            *count += 1;
        }
        self.seconds += seconds;
    }
}

/// Of what kind, on which channel, at which precedence.
type CountKey = (Kind, Option<ChannelId>, Option<Precedence>);

/// What the metrics count.
#[derive(Debug, Default)]
pub struct EventTally {
    counts: BTreeMap<CountKey, EventCount>,
    durations: BTreeMap<Precedence, Durations>,
    /// Peer and channel of removed channels: their counts keep their names.
    former: BTreeMap<ChannelId, (String, String)>,
    /// The last failure of entries, with its time.
    failures: BTreeMap<EntryId, (Utc, String)>,
    /// The time of what is counted.
    now: Utc,
}

/// Entries whose last failure is remembered; the oldest have to make room.
const MAX_FAILURES: usize = 10_000;

impl EventTally {
    /// A channel was removed.
    pub fn remember(&mut self, id: ChannelId, peer: &str, channel: &str) {
        self.former.insert(id, (peer.to_owned(), channel.to_owned()));
    }

    /// The names of one that was removed.
    pub fn former(&self, id: ChannelId) -> Option<(&str, &str)> {
        self.former.get(&id).map(|(peer, channel)| (peer.as_str(), channel.as_str()))
    }

    /// The name of a peer of which a channel was removed.
    pub fn former_peer(&self, id: PeerId) -> Option<&str> {
        let first = ChannelId { peer: id, index: 0 };
        let (of, (peer, _)) = self.former.range(first..).next()?;
        (of.peer == id).then_some(peer.as_str())
    }

    /// The time from now on.
    pub fn set_time(&mut self, now: Utc) {
        self.now = now;
    }

    /// The last failure of an entry in this run of the daemon, and when it was.
    pub fn failure(&self, id: EntryId) -> Option<(Utc, &str)> {
        self.failures.get(&id).map(|(at, text)| (*at, text.as_str()))
    }

    /// Counts an event.
    pub fn count(&mut self, event: &LogEvent) {
        let failed = [Kind::TransferFailed, Kind::DeliveryFailed, Kind::StoreFailed];
        if let Some(id) = event.entry.filter(|_| failed.contains(&event.kind)) {
            self.failures.insert(id, (self.now, event.detail.clone()));
            if self.failures.len() > MAX_FAILURES {
                self.failures.pop_first();
            }
        }
        // Copies that were late at the start are logged in one line, and counted one by one.
        if event.kind == Kind::Overdue && event.entry.is_none() {
            return;
        }
        let count = self.counts.entry((event.kind, event.channel, event.precedence)).or_default();
        count.events += 1;
        count.bytes = count.bytes.saturating_add(event.bytes.unwrap_or(0));
    }

    /// A copy was late already when we started.
    pub fn overdue_at_start(&mut self, precedence: Option<Precedence>) {
        self.counts.entry((Kind::Overdue, None, precedence)).or_default().events += 1;
    }

    /// A transfer of this precedence took so long, from its start to the peer's confirm.
    pub fn transfer_took(&mut self, precedence: Precedence, duration: Duration) {
        self.durations.entry(precedence).or_default().add(duration);
    }

    /// What was counted of a kind, by its [`Kind::name`].
    pub fn counts(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (Option<ChannelId>, Option<Precedence>, EventCount)> {
        let its = self.counts.iter().filter(move |((kind, _, _), _)| kind.name() == name);
        its.map(|((_, channel, precedence), count)| (*channel, *precedence, *count))
    }

    /// The same in a few numbers.
    pub fn counters(&self) -> Counters {
        let all = |kind: Kind| -> u64 {
            self.counts(kind.name()).map(|(_, _, count)| count.events).sum()
        };
        Counters {
            submitted: all(Kind::Submitted),
            received: all(Kind::Received),
            transferred: all(Kind::TransferConfirmed),
            delivered: all(Kind::Delivered),
            reports_made: all(Kind::ReportMade),
            duplicates: all(Kind::DuplicateDropped),
            expired: all(Kind::Expired) + all(Kind::OperatorExpired),
            overdue: all(Kind::Overdue),
        }
    }

    /// How long transfers took, by precedence.
    pub fn durations(&self) -> impl Iterator<Item = (Precedence, &Durations)> {
        self.durations.iter().map(|(precedence, durations)| (*precedence, durations))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_class_that_takes_it() {
        let mut durations = Durations::default();
        for ms in [1, 10, 11, 1_000, 4_000_000] {
            durations.add(Duration::from_millis(ms));
        }
        let mut expected = [0; 15];
        (expected[0], expected[1], expected[6], expected[14]) = (2, 1, 1, 1);
        assert_eq!(durations.classes, expected);
        assert!((durations.seconds - 4_001.022).abs() < 1e-9);
    }
}
