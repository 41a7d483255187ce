//! The machine against its model, through random histories, and what must always hold.

mod examples;
mod model;

use crate::*;
use base::{EntryId, Instant, PeerId, Precedence, Utc};
use model::{At, Model, Row};
use proptest::prelude::*;
use std::time::Duration;

pub(super) const PEER: PeerId = PeerId(7);

fn rules(index: u32, precedences: &[Precedence], fallback: &[Precedence]) -> ChannelRules {
    ChannelRules {
        id: ChannelId { peer: PEER, index },
        precedences: precedences.to_vec(),
        fallback: fallback.to_vec(),
        permanent: index.is_multiple_of(2),
        max: 2 - index % 2,
        grow_at: 2 + index,
        keep: Duration::from_secs(4),
    }
}

/// Three channels to one peer: one precedence has two, one has only a fallback. A second peer has
/// one channel, which carries all but Flash.
fn network() -> Vec<ChannelRules> {
    use Precedence::*;
    let mut other = rules(0, &[Deferred, Routine, Priority, Immediate, Override], &[]);
    other.id.peer = PeerId(8);
    vec![
        rules(0, &[Routine], &[Flash, Override, Deferred]),
        rules(1, &[Priority, Immediate, Routine], &[]),
        rules(2, &[Flash, Override], &[Immediate]),
        other,
    ]
}

#[derive(Clone, Debug)]
enum Verb {
    Insert(Item),
    Next(usize),
    Mailbox(u32),
    Progress(u64),
    Finished(u64),
    Retry(u64, u64),
    PutBack(u64),
    Hold(u64),
    Release(u64),
    /// Open all that is wanted; then each try succeeds or fails.
    OpenWanted,
    Opened(usize),
    OpenFailed(usize),
    Lost(usize),
    /// The peer opens an association, or closes it.
    PeerOpens(usize),
    PeerCloses(usize),
    Wait(u64),
    /// The clock is handed in as it was.
    StepBack(u64),
}

const IDS: std::ops::Range<u64> = 0..30;

fn item() -> impl Strategy<Value = Item> {
    // Most could go at once; acceptance times step back as the wall clock may.
    let not_before = prop_oneof![3 => Just(0u64), 1 => 0u64..60_000_000];
    (IDS, 0u32..8, 0usize..6, 0u64..1000, 0u64..10, not_before).prop_map(
        |(id, to, p, size, accepted, not_before)| Item {
            id: EntryId(id),
            destination: match to {
                0 => Destination::Mailbox(id as u32 % 2),
                1 => Destination::Peer(PeerId(8)),
                _ => Destination::Peer(PEER),
            },
            precedence: Precedence::ALL[p],
            size,
            accepted: Utc(accepted),
            not_before: Instant(not_before),
        },
    )
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        6 => item().prop_map(Verb::Insert),
        8 => (0usize..4).prop_map(Verb::Next),
        1 => (0u32..2).prop_map(Verb::Mailbox),
        2 => IDS.prop_map(Verb::Progress),
        2 => IDS.prop_map(Verb::Finished),
        1 => (IDS, any::<u64>()).prop_map(|(id, seed)| Verb::Retry(id, seed)),
        1 => IDS.prop_map(Verb::PutBack),
        1 => IDS.prop_map(Verb::Hold),
        1 => IDS.prop_map(Verb::Release),
        4 => Just(Verb::OpenWanted),
        6 => (0usize..4).prop_map(Verb::Opened),
        1 => (0usize..4).prop_map(Verb::OpenFailed),
        1 => (0usize..4).prop_map(Verb::Lost),
        1 => (0usize..4).prop_map(Verb::PeerOpens),
        1 => (0usize..4).prop_map(Verb::PeerCloses),
        3 => prop_oneof![0u64..2_000_000, Just(5_000_000), 0u64..40_000_000].prop_map(Verb::Wait),
        1 => (0u64..10_000_000).prop_map(Verb::StepBack),
    ]
}

