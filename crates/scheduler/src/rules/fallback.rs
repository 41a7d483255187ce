//! Rule 5: which channels may carry a precedence whose own channels are down.

use crate::peer::{ChannelState, Peer, View};
use base::Precedence;

impl ChannelState {
    pub(crate) fn owns(&self, precedence: Precedence) -> bool {
        self.rules.precedences.contains(&precedence)
    }

    fn stands_in(&self, precedence: Precedence) -> bool {
        self.rules.fallback.contains(&precedence)
    }
}

impl Peer {
    /// Channels that have this precedence in their schedule.
    fn owners(&self, precedence: Precedence) -> impl Iterator<Item = &ChannelState> {
        self.channels().filter(move |c| c.owns(precedence))
    }

    /// Channels that could carry this precedence, MINIMIZE aside.
    pub(crate) fn able(&self, precedence: Precedence) -> impl Iterator<Item = &ChannelState> {
        self.channels().filter(move |c| c.owns(precedence) || c.stands_in(precedence))
    }

    /// Channels that could carry this precedence, by schedule or as a fallback. A fallback
    /// replaces channels that are down, not those that MINIMIZE bars.
    fn carriers<'a>(
        &'a self,
        view: &View<'a>,
        precedence: Precedence,
    ) -> impl Iterator<Item = &'a ChannelState> {
        let open = |c: &ChannelState| c.bars(precedence) && !c.is_down(view);
        let barred = self.owners(precedence).any(open);
        self.able(precedence)
            .filter(move |c| !c.bars(precedence) && (c.owns(precedence) || !barred))
    }

    /// Whether any channel could carry this precedence, now or once it is open.
    pub(crate) fn has_carrier(&self, view: &View<'_>, precedence: Precedence) -> bool {
        self.carriers(view, precedence).next().is_some()
    }

    /// Whether a channel that could carry this precedence has an association.
    pub(crate) fn has_channel(&self, view: &View<'_>, precedence: Precedence) -> bool {
        self.carriers(view, precedence).any(|c| !c.is_down(view))
    }

    /// Whether `channel` would carry this precedence now, MINIMIZE aside: `Some(true)` as a
    /// fallback.
    pub(crate) fn would_carry(
        &self,
        view: &View<'_>,
        channel: &ChannelState,
        precedence: Precedence,
    ) -> Option<bool> {
        if channel.owns(precedence) {
            return Some(false);
        }
        let down = || self.owners(precedence).all(|c| c.is_down(view));
        (channel.stands_in(precedence) && down()).then_some(true)
    }

    /// Whether `channel` may carry this precedence now: `Some(true)` as a fallback.
    pub(crate) fn may_carry(
        &self,
        view: &View<'_>,
        channel: &ChannelState,
        precedence: Precedence,
    ) -> Option<bool> {
        let barred = channel.bars(precedence) || self.below_floor(view, precedence).is_some();
        self.would_carry(view, channel, precedence).filter(|_| !barred)
    }
}
