//! Rules 1 and 2: which messages a higher message for the same peer holds.

use crate::peer::{Peer, View};
use crate::rules::Hold;
use crate::rules::minimize::Floor;
use base::{EntryId, Precedence};
use std::fmt;

/// Why an item is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An operator holds it.
    Operator,
    /// Rule 6: it is below a floor.
    Minimize(Floor),
    /// Rule 1: a higher message for the same peer waits.
    Waiting(Precedence, EntryId),
    /// Rule 1: a higher message for the same peer is in transfer.
    InTransfer(Precedence, EntryId),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Operator => f.write_str("held by an operator"),
            Reason::Minimize(floor) => fmt::Display::fmt(floor, f),
            Reason::Waiting(precedence, id) => write!(f, "{precedence} {id} waits"),
            Reason::InTransfer(precedence, id) => write!(f, "{precedence} {id} is in transfer"),
        }
    }
}

/// The decision of rules 1 and 2 on a precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may start; by rule 2 if it passes a higher precedence that has no channel.
    Free {
        passes: Option<Precedence>,
    },
    Held(Reason),
}

impl Peer {
    /// Whether ready items of this precedence may start. Checks all precedences above, highest
    /// first: one holds if it has a live transfer, or a ready item that has a channel.
    pub(crate) fn standing(&self, view: &View<'_>, precedence: Precedence) -> Standing {
        let mut passes = None;
        if view.policy.hold == Hold::Off {
            return Standing::Free { passes };
        }
        for (above, _) in self.queues.iter().take_while(|(p, _)| *p > precedence) {
            let Some(reason) = self.holder(view, above) else { continue };
            if self.is_passed(view, above) {
                passes = passes.or(Some(above));
            } else {
                return Standing::Held(reason);
            }
        }
        Standing::Free { passes }
    }

    /// The item of exactly this precedence that holds lower ones by rule 1.
    fn holder(&self, view: &View<'_>, precedence: Precedence) -> Option<Reason> {
        if let Some(id) = self.alive(view, precedence) {
            return Some(Reason::InTransfer(precedence, id));
        }
        let id = self.queues.get(precedence)?.first()?;
        let could_go = self.below_floor(view, precedence).is_none();
        let could_go = could_go && self.has_carrier(view, precedence);
        could_go.then_some(Reason::Waiting(precedence, id))
    }

    /// A transfer of this precedence that is neither stalled nor paused.
    pub(crate) fn alive(&self, view: &View<'_>, precedence: Precedence) -> Option<EntryId> {
        let (progress, id) = self.queues.get(precedence)?.liveliest()?;
        (progress + view.policy.stall > view.now).then_some(id)
    }

    /// Rule 2: whether a holding precedence is ignored, because none of its channels is up.
    pub(crate) fn is_passed(&self, view: &View<'_>, holder: Precedence) -> bool {
        view.policy.hold == Hold::Conserving && !self.has_channel(view, holder)
    }

    /// Why ready items of this precedence are held by a rule.
    pub(crate) fn held(&self, view: &View<'_>, precedence: Precedence) -> Option<Reason> {
        let held = || match self.standing(view, precedence) {
            Standing::Held(reason) => Some(reason),
            Standing::Free { .. } => None,
        };
        self.minimized(view, precedence).or_else(held)
    }
}
