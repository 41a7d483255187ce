//! The events of a node with their times, and what tests ask of them.

use base::{EntryId, Instant};
use node::event::{Kind, LogEvent};

/// The events of a node so far, each with its time.
pub trait Events {
    /// All of them, in order.
    fn all(&self) -> &[(Instant, LogEvent)];

    /// Those of a kind.
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &LogEvent> {
        self.timed(kind).map(|(_, event)| event)
    }

    /// Those of a kind, with their times.
    fn timed(&self, kind: Kind) -> impl Iterator<Item = (Instant, &LogEvent)> {
        let all = self.all().iter().filter(move |(_, event)| event.kind == kind);
        all.map(|(at, event)| (*at, event))
    }

    /// The number of events of a kind.
    fn count(&self, kind: Kind) -> usize {
        self.of_kind(kind).count()
    }

    /// The details of a kind.
    fn details(&self, kind: Kind) -> Vec<&str> {
        self.of_kind(kind).map(|event| event.detail.as_str()).collect()
    }

    /// The first of a kind.
    fn first(&self, kind: Kind) -> (Instant, &LogEvent) {
        self.timed(kind).next().unwrap_or_else(|| panic!("no event {}", kind.name()))
    }

    /// The last of a kind.
    fn last(&self, kind: Kind) -> &LogEvent {
        self.of_kind(kind).last().unwrap_or_else(|| panic!("no event {}", kind.name()))
    }

    /// When events of a kind concerned an entry.
    fn times(&self, kind: Kind, entry: EntryId) -> Vec<Instant> {
        let its = self.timed(kind).filter(|(_, event)| event.entry == Some(entry));
        its.map(|(at, _)| at).collect()
    }

    /// Events of these kinds in order: the sign of the kind and the precedence, as in `+flash`.
    fn order(&self, signs: &[(Kind, char)]) -> String {
        let word = |event: &LogEvent| {
            let (_, sign) = signs.iter().find(|(kind, _)| *kind == event.kind)?;
            Some(format!("{sign}{}", event.precedence?))
        };
        self.all().iter().filter_map(|(_, event)| word(event)).collect::<Vec<_>>().join(" ")
    }
}

impl Events for [(Instant, LogEvent)] {
    fn all(&self) -> &[(Instant, LogEvent)] {
        self
    }
}
