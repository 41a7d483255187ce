//! Rule 7: a minimum share for messages that rule 1 holds.
//!
//! Each octet that starts while a lower message is held earns the peer a fraction of an octet.
//! Once this credit covers the earliest accepted message that rule 1 holds, that message may start
//! before all others, on the next free association that may carry it. Taken in the order of
//! acceptance, not of precedence, no message starves.

use crate::peer::{Peer, View};
use crate::rules::hold::Standing;
use base::{EntryId, Precedence};

/// The octets that held messages may start with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credit(u64);

/// The earliest accepted message that rule 1 alone holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starving {
    pub(crate) precedence: Precedence,
    pub(crate) id: EntryId,
    /// Its octets, at least one.
    size: u64,
}

/// The credit that the start of this many octets earns: at least one, or empty messages would
/// starve the others.
pub(crate) fn earned(size: u64, share: u8) -> u64 {
    let share = u128::from(share.clamp(1, 50));
    let earned = u128::from(size.max(1)) * share / (100 - share);
    u64::try_from(earned).unwrap_or(u64::MAX).max(1)
}

impl Peer {
    /// The next message to start by the share: MINIMIZE does not bar it, and a channel that could
    /// carry it has an association.
    pub(crate) fn starving(&self, view: &View<'_>) -> Option<Starving> {
        view.policy.share?;
        let held = self.queues.iter().filter_map(|(precedence, queue)| {
            let key = queue.ready.first()?;
            let held = matches!(self.standing(view, precedence), Standing::Held(_));
            let only = held
                && self.below_floor(view, precedence).is_none()
                && self.has_channel(view, precedence);
            only.then_some((key, precedence))
        });
        let ((_, id), precedence) = held.min()?;
        let size = view.items.get(id)?.size.max(1);
        Some(Starving { precedence, id, size })
    }

    /// The message that the credit covers now.
    pub(crate) fn covered_by_credit(&self, view: &View<'_>) -> Option<Starving> {
        self.starving(view).filter(|starving| starving.size <= self.credit.0)
    }

    /// The credit after a start, from the state before it. It is capped at what one start earns or
    /// the next held message needs, so a long busy channel accumulates no credit.
    pub(crate) fn credit_after(
        &self,
        view: &View<'_>,
        precedence: Precedence,
        size: u64,
        by_share: bool,
    ) -> Credit {
        let Credit(credit) = self.credit;
        let (Some(share), Some(starving)) = (view.policy.share, self.starving(view)) else {
            return Credit(0); // there is nothing to share with
        };
        if by_share {
            return Credit(credit.saturating_sub(size.max(1)));
        }
        if !self.holds_below(view, precedence) {
            return self.credit;
        }
        let earned = earned(size, share);
        let most = earned.max(starving.size);
        Credit(credit.max(credit.saturating_add(earned).min(most)))
    }

    /// Whether rule 1 holds a lower message than this.
    fn holds_below(&self, view: &View<'_>, precedence: Precedence) -> bool {
        self.queues.iter().filter(|(p, queue)| *p < precedence && queue.first().is_some()).any(
            |(p, _)| {
                matches!(self.standing(view, p), Standing::Held(_))
                    && self.below_floor(view, p).is_none()
                    && self.has_channel(view, p)
            },
        )
    }
}
