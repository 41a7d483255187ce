//! The shares of the branches of a scheduler: weights, reservations, and the rate that each leaves
//! to the part below it.

use super::numbers;
use crate::meter::Bucket;
use crate::policy::{Branch, BranchShare, KeyFault};
use crate::schedule::Reservation;
use crate::time::{Rate, SECOND};

/// If all of the rate is reserved, the part of it that all branches without a reservation share:
/// Cisco's class-default. In the NATO study, two classes with 50 % each left the third 3 of 512
/// kbit/s.
const MIN_UNRESERVED: f64 = 0.01;
/// The default burst of a priority branch, as time at its rate.
const PRIORITY_BURST_NS: u64 = SECOND / 5;
/// The smallest burst of a priority branch, in octets: an Ethernet packet. A packet longer than the
/// burst never passes while others wait.
const MIN_PRIORITY_BURST: u64 = 1_500;
/// Allowance for rounding in a sum.
const TOLERANCE: f64 = 1.0 + 1e-9;

fn share_path(path: &str, place: usize) -> String {
    format!("{path}.branches[{place}].share")
}

/// Strict priority uses the order alone, so shares are refused.
pub(super) fn none(branches: &[Branch], path: &str) -> Result<(), KeyFault> {
    match branches.iter().position(|branch| branch.share != BranchShare::None) {
        None => Ok(()),
        Some(place) => {
            let what = "branches of \"priority\" have no share: their order decides";
            Err(KeyFault::at(share_path(path, place), what))
        }
    }
}

fn weight(weight: f64, path: &str) -> Result<f64, KeyFault> {
    if (1e-6..=1e6).contains(&weight) {
        return Ok(weight);
    }
    Err(KeyFault::at(path, format!("weight {weight}: must be 0.000001 to 1,000,000")))
}

/// The weight of each branch, and its part of the rate.
pub(super) fn weights(
    kind: &str,
    branches: &[Branch],
    rate: Option<Rate>,
    path: &str,
) -> Result<(Vec<f64>, Vec<Option<Rate>>), KeyFault> {
    let mut weights = Vec::new();
    for (place, branch) in branches.iter().enumerate() {
        let path = share_path(path, place);
        weights.push(match branch.share {
            BranchShare::None => 1.0,
            BranchShare::Weight(given) => weight(given, &path)?,
            _ => {
                let what = format!("branches of {kind:?} have weights, as in {{ weight = 2.0 }}");
                return Err(KeyFault::at(path, what));
            }
        });
    }
    let sum: f64 = weights.iter().sum();
    let rates = weights.iter().map(|weight| Some(rate?.percent(weight / sum * 100.0))).collect();
    Ok((weights, rates))
}

/// The reservation of a share, of this whole.
fn reserved_of(share: BranchShare, whole: f64) -> f64 {
    match share {
        BranchShare::Percent(percent) | BranchShare::PriorityPercent { percent, .. } => {
            whole * percent / 100.0
        }
        BranchShare::Bandwidth(rate) | BranchShare::Priority { rate, .. } => rate.bits() as f64,
        BranchShare::None | BranchShare::Weight(_) => 0.0,
    }
}

/// The reservations of all branches together, of this whole, and the weights of the branches
/// without a reservation.
fn sums(
    branches: &[Branch],
    rate: Option<Rate>,
    whole: f64,
    path: &str,
) -> Result<(f64, f64), KeyFault> {
    let (mut reserved, mut unreserved) = (0.0, 0.0);
    for (place, branch) in branches.iter().enumerate() {
        let path = share_path(path, place);
        match branch.share {
            BranchShare::None => unreserved += 1.0,
            BranchShare::Weight(given) => unreserved += weight(given, &path)?,
            BranchShare::Percent(percent) if (0.0..=100.0).contains(&percent) => {
                reserved += whole * percent / 100.0;
                unreserved += if percent == 0.0 { 1.0 } else { 0.0 };
            }
            BranchShare::Percent(percent) => {
                return Err(KeyFault::at(path, format!("{percent} percent: must be 0 to 100")));
            }
            BranchShare::PriorityPercent { percent, .. }
                if !(percent > 0.0 && percent <= 100.0) =>
            {
                let what = format!("{percent} percent: must be above 0, to 100");
                return Err(KeyFault::at(path, what));
            }
            BranchShare::Bandwidth(_)
            | BranchShare::Priority { .. }
            | BranchShare::PriorityPercent { .. } => {
                if rate.is_none() {
                    let what = "what is shared is not known: give \"rate\" to the class-based \
                                queueing, or put it into a shaper";
                    return Err(KeyFault::at(path, what));
                }
                reserved += reserved_of(branch.share, whole);
            }
        }
    }
    Ok((reserved, unreserved))
}

/// The fault of reservations that exceed the rate.
fn excess(reserved: f64, rate: Option<Rate>, path: &str) -> KeyFault {
    let what = match rate {
        Some(rate) => {
            let reserved = Rate::from_bits(reserved.round() as u64);
            let reserved = reserved.map_or_else(|| "too much".to_owned(), |r| r.to_string());
            format!("{reserved} are reserved in all, of {rate}")
        }
        None => format!("{reserved} percent are reserved in all"),
    };
    KeyFault::at(format!("{path}.branches"), what)
}

/// The reservation of each branch, and its part of the rate. Percentages are allowed without a
/// rate.
pub(super) fn reservations(
    branches: &[Branch],
    rate: Option<Rate>,
    path: &str,
) -> Result<(Vec<Reservation>, Vec<Option<Rate>>), KeyFault> {
    let whole = rate.map_or(100.0, |rate| rate.bits() as f64);
    let (reserved, unreserved) = sums(branches, rate, whole, path)?;
    if reserved > whole * TOLERANCE {
        return Err(excess(reserved, rate, path));
    }
    let left = (whole - reserved).max(whole * MIN_UNRESERVED);
    let mut shares = Vec::new();
    let mut rates = Vec::new();
    for (place, branch) in branches.iter().enumerate() {
        let amount = match branch.share {
            BranchShare::None | BranchShare::Percent(0.0) => left / unreserved,
            BranchShare::Weight(weight) => left * weight / unreserved,
            share => reserved_of(share, whole),
        };
        let own = Rate::from_bits((amount as u64).max(1));
        let policed = match branch.share {
            BranchShare::Priority { rate, burst } => Some((rate, burst, "priority")),
            BranchShare::PriorityPercent { burst, .. } => {
                own.map(|own| (own, burst, "priority-percent"))
            }
            _ => None,
        };
        shares.push(match policed {
            Some((rate, burst, key)) => {
                let path = format!("{}.{key}.burst", share_path(path, place));
                let least = MIN_PRIORITY_BURST;
                let burst = burst.map_or(rate.octets_in(PRIORITY_BURST_NS).max(least), |b| b.0);
                numbers::within(burst, least, crate::queue::MAX_OCTETS, "octets", &path)?;
                Reservation::Priority(Bucket::new(rate, burst))
            }
            None => Reservation::Weight(amount),
        });
        rates.push(rate.and(own));
    }
    Ok((shares, rates))
}
