//! Schedulers and shapers as htb classes.

use super::{NoScript, ScriptBuilder};
use router::policy::{Branch, BranchShare, Queueing};

/// The assumed rate of a line without a shaper, in bit/s: above the actual one, so that the line
/// limits.
const LINE: u64 = 10_000_000_000;
/// The rate that a class of strict priority has in any case, in bit/s.
const STRICT: u64 = 8_000;
/// The lowest rate of a class in bit/s, because htb requires a rate.
const LEAST: u64 = 1_000;
/// The quantum of a class in octets: at least a packet, at most this.
const QUANTUM: (u64, u64) = (1_514, 60_000);

/// The parameters of an htb class.
struct HtbClass {
    /// Its guaranteed rate.
    rate: u64,
    /// The rate that its branches share at best; above `rate` under strict priority.
    shared: u64,
    ceil: u64,
    prio: usize,
    quantum: u64,
    about: Option<String>,
}

impl ScriptBuilder<'_> {
    pub(super) fn root(&mut self, queueing: &Queueing) -> Result<(), NoScript> {
        let is_leaf = matches!(queueing, Queueing::Fifo { .. } | Queueing::FairFlows { .. });
        if is_leaf && self.line.is_none() {
            return self.leaf(queueing, "root", LINE);
        }
        if !self.kernel.has("htb") {
            self.leave_out("the kernel has no htb: no queueing at all");
            return Ok(());
        }
        self.leave_out("htb counts 14 octets of link header in each packet, the policy none");
        let dev = self.dev;
        self.run(&format!("tc qdisc replace dev {dev} root handle 1: htb default 0"), None)?;
        let line = self.line_rate();
        let whole = HtbClass {
            rate: line,
            shared: line,
            ceil: line,
            prio: 1,
            quantum: QUANTUM.1,
            about: None,
        };
        self.class(queueing, "1:", whole, true)?;
        Ok(())
    }

    fn line_rate(&self) -> u64 {
        self.line.map_or(LINE, |line| line.rate.bits())
    }

    /// Adds a class and its content; returns its number. The filters of the first class are at the
    /// root.
    fn class(
        &mut self,
        queueing: &Queueing,
        parent: &str,
        class: HtbClass,
        first: bool,
    ) -> Result<String, NoScript> {
        let HtbClass { mut rate, mut shared, mut ceil, prio, quantum, about } = class;
        let overhead = self.line.map_or(0, |line| line.overhead);
        let of_line = if overhead > 0 { format!(" overhead {overhead}") } else { String::new() };
        let (mut of, mut shaped) = (queueing, of_line);
        while let Queueing::Shaper { rate: to, burst, interval, overhead, child } = of {
            let to = to.bits();
            (rate, shared, ceil) = (rate.min(to), shared.min(to), ceil.min(to));
            let octets = burst.0.max(1_600);
            shaped = format!(" burst {octets}b cburst {octets}b");
            if *overhead > 0 {
                shaped.push_str(&format!(" overhead {overhead}"));
            }
            if interval.is_some() {
                self.leave_out("htb's tokens come continuously, not a burst in each interval");
            }
            of = child;
        }
        let (dev, id) = (self.dev, format!("1:{:x}", self.number()?));
        let line = format!(
            "tc class add dev {dev} parent {parent} classid {id} htb rate {rate}bit ceil {ceil}bit\
             {shaped} prio {prio} quantum {quantum}"
        );
        self.run(&line, about.as_deref())?;
        let class = HtbClass { rate, shared, ceil, prio, quantum, about };
        self.content(of, &id, &class, first)?;
        Ok(id)
    }

    /// Adds the content of the class `id`: a queue, or branches.
    fn content(
        &mut self,
        queueing: &Queueing,
        id: &str,
        class: &HtbClass,
        first: bool,
    ) -> Result<(), NoScript> {
        let HtbClass { rate, shared, ceil, .. } = *class;
        let filters = if first { "1:" } else { id };
        match queueing {
            Queueing::Fifo { .. } | Queueing::FairFlows { .. } => {
                self.leaf(queueing, &format!("parent {id}"), rate)?;
                if first {
                    self.others("1:", 1, id)?;
                }
            }
            Queueing::Priority { branches } => {
                let is_leaf = |branch: &Branch| {
                    matches!(branch.queueing, Queueing::Fifo { .. } | Queueing::FairFlows { .. })
                };
                // prio has at most 16 bands, one of them for packets that match no class.
                if self.kernel.has("prio") && branches.len() < 16 && branches.iter().all(is_leaf) {
                    self.bands(branches, id, rate)?;
                    if first {
                        self.others("1:", 1, id)?;
                    }
                } else {
                    self.branches(branches, strict(branches, ceil), id, filters)?;
                }
            }
            Queueing::RoundRobin { branches, .. } | Queueing::WeightedFair { branches } => {
                let mut given = weighted(branches, rate, shared, ceil);
                for class in &mut given {
                    class.about = Some("shares by weights are htb's rates and quanta".to_owned());
                }
                self.branches(branches, given, id, filters)?;
            }
            Queueing::ClassBased { rate: own, branches } => {
                let shared = own.map_or(shared, |own| own.bits().min(shared));
                let given = weighted(branches, rate.min(shared), shared, ceil);
                self.branches(branches, given, id, filters)?;
            }
            // A shaper is the rate of the class.
            Queueing::Shaper { .. } => {}
        }
        Ok(())
    }

    fn branches(
        &mut self,
        branches: &[Branch],
        given: Vec<HtbClass>,
        parent: &str,
        filters: &str,
    ) -> Result<(), NoScript> {
        let (mut place, mut others) = (1, None);
        for (branch, class) in branches.iter().zip(given) {
            let id = self.class(&branch.queueing, parent, class, false)?;
            match &branch.class {
                Some(name) => place = self.filters(filters, place, name, &id)?,
                None => others = Some(id),
            }
        }
        if others.is_none() {
            // As in a router: packets that match no class have a queue of their own, the last one.
            let class = HtbClass {
                rate: LEAST,
                shared: LEAST,
                ceil: self.line_rate(),
                prio: 7,
                quantum: QUANTUM.0,
                about: Some("for what belongs to no class".to_owned()),
            };
            others = Some(self.class(&Queueing::default(), parent, class, false)?);
        }
        match others {
            Some(id) => self.others(filters, place, &id),
            None => Ok(()),
        }
    }

    /// Strict priority among queues, by the discipline prio.
    fn bands(&mut self, branches: &[Branch], parent: &str, rate: u64) -> Result<(), NoScript> {
        let (dev, handle) = (self.dev, format!("{:x}:", 0x8000 + self.number()?));
        let has_others = branches.iter().any(|branch| branch.class.is_none());
        let bands = (branches.len() + usize::from(!has_others)).max(2);
        let map = vec![(bands - 1).to_string(); 16].join(" ");
        let line = format!(
            "tc qdisc add dev {dev} parent {parent} handle {handle} prio bands {bands} priomap {map}"
        );
        self.run(&line, None)?;
        let (mut place, mut others) = (1, None);
        for (number, branch) in branches.iter().enumerate() {
            let band = format!("{handle}{:x}", number + 1);
            self.leaf(&branch.queueing, &format!("parent {band}"), rate)?;
            match &branch.class {
                Some(name) => place = self.filters(&handle, place, name, &band)?,
                None => others = Some(band),
            }
        }
        self.others(&handle, place, &others.unwrap_or_else(|| format!("{handle}{bands:x}")))
    }
}

