//! Queues, shares and shapers as the lines of a class: `queue-limit`, `random-detect`, `bandwidth`,
//! `shape`.

use super::{Exporter, normal};
use crate::ios::wred::printed;
use router::policy::{Branch, BranchShare, Dropper, OctetSize, QueueLimit, Queueing, Span};
use router::time::Rate;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The queues of `fair-queue` in a class, powers of 2.
const FAIR_QUEUES: RangeInclusive<usize> = 16..=4_096;
/// The octets of a burst of `priority`.
const PRIORITY_BURST: RangeInclusive<u64> = 32..=2_000_000;

/// The lines of a class for its queue.
#[derive(Default)]
pub(super) struct QueueLines<'q> {
    pub(super) shape: Option<String>,
    pub(super) queue: Vec<String>,
    /// The queueing of the service policy of the class, with its path.
    pub(super) inner: Option<(&'q Queueing, String)>,
}

/// The units of `bandwidth`, of which a policy map has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BandwidthUnit {
    Kbit,
    Percent,
    Ratio,
}

/// The unit of a share, if it is a `bandwidth` line.
pub(super) fn unit(share: BranchShare) -> Option<BandwidthUnit> {
    match share {
        BranchShare::Weight(_) => Some(BandwidthUnit::Ratio),
        BranchShare::Bandwidth(_) => Some(BandwidthUnit::Kbit),
        BranchShare::Percent(_) => Some(BandwidthUnit::Percent),
        BranchShare::None | BranchShare::Priority { .. } | BranchShare::PriorityPercent { .. } => {
            None
        }
    }
}

/// The number, if it is whole and in the range.
fn whole(number: f64, most: u32) -> Option<u32> {
    (1..=most).find(|whole| f64::from(*whole).total_cmp(&number).is_eq())
}

