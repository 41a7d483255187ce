//! A peer: its channels and all that is queued for it.

use crate::queue::Queues;
use crate::rules::{Associations, ChannelRules};
use base::{Instant, Precedence};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) rules: ChannelRules,
    pub(crate) associations: Associations,
    /// Since when there is none to send on though there should be.
    absent_since: Option<Instant>,
    /// Since when one of its associations has been free without a break.
    free_since: Option<Instant>,
    /// How many of each precedence are in transfer on it.
    transfers: BTreeMap<Precedence, u32>,
}

impl Channel {
    pub(crate) fn new(rules: ChannelRules) -> Channel {
        Channel {
            rules,
            associations: Associations::default(),
            absent_since: None,
            free_since: None,
            transfers: BTreeMap::new(),
        }
    }

    /// Tries to open that follow a failure do not begin the count again: a channel that cannot
    /// be opened would hold the lower messages at every try.
    pub(crate) fn see(&mut self, now: Instant, associations: Associations) {
        self.associations = associations;
        let at_rest = associations.free > 0 && associations.changing == 0;
        self.free_since = at_rest.then(|| self.free_since.unwrap_or(now));
        self.absent_since = if associations.usable > 0 {
            None
        } else if associations.changing > 0 || associations.failing {
            self.absent_since.or(Some(now))
        } else {
            None // closed in order: it can be opened at any time
        };
    }

    /// Whether it has had no association for so long that it does not count any more.
    pub(crate) fn is_down(&self, now: Instant, patience: Duration) -> bool {
        self.absent_since.is_some_and(|since| since + patience <= now)
    }

    /// When it will count as down, or since when it does.
    pub(crate) fn down_at(&self, patience: Duration) -> Option<Instant> {
        self.absent_since.map(|since| since + patience)
    }

    /// When one of several associations will have been free for long enough to be closed.
    pub(crate) fn shrinks_at(&self) -> Option<Instant> {
        let several = self.associations.ours > 1;
        self.free_since.filter(|_| several).map(|since| since + self.rules.keep)
    }

    pub(crate) fn started(&mut self, precedence: Precedence) {
        *self.transfers.entry(precedence).or_default() += 1;
    }

    pub(crate) fn ended(&mut self, precedence: Precedence) {
        if let Some(count) = self.transfers.get_mut(&precedence) {
            *count -= 1;
            if *count == 0 {
                self.transfers.remove(&precedence);
            }
        }
    }

    /// The highest precedence in transfer on it.
    pub(crate) fn highest_in_transfer(&self) -> Option<Precedence> {
        self.transfers.last_key_value().map(|(precedence, _)| *precedence)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// By [`crate::ChannelId::index`].
    pub(crate) channels: BTreeMap<u32, Channel>,
    pub(crate) queues: Queues,
}
