//! Rules 1 and 2: what a higher message for the same peer holds.

use crate::peer::Peer;
use crate::rules::{Hold, Policy};
use base::{EntryId, Instant, Precedence};
use std::fmt;

/// Why an item is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An operator said so.
    Operator,
    /// Rule 1: a higher message for the same peer waits.
    Waiting(Precedence, EntryId),
    /// Rule 1: a higher message for the same peer is in transfer.
    InTransfer(Precedence, EntryId),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Operator => f.write_str("held by an operator"),
            Reason::Waiting(precedence, id) => write!(f, "{precedence} {id} waits"),
            Reason::InTransfer(precedence, id) => write!(f, "{precedence} {id} is in transfer"),
        }
    }
}

/// What rules 1 and 2 say of a precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may start; by rule 2 where it passes a higher precedence that has no channel.
    Free {
        passes: Option<Precedence>,
    },
    Held(Reason),
}

impl Peer {
    /// Whether what is ready of this precedence may start. Everything above is asked, highest
    /// first: what holds is either in transfer and alive, or ready and not without any channel.
    pub(crate) fn standing(
        &self,
        now: Instant,
        policy: &Policy,
        precedence: Precedence,
    ) -> Standing {
        let mut passes = None;
        if policy.hold == Hold::Off {
            return Standing::Free { passes };
        }
        for (above, _) in self.queues.iter().take_while(|(p, _)| *p > precedence) {
            let Some(reason) = self.holder(now, policy, above) else { continue };
            let conserving = policy.hold == Hold::Conserving;
            if conserving && !self.has_way(now, policy.patience, above) {
                passes = passes.or(Some(above));
            } else {
                return Standing::Held(reason);
            }
        }
        Standing::Free { passes }
    }

    /// What of exactly this precedence holds the lower ones by rule 1.
    fn holder(&self, now: Instant, policy: &Policy, precedence: Precedence) -> Option<Reason> {
        let queue = self.queues.get(precedence)?;
        if let Some((progress, id)) = queue.liveliest()
            && progress + policy.stall > now
        {
            return Some(Reason::InTransfer(precedence, id));
        }
        let id = queue.first()?;
        self.has_carrier(precedence).then_some(Reason::Waiting(precedence, id))
    }

    /// When rules 1, 2 and 5 may next answer differently though nothing happens: a transfer
    /// stalls, or a channel begins to count as down. Only where something waits for it.
    pub(crate) fn deadline(&self, now: Instant, policy: &Policy) -> Option<Instant> {
        let stalls = self
            .queues
            .iter()
            .filter_map(|(_, queue)| queue.liveliest())
            .map(|(progress, _)| progress + policy.stall);
        let queued = self.queues.first().is_some();
        let channels = self.channels.values();
        let losses = channels.clone().filter_map(|c| c.down_at(policy.patience));
        let held = stalls.chain(losses).filter(|_| queued);
        let shrinks = channels.filter_map(|c| c.shrinks_at());
        held.chain(shrinks).filter(|at| *at > now).min()
    }
}
