//! Random early detection (Floyd and Jacobson 1993), and weighted RED with a drop function for each
//! code point (Cisco's `random-detect dscp-based`).
//!
//! A drop function gives the probability p of a drop by the average queue: 0 below `min`, rising to
//! 1/`denominator` at `max`, and 1 at `max` and above (*forced*). Below `max`, drops are spread
//! evenly (Floyd and Jacobson, section 7, method 2): after c packets kept since the last drop, the
//! next one is dropped with probability p / (2 - (1 + c) p). So the distance between drops is
//! uniformly distributed from 1 to 2/p - 1 packets. Its mean is 1/p, so the fraction of dropped
//! packets is p, as Cisco states it; with Floyd and Jacobson's own p / (1 - c p), up to twice as
//! many are dropped. Where p is above 1/2, each packet is dropped independently, as there is
//! nothing to spread.

use super::average::{Average, IdleTime, ONE};
use super::early::EarlyVerdict;
use crate::count::PacketCounters;
use crate::packet::Packet;
use crate::policy::WredLine;
use crate::time::Time;
use base::rng::Rng;
use dscp::Dscp;
use std::collections::BTreeMap;

/// A drop function, with the packets kept since its last drop.
#[derive(Clone, Debug)]
pub(crate) struct DropFunction {
    /// The average queue at which drops begin, and at which every packet is dropped, in the units
    /// of [`super::average::Average`].
    min: u64,
    max: u64,
    /// The probability just below `max`, as numerator and denominator.
    most: (u64, u64),
    /// Packets kept since the last drop.
    kept: u64,
}

/// The result of a drop function for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropDraw {
    Keep,
    Early,
    Forced,
}

impl DropFunction {
    /// `min` and `max` are in the units of an average queue; `most` is the probability just below
    /// `max`, as numerator and denominator, both at most 65,536.
    pub(crate) fn new(min: u64, max: u64, most: (u64, u64)) -> DropFunction {
        DropFunction { min, max, most: (most.0, most.1.max(1)), kept: 0 }
    }

    /// The result for the next packet at this average queue.
    pub(crate) fn draw(&mut self, average: u64, rng: &mut Rng) -> DropDraw {
        if average >= self.max {
            self.kept = 0;
            return DropDraw::Forced;
        }
        if average <= self.min {
            self.kept = 0;
            return DropDraw::Keep;
        }
        // p = above / whole, in units of 2^-16 packets, so that the products fit in 64 bits.
        let above = ((average - self.min) >> 16).saturating_mul(self.most.0);
        let whole = ((self.max - self.min) >> 16).saturating_mul(self.most.1);
        let left = match above.saturating_mul(2) > whole {
            true => whole,
            false => whole.saturating_mul(2).saturating_sub(above.saturating_mul(self.kept + 1)),
        };
        if above > 0 && (left <= above || rng.below(left) < above) {
            self.kept = 0;
            return DropDraw::Early;
        }
        self.kept += 1;
        DropDraw::Keep
    }
}

impl From<&WredLine> for DropFunction {
    fn from(line: &WredLine) -> DropFunction {
        let (min, max) = (u64::from(line.min) * ONE, u64::from(line.max) * ONE);
        DropFunction::new(min, max, (1, line.denominator.into()))
    }
}

/// RED or WRED: one average queue for all packets, a drop function for each code point.
#[derive(Debug)]
pub(crate) struct Red {
    kind: &'static str,
    average: Average,
    idle: IdleTime,
    functions: Vec<DropFunction>,
    /// The position of the drop function of each code point; out of range for none.
    place: [u8; 64],
    ecn: bool,
    rng: Rng,
}

impl Red {
    /// RED: one drop function for all code points.
    pub(crate) fn plain(line: &WredLine, exponent: u8, ecn: bool, rng: Rng) -> Red {
        let mut red = Red::wred(&BTreeMap::new(), Some(line), exponent, ecn, rng);
        red.kind = "red";
        red
    }

