//! How much a mailbox may hold. X.413 has no error for a full mailbox: the delivery is held by the MTA, and
//! reported if it expires.

use crate::totals::{Level, Totals};
use base::Precedence;

/// The bounds of one mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// Most items; no bound if `None`.
    pub items: Option<u64>,
    /// Most octets, as [`crate::item::counted`] counts them; no bound if `None`.
    pub octets: Option<u64>,
    /// The part of both that Deferred may not use, percent, 0 to 100. Each higher precedence may use a fifth
    /// of it more, so that Override may use all: the lower precedence is held first.
    pub reserve: u8,
}

/// A delivery that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The mailbox has as many items as this precedence may use.
    #[error("the mailbox has {held} items, and {bound} are allowed")]
    Items {
        /// Items that it has.
        held: u64,
        /// Items that the precedence may use.
        bound: u64,
    },
    /// The octets do not fit in what this precedence may use.
    #[error("the mailbox has {held} octets, the item {added}, and {bound} are allowed")]
    Octets {
        /// Octets that it has.
        held: u64,
        /// Octets of the item.
        added: u64,
        /// Octets that the precedence may use.
        bound: u64,
    },
    /// All sequence numbers are used.
    #[error("all sequence numbers of the mailbox are used")]
    Numbers,
}

impl Full {
    /// Whether no deletion makes room: the item alone is larger than its bound, or no number is left.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Full::Items { bound, .. } => *bound == 0,
            Full::Octets { added, bound, .. } => added > bound,
            Full::Numbers => true,
        }
    }
}

impl Quota {
    /// Whether an item of this precedence and so many octets has room beside `totals`.
    ///
    /// # Errors
    /// [`Full::Items`], [`Full::Octets`].
    pub fn check(&self, totals: &Totals, precedence: Precedence, octets: u64) -> Result<(), Full> {
        let Level { items: held, octets: held_octets } = totals.all();
        if let Some(bound) = self.items.map(|all| self.share(all, precedence))
            && held >= bound
        {
            return Err(Full::Items { held, bound });
        }
        if let Some(bound) = self.octets.map(|all| self.share(all, precedence))
            && held_octets.saturating_add(octets) > bound
        {
            return Err(Full::Octets { held: held_octets, added: octets, bound });
        }
        Ok(())
    }

    /// What a precedence may use of `all`.
    fn share(&self, all: u64, precedence: Precedence) -> u64 {
        let highest = Precedence::Override.number();
        let below = u128::from(highest.saturating_sub(precedence.number()));
        let reserve = u128::from(self.reserve.min(100));
        let kept = u128::from(all) * reserve * below / (100 * u128::from(highest));
        all.saturating_sub(u64::try_from(kept).unwrap_or(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_precedences_are_held_first() {
        let quota = Quota { items: Some(100), octets: None, reserve: 50 };
        let shares = Precedence::ALL.map(|level| quota.share(100, level));
        assert_eq!(shares, [50, 60, 70, 80, 90, 100]);
        let mut totals = Totals::default();
        for _ in 0..70 {
            totals.add(Precedence::Routine, 10);
        }
        let fits = |level| quota.check(&totals, level, 1).is_ok();
        let fit: Vec<_> = Precedence::ALL.into_iter().filter(|level| fits(*level)).collect();
        assert_eq!(fit, [Precedence::Immediate, Precedence::Flash, Precedence::Override]);
    }

    #[test]
    fn octets_are_bounded_and_an_item_may_never_fit() {
        let quota = Quota { items: None, octets: Some(1000), reserve: 0 };
        let mut totals = Totals::default();
        totals.add(Precedence::Flash, 900);
        assert_eq!(quota.check(&totals, Precedence::Deferred, 100), Ok(()));
        let full = quota.check(&totals, Precedence::Override, 101).unwrap_err();
        assert!(!full.is_permanent());
        let full = quota.check(&totals, Precedence::Override, 1001).unwrap_err();
        assert!(full.is_permanent());
        let none = Quota { reserve: 200, items: Some(u64::MAX), octets: Some(u64::MAX) };
        assert!(none.check(&totals, Precedence::Deferred, 1).is_err());
        assert_eq!(Quota::default().check(&totals, Precedence::Deferred, u64::MAX), Ok(()));
    }
}
