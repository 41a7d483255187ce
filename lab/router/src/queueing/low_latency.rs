//! The packets of a priority branch that class-based queueing admits, compared with a token bucket
//! in plain numbers.

use super::build;
use crate::classify::FlowTables;
use crate::count::Cause;
use crate::policy::RouterPolicy;
use crate::testing::packet;
use crate::time::{SECOND, Time};
use dscp::Dscp;
use proptest::prelude::*;

const RATE: i128 = 200_000;
const BURST: i128 = 2_000;

/// In bits times nanoseconds of a second.
fn cost(octets: usize) -> i128 {
    octets as i128 * 8 * i128::from(SECOND)
}

fn policy(limit: usize) -> RouterPolicy {
    let text = format!(
        "[classes.ef]\nmatch = [{{ dscp = ['EF'] }}]\n[queueings.wan]\nkind = 'class-based'\n\
         rate = '1Mbit'\nbranches = [{{ class = 'ef', queueing = {{ kind = 'fifo', \
         limit = {{ packets = {limit} }} }}, \
         share = {{ priority = {{ rate = '{RATE}bit', burst = {BURST} }} }} }}]"
    );
    toml::from_str(&text).unwrap()
}

proptest! {
    #[test]
    fn no_window_sees_more_priority_than_rate_and_burst(
        limit in 1_usize..8,
        steps in prop::collection::vec(
            (0_u64..20_000_000, prop::bool::weighted(0.8), 40_usize..1_500, 0_usize..3),
            1..120,
        ),
    ) {
        let policy = policy(limit);
        let mut tree = build(&policy, &[], &policy.queueings["wan"], "q", 1).unwrap();
        let (mut now, mut tokens, mut filled, mut waiting) = (0, BURST * cost(1), 0, 0);
        // Time and cost of the packets that were admitted while something waited.
        let mut passed: Vec<(u64, i128)> = Vec::new();
        for (made, (pause, expedited, length, pops)) in steps.into_iter().enumerate() {
            now += pause;
            let mut discarded = Vec::new();
            let dscp = if expedited { Dscp::EF } else { Dscp::CS0 };
            let before = tree.backlog().packets;
            let came = packet(dscp, length, 1, made as u64);
            tree.push(Time(now), came, &FlowTables::default(), &mut discarded);
            if expedited {
                tokens = (tokens + RATE * i128::from(now - filled)).min(BURST * cost(1));
                filled = now;
                let within = tokens >= cost(length);
                let cause = match () {
                    () if !within && before > 0 => Some(Cause::Policed),
                    () if waiting >= limit => Some(Cause::Tail),
                    () => None,
                };
                prop_assert_eq!(discarded.first().map(|(_, cause)| *cause), cause);
                if cause.is_none() {
                    waiting += 1;
                    tokens -= if within { cost(length) } else { 0 };
                    passed.extend((before > 0).then(|| (now, cost(length))));
                }
            }
            for _ in 0..pops {
                let popped = tree.pop(Time(now));
                prop_assert_eq!(popped.as_ref().map(|p| p.dscp() == Dscp::EF), match waiting {
                    0 => popped.as_ref().map(|_| false),
                    _ => Some(true),
                }, "first of all");
                waiting -= usize::from(waiting > 0);
            }
        }
        for (first, (from, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for (until, one) in passed.iter().skip(first) {
                sum += one;
                prop_assert!(sum <= BURST * cost(1) + RATE * i128::from(until - from));
            }
        }
    }
}
