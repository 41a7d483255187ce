//! Numbers as the database has them: `bigint` has a sign, so the highest bit is turned over, which keeps
//! their order.

use base::{EntryId, Precedence};

const TURNED: u64 = 1 << 63;

/// A number of 64 bits as it is stored.
pub(crate) fn stored(number: u64) -> i64 {
    (number ^ TURNED).cast_signed()
}

/// The number that is stored so.
pub(crate) fn number(stored: i64) -> u64 {
    stored.cast_unsigned() ^ TURNED
}

/// The key of an entry as it is stored.
pub(crate) type Place = (i16, i64);

/// The highest precedence has the lowest rank, and so is listed first.
pub(crate) fn rank(precedence: Precedence) -> i16 {
    5 - precedence as i16
}

pub(crate) fn place(precedence: Precedence, id: EntryId) -> Place {
    (rank(precedence), stored(id.0))
}

/// The precedence of this rank; `None`: there is none.
pub(crate) fn precedence(rank: i16) -> Option<Precedence> {
    Precedence::ALL.into_iter().find(|level| *level as i16 == 5 - rank)
}

/// A length of octets as it is stored.
pub(crate) fn signed(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A length that was stored.
pub(crate) fn unsigned(length: i64) -> u64 {
    u64::try_from(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept() {
        let all = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX];
        assert!(all.map(stored).is_sorted());
        assert_eq!(all.map(|n| number(stored(n))), all);
        for level in Precedence::ALL {
            assert_eq!(precedence(rank(level)), Some(level));
        }
        assert_eq!((rank(Precedence::Override), precedence(6), precedence(-1)), (0, None, None));
    }
}
