//! A faster or slower network: every rate times a factor, every delay divided by it.
//!
//! What is counted in packets or octets stays, so queues, buckets and windows are as long as before
//! and a run takes a `factor`th of its time. Timers of the programs themselves (retransmission
//! timeouts of TCP, RTSE's) do not follow; what they decide comes out otherwise. A run of loads alone
//! on a slower network lasts as long as on the study's: fewer packets pass in the same time.

use crate::Planned;
use crate::file::StudyStart;
use network::Topology;
use router::Rate;
use router::policy::{
    BranchShare, ChainStep, MeterAction, MeterProfile, Queueing, RouterPolicy, Span,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Thousandths of one.
const ONE: u32 = 1_000;
/// Time that a run may take in addition to its network: programs do not start faster on a faster network.
const SLACK: Duration = Duration::from_secs(30);

/// How much faster a network is than its study's: from 0.001 to 1,000 in steps of a thousandth; below
/// one it is slower. In JSON and on command lines a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u32);

impl Scale {
    /// As the study has it.
    pub const ONE: Scale = Scale(ONE);
    /// The fastest.
    pub const MAX: Scale = Scale(ONE * ONE);

    /// A whole factor; the nearest there is where it is 0 or beyond 1,000.
    pub fn whole(factor: u32) -> Scale {
        Scale(factor.clamp(1, ONE) * ONE)
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// A rate of the study on this network; `None` where it is beyond what a rate can be.
    fn rate(self, rate: Rate) -> Option<Rate> {
        let bits = u128::from(rate.bits()) * u128::from(self.0) / u128::from(ONE);
        Rate::from_bits(u64::try_from(bits.max(1)).ok()?)
    }

    /// What a time of the study is on this network.
    pub fn time(self, time: Duration) -> Duration {
        let nanos = time.as_nanos().saturating_mul(ONE.into()) / u128::from(self.0.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Default for Scale {
    fn default() -> Scale {
        Scale::ONE
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.factor())
    }
}

/// No factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number from 0.001 to 1000, with up to three digits behind the point")]
pub struct NoScale;

impl FromStr for Scale {
    type Err = NoScale;

    fn from_str(text: &str) -> Result<Scale, NoScale> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 3 {
            return Err(NoScale);
        }
        let part: u32 = format!("{part:0<3}").parse().map_err(|_| NoScale)?;
        let whole: u32 = whole.parse().map_err(|_| NoScale)?;
        let thousandths = whole.checked_mul(ONE).and_then(|whole| whole.checked_add(part));
        let scale = thousandths.map(Scale).filter(|of| (1..=Scale::MAX.0).contains(&of.0));
        scale.ok_or(NoScale)
    }
}

impl Serialize for Scale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(ONE) {
            serializer.serialize_u32(self.0 / ONE)
        } else {
            serializer.serialize_f64(self.factor())
        }
    }
}

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scale, D::Error> {
        let factor = f64::deserialize(deserializer)?;
        let thousandths = (factor * f64::from(ONE)).round();
        if !(1.0..=f64::from(Scale::MAX.0)).contains(&thousandths) {
            return Err(D::Error::custom(NoScale));
        }
        Ok(Scale(thousandths as u32))
    }
}

/// A rate would be beyond 1 Tbit/s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rate} times {factor} is beyond 1000Gbit")]
pub struct TooFast {
    rate: Rate,
    factor: Scale,
}

/// Makes things faster.
#[derive(Clone, Copy, Debug)]
struct Faster(Scale);

impl Planned {
    /// The same run on a network that is faster by a factor. Where it is slower, the loads of a run
    /// without messages start and end when they did.
    ///
    /// # Errors
    /// A rate would be beyond 1 Tbit/s.
    pub fn faster(&self, factor: Scale) -> Result<Planned, TooFast> {
        let by = Faster(factor);
        let mut planned = self.clone();
        by.topology(&mut planned.topology)?;
        for policy in planned.policies.values_mut() {
            by.policy(policy)?;
        }
        for message in &mut planned.messages {
            match &mut message.start {
                StudyStart::At(at) => by.span(at),
                StudyStart::After(after) => by.span(&mut after.delay),
            }
        }
        let keeps_time = factor <= Scale::ONE && self.messages.is_empty();
        for load in &mut planned.loads {
            if let Some(rate) = &mut load.rate {
                by.rate(rate)?;
            }
            if keeps_time {
                continue;
            }
            by.span(&mut load.start);
            if let Some(probing) = &mut load.probing {
                by.span(probing);
            }
            if let Some(time) = &mut load.time {
                by.span(time);
            }
        }
        if factor != Scale::ONE && !keeps_time {
            planned.limit = factor.time(planned.limit) + SLACK;
        }
        Ok(planned)
    }
}

impl Faster {
    fn rate(self, rate: &mut Rate) -> Result<(), TooFast> {
        *rate = self.0.rate(*rate).ok_or(TooFast { rate: *rate, factor: self.0 })?;
        Ok(())
    }