/// Both side by side, with the associations as a caller would have them.
struct Both {
    s: Scheduler,
    m: Model,
    /// By channel: those of ours that are open, those opening, those of the peer's.
    open: Vec<[u32; 3]>,
    failing: Vec<bool>,
    /// Comparing everything at each step takes long: not in the end phase.
    draining: bool,
}

impl Both {
    fn new(hold: Hold) -> Both {
        let policy = Policy { hold, ..Policy::default() };
        let (s, m) = (Scheduler::new(network(), policy), Model::new(network(), policy));
        Both { s, m, open: vec![[0; 3]; 4], failing: vec![false; 4], draining: false }
    }

    fn id(&self, channel: usize) -> ChannelId {
        self.m.lines[channel].rules.id
    }

    fn on(&self, channel: usize) -> Vec<EntryId> {
        let id = self.id(channel);
        let on = |r: &&Row| matches!(r.at, At::InTransfer { channel, .. } if channel == Some(id));
        self.m.rows.iter().filter(on).map(|r| r.item.id).collect()
    }

    fn free(&self, channel: usize) -> u32 {
        let [ours, _, theirs] = self.open[channel];
        ours + theirs - self.on(channel).len() as u32
    }

    /// Tells both of all associations.
    fn tell(&mut self, now: Instant) {
        for channel in 0..4 {
            // Transfers whose association is gone go back.
            let [ours, opening, theirs] = self.open[channel];
            for id in self
                .on(channel)
                .split_off((ours + theirs).min(self.on(channel).len() as u32) as usize)
            {
                assert!(self.s.put_back(now, id));
                self.m.in_transfer(id).unwrap().at = At::Waiting { until: Instant(0) };
            }
            let seen = Associations {
                ours: ours + opening,
                changing: opening,
                usable: ours + theirs,
                free: self.free(channel),
                failing: self.failing[channel],
            };
            self.s.associations(now, self.id(channel), seen);
            self.m.see(self.id(channel), seen);
        }
    }

    fn next(&mut self, now: Instant, channel: usize) {
        let id = self.id(channel);
        if self.free(channel) == 0 {
            return;
        }
        // An association too many closes before it is given more.
        if self.s.has_surplus(now, id) && self.open[channel][0] > 0 {
            self.open[channel][0] -= 1;
            return;
        }
        let expected = self.m.startable(id).first().copied();
        let start = self.s.next(now, id);
        assert_eq!(start, expected);
        let Some(start) = start else {
            let held = self.m.newly_held(id);
            assert_eq!(self.s.newly_held(now, id), held);
            if let Some((id, _)) = held {
                self.m.row(id).unwrap().told = true;
            }
            return;
        };
        self.check_start(id, start);
        let progress = self.m.now;
        self.m.row(start.id).unwrap().at = At::InTransfer { channel: Some(id), progress };
    }

    /// The invariants of every start.
    fn check_start(&self, channel: ChannelId, start: Start) {
        let (peer, p) = (channel.peer, start.precedence);
        let above = || Precedence::ALL.into_iter().filter(|a| *a > p);
        if self.m.policy.hold != Hold::Off {
            // Rule 1, but for what rule 2 licenses: nothing above is ready or alive.
            for a in above().filter(|a| self.m.holder(peer, *a).is_some()) {
                assert_eq!(self.m.policy.hold, Hold::Conserving);
                assert!(start.licence.passes >= Some(a) && !self.m.way(peer, a), "{start:?}");
            }
        }
        // Rule 3.
        assert_eq!(self.m.ready(peer, p)[0].item.id, start.id);
        // Rule 5: outside its schedule only as a fallback.
        let rules = &self.m.line(channel).rules;
        assert_eq!(start.licence.fallback, !rules.precedences.contains(&p));
    }

