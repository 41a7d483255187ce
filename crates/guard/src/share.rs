//! Shares that are kept for higher levels, so that lower ones cannot take all of a limit.
//!
//! Each level keeps a share of a limit. As long as it uses less, lower levels leave the rest of its share
//! free.

use base::Precedence;

/// How much higher levels lack of their shares, and so is kept from this level; without a level, what
/// all levels lack. At least `least` is left.
pub fn kept<'a>(
    has: impl IntoIterator<Item = (Precedence, &'a usize)>,
    level: Option<Precedence>,
    share: usize,
    most: usize,
    least: usize,
) -> usize {
    let higher = has.into_iter().filter(|(of, _)| level.is_none_or(|level| *of > level));
    let kept: usize = higher.map(|(_, has)| share.saturating_sub(*has)).sum();
    kept.min(most.saturating_sub(least))
}
