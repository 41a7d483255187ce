//! Random early detection (Floyd and Jacobson 1993), and with a line for each code point (Cisco's
//! weighted RED, `random-detect dscp-based`).
//!
//! A line says with which probability p a packet is dropped by the average queue: none below `min`,
//! rising to 1/`denominator` at `max`, 1 from there on (*forced*). Below `max`, packets are dropped
//! evenly rather than each by its own chance (Floyd and Jacobson, section 7, method 2): the packet
//! after c that were kept since the last drop is dropped with p / (2 - (1 + c) p), which makes the
//! packets from one drop to the next uniformly many between 1 and 2/p - 1. Their mean is then 1/p, the
//! share of the line as Cisco states it; Floyd and Jacobson's own p / (1 - c p) drops up to twice as
//! many. Where p is above 1/2, each packet has its own chance: there is nothing left to spread.

use super::average::{Average, Idle, ONE};
use super::early::Disposition;
use crate::count::Counters;
use crate::packet::Packet;
use crate::policy::WredLine;
use crate::time::Time;
use base::rng::Rng;
use dscp::Dscp;
use std::collections::BTreeMap;

/// A drop function with the memory of what it did.
#[derive(Clone, Debug)]
pub(crate) struct Lot {
    /// Where dropping begins, and where it becomes certain, in the units of the average.
    min: u64,
    max: u64,
    /// The probability just below `max` is the first over the second.
    most: (u64, u64),
    /// Packets kept since the last drop.
    kept: u64,
}

/// What a lot fell on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    Keep,
    Early,
    Forced,
}

impl Lot {
    /// `min` and `max` in the units of an average; the probability just below `max` is the first of
    /// `most` over the second, neither above 65,536.
    pub(crate) fn new(min: u64, max: u64, most: (u64, u64)) -> Lot {
        Lot { min, max, most: (most.0, most.1.max(1)), kept: 0 }
    }

    /// What happens to the next packet at this average.
    pub(crate) fn draw(&mut self, average: u64, rng: &mut Rng) -> Drawn {
        if average >= self.max {
            self.kept = 0;
            return Drawn::Forced;
        }
        if average <= self.min {
            self.kept = 0;
            return Drawn::Keep;
        }
        // p = above / whole, in steps of 2^-16 packets, so that all fits in 64 bits.
        let above = ((average - self.min) >> 16).saturating_mul(self.most.0);
        let whole = ((self.max - self.min) >> 16).saturating_mul(self.most.1);
        let left = match above.saturating_mul(2) > whole {
            true => whole,
            false => whole.saturating_mul(2).saturating_sub(above.saturating_mul(self.kept + 1)),
        };
        if above > 0 && (left <= above || rng.below(left) < above) {
            self.kept = 0;
            return Drawn::Early;
        }
        self.kept += 1;
        Drawn::Keep
    }
}

impl From<&WredLine> for Lot {
    fn from(line: &WredLine) -> Lot {
        let (min, max) = (u64::from(line.min) * ONE, u64::from(line.max) * ONE);
        Lot::new(min, max, (1, line.denominator.into()))
    }
}

/// RED, or WRED: one average for all, a line by code point.
#[derive(Debug)]
pub(crate) struct Red {
    kind: &'static str,
    average: Average,
    idle: Idle,
    lots: Vec<Lot>,
    /// By code point: the place of its line; beyond them for none.
    place: [u8; 64],
    ecn: bool,
    rng: Rng,
}

impl Red {
    /// RED: this line for all.
    pub(crate) fn plain(line: &WredLine, exponent: u8, ecn: bool, rng: Rng) -> Red {
        let mut red = Red::wred(&BTreeMap::new(), Some(line), exponent, ecn, rng);
        red.kind = "red";
        red
    }

    /// WRED: `others` is for code points without a line of their own; without it they are not
    /// dropped here.
    pub(crate) fn wred(
        lines: &BTreeMap<Dscp, WredLine>,
        others: Option<&WredLine>,
        exponent: u8,
        ecn: bool,
        rng: Rng,
    ) -> Red {
        // At most 64 lines, so that each has a place below 65, and no place leads to none.
        let mut place = [if others.is_some() { 0 } else { u8::MAX }; 64];
        let mut lots: Vec<Lot> = others.into_iter().map(Lot::from).collect();
        for (dscp, line) in lines {
            if let Some(place) = place.get_mut(usize::from(dscp.number())) {
                *place = u8::try_from(lots.len()).unwrap_or(u8::MAX);
            }
            lots.push(Lot::from(line));
        }
        let average = Average::new(exponent);
        Red { kind: "wred", average, idle: Idle::default(), lots, place, ecn, rng }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// A packet comes while so many wait.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &Packet,
        waiting: usize,
        counters: &mut Counters,
    ) -> Disposition {
        match waiting {
            0 => self.average.idle(self.idle.ended(now)),
            _ => self.average.meet(waiting),
        }
        counters.set_average(0, self.average.packets());
        let place = self.place.get(usize::from(packet.dscp().number())).copied();
        let lot = place.and_then(|place| self.lots.get_mut(usize::from(place)));
        let Some(lot) = lot else { return Disposition::Keep };
        Disposition::of(lot.draw(self.average.value(), &mut self.rng), packet, self.ecn)
    }

