//! `shape` lines.

use super::map::{MAX_BURST, number, rate};
use router::policy::{OctetSize, Span};
use router::time::Rate;
use std::time::Duration;

/// A `shape average` line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShapeLine {
    pub(super) rate: Rate,
    pub(super) burst: OctetSize,
    pub(super) interval: Option<Span>,
}

/// IOS's default Bc in bits: 8,000, or the bits of 25 ms if they are more.
fn own_committed(rate: Rate) -> u64 {
    (rate.octets_in(25_000_000).saturating_mul(8)).max(8_000)
}

/// Reads the words after `shape`.
pub(super) fn shape(words: &[&str]) -> Result<ShapeLine, String> {
    let (kind, words) = words.split_first().ok_or("average, and a rate")?;
    if *kind != "average" {
        return Err(format!("`shape {kind}` is not mapped"));
    }
    if words.first() == Some(&"percent") {
        return Err("a rate in percent is not mapped: write it in bit/s".to_owned());
    }
    let rate = rate(number(words.first(), "the rate in bit/s")?)?;
    if let Some(more) = words.get(3) {
        return Err(format!("{more:?} after Be is not known"));
    }
    let committed = match words.get(1) {
        Some(word) => number(Some(word), "the burst Bc in bits")?,
        None => 0,
    };
    let committed = if committed == 0 { own_committed(rate) } else { committed };
    // IOS's default Be is Bc.
    let excess = match words.get(2) {
        Some(word) => number(Some(word), "the burst Be in bits")?,
        None => committed,
    };
    // A bucket of Bc and Be that gets Bc each Tc.
    let octets = committed.saturating_add(excess).div_ceil(8).min(MAX_BURST);
    // Tc = Bc / CIR.
    let nanos = u128::from(committed) * 1_000_000_000 / u128::from(rate.bits());
    let interval = u64::try_from(nanos).ok().filter(|n| (1_000_000..=60_000_000_000).contains(n));
    let interval =
        Span(Duration::from_nanos(interval.ok_or("Bc is 1 ms to a minute at the rate")?));
    Ok(ShapeLine { rate, burst: OctetSize(octets), interval: Some(interval) })
}
