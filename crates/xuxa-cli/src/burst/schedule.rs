//! The messages of a plan: a pure function of the plan and its seed.

use super::plan::{BurstPlan, Group, LAST_START, MAX_OCTETS};
use super::value::{Size, Spacing};
use crate::profile::Wrong;
use anyhow::Result;
use base::Precedence;
use base::rng::Rng;
use serde::Serialize;
use std::time::Duration;

/// One planned message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Planned {
    /// From 0, over all groups.
    pub number: u32,
    /// Index of its group.
    #[serde(skip)]
    pub group: usize,
    pub precedence: Precedence,
    /// Octets of text.
    pub size: u64,
    /// When it starts, counted from its group's begin; `None`: once the one before is answered.
    #[serde(
        rename = "start_ms",
        serialize_with = "in_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub start: Option<Duration>,
}

fn in_ms<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_f64(time.as_secs_f64() * 1e3),
        None => serializer.serialize_none(),
    }
}

/// All messages, group by group, each group in the order of its starts.
///
/// # Errors
/// [`Wrong`]: their sum is too large, or one would start too late.
pub(crate) fn messages(plan: &BurstPlan) -> Result<Vec<Planned>> {
    let mut all = Vec::with_capacity(usize::try_from(plan.count()).unwrap_or(0));
    let mut octets = 0u64;
    for (index, group) in plan.groups.iter().enumerate() {
        let mut rng = rng(plan.seed, &group.name);
        let mut start = group.start;
        for within in 0..group.count {
            // Three numbers for each message, used or not: a change of one key does not change
            // the values that other keys draw.
            let draws = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
            let begins = within % group.parallel == 0;
            if within > 0 && begins {
                start += gap(group.spacing, draws[2]);
            }
            let waits = group.spacing == Spacing::None && within >= group.parallel;
            let message = message(group, draws);
            octets = octets.saturating_add(message.1);
            if start > LAST_START {
                let what = "its messages start over more than a day: lower count, spacing or start";
                return Err(Wrong(format!("group {:?}: {what}", group.name)).into());
            }
            all.push(Planned {
                number: u32::try_from(all.len()).unwrap_or(u32::MAX),
                group: index,
                precedence: message.0,
                size: message.1,
                start: (!waits).then_some(start),
            });
        }
    }
    if octets > MAX_OCTETS {
        let most = MAX_OCTETS / 1_000_000_000;
        let what = format!("{} MB in all: at most {most} GB", octets / 1_000_000);
        return Err(Wrong(what).into());
    }
    Ok(all)
}

/// The random numbers of a group: they do not depend on other groups.
fn rng(seed: u64, name: &str) -> Rng {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Rng::new(Rng::new(seed ^ hash).next_u64())
}

fn message(group: &Group, draws: [u64; 3]) -> (Precedence, u64) {
    let precedence = group.precedence.choose(below(draws[0], group.precedence.total()));
    let size = match &group.size {
        Size::OneOf(sizes) => sizes.choose(below(draws[1], sizes.total())).unwrap_or(0),
        Size::Range { from, to } => {
            let (low, high) = ((*from as f64).ln(), (*to as f64).ln());
            let size = (low + unit(draws[1]) * (high - low)).exp().round();
            (size as u64).clamp(*from, *to)
        }
    };
    (precedence.unwrap_or(Precedence::Routine), size)
}

/// The time from one start to the next.
fn gap(spacing: Spacing, draw: u64) -> Duration {
    match spacing {
        Spacing::None => Duration::ZERO,
        Spacing::Fixed(time) => time,
        Spacing::Poisson(mean) => {
            // Between 2^-53 and 1, so the logarithm is at most 37.
            let exponential = -(1.0 - unit(draw)).ln();
            Duration::from_micros((mean.as_secs_f64() * exponential * 1e6).round() as u64)
        }
    }
}

/// A number below `bound`.
fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

/// A number from 0 to below 1.
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
