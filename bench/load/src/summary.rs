//! What a row of times comes to.

use serde::{Deserialize, Serialize};

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// Half took no longer.
    pub median: f64,
    /// 95 of 100 took no longer.
    #[serde(default)]
    pub p95: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Summary {
    /// Summary of times in microseconds, in any order; zeros for none.
    pub fn from_micros(mut micros: Vec<u64>) -> Summary {
        micros.sort_unstable();
        // The nearest rank: the least time that a share of all do not exceed.
        let rank = |share: f64| {
            let rank = (share * micros.len() as f64).ceil() as usize;
            micros.get(rank.saturating_sub(1)).map_or(0.0, |us| *us as f64 / 1e3)
        };
        Summary { median: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let all = Summary::from_micros((1..=200).rev().map(|n| n * 1_000).collect());
        assert_eq!(all, Summary { median: 100.0, p95: 190.0, p99: 198.0, max: 200.0 });
        assert_eq!(
            Summary::from_micros(vec![5_000]),
            Summary { median: 5.0, p95: 5.0, p99: 5.0, max: 5.0 }
        );
        assert_eq!(Summary::from_micros(Vec::new()), Summary::default());
    }
}
