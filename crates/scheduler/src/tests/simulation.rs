//! The scheduler in virtual time, over a line whose rate all transfers share: the paper's
//! scenario.

use super::*;
use Precedence::*;

/// 512 kbit/s.
const OCTETS_A_SECOND: f64 = 64_000.0;
/// Interval of confirmed progress.
const CHECKPOINT: Duration = Duration::from_secs(1);

struct Flow {
    id: EntryId,
    left: f64,
    paused: bool,
    channel: ChannelId,
}

#[derive(Default)]
struct World {
    now: f64,
    flows: Vec<Flow>,
    /// By identifier: when it was submitted, started and done.
    started: Vec<(u64, f64)>,
    done: Vec<(u64, f64)>,
    reasons: Vec<StartReason>,
}

fn instant(seconds: f64) -> Instant {
    Instant((seconds * 1e6) as u64)
}

impl World {
    /// Transfers these items, each submitted at its time, until all are done.
    fn run(&mut self, s: &mut Scheduler, channels: &[ChannelId], mut arrivals: Vec<(f64, Item)>) {
        arrivals.sort_by(|a, b| b.0.total_cmp(&a.0));
        while !(arrivals.is_empty() && s.is_empty()) {
            assert!(self.now < 100_000.0, "it never ends");
            let now = instant(self.now);
            while arrivals.last().is_some_and(|(at, _)| *at <= self.now) {
                s.insert(now, arrivals.pop().unwrap().1);
            }
            self.dispatch(s, channels);
            let active = self.flows.iter().filter(|flow| !flow.paused).count() as f64;
            let rate = OCTETS_A_SECOND / active.max(1.0);
            let ends = self.flows.iter().filter(|f| !f.paused).map(|f| self.now + f.left / rate);
            let checkpoint = self.now + CHECKPOINT.as_secs_f64();
            let next = ends
                .chain(arrivals.last().map(|(at, _)| *at))
                .chain(s.deadline().map(|at| at.0 as f64 / 1e6 + 1e-6))
                .fold(checkpoint, f64::min);
            for flow in self.flows.iter_mut().filter(|flow| !flow.paused) {
                flow.left -= (next - self.now) * rate;
                s.progress(instant(next), flow.id);
            }
            self.now = next;
            let over = |flow: &mut Flow| flow.left < 1e-3;
            for flow in self.flows.extract_if(.., over) {
                s.finished(flow.id);
                self.done.push((flow.id.0, next));
            }
        }
    }

    /// Starts transfers, one association per channel, and applies pauses.
    fn dispatch(&mut self, s: &mut Scheduler, channels: &[ChannelId]) {
        let now = instant(self.now);
        for channel in channels {
            let busy = self.flows.iter().any(|flow| flow.channel == *channel);
            let free = u32::from(!busy);
            let seen = Associations { ours: 1, usable: 1, free, ..Associations::default() };
            s.associations(now, *channel, seen);
            if !busy && let Some(start) = s.next(now, *channel) {
                let left = s.get(start.id).unwrap().size as f64;
                self.flows.push(Flow { id: start.id, left, paused: false, channel: *channel });
                self.started.push((start.id.0, self.now));
                self.reasons.push(start.reason);
                let seen = Associations { free: 0, ..seen };
                s.associations(now, *channel, seen);
            }
        }
        while let Some((id, paused)) = s.pauses(now) {
            self.flows.iter_mut().find(|flow| flow.id == id).unwrap().paused = paused;
        }
    }

    fn done(&self, id: u64) -> f64 {
        self.done.iter().find(|(of, _)| *of == id).unwrap().1
    }
}

/// A channel for each pair of precedences, as in the paper.
fn three(policy: Policy) -> (Scheduler, [ChannelId; 3]) {
    let pairs = [[Deferred, Routine], [Priority, Immediate], [Flash, Override]];
    let rules: Vec<_> = (0..).zip(pairs).map(|(index, pair)| rules(index, &pair, &[])).collect();
    let ids = [0, 1, 2].map(|index| ChannelId { peer: PEER, index });
    (Scheduler::new(rules, policy), ids)
}

#[test]
fn a_queued_mix_goes_strictly_in_order_of_precedence() {
    let (mut s, channels) = three(Policy::default());
    let mixed = |id: u64| Item {
        size: 500 + id * 997 % 20_000,
        ..message(id, Precedence::ALL[(id * 7 % 6) as usize])
    };
    let mut world = World::default();
    world.run(&mut s, &channels, (0..60).map(|id| (0.0, mixed(id))).collect());
    let mut order: Vec<u64> = (0..60).collect();
    order.sort_by_key(|id| (std::cmp::Reverse(mixed(*id).precedence), *id));
    assert_eq!(world.started.iter().map(|(id, _)| *id).collect::<Vec<_>>(), order);
    assert_eq!(world.done.iter().map(|(id, _)| *id).collect::<Vec<_>>(), order);
    assert!(world.reasons.iter().all(|reason| *reason == StartReason::default()));
}

#[test]
fn a_flash_during_a_routine_transfer_starts_at_once_beside_it() {
    let (mut s, channels) = three(Policy::default());
    let routine = |id| Item { size: 1_000_000, ..message(id, Routine) };
    let flash = Item { size: 32_000, ..message(3, Flash) };
    let mut world = World::default();
    world.run(&mut s, &channels, vec![(0.0, routine(1)), (0.0, routine(2)), (4.0, flash)]);
    assert_eq!(world.started[1], (3, 4.0), "at once");
    // Half the line is its own: 32 kB at 32 kB/s.
    assert!((world.done(3) - 5.0).abs() < 0.01, "{:?}", world.done);
    // The Routine loses only the time the Flash took; the next one follows it.
    assert!((world.done(1) - 1_032_000.0 / OCTETS_A_SECOND).abs() < 0.01);
    assert_eq!(world.started[2].0, 2);
}

#[test]
fn pre_emption_gives_the_flash_the_whole_line_and_costs_the_routine_nothing_more() {
    let run = |preempt| {
        let (mut s, channels) = three(Policy { preempt, ..Policy::default() });
        let routine = Item { size: 1_000_000, ..message(1, Routine) };
        let flash = Item { size: 320_000, ..message(2, Flash) };
        let mut world = World::default();
        world.run(&mut s, &channels, vec![(0.0, routine), (4.0, flash)]);
        (world.done(2) - 4.0, world.done(1))
    };
    let (beside, alone) = (run(false), run(true));
    println!(
        "pre-emption off, on: Flash after {:.1} s, {:.1} s; Routine after {:.1} s, {:.1} s",
        beside.0, alone.0, beside.1, alone.1
    );
    assert!(
        (beside.0 - 10.0).abs() < 0.01 && (alone.0 - 5.0).abs() < 0.01,
        "half the line, or all"
    );
    assert!((beside.1 - alone.1).abs() < 0.01, "in sum the line carried the same");
}
