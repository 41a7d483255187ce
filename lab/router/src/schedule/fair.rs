//! Weighted fair queueing by virtual finish times: WF2Q+ (Bennett and Zhang 1997, "Hierarchical packet
//! fair queueing algorithms").
//!
//! Each branch i has a weight w and a virtual start time S, at which its next packet would begin in an
//! ideal fluid server; that packet of L octets finishes at F = S + L/w. Virtual time V goes on by L/W
//! with every packet of L octets sent, W being the sum of all weights, and is never behind the least S
//! of a branch with a packet ready. Of the branches with S not after V, the one with the least F sends,
//! and its S becomes F. A branch that becomes ready starts at the later of its S and V.
//!
//! Why this one: of the fair queueing algorithms with simple virtual times it has the least worst-case
//! index: a branch is never ahead of its ideal service by more than one packet of its own, nor behind by
//! more than the longest packet, however many branches there are. Self-clocked (SCFQ) and start-time
//! (SFQ) fair queueing let a branch lag by a packet of every other one.
//!
//! The bound that tests assert: in any time in which branches i and j are both ready, what they send per
//! weight differs by no more than `2 (Lmax/wi + Lmax/wj + Lmax/W)`. For S lies between V - Lmax/w -
//! Lmax/W and V + Lmax/w; if both begin at S = V, it is half of that.
//!
//! F is computed from the packet at the head when a decision is made, not kept: heads change when a
//! better packet comes to a branch that is a scheduler itself.

use crate::discipline::Ready;

/// The weights of a scheduler's branches in all: 2^32. A virtual time is in units of 2^-12 octets over
/// the share of the branch.
const WHOLE: f64 = 4_294_967_296.0;
const SCALE: u32 = 44;

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// 0 for one that takes no part.
    weight: u64,
    start: u128,
    ready: bool,
}

/// Virtual times of branches.
#[derive(Debug)]
pub(crate) struct Fair {
    lanes: Vec<Lane>,
    /// The sum of all weights.
    sum: u64,
    now: u128,
}

/// Of a packet of so many octets, at most 65,535.
fn steps(length: usize, weight: u64) -> u128 {
    u128::from(((length as u64) << SCALE) / weight.max(1))
}

impl Fair {
    /// Weights in any unit; a branch of weight 0 takes no part.
    pub(crate) fn new(weights: &[f64]) -> Fair {
        let sum: f64 = weights.iter().sum();
        let lane = |weight: &f64| {
            let weight = if *weight > 0.0 { (weight / sum * WHOLE).max(1.0) as u64 } else { 0 };
            Lane { weight, start: 0, ready: false }
        };
        let lanes: Vec<Lane> = weights.iter().map(lane).collect();
        Fair { sum: lanes.iter().map(|lane| lane.weight).sum(), lanes, now: 0 }
    }

    /// As [`super::Order::next`].
    pub(crate) fn next(&mut self, branches: &[Ready]) -> Option<usize> {
        let mut least = None;
        for (lane, ready) in self.lanes.iter_mut().zip(branches) {
            let ready = lane.weight > 0 && matches!(ready, Ready::Now(_));
            if ready {
                if !lane.ready {
                    lane.start = lane.start.max(self.now);
                }
                least = Some(least.map_or(lane.start, |least: u128| least.min(lane.start)));
            }
            lane.ready = ready;
        }
        let Some(least) = least else {
            // Nobody has anything ready: what anybody had more than others is forgotten.
            let last = self.lanes.iter().map(|lane| lane.start).max();
            self.now = self.now.max(last.unwrap_or(0));
            return None;
        };
        self.now = self.now.max(least);
        let mut best: Option<(u128, usize)> = None;
        for (place, (lane, ready)) in self.lanes.iter().zip(branches).enumerate() {
            if let Ready::Now(length) = ready
                && lane.ready
                && lane.start <= self.now
            {
                let candidate = (lane.start + steps(*length, lane.weight), place);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
            }
        }
        best.map(|(_, place)| place)
    }

    /// As [`super::Order::sent`].
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
        // Bennett and Zhang's example: a branch with half the weight, and ten that share the rest
        // with a packet each. By finish alone the first would send ten in a row; by start alone the
        // others would.
        let mut weights = vec![10.0];
        weights.extend([1.0; 10]);
        let mut fair = Fair::new(&weights);
        let mut branches = vec![Ready::Now(1_000); 11];
        let mut order = Vec::new();
        while order.len() < 20 {
            let place = fair.next(&branches).unwrap();
            fair.sent(place, 1_000);
            order.push(place);
            if place > 0 {
                branches[place] = Ready::Empty;
            }
        }
        let expected: Vec<_> = (1..=10).flat_map(|place| [0, place]).collect();
        assert_eq!(order, expected);
        assert_eq!(fair.next(&[Ready::Empty; 11]), None);
    }
}
