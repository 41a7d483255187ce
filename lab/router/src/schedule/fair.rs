//! Weighted fair queueing by virtual finish times: WF2Q+ (Bennett and Zhang 1997, "Hierarchical
//! packet fair queueing algorithms").
//!
//! Each branch i has a weight w and a virtual start time S, at which its next packet would begin in
//! an ideal fluid server. A packet of L octets finishes at F = S + L/w. Let W be the sum of all
//! weights. With every packet of L octets sent, the virtual time V advances by L/W. V is never
//! behind the lowest S of a branch with a packet ready. Of the branches whose S is not after V, the
//! one with the lowest F sends, and its S becomes F. A branch that becomes ready starts at the
//! later of its S and V.
//!
//! Reason for this algorithm: of the fair queueing algorithms with simple virtual times it has the
//! lowest worst-case index. A branch is never ahead of its ideal service by more than one packet of
//! its own, and never behind by more than the longest packet, for any number of branches.
//! Self-clocked (SCFQ) and start-time (SFQ) fair queueing let a branch lag by a packet of every
//! other branch.
//!
//! The tests assert this bound: in any time in which branches i and j are both ready, the octets
//! that they send, divided by weight, differ by at most `2 (Lmax/wi + Lmax/wj + Lmax/W)`. The
//! reason: S is between V - Lmax/w - Lmax/W and V + Lmax/w. If both begin at S = V, the bound is
//! half of that.
//!
//! The bounds above are of that choice. The scheduler of class-based queueing takes the lowest F of all
//! branches that have a packet, as `by_finish` has it: a branch may then be ahead of its ideal service, and none
//! starves, as V passes its F in the end.
//!
//! F is computed from the packet at the head at each decision, and not stored: the head of a branch
//! that is itself a scheduler changes when a packet with higher priority arrives.

use crate::discipline::Readiness;

/// The sum of the weights of a scheduler's branches: 2^32. A virtual time is in units of 2^-12
/// octets, divided by the share of the branch.
const WHOLE: f64 = 4_294_967_296.0;
const SCALE: u32 = 44;

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// 0 for a branch that takes no part.
    weight: u64,
    start: u128,
    ready: bool,
}

/// The virtual times of the branches.
#[derive(Debug)]
pub(crate) struct Fair {
    lanes: Vec<Lane>,
    /// Whether a branch waits for its virtual start.
    waits: bool,
    /// The sum of all weights.
    sum: u64,
    now: u128,
}

/// The virtual time of a packet of this length, at most 65,535 octets.
fn steps(length: usize, weight: u64) -> u128 {
    u128::from(((length as u64) << SCALE) / weight.max(1))
}

impl Fair {
    /// The weights are in any unit; a branch of weight 0 takes no part.
    pub(crate) fn new(weights: &[f64]) -> Fair {
        let sum: f64 = weights.iter().sum();
        let lane = |weight: &f64| {
            let weight = if *weight > 0.0 { (weight / sum * WHOLE).max(1.0) as u64 } else { 0 };
            Lane { weight, start: 0, ready: false }
        };
        let lanes: Vec<Lane> = weights.iter().map(lane).collect();
        Fair { sum: lanes.iter().map(|lane| lane.weight).sum(), lanes, waits: true, now: 0 }
    }

    /// Of all branches that are ready the one with the lowest F sends, whether its S has come or not
    /// (starting potentials, Stiliadis and Varma 1996). In the long run the shares are the same. A
    /// branch of high weight keeps the line until it has been served as far as the others' next packets
    /// finish: nothing gets between its first packets after a pause. It may be ahead of its ideal
    /// service by so much, a packet of the slowest branch: S is up to V + M, M being the longest L/w of
    /// all branches, and the difference of two branches is within `2 (M + Lmax/wi + Lmax/wj + Lmax/W)`.
    pub(crate) fn by_finish(weights: &[f64]) -> Fair {
        Fair { waits: false, ..Fair::new(weights) }
    }

    /// As [`super::BranchOrder::next`].
    pub(crate) fn next(&mut self, branches: &[Readiness]) -> Option<usize> {
        let mut least = None;
        for (lane, ready) in self.lanes.iter_mut().zip(branches) {
            let ready = lane.weight > 0 && matches!(ready, Readiness::Now(_));
            if ready {
                if !lane.ready {
                    lane.start = lane.start.max(self.now);
                }
                least = Some(least.map_or(lane.start, |least: u128| least.min(lane.start)));
            }
            lane.ready = ready;
        }
        let Some(least) = least else {
            // No branch is ready: the lead of any branch over others is forgotten.
            let last = self.lanes.iter().map(|lane| lane.start).max();
            self.now = self.now.max(last.unwrap_or(0));
            return None;
        };
        self.now = self.now.max(least);
        let mut best: Option<(u128, usize)> = None;
        for (place, (lane, ready)) in self.lanes.iter().zip(branches).enumerate() {
            if let Readiness::Now(length) = ready
                && lane.ready
                && (lane.start <= self.now || !self.waits)
            {
                let candidate = (lane.start + steps(*length, lane.weight), place);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
            }
        }
        best.map(|(_, place)| place)
    }

    /// As [`super::BranchOrder::sent`].
    pub(crate) fn sent(&mut self, place: usize, length: usize) {
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.start += steps(length, lane.weight);
            self.now += steps(length, self.sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_branch_is_ahead_by_more_than_a_packet() {
        // Bennett and Zhang's example: one branch has half the weight, and ten with a packet each
        // share the rest. By lowest finish time alone, the first sends ten packets in a row; by
        // lowest start time alone, the others do.
        let mut weights = vec![10.0];
        weights.extend([1.0; 10]);
        let mut fair = Fair::new(&weights);
        let mut branches = vec![Readiness::Now(1_000); 11];
        let mut order = Vec::new();
        while order.len() < 20 {
            let place = fair.next(&branches).unwrap();
            fair.sent(place, 1_000);
            order.push(place);
            if place > 0 {
                branches[place] = Readiness::Empty;
            }
        }
        let expected: Vec<_> = (1..=10).flat_map(|place| [0, place]).collect();
        assert_eq!(order, expected);
        assert_eq!(fair.next(&[Readiness::Empty; 11]), None);
    }

    /// Two branches that always have packets of 1,000 octets, the second 50 times the first's weight and
    /// from the second packet on only: which of them sends.
    fn order(mut fair: Fair) -> Vec<usize> {
        let both = [Readiness::Now(1_000); 2];
        let mut order = Vec::new();
        for number in 0..1_100 {
            let ready = if number == 0 { [both[0], Readiness::Empty] } else { both };
            let place = fair.next(&ready).unwrap();
            fair.sent(place, 1_000);
            order.push(place);
        }
        order
    }

    #[test]
    fn by_finish_nothing_gets_between_the_first_packets_of_a_heavy_branch() {
        let eager = order(Fair::by_finish(&[1.0, 50.0]));
        assert_eq!(eager[..10], [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        let patient = order(Fair::new(&[1.0, 50.0]));
        let light = |order: &[usize]| order.iter().filter(|place| **place == 0).count();
        let shares = (light(&eager), light(&patient));
        assert!(shares.0.abs_diff(shares.1) <= 1, "the shares are the same: {shares:?}");
        assert!(eager.windows(2).all(|two| two != [0, 0]));
    }
}
