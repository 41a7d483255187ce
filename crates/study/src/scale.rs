//! A faster network: every rate times a factor, every delay divided by it.
//!
//! What is counted in packets or octets stays, so queues, buckets and windows are as long as before
//! and a run takes a `factor`th of its time. Timers of the programs themselves (retransmission
//! timeouts of TCP, RTSE's) do not follow; what they decide comes out otherwise.

use crate::Planned;
use crate::file::Start;
use network::Topology;
use router::Rate;
use router::policy::{Action, Meter, Policy, Queueing, Share, Span, Step};
use std::time::Duration;

/// Most that a network is made faster.
pub const FACTOR_MAX: u32 = 1_000;
/// What a run may take beside what its network takes: programs start as fast as ever.
const SLACK: Duration = Duration::from_secs(30);

/// A rate would be beyond 1 Tbit/s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rate} times {factor} is beyond 1000Gbit")]
pub struct TooFast {
    rate: Rate,
    factor: u32,
}

/// Makes things faster.
#[derive(Clone, Copy, Debug)]
struct Faster(u32);

impl Planned {
    /// The same run on a network that is faster by a factor from 1 to [`FACTOR_MAX`].
    ///
    /// # Errors
    /// A rate would be beyond 1 Tbit/s.
    pub fn faster(&self, factor: u32) -> Result<Planned, TooFast> {
        let by = Faster(factor.clamp(1, FACTOR_MAX));
        let mut planned = self.clone();
        by.topology(&mut planned.topology)?;
        for policy in planned.policies.values_mut() {
            by.policy(policy)?;
        }
        for message in &mut planned.messages {
            match &mut message.start {
                Start::At(at) => by.span(at),
                Start::After(after) => by.span(&mut after.delay),
            }
        }
        for load in &mut planned.loads {
            if let Some(rate) = &mut load.rate {
                by.rate(rate)?;
            }
            by.span(&mut load.start);
            if let Some(time) = &mut load.time {
                by.span(time);
            }
        }
        if factor > 1 {
            planned.limit = planned.limit / by.0 + SLACK;
        }
        Ok(planned)
    }
}

impl Faster {
    fn rate(self, rate: &mut Rate) -> Result<(), TooFast> {
        let faster = rate.bits().checked_mul(self.0.into()).and_then(Rate::from_bits);
        *rate = faster.ok_or(TooFast { rate: *rate, factor: self.0 })?;
        Ok(())
    }

    fn span(self, span: &mut Span) {
        span.0 /= self.0;
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

    fn policy(self, policy: &mut Policy) -> Result<(), TooFast> {
        let flows = policy.tables.values_mut().flat_map(|table| &mut table.flows);
        for rate in flows.filter_map(|flow| flow.rate.as_mut()) {
            self.rate(rate)?;
        }
        for chain in policy.chains.values_mut() {
            self.steps(chain)?;
        }
        policy.queueings.values_mut().try_for_each(|queueing| self.queueing(queueing))
    }

    fn steps(self, steps: &mut [Step]) -> Result<(), TooFast> {
        for step in steps {
            match step {
                Step::Mark { .. } | Step::Drop { .. } | Step::MarkFlows { .. } => {}
                Step::Meter { meter, green, yellow, red, .. } => {
                    let _: [&Action; 3] = [green, yellow, red];
                    self.meter(meter)?;
                }
                Step::Demote(demotion) => {
                    demotion.rates.iter_mut().try_for_each(|rate| self.rate(rate))?;
                }
                // Its flows have the rates.
                Step::MeterFlows { .. } => {}
                Step::ShapeFlows { delay, .. } => {
                    if let Some(delay) = delay {
                        self.span(delay);
                    }
                }
                Step::Shape { rate, .. } => self.rate(rate)?,
                Step::FirstMatch { classes } => {
                    classes.iter_mut().try_for_each(|case| self.steps(&mut case.steps))?;
                }
            }
        }
        Ok(())
    }

    fn meter(self, meter: &mut Meter) -> Result<(), TooFast> {
        match meter {
            Meter::TokenBucket { rate, .. } => self.rate(rate),
            Meter::SingleRate { cir, .. } => self.rate(cir),
            Meter::TwoRate { cir, pir, .. } => {
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
                Share::None
                | Share::Weight(_)
                | Share::Percent(_)
                | Share::PriorityPercent { .. } => {}
                Share::Bandwidth(rate) | Share::Priority { rate, .. } => self.rate(rate)?,
            }
            self.queueing(&mut branch.queueing)?;
        }
        Ok(())
    }
}