    fn span(self, span: &mut Span) {
        span.0 = self.0.time(span.0);
    }

    fn topology(self, topology: &mut Topology) -> Result<(), TooFast> {
        for link in &mut topology.links {
            if let Some(rate) = &mut link.rate {
                self.rate(rate)?;
            }
            self.span(&mut link.delay);
            self.span(&mut link.jitter);
        }
        Ok(())
    }

    fn policy(self, policy: &mut RouterPolicy) -> Result<(), TooFast> {
        let flows = policy.tables.values_mut().flat_map(|table| &mut table.flows);
        for rate in flows.filter_map(|flow| flow.rate.as_mut()) {
            self.rate(rate)?;
        }
        for chain in policy.chains.values_mut() {
            self.steps(chain)?;
        }
        policy.queueings.values_mut().try_for_each(|queueing| self.queueing(queueing))
    }

    fn steps(self, steps: &mut [ChainStep]) -> Result<(), TooFast> {
        for step in steps {
            match step {
                ChainStep::Mark { .. } | ChainStep::Drop { .. } | ChainStep::MarkFlows { .. } => {}
                ChainStep::Meter { meter, green, yellow, red, .. } => {
                    let _: [&MeterAction; 3] = [green, yellow, red];
                    self.meter(meter)?;
                }
                ChainStep::Demote(demotion) => {
                    demotion.rates.iter_mut().try_for_each(|rate| self.rate(rate))?;
                }
                // Its flows have the rates.
                ChainStep::MeterFlows { .. } => {}
                ChainStep::ShapeFlows { delay, .. } => {
                    if let Some(delay) = delay {
                        self.span(delay);
                    }
                }
                ChainStep::Shape { rate, .. } => self.rate(rate)?,
                ChainStep::FirstMatch { classes } => {
                    classes.iter_mut().try_for_each(|case| self.steps(&mut case.steps))?;
                }
            }
        }
        Ok(())
    }

    fn meter(self, meter: &mut MeterProfile) -> Result<(), TooFast> {
        match meter {
            MeterProfile::TokenBucket { rate, .. } => self.rate(rate),
            MeterProfile::SingleRate { cir, .. } => self.rate(cir),
            MeterProfile::TwoRate { cir, pir, .. } => {
                self.rate(cir)?;
                self.rate(pir)
            }
        }
    }

    fn queueing(self, queueing: &mut Queueing) -> Result<(), TooFast> {
        let branches = match queueing {
            Queueing::Fifo { limit, .. } => {
                if let Some((delay, rate)) = &mut limit.delay {
                    self.span(delay);
                    self.rate(rate)?;
                }
                return Ok(());
            }
            Queueing::FairFlows { .. } => return Ok(()),
            Queueing::Shaper { rate, interval, child, .. } => {
                self.rate(rate)?;
                if let Some(interval) = interval {
                    self.span(interval);
                }
                return self.queueing(child);
            }
            Queueing::ClassBased { rate, branches } => {
                if let Some(rate) = rate {
                    self.rate(rate)?;
                }
                branches
            }
            Queueing::Priority { branches }
            | Queueing::RoundRobin { branches, .. }
            | Queueing::WeightedFair { branches } => branches,
        };
        for branch in branches {
            match &mut branch.share {
                BranchShare::None
                | BranchShare::Weight(_)
                | BranchShare::Percent(_)
                | BranchShare::PriorityPercent { .. } => {}
                BranchShare::Bandwidth(rate) | BranchShare::Priority { rate, .. } => {
                    self.rate(rate)?;
                }
            }
            self.queueing(&mut branch.queueing)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_read_as_it_is_written() {
        for (text, json) in [("1", "1"), ("10", "10"), ("0.1", "0.1"), ("2.5", "2.5")] {
            let scale: Scale = text.parse().unwrap();
            assert_eq!(scale.to_string(), text);
            assert_eq!(serde_json::to_string(&scale).unwrap(), json);
            assert_eq!(serde_json::from_str::<Scale>(json).unwrap(), scale);
        }
        for text in ["0", "0.0001", "-1", "1000.001", "1e3", "", ".", "1.", "x", "9999999999"] {
            assert_eq!(text.parse::<Scale>(), Err(NoScale), "{text}");
        }
        assert!(serde_json::from_str::<Scale>("0").is_err());
        assert!("0.1".parse::<Scale>().unwrap() < Scale::ONE);
    }

    #[test]
    fn rates_go_up_as_times_go_down() {
        let tenth: Scale = "0.1".parse().unwrap();
        let rate = Rate::from_bits(5_000_000).unwrap();
        assert_eq!(tenth.rate(rate), Rate::from_bits(500_000));
        assert_eq!(tenth.time(Duration::from_millis(25)), Duration::from_millis(250));
        assert_eq!(Scale::whole(10).time(Duration::from_millis(25)), Duration::from_micros(2_500));
        assert_eq!(Scale::MAX.rate(Rate::from_bits(2_000_000_000).unwrap()), None);
    }
}
