//! Selection of the next transfer on a channel, and rule 4: the number of its associations.
//!
//! With one of our associations busy, a further one opens when `grow_at` messages of equal
//! precedence wait and could start, up to `max`. One more is reserved beyond `max`: it opens at
//! once for a message above everything in transfer on the channel, or for any message if only
//! incoming transfers occupy the channel. The surplus association closes when one becomes free. Of
//! several associations, one closes after one was free for `keep` without interruption.

use crate::machine::{Start, StartReason};
use crate::peer::{ChannelState, Peer, View};
use crate::rules::ChannelId;
use crate::rules::hold::Standing;
use base::Precedence;

/// An association that should be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its channel.
    pub channel: ChannelId,
    /// For a message above everything in transfer there, or behind incoming transfers only: not
    /// counted against `max`.
    pub urgent: bool,
}

impl Peer {
    /// Precedences that could start on a channel now, highest first, with the reason for each.
    fn startable<'a>(
        &'a self,
        view: &'a View<'a>,
        channel: &'a ChannelState,
    ) -> impl Iterator<Item = (Precedence, StartReason)> + 'a {
        let by_share = self.covered_by_credit(view).map(|starving| starving.precedence);
        self.queues.iter().filter(|(_, queue)| queue.first().is_some()).filter_map(
            move |(precedence, _)| {
                let fallback = self.may_carry(view, channel, precedence)?;
                let (passes, share) = match self.standing(view, precedence) {
                    Standing::Free { passes } => (passes, false),
                    Standing::Held(_) => (by_share == Some(precedence)).then_some((None, true))?,
                };
                Some((precedence, StartReason { passes, fallback, share }))
            },
        )
    }

    /// The next transfer on a free association of this channel: what the share permits, else the
    /// highest.
    pub(crate) fn pick(&self, view: &View<'_>, channel: &ChannelState) -> Option<Start> {
        let by_share = view
            .policy
            .share
            .and_then(|_| self.startable(view, channel).find(|(_, reason)| reason.share));
        let (precedence, reason) = by_share.or_else(|| self.startable(view, channel).next())?;
        let id = self.queues.get(precedence)?.first()?;
        Some(Start { id, precedence, reason })
    }

    /// Whether something that could start is above everything in transfer on the channel. Incoming
    /// transfers count as lowest, as their precedence is unknown: everything that could start is
    /// above them.
    fn is_urgent(&self, view: &View<'_>, channel: &ChannelState) -> bool {
        let Some((top, _)) = self.startable(view, channel).next() else { return false };
        let seen = &channel.associations;
        match channel.highest_in_transfer() {
            Some(busy) => top > busy,
            None => seen.receiving > 0 && seen.receiving + seen.free >= seen.usable,
        }
    }

    /// The association this channel should open now, if any.
    pub(crate) fn wanted(&self, view: &View<'_>, channel: &ChannelState) -> Option<Open> {
        let (rules, seen) = (&channel.rules, &channel.associations);
        let open = |urgent| Some(Open { channel: rules.id, urgent });
        if seen.barred || seen.changing > 0 || (seen.ours > 0 && seen.free > 0) {
            return None;
        }
        let mut startable = self.startable(view, channel);
        if seen.ours == 0 {
            return (rules.permanent || startable.next().is_some()).then(|| open(false))?;
        }
        let max = rules.max.max(1);
        if seen.ours <= max && self.is_urgent(view, channel) {
            return open(true);
        }
        // A message the share permits.
        let waiting = |(p, reason): (Precedence, StartReason)| {
            if reason.share { 1 } else { self.queues.ready(p) }
        };
        let crowded = startable.any(|s| waiting(s) >= u64::from(rules.grow_at));
        (seen.ours < max && crowded).then(|| open(false))?
    }

    /// Whether the channel has one surplus association of ours that is free.
    pub(crate) fn has_surplus(&self, view: &View<'_>, channel: &ChannelState) -> bool {
        let (rules, seen) = (&channel.rules, &channel.associations);
        if seen.ours < 2 || seen.changing > 0 || seen.free == 0 {
            return false;
        }
        if self.is_urgent(view, channel) {
            return false; // it is about to be used
        }
        seen.ours > rules.max.max(1) || channel.shrinks_at().is_some_and(|at| at <= view.now)
    }
}
