//! Rule 4: how many associations a channel has.
//!
//! With one of ours at work, a further one opens when `grow_at` messages of equal precedence wait
//! and could start, up to `max`; and at once, from the slot reserved beyond `max`, for a message
//! above everything in transfer on the channel. The one too many in that slot closes when one
//! becomes free; of several, one closes after one was free for `keep` without a break.

use crate::hold::Standing;
use crate::peer::{Channel, Peer};
use crate::rules::{ChannelId, Policy};
use base::{Instant, Precedence};

/// An association that should be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// On which channel.
    pub channel: ChannelId,
    /// For a message above everything in transfer there: `max` does not count it.
    pub urgent: bool,
}

impl Peer {
    /// Precedences that could start on a channel now, highest first, with what licenses each.
    pub(crate) fn startable<'a>(
        &'a self,
        now: Instant,
        policy: &'a Policy,
        channel: &'a Channel,
    ) -> impl Iterator<Item = (Precedence, crate::Licence)> + 'a {
        self.queues.iter().filter(|(_, queue)| queue.ready() > 0).filter_map(
            move |(precedence, _)| {
                let fallback = self.may_carry(now, policy.patience, channel, precedence)?;
                match self.standing(now, policy, precedence) {
                    Standing::Free { passes } => {
                        Some((precedence, crate::Licence { passes, fallback }))
                    }
                    Standing::Held(_) => None,
                }
            },
        )
    }

    /// Whether something that could start is above everything in transfer on the channel, where
    /// there is a transfer at all.
    fn is_urgent(&self, now: Instant, policy: &Policy, channel: &Channel) -> bool {
        let highest = self.startable(now, policy, channel).next().map(|(p, _)| p);
        channel.highest_in_transfer().is_some_and(|busy| highest.is_some_and(|p| p > busy))
    }

    /// The association this channel should open now, if any.
    pub(crate) fn wanted(&self, now: Instant, policy: &Policy, channel: &Channel) -> Option<Open> {
        let (rules, seen) = (&channel.rules, &channel.associations);
        let open = |urgent| Some(Open { channel: rules.id, urgent });
        let mut startable = self.startable(now, policy, channel);
        if seen.ours == 0 {
            return (rules.permanent || startable.next().is_some()).then(|| open(false))?;
        }
        if seen.changing > 0 || seen.free > 0 {
            return None;
        }
        let max = rules.max.max(1);
        if seen.ours <= max && self.is_urgent(now, policy, channel) {
            return open(true);
        }
        let crowded = startable.any(|(p, _)| self.queues.ready(p) >= u64::from(rules.grow_at));
        (seen.ours < max && crowded).then(|| open(false))?
    }

    /// Whether the channel has one association of ours too many, one being free.
    pub(crate) fn has_surplus(&self, now: Instant, policy: &Policy, channel: &Channel) -> bool {
        let (rules, seen) = (&channel.rules, &channel.associations);
        if seen.ours < 2 || seen.changing > 0 || seen.free == 0 {
            return false;
        }
        if self.is_urgent(now, policy, channel) {
            return false; // it is about to be used
        }
        seen.ours > rules.max.max(1) || channel.shrinks_at().is_some_and(|at| at <= now)
    }
}