/// Strict priority with htb: the first class may borrow everything before the others.
fn strict(branches: &[Branch], ceil: u64) -> Vec<HtbClass> {
    let about = "strict only in what is borrowed: each class has its first kilobits anyhow";
    let class = |number: usize| HtbClass {
        rate: STRICT.min(ceil),
        shared: ceil,
        ceil,
        // htb has eight priorities.
        prio: number.min(7),
        quantum: QUANTUM.0,
        about: Some(about.to_owned()),
    };
    (0..branches.len()).map(class).collect()
}

/// Shares of `shared` as rates and quanta: reservations, and the rest by weights. If `rate` is
/// lower, each class has its share of `rate` in any case, and the quanta divide what is borrowed.
fn weighted(branches: &[Branch], rate: u64, shared: u64, ceil: u64) -> Vec<HtbClass> {
    let reserved = |share: &BranchShare| match share {
        BranchShare::Bandwidth(own) | BranchShare::Priority { rate: own, .. } => Some(own.bits()),
        BranchShare::Percent(percent) | BranchShare::PriorityPercent { percent, .. } => {
            Some((shared as f64 * percent / 100.0) as u64)
        }
        BranchShare::Weight(_) | BranchShare::None => None,
    };
    let weight = |share: &BranchShare| match share {
        BranchShare::Weight(weight) => *weight,
        BranchShare::None => 1.0,
        _ => 0.0,
    };
    let taken = branches.iter().filter_map(|branch| reserved(&branch.share));
    let left = shared.saturating_sub(taken.fold(0, u64::saturating_add)) as f64;
    let weights: f64 = branches.iter().map(|branch| weight(&branch.share)).sum();
    let shares: Vec<u64> = branches
        .iter()
        .map(|branch| {
            let of_rest = || (left * weight(&branch.share) / weights.max(f64::MIN_POSITIVE)) as u64;
            reserved(&branch.share).unwrap_or_else(of_rest).clamp(LEAST.min(ceil), ceil)
        })
        .collect();
    let least = shares.iter().copied().min().unwrap_or(1).max(1);
    let at_any_time = |share: u64| {
        let part = u128::from(share) * u128::from(rate) / u128::from(shared.max(1));
        u64::try_from(part).unwrap_or(u64::MAX).clamp(LEAST.min(ceil), ceil)
    };
    let classes = branches.iter().zip(shares).map(|(branch, share)| {
        let quantum = u128::from(QUANTUM.0) * u128::from(share) / u128::from(least);
        let quantum = u64::try_from(quantum).unwrap_or(QUANTUM.1).clamp(QUANTUM.0, QUANTUM.1);
        let rate = at_any_time(share);
        match branch.share {
            BranchShare::Priority { .. } | BranchShare::PriorityPercent { .. } => HtbClass {
                rate,
                shared: share,
                ceil: share,
                prio: 0,
                quantum,
                about: Some("priority is policed at all times, not only while others wait".into()),
            },
            _ => HtbClass { rate, shared: share, ceil, prio: 1, quantum, about: None },
        }
    });
    classes.collect()
}