    /// WRED. `others` applies to code points without a drop function of their own; if absent, these
    /// are not dropped here.
    pub(crate) fn wred(
        lines: &BTreeMap<Dscp, WredLine>,
        others: Option<&WredLine>,
        exponent: u8,
        ecn: bool,
        rng: Rng,
    ) -> Red {
        // At most 64 functions, so each position is below 65, and `u8::MAX` means none.
        let mut place = [if others.is_some() { 0 } else { u8::MAX }; 64];
        let mut functions: Vec<DropFunction> = others.into_iter().map(DropFunction::from).collect();
        for (dscp, line) in lines {
            if let Some(place) = place.get_mut(usize::from(dscp.number())) {
                *place = u8::try_from(functions.len()).unwrap_or(u8::MAX);
            }
            functions.push(DropFunction::from(line));
        }
        let average = Average::new(exponent);
        Red { kind: "wred", average, idle: IdleTime::default(), functions, place, ecn, rng }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// A packet arrives while `waiting` packets wait.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &Packet,
        waiting: usize,
        counters: &mut PacketCounters,
    ) -> EarlyVerdict {
        match waiting {
            0 => self.average.idle(self.idle.ended(now)),
            _ => self.average.meet(waiting),
        }
        counters.set_average(0, self.average.packets());
        let place = self.place.get(usize::from(packet.dscp().number())).copied();
        let function = place.and_then(|place| self.functions.get_mut(usize::from(place)));
        let Some(function) = function else { return EarlyVerdict::Keep };
        EarlyVerdict::from_draw(
            function.draw(self.average.value(), &mut self.rng),
            packet,
            self.ecn,
        )
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

    /// How many of `packets` packets are dropped at random, at a constant average queue.
    fn early(function: &mut DropFunction, average: f64, packets: usize) -> usize {
        let mut rng = Rng::new(4);
        let average = (average * ONE as f64) as u64;
        (0..packets).filter(|_| function.draw(average, &mut rng) == DropDraw::Early).count()
    }

    #[test]
    fn the_share_dropped_is_that_of_the_line() {
        for (average, share) in
            [(9.0, 0.0), (10.0, 0.0), (12.5, 0.025), (15.0, 0.05), (19.9, 0.099)]
        {
            let dropped = early(&mut DropFunction::from(&LINE), average, 100_000) as f64 / 1e5;
            assert!((dropped - share).abs() <= share * 0.05, "{average}: {dropped} for {share}");
        }
        let mut steep = DropFunction::from(&WredLine { denominator: 1, ..LINE });
        let dropped = early(&mut steep, 18.0, 100_000) as f64 / 1e5;
        assert!((dropped - 0.8).abs() < 0.02, "{dropped}");
        assert_eq!(steep.draw(20 * ONE, &mut Rng::new(1)), DropDraw::Forced);
    }

    #[test]
    fn drops_are_spread_evenly() {
        // One in 20: fewer than 40 packets are between two drops.
        let mut function = DropFunction::from(&LINE);
        let mut rng = Rng::new(9);
        let mut kept = 0;
        let mut most = 0;
        for _ in 0..50_000 {
            kept = if function.draw(15 * ONE, &mut rng) == DropDraw::Early { 0 } else { kept + 1 };
            most = most.max(kept);
        }
        assert!((30..40).contains(&most), "{most}");
    }

    /// The dispositions of 20,000 packets at a queue of constantly `waiting` packets.
    fn dispositions(red: &mut Red, dscp: Dscp, waiting: usize, ecn: u8) -> Vec<EarlyVerdict> {
        let mut counters = PacketCounters::default();
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
        assert_eq!(share(Dscp::CS0, EarlyVerdict::Drop(Cause::Forced)), 1.0);
        assert!((share(Dscp::CS1, EarlyVerdict::Drop(Cause::Early)) - 0.05).abs() < 0.005);
        assert_eq!(share(Dscp::CS6, EarlyVerdict::Keep), 1.0, "no line, no drop");
    }

    #[test]
    fn capable_transports_are_marked_instead() {
        let mut red = Red::plain(&LINE, 9, true, Rng::new(3));
        let capable = dispositions(&mut red, Dscp::CS0, 15, 2);
        assert!(!capable.iter().any(|disposition| matches!(disposition, EarlyVerdict::Drop(_))));
        let marked =
            capable.iter().filter(|disposition| **disposition == EarlyVerdict::Mark).count();
        assert!((450..550).contains(&marked), "{marked}");
        let others = dispositions(&mut red, Dscp::CS0, 15, 0);
        assert!(
            others.contains(&EarlyVerdict::Drop(Cause::Early))
                && !others.contains(&EarlyVerdict::Mark)
        );
        let forced = dispositions(&mut red, Dscp::CS0, 40, 2);
        assert!(
            forced.iter().all(|disposition| *disposition == EarlyVerdict::Drop(Cause::Forced)),
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
        let mut counters = PacketCounters::default();
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
