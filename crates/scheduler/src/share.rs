//! Rule 7: a minimum share for what rule 1 holds.
//!
//! Each octet that starts while something lower is held earns the peer a fraction of an octet. Once
//! that pays for the message that was accepted first of all that rule 1 holds, this one may start,
//! before anything else on the next free association that may carry it. Taken in the order of
//! acceptance, not of precedence, none of them starves.

use crate::hold::Standing;
use crate::peer::{Peer, View};
use base::{EntryId, Precedence};

/// Octets that held messages may start with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credit(u64);

/// The message that rule 1 alone holds and that was accepted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starving {
    pub(crate) precedence: Precedence,
    pub(crate) id: EntryId,
    /// Octets, one at least.
    size: u64,
}

/// Octets that the start of so many earns: one at least, or empty messages would starve the others.
pub(crate) fn earned(size: u64, share: u8) -> u64 {
    let share = u128::from(share.clamp(1, 50));
    let earned = u128::from(size.max(1)) * share / (100 - share);
    u64::try_from(earned).unwrap_or(u64::MAX).max(1)
}

impl Peer {
    /// The next to start by the share: where MINIMIZE does not bar it and a channel that could
    /// carry it is there.
    pub(crate) fn starving(&self, view: &View<'_>) -> Option<Starving> {
        view.policy.share?;
        let held = self.queues.iter().filter_map(|(precedence, queue)| {
            let key = queue.ready.first()?;
            let held = matches!(self.standing(view, precedence), Standing::Held(_));
            let only = held
                && self.below_floor(view, precedence).is_none()
                && self.has_way(view, precedence);
            only.then_some((key, precedence))
        });
        let ((_, id), precedence) = held.min()?;
        let size = view.items.get(id)?.size.max(1);
        Some(Starving { precedence, id, size })
    }

    /// What the credit pays for now.
    pub(crate) fn licensed_by_share(&self, view: &View<'_>) -> Option<Starving> {
        self.starving(view).filter(|starving| starving.size <= self.credit.0)
    }

    /// The credit after a start, from how things stood before it. It grows no further than one
    /// start earns or the next one needs: a channel that is long busy saves up nothing.
    pub(crate) fn credit_after(
        &self,
        view: &View<'_>,
        precedence: Precedence,
        size: u64,
        by_share: bool,
    ) -> Credit {
        let Credit(credit) = self.credit;
        let (Some(share), Some(starving)) = (view.policy.share, self.starving(view)) else {
            return Credit(0); // nothing is owed to anything
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

    /// Whether rule 1 holds something lower than this.
    fn holds_below(&self, view: &View<'_>, precedence: Precedence) -> bool {
        self.queues.iter().filter(|(p, queue)| *p < precedence && queue.first().is_some()).any(
            |(p, _)| {
                matches!(self.standing(view, p), Standing::Held(_))
                    && self.below_floor(view, p).is_none()
                    && self.has_way(view, p)
            },
        )
    }
}