    fn agree(&mut self, now: Instant) {
        assert_eq!(self.s.len(), self.m.rows.len());
        let wanted: Vec<Open> = self.s.wanted(now).collect();
        let mut lines: Vec<_> = self.m.lines.iter().collect();
        lines.sort_by_key(|l| l.rules.id);
        let expected: Vec<Open> = lines.into_iter().filter_map(|l| self.m.wanted(l)).collect();
        assert_eq!(wanted, expected);
        for line in &self.m.lines {
            let id = line.rules.id;
            assert_eq!(self.s.is_down(id), self.m.down(line));
            assert_eq!(self.s.has_surplus(now, id), self.m.surplus(id));
            assert_eq!(self.s.peek(now, id), self.m.startable(id).first().copied());
            assert_eq!(self.s.status(id), self.m.channel_status(id));
        }
        for row in &self.m.rows {
            assert_eq!(self.s.get(row.item.id), Some(&row.item));
            assert_eq!(self.s.failures(row.item.id), row.failures);
            assert_eq!(self.s.held_because(row.item.id), self.m.held_because(row.item.id));
        }
        for p in Precedence::ALL {
            assert_eq!(self.s.has_way(PEER, p), self.m.way(PEER, p));
        }
        for mailbox in 0..2 {
            let to = Destination::Mailbox(mailbox);
            let rows = self.m.rows.iter().filter(|r| r.item.destination == to);
            assert_eq!(self.s.mailbox_status(mailbox), self.m.status(rows));
        }
        assert!(self.s.deadline().is_none_or(|at| at > self.m.now), "no deadline has passed");
    }

    /// Nothing changes before the deadline by time alone.
    fn wait(&mut self, to: Instant) {
        while let Some(at) = self.s.deadline().filter(|at| *at < to) {
            let before = self.snapshot();
            self.m.now = Instant(at.0 - 1).max(self.m.now);
            assert_eq!(before, self.snapshot(), "a change nobody was told of");
            self.m.now = at;
            self.s.tick(at);
        }
        let before = self.snapshot();
        self.m.now = Instant(to.0 - 1).max(self.m.now);
        assert_eq!(before, self.snapshot());
        self.m.now = to;
        self.s.tick(to);
    }

    fn snapshot(&self) -> Vec<Vec<Start>> {
        self.m.lines.iter().map(|l| self.m.startable(l.rules.id)).collect()
    }

    fn step(&mut self, verb: Verb) {
        let mut now = self.m.now;
        match verb {
            Verb::Insert(item) => {
                let new = self.m.row(item.id).is_none();
                assert_eq!(self.s.insert(now, item.clone()), new);
                if new {
                    let at = At::Waiting { until: item.not_before };
                    self.m.rows.push(Row { item, at, failures: 0, operator: false, told: false });
                }
            }
            Verb::Next(channel) => self.next(now, channel),
            Verb::Mailbox(mailbox) => {
                let next = self.m.next_for_mailbox(mailbox);
                assert_eq!(self.s.next_for_mailbox(now, mailbox), next);
                if let Some(id) = next {
                    self.m.row(id).unwrap().at = At::InTransfer { channel: None, progress: now };
                }
            }
            Verb::Progress(id) => {
                let row = self.m.in_transfer(EntryId(id));
                assert_eq!(self.s.progress(now, EntryId(id)), row.is_some());
                if let Some(Row { at: At::InTransfer { progress, .. }, .. }) = row {
                    *progress = now;
                }
            }
            Verb::Finished(id) => {
                let at = self.m.rows.iter().position(|r| r.item.id == EntryId(id));
                let item = at.map(|at| self.m.rows.remove(at).item);
                assert_eq!(self.s.finished(EntryId(id)), item);
            }
            Verb::Retry(id, seed) => {
                let again = self.s.retry(now, EntryId(id), seed);
                let row = self.m.in_transfer(EntryId(id));
                assert_eq!(again.is_some(), row.is_some());
                if let (Some(row), Some(again)) = (row, again) {
                    row.failures += 1;
                    assert_eq!(again, now + delay(row.failures, seed ^ id));
                    row.at = At::Waiting { until: again };
                }
            }
            Verb::PutBack(id) => {
                let row = self.m.in_transfer(EntryId(id));
                assert_eq!(self.s.put_back(now, EntryId(id)), row.is_some());
                if let Some(row) = row {
                    row.at = At::Waiting { until: Instant(0) };
                }
            }
            Verb::Hold(id) => {
                let row = self.m.row(EntryId(id)).filter(|r| !r.operator);
                assert_eq!(self.s.hold(EntryId(id)), row.is_some());
                if let Some(row) = row {
                    row.operator = true;
                }
            }
            Verb::Release(id) => {
                let row = self.m.row(EntryId(id)).filter(|r| r.operator);
                assert_eq!(self.s.release(now, EntryId(id)), row.is_some());
                if let Some(row) = row {
                    row.operator = false;
                }
            }
            Verb::OpenWanted => {
                let wanted: Vec<Open> = self.s.wanted(now).collect();
                for open in wanted {
                    let line =
                        self.m.lines.iter().position(|l| l.rules.id == open.channel).unwrap();
                    self.open[line][1] += 1;
                    let max = self.m.lines[line].rules.max + u32::from(open.urgent);
                    let [ours, opening, _] = self.open[line];
                    assert!(ours + opening <= max, "{open:?}: {ours} open, {opening} opening");
                }
            }
            Verb::Opened(c) if self.open[c][1] > 0 => {
                self.open[c][1] -= 1;
                self.open[c][0] += 1;
                self.failing[c] = false;
            }
            Verb::OpenFailed(c) if self.open[c][1] > 0 => {
                self.open[c][1] -= 1;
                self.failing[c] = true;
            }
            Verb::Lost(c) if self.open[c][0] > 0 => {
                self.open[c][0] -= 1;
                self.failing[c] = true;
            }
            Verb::PeerOpens(c) => self.open[c][2] = 1,
            Verb::PeerCloses(c) => self.open[c][2] = 0,
            Verb::Wait(d) => {
                now = Instant(now.0 + d);
                if d > 0 {
                    self.wait(now);
                }
            }
            Verb::StepBack(d) => self.s.tick(Instant(now.0.saturating_sub(d))),
            Verb::Opened(_) | Verb::OpenFailed(_) | Verb::Lost(_) => {}
        }
        self.tell(now);
        if !self.draining {
            self.agree(now);
        }
    }

