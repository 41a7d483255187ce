//! Rule 5: who may carry a precedence whose own channels are down.

use crate::peer::{Channel, Peer};
use base::{Instant, Precedence};
use std::time::Duration;

impl Channel {
    pub(crate) fn owns(&self, precedence: Precedence) -> bool {
        self.rules.precedences.contains(&precedence)
    }

    fn stands_in(&self, precedence: Precedence) -> bool {
        self.rules.fallback.contains(&precedence)
    }
}

impl Peer {
    /// Channels that could carry this precedence, in their own right or as a fallback.
    fn carriers(&self, precedence: Precedence) -> impl Iterator<Item = &Channel> {
        self.channels.values().filter(move |c| c.owns(precedence) || c.stands_in(precedence))
    }

    /// Whether any channel could ever carry this precedence.
    pub(crate) fn has_carrier(&self, precedence: Precedence) -> bool {
        self.carriers(precedence).next().is_some()
    }

    /// Whether a channel that could carry this precedence is there.
    pub(crate) fn has_way(&self, now: Instant, patience: Duration, precedence: Precedence) -> bool {
        self.carriers(precedence).any(|c| !c.is_down(now, patience))
    }

    /// Whether `channel` may carry this precedence now: `Some(true)` as a fallback.
    pub(crate) fn may_carry(
        &self,
        now: Instant,
        patience: Duration,
        channel: &Channel,
        precedence: Precedence,
    ) -> Option<bool> {
        if channel.owns(precedence) {
            return Some(false);
        }
        let mut owners = self.channels.values().filter(|c| c.owns(precedence));
        (channel.stands_in(precedence) && owners.all(|c| c.is_down(now, patience))).then_some(true)
    }
}