    pub(crate) fn went(&mut self, now: Time, left: usize) {
        self.idle.went(now, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Cause;
    use crate::testing::{packet, with_ecn};

    const LINE: WredLine = WredLine { min: 10, max: 20, denominator: 10 };

    /// Of so many packets, how many are dropped early, at a constant average.
    fn early(lot: &mut Lot, average: f64, packets: usize) -> usize {
        let mut rng = Rng::new(4);
        let average = (average * ONE as f64) as u64;
        (0..packets).filter(|_| lot.draw(average, &mut rng) == Drawn::Early).count()
    }

    #[test]
    fn the_share_dropped_is_that_of_the_line() {
        for (average, share) in
            [(9.0, 0.0), (10.0, 0.0), (12.5, 0.025), (15.0, 0.05), (19.9, 0.099)]
        {
            let dropped = early(&mut Lot::from(&LINE), average, 100_000) as f64 / 1e5;
            assert!((dropped - share).abs() <= share * 0.05, "{average}: {dropped} for {share}");
        }
        let mut steep = Lot::from(&WredLine { denominator: 1, ..LINE });
        let dropped = early(&mut steep, 18.0, 100_000) as f64 / 1e5;
        assert!((dropped - 0.8).abs() < 0.02, "{dropped}");
        assert_eq!(steep.draw(20 * ONE, &mut Rng::new(1)), Drawn::Forced);
    }

    #[test]
    fn drops_are_spread_evenly() {
        // One in 20: between two drops lie fewer than 40 packets.
        let mut lot = Lot::from(&LINE);
        let mut rng = Rng::new(9);
        let mut kept = 0;
        let mut most = 0;
        for _ in 0..50_000 {
            kept = if lot.draw(15 * ONE, &mut rng) == Drawn::Early { 0 } else { kept + 1 };
            most = most.max(kept);
        }
        assert!((30..40).contains(&most), "{most}");
    }

    /// A queue of constantly `waiting` packets, as RED sees it: what becomes of 20,000 more.
    fn dispositions(red: &mut Red, dscp: Dscp, waiting: usize, ecn: u8) -> Vec<Disposition> {
        let mut counters = Counters::default();
        let one =
            |_| red.judge(Time::ZERO, &with_ecn(dscp, 100, 1, 0, ecn), waiting, &mut counters);
        (0..20_000).map(one).skip(10_000).collect()
    }

    #[test]
    fn each_code_point_meets_its_line() {
        let lines = BTreeMap::from([
            (Dscp::CS0, WredLine { min: 15, max: 20, denominator: 10 }),
            (Dscp::CS1, WredLine { min: 30, max: 40, denominator: 10 }),
        ]);
        let red = || Red::wred(&lines, None, 9, false, Rng::new(3));
        let share = |dscp, disposition| {
            let dispositions = dispositions(&mut red(), dscp, 35, 0);
            dispositions.iter().filter(|one| **one == disposition).count() as f64
                / dispositions.len() as f64
        };
        assert_eq!(share(Dscp::CS0, Disposition::Drop(Cause::Forced)), 1.0);
        assert!((share(Dscp::CS1, Disposition::Drop(Cause::Early)) - 0.05).abs() < 0.005);
        assert_eq!(share(Dscp::CS6, Disposition::Keep), 1.0, "no line, no drop");
    }

    #[test]
    fn capable_transports_are_marked_instead() {
        let mut red = Red::plain(&LINE, 9, true, Rng::new(3));
        let capable = dispositions(&mut red, Dscp::CS0, 15, 2);
        assert!(!capable.iter().any(|disposition| matches!(disposition, Disposition::Drop(_))));
        let marked =
            capable.iter().filter(|disposition| **disposition == Disposition::Mark).count();
        assert!((450..550).contains(&marked), "{marked}");
        let others = dispositions(&mut red, Dscp::CS0, 15, 0);
        assert!(
            others.contains(&Disposition::Drop(Cause::Early))
                && !others.contains(&Disposition::Mark)
        );
        let forced = dispositions(&mut red, Dscp::CS0, 40, 2);
        assert!(
            forced.iter().all(|disposition| *disposition == Disposition::Drop(Cause::Forced)),
            "RFC 3168 7"
        );
    }

    #[test]
    fn the_same_seed_drops_the_same_packets() {
        let run = |seed| {
            let mut red = Red::plain(&LINE, 5, false, Rng::new(seed));
            dispositions(&mut red, Dscp::EF, 15, 0)
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn idleness_lets_the_average_decay() {
        let mut red = Red::plain(&LINE, 9, false, Rng::new(3));
        let mut counters = Counters::default();
        for _ in 0..10_000 {
            red.judge(Time::ZERO, &packet(Dscp::CS0, 100, 1, 0), 18, &mut counters);
        }
        for left in (0..18).rev() {
            red.went(Time(18_000 - left as u64 * 1_000), left);
        }
        // 512 transmission times: (1 - 1/512)^512 is 0.3675.
        red.judge(Time(18_000 + 512_000), &packet(Dscp::CS0, 100, 1, 0), 0, &mut counters);
        assert!((counters.averages()[0] - 18.0 * 0.3675).abs() < 0.01, "{:?}", counters.averages());
    }
}