    /// With all channels up, everything that may leave leaves: nothing is forgotten.
    fn drain(&mut self) {
        self.draining = true;
        for id in IDS {
            self.step(Verb::Release(id));
        }
        for _ in 0..IDS.end + 3 {
            self.step(Verb::OpenWanted);
            self.step(Verb::Wait(600_000_000));
            for channel in 0..4 {
                self.step(Verb::Opened(channel));
                self.next(self.m.now, channel);
                self.tell(self.m.now);
            }
            for mailbox in 0..2 {
                self.step(Verb::Mailbox(mailbox));
            }
            let done: Vec<EntryId> = self
                .m
                .rows
                .iter()
                .filter(|r| matches!(r.at, At::InTransfer { .. }))
                .map(|r| r.item.id)
                .collect();
            for id in done {
                self.step(Verb::Finished(id.0));
            }
        }
        // But for what no channel ever carries.
        let stays = |r: &Row| {
            r.item.destination == Destination::Peer(PeerId(8))
                && r.item.precedence == Precedence::Flash
        };
        assert!(self.m.rows.iter().all(stays), "{:?}", self.m.rows);
        assert_eq!(self.s.len(), self.m.rows.len());
        assert_eq!(self.s.deadline(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn agrees_with_the_model_and_forgets_nothing(
        hold in prop_oneof![Just(Hold::Off), Just(Hold::Conserving), Just(Hold::Strict)],
        verbs in proptest::collection::vec(verb(), 0..120),
    ) {
        let mut both = Both::new(hold);
        for verb in verbs {
            both.step(verb);
        }
        both.drain();
    }
}

pub(super) fn message(id: u64, precedence: Precedence) -> Item {
    Item {
        id: EntryId(id),
        destination: Destination::Peer(PEER),
        precedence,
        size: 1000,
        accepted: Utc(id),
        not_before: Instant(0),
    }
}

pub(super) fn at(seconds: u64) -> Instant {
    Instant(0) + Duration::from_secs(seconds)
}
