//! Deficit round robin (Shreedhar and Varghese 1995). In each round a branch may send its quantum,
//! which is the scheduler's quantum times its weight, and the unused rest of the previous round.
//!
//! A branch that becomes empty, or that a shaper holds back, loses its rest. While two branches are
//! both always ready, the octets that they send, divided by weight, differ by at most `quantum +
//! Lmax/wi + Lmax/wj`.

use super::BranchOrder;
use crate::discipline::Readiness;

/// Units of credit in an octet. With a quantum of one octet and the lowest weight, a grant is still
/// exact to 12 digits.
const PARTS: u128 = 1 << 64;

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Its credit for each round.
    grant: u128,
    credit: u128,
}

/// The branch whose turn it is, and the credit of each branch.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    lanes: Vec<Lane>,
    turn: usize,
}

fn cost(length: usize) -> u128 {
    length as u128 * PARTS
}

impl RoundRobin {
    /// `quantum` is the octets of a round for a weight of 1.
    pub(crate) fn new(quantum: u64, weights: &[f64]) -> RoundRobin {
        let grant = |weight: &f64| (quantum as f64 * weight * PARTS as f64).max(1.0) as u128;
        let lane = |weight| Lane { grant: grant(weight), credit: 0 };
        RoundRobin { lanes: weights.iter().map(lane).collect(), turn: 0 }
    }

    /// The branch whose turn it is, if it has a packet and enough credit for it.
    fn served(&self, branches: &[Readiness]) -> Option<usize> {
        match (self.lanes.get(self.turn)?, branches.get(self.turn)?) {
            (lane, Readiness::Now(length)) if lane.credit >= cost(*length) => Some(self.turn),
            _ => None,
        }
    }

    /// Passes the turn to the next branch, which gets the grant of a round.
    fn pass_on(&mut self, branches: &[Readiness]) {
        self.turn = (self.turn + 1) % self.lanes.len().max(1);
        if let (Some(lane), Some(Readiness::Now(_))) =
            (self.lanes.get_mut(self.turn), branches.get(self.turn))
        {
            lane.credit = lane.credit.saturating_add(lane.grant);
        }
    }

    /// Grants all rounds at once in which no branch would have enough credit.
    fn skip_rounds(&mut self, branches: &[Readiness]) {
        let ready = || branches.iter().map(|ready| matches!(ready, Readiness::Now(_)));
        let needed = self.lanes.iter().zip(branches).filter_map(|(lane, ready)| match ready {
            Readiness::Now(length) => {
                Some(cost(*length).saturating_sub(lane.credit).div_ceil(lane.grant))
            }
            Readiness::At(_) | Readiness::Empty => None,
        });
        let idle = needed.min().unwrap_or(0).saturating_sub(1);
        for (lane, _) in self.lanes.iter_mut().zip(ready()).filter(|(_, ready)| *ready) {
            lane.credit = lane.credit.saturating_add(lane.grant.saturating_mul(idle));
        }
    }
}

impl BranchOrder for RoundRobin {
    const KIND: &'static str = "round-robin";

    fn next(&mut self, branches: &[Readiness]) -> Option<usize> {
        let mut any = false;
        for (lane, ready) in self.lanes.iter_mut().zip(branches) {
            match ready {
                Readiness::Now(_) => any = true,
                Readiness::At(_) | Readiness::Empty => lane.credit = 0,
            }
        }
        if !any {
            return None;
        }
        // Two rounds are enough: after the first, all rounds without a packet are skipped.
        for _ in 0..2 {
            for _ in 0..self.lanes.len() {
                if let Some(place) = self.served(branches) {
                    return Some(place);
                }
                self.pass_on(branches);
            }
            self.skip_rounds(branches);
        }
        self.served(branches)
    }

    fn sent(&mut self, place: usize, length: usize) {
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.credit = lane.credit.saturating_sub(cost(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_weights_keep_their_proportion() {
        let mut order = RoundRobin::new(1, &[0.000_1, 0.001, 0.000_001]);
        let branches = [Readiness::Now(100), Readiness::Now(100), Readiness::Empty];
        let mut sent = [0, 0];
        for _ in 0..1_100 {
            let place = order.next(&branches).unwrap();
            order.sent(place, 100);
            sent[place] += 1;
        }
        assert_eq!(sent, [100, 1_000]);
    }
}