impl Exporter<'_> {
    /// The lines of a queueing in a class.
    pub(super) fn queue<'q>(&mut self, of: &'q Queueing, path: &str) -> QueueLines<'q> {
        let mut done = QueueLines::default();
        match of {
            Queueing::Shaper { rate, burst, interval, overhead, child } => {
                if *overhead != 0 {
                    let what =
                        "IOS counts what its link has: leave it out, and take it from the rate";
                    self.fault(format!("{path}.overhead"), what);
                }
                done.shape = self.shape(*rate, *burst, *interval, path);
                let path = format!("{path}.child");
                match &**child {
                    Queueing::Shaper { .. } => done.inner = Some((&**child, path)),
                    other => {
                        let inside = self.queue(other, &path);
                        (done.queue, done.inner) = (inside.queue, inside.inner);
                    }
                }
            }
            Queueing::ClassBased { .. } => done.inner = Some((of, path.to_owned())),
            Queueing::Fifo { limit, dropper } => {
                done.queue.extend(self.limit(limit, path));
                let early = self.early(dropper, &format!("{path}.dropper"));
                if limit.octets.is_some() && !early.is_empty() {
                    let what = "IOS has queue-limit and random-detect in one unit: state packets";
                    self.fault(format!("{path}.limit.octets"), what);
                }
                done.queue.extend(early);
            }
            Queueing::FairFlows { queues, limit, by_precedence, dropper } => {
                if *by_precedence == Some(false) {
                    let what = "IOS weighs flows by their precedence: leave it out";
                    self.fault(format!("{path}.by_precedence"), what);
                }
                let has = |queues: usize| queues.is_power_of_two() && FAIR_QUEUES.contains(&queues);
                if queues.is_some_and(|queues| !has(queues)) {
                    let what = "IOS has 16, 32, 64 and so on up to 4096 queues here";
                    self.fault(format!("{path}.queues"), what);
                }
                let queues = queues.map_or_else(String::new, |queues| format!(" {queues}"));
                done.queue.push(format!("fair-queue{queues}"));
                let limit = limit.unwrap_or(normal::FLOWS_LIMIT);
                done.queue.push(format!("queue-limit {limit} packets"));
                done.queue.extend(self.early(dropper, &format!("{path}.dropper")));
            }
            Queueing::Priority { branches } => {
                let help = "give the branch a share `priority` in a class-based queueing";
                self.other_scheduler("priority", help, branches, path);
            }
            Queueing::RoundRobin { branches, .. } => {
                let help = "a class-based queueing with weights has the same shares";
                self.other_scheduler("round-robin", help, branches, path);
            }
            Queueing::WeightedFair { branches } => {
                let help = "a class-based queueing with weights does the same";
                self.other_scheduler("weighted-fair", help, branches, path);
            }
        }
        done
    }

    /// A scheduler that IOS has not; its branches may have more that IOS has not.
    fn other_scheduler(&mut self, kind: &str, help: &str, branches: &[Branch], path: &str) {
        self.fault(format!("{path}.kind"), format!("IOS has no scheduler {kind:?}: {help}"));
        for (place, branch) in branches.iter().enumerate() {
            let path = format!("{path}.branches[{place}].queueing");
            let lines = self.queue(&branch.queueing, &path);
            if let Some((inner, path)) = lines.inner {
                self.map("", &[], Some((inner, &path)), 1);
            }
        }
    }

    fn limit(&mut self, limit: &QueueLimit, path: &str) -> Option<String> {
        let path = format!("{path}.limit");
        match limit {
            QueueLimit { delay: Some((Span(time), rate)), .. } => {
                let octets = rate.octets_in(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                let what = format!("IOS limits a queue in packets or octets: octets = {octets}");
                self.fault(format!("{path}.delay"), what);
                None
            }
            QueueLimit { packets: Some(_), octets: Some(_), .. } => {
                self.fault(format!("{path}.octets"), "IOS has one limit: packets or octets");
                None
            }
            QueueLimit { octets: Some(OctetSize(octets)), .. } => {
                Some(format!("queue-limit {octets} bytes"))
            }
            QueueLimit { packets, .. } => {
                Some(format!("queue-limit {} packets", packets.unwrap_or(normal::FIFO_LIMIT)))
            }
        }
    }

    /// The `random-detect` lines of a dropper.
    fn early(&mut self, dropper: &Dropper, path: &str) -> Vec<String> {
        let kind = match dropper {
            Dropper::Tail {} => return Vec::new(),
            Dropper::Red { .. } | Dropper::Wred { .. } => match normal::functions(dropper) {
                Some((functions, exponent, ecn)) => {
                    let mut lines = vec!["random-detect dscp-based".to_owned()];
                    lines.extend(exponent.map(|exponent| {
                        format!("random-detect exponential-weighting-constant {exponent}")
                    }));
                    lines.extend(ecn.then(|| "random-detect ecn".to_owned()));
                    lines.extend(printed(&functions));
                    return lines;
                }
                None => {
                    let what =
                        "IOS has a drop function for every code point: state \"others\" as well";
                    self.fault(format!("{path}.others"), what);
                    return Vec::new();
                }
            },
            Dropper::Thresholds { .. } => "thresholds",
            Dropper::PushOut(_) => "push-out",
            Dropper::Trio { .. } => "trio",
        };
        let what = format!("IOS has no dropper {kind:?}: tail drop, red and wred only");
        self.fault(format!("{path}.kind"), what);
        Vec::new()
    }

    /// The `shape` line: Bc is what an interval grants, Be the rest of the bucket.
    fn shape(
        &mut self,
        rate: Rate,
        burst: OctetSize,
        interval: Option<Span>,
        path: &str,
    ) -> Option<String> {
        let Some(Span(interval)) = interval else {
            let what = "IOS grants tokens at intervals: state one, as in interval = \"25ms\"";
            self.fault(format!("{path}.interval"), what);
            return None;
        };
        let (nanos, second) = (interval.as_nanos(), 1_000_000_000);
        let within = nanos.clamp(1_000_000, 60 * second);
        // Bc is in whole bits, and the interval follows from it.
        let committed = (within * u128::from(rate.bits())).div_ceil(second);
        let granted = committed * second / u128::from(rate.bits());
        if granted != nanos {
            let granted = Span(Duration::from_nanos(u64::try_from(granted).unwrap_or(u64::MAX)));
            let what = format!(
                "IOS has an interval of 1 ms to a minute that is a whole number of bits at the \
                 rate, as {granted} is"
            );
            self.fault(format!("{path}.interval"), what);
            return None;
        }
        match (u128::from(burst.0) * 8).checked_sub(committed) {
            Some(excess) if (1..=crate::ios::map::MAX_BURST).contains(&burst.0) => {
                Some(format!("shape average {} {committed} {excess}", rate.bits()))
            }
            _ => {
                let octets = committed.div_ceil(8);
                let what = format!(
                    "IOS has at least the {octets} octets that an interval grants, and 1 GB at most"
                );
                self.fault(format!("{path}.burst"), what);
                None
            }
        }
    }

    /// The `bandwidth` or `priority` line of a share.
    pub(super) fn share(&mut self, share: BranchShare, named: bool, path: &str) -> Option<String> {
        let priority =
            |burst: Option<OctetSize>| burst.map_or_else(String::new, |b| format!(" {}", b.0));
        let line = match share {
            BranchShare::None => return None,
            BranchShare::Weight(weight) => match whole(weight, 1_000) {
                Some(ratio) => return Some(format!("bandwidth remaining ratio {ratio}")),
                None => {
                    self.fault(
                        format!("{path}.weight"),
                        "IOS has ratios of 1 to 1000, without a fraction",
                    );
                    return None;
                }
            },
            BranchShare::Bandwidth(rate) => {
                let kbit = self.kbit(rate, &format!("{path}.bandwidth"))?;
                return Some(format!("bandwidth {kbit}"));
            }
            BranchShare::Percent(percent) => {
                let percent = self.percent(percent, &format!("{path}.percent"))?;
                return Some(format!("bandwidth percent {percent}"));
            }
            BranchShare::Priority { rate, burst } => {
                let kbit = self.kbit(rate, &format!("{path}.priority.rate"))?;
                format!("priority {kbit}{}", priority(burst))
            }
            BranchShare::PriorityPercent { percent, burst } => {
                let percent = self.percent(percent, &format!("{path}.priority-percent.percent"))?;
                format!("priority percent {percent}{}", priority(burst))
            }
        };
        let burst = match share {
            BranchShare::Priority { burst, .. } => burst.map(|burst| (burst, "priority")),
            BranchShare::PriorityPercent { burst, .. } => {
                burst.map(|burst| (burst, "priority-percent"))
            }
            _ => None,
        };
        if let Some((burst, key)) = burst {
            self.within(burst.0, &PRIORITY_BURST, &format!("{path}.{key}.burst"), "octets");
        }
        if !named {
            self.fault(path, "class-default of IOS has no priority: give these packets a class");
        }
        Some(line)
    }

    fn percent(&mut self, percent: f64, path: &str) -> Option<u32> {
        let whole = whole(percent, 100);
        if whole.is_none() {
            self.fault(path, "IOS has 1 to 100 percent, without a fraction");
        }
        whole
    }
}
