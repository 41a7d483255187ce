//! The machine and its model side by side, with the associations a caller would have.

use super::rows::{At, Line, Model, Row};
use super::*;
use std::collections::BTreeMap;

/// Most channels in a configuration.
pub(super) const CHANNELS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Insert(Item),
    Next(usize),
    Mailbox(u32),
    Progress(u64),
    Finished(u64),
    Retry(u64, u64),
    PutBack(u64),
    Hold(u64),
    Release(u64),
    /// An operator has an item tried again.
    Hasten(u64),
    /// An operator expires or deletes an item that is not in transfer.
    GiveUp(u64),
    /// An operator reroutes an item that is not in transfer: another one takes its place, held if it was.
    Reroute(u64, u64, Destination),
    Floor(usize, Option<Precedence>),
    Configure(usize, Policy),
    /// Drain everything that is returned once.
    Drain,
    /// Open all associations wanted; then each attempt succeeds or fails.
    OpenWanted,
    Opened(usize),
    OpenFailed(usize),
    Lost(usize),
    /// The window of a scheduled channel ends, or begins.
    Bar(usize, bool),
    /// The peer opens an association, or closes one.
    PeerOpens(usize),
    PeerCloses(usize),
    /// This many associations, if they exist, have an incoming transfer.
    Receives(usize, u32),
    Wait(u64),
    /// The wall clock is set: its times come sooner by this much, or later.
    Shift(i64),
    /// Expiry is suspended, or resumed.
    ExpiryWaits(bool),
    /// The supplied clock steps back.
    StepBack(u64),
}

pub(super) struct Both {
    pub(super) s: Scheduler,
    pub(super) m: Model,
    /// By channel: our open associations, ours being opened, the peer's.
    open: [[u32; 3]; CHANNELS],
    /// By channel: incoming transfers, one per association that has none of ours.
    incoming: [u32; CHANNELS],
    failing: [bool; CHANNELS],
    barred: [bool; CHANNELS],
    /// Starts by share since nothing of the peer was held: the measure of starvation.
    pub(super) starts: u64,
    /// Comparing everything at each step is slow: not in the end phase.
    draining: bool,
    /// The answers on each peer when it was last named as changed, and on the mailboxes.
    notified: Vec<(Option<Start>, bool, bool, bool)>,
    first: [Option<EntryId>; 2],
}

fn line(rules: ChannelRules) -> Line {
    Line { rules, seen: Associations::default(), absent: None, free: None }
}

fn id(channel: usize) -> ChannelId {
    network(0)[channel].id
}

impl Both {
    pub(super) fn new(policy: Policy) -> Both {
        let m = Model {
            expiry_waits: false,
            now: Instant(0),
            policy,
            rows: Vec::new(),
            lines: network(0).into_iter().map(line).collect(),
            floors: Vec::new(),
            credit: Vec::new(),
            failures: Vec::new(),
        };
        let s = Scheduler::new(network(0), policy);
        let (open, incoming, failing, barred) = Default::default();
        Both {
            s,
            m,
            open,
            incoming,
            failing,
            barred,
            starts: 0,
            draining: false,
            notified: Vec::new(),
            first: [None; 2],
        }
    }

    fn on(&self, channel: usize) -> Vec<EntryId> {
        let on =
            |r: &&Row| matches!(r.at, At::InTransfer { channel: c, .. } if c == Some(id(channel)));
        self.m.rows.iter().filter(on).map(|r| r.item.id).collect()
    }

    fn free(&self, channel: usize) -> u32 {
        self.without_ours(channel) - self.receiving(channel)
    }

    fn receiving(&self, channel: usize) -> u32 {
        self.incoming[channel].min(self.without_ours(channel))
    }

    fn without_ours(&self, channel: usize) -> u32 {
        let [ours, _, theirs] = self.open[channel];
        ours + theirs - self.on(channel).len() as u32
    }

    fn put_back(&mut self, now: Instant, id: EntryId) {
        let row = self.m.in_transfer(id);
        assert_eq!(self.s.put_back(now, id), row.is_some());
        if let Some(row) = row {
            row.at = At::Waiting { until: Instant(0) };
            (row.paused, row.notified[3]) = (false, false);
        }
        self.m.settle();
    }

    /// Passes all associations to both.
    fn check_all(&mut self, now: Instant) {
        for channel in 0..CHANNELS {
            if self.m.line(id(channel)).is_none() {
                continue;
            }
            // Transfers whose association is gone return to the queue.
            let [ours, opening, theirs] = self.open[channel];
            for id in self.on(channel).into_iter().skip((ours + theirs) as usize) {
                self.put_back(now, id);
            }
            let seen = Associations {
                ours: ours + opening,
                changing: opening,
                usable: ours + theirs,
                free: self.free(channel),
                receiving: self.receiving(channel),
                failing: self.failing[channel],
                barred: self.barred[channel],
            };
            self.s.associations(now, id(channel), seen);
            self.m.see(id(channel), seen);
            self.m.settle();
        }
    }

    fn next(&mut self, now: Instant, channel: usize) {
        let id = id(channel);
        if self.m.line(id).is_none() || self.free(channel) == 0 {
            return;
        }
        // A surplus association closes before it gets another message.
        if self.s.has_surplus(now, id) && self.open[channel][0] > 0 {
            self.open[channel][0] -= 1;
            return;
        }
        let expected = self.m.pick(id);
        if let Some(start) = expected {
            self.check_start(id, start);
            self.m.account(id.peer, start);
        }
        let start = self.s.next(now, id);
        assert_eq!(start, expected);
        let Some(start) = start else {
            let held = self.m.newly_held(id);
            assert_eq!(self.s.newly_held(now, id), held);
            if let Some((id, _)) = held {
                self.m.row(id).unwrap().notified[0] = true;
            }
            return;
        };
        self.starts += 1;
        let (since, share) = (self.m.now, start.reason.share);
        self.m.row(start.id).unwrap().at =
            At::InTransfer { channel: Some(id), since, progress: since, share };
        self.m.settle();
    }

    /// The invariants of every start.
    fn check_start(&self, channel: ChannelId, start: Start) {
        let (peer, p) = (channel.peer, start.precedence);
        let above = || Precedence::ALL.into_iter().filter(|a| *a > p);
        if self.m.policy.hold != Hold::Off && !start.reason.share {
            // Rule 1, except for what rules 2 and 7 permit: nothing above is ready or alive.
            for a in above().filter(|a| self.m.holder(peer, *a).is_some()) {
                assert_eq!(self.m.policy.hold, Hold::Conserving);
                assert!(
                    start.reason.passes >= Some(a) && !self.m.has_channel(peer, a),
                    "{start:?}"
                );
            }
        }
        // Rule 3.
        assert_eq!(self.m.ready(peer, p)[0].item.id, start.id);
        // Rule 5: outside its schedule only as a fallback.
        let rules = &self.m.line(channel).unwrap().rules;
        assert_eq!(start.reason.fallback, !rules.precedences.contains(&p));
        // Rule 6: nothing below a floor, for whatever reason.
        let scopes = [Scope::Mta, Scope::Peer(peer), Scope::Channel(channel)];
        assert!(scopes.into_iter().all(|scope| self.m.below(scope, p).is_none()));
        // Rule 9: nothing expired.
        assert!(self.m.expiry_waits || self.s.get(start.id).unwrap().expires > self.m.now);
    }

    /// Both return the same one-time results.
    fn drain_notified(&mut self, now: Instant) {
        let expect = |b: &mut Both, which: usize, of: &dyn Fn(&Row) -> Option<Instant>| {
            let new = |r: &&mut Row| !r.notified[which] && of(r).is_some();
            let mut new: Vec<&mut Row> = b.m.rows.iter_mut().filter(new).collect();
            new.iter_mut().for_each(|r| r.notified[which] = true);
            new.sort_by_key(|r| (of(r), r.item.id));
            new.into_iter().map(|r| r.item.id).collect::<Vec<_>>()
        };
        let expired = expect(self, 1, &|r| (r.at == At::Expired).then_some(r.item.expires));
        assert_eq!(std::iter::from_fn(|| self.s.expired(now)).collect::<Vec<_>>(), expired);
        let m_now = self.m.now;
        let overdue = expect(self, 2, &|r| (r.item.alert_at <= m_now).then_some(r.item.alert_at));
        assert_eq!(std::iter::from_fn(|| self.s.overdue(now)).collect::<Vec<_>>(), overdue);
        let mut changes = BTreeMap::new();
        for r in self.m.rows.iter_mut().filter(|r| r.paused != r.notified[3]) {
            r.notified[3] = r.paused;
            changes.insert(r.item.id, r.paused);
        }
        let notified = std::iter::from_fn(|| self.s.pauses(now)).collect::<Vec<_>>();
        assert_eq!(notified, changes.into_iter().collect::<Vec<_>>());
    }

    fn agree(&mut self, now: Instant) {
        assert_eq!(self.s.len(), self.m.rows.len());
        let wanted: Vec<Open> = self.s.wanted(now).collect();
        self.m.lines.sort_by_key(|l| l.rules.id);
        let expected: Vec<Open> = self.m.lines.iter().filter_map(|l| self.m.wanted(l)).collect();
        assert_eq!(wanted, expected);
        for channel in 0..CHANNELS {
            let id = id(channel);
            let Some(line) = self.m.line(id) else {
                assert_eq!(self.s.peek(now, id), None);
                continue;
            };
            assert_eq!(self.s.is_down(id), self.m.down(line));
            assert_eq!(self.s.has_surplus(now, id), self.m.surplus(line));
            assert_eq!(self.s.peek(now, id), self.m.pick(id));
            let home = |p| {
                let owns =
                    |l: &&Line| l.rules.id.peer == id.peer && l.rules.precedences.contains(&p);
                self.m.lines.iter().find(owns).is_some_and(|l| l.rules.id == id)
            };
            let level = |p| self.m.level(Destination::Peer(id.peer), p);
            let level = |p| if home(p) { level(p) } else { LevelStatus::default() };
            assert_eq!(self.s.status(id).levels, Precedence::ALL.map(level));
        }
        for row in &self.m.rows {
            let until = match row.at {
                At::Waiting { until } => until,
                At::InTransfer { .. } => Instant(0),
                At::Expired => self.s.get(row.item.id).unwrap().not_before,
            };
            assert_eq!(self.s.get(row.item.id), Some(Item { not_before: until, ..row.item }));
            assert_eq!(self.s.failures(row.item.id), row.failures);
            assert_eq!(self.s.held_because(row.item.id), self.m.held_because(row));
            assert_eq!(self.s.is_paused(row.item.id), row.paused);
        }
        for p in Precedence::ALL {
            assert_eq!(self.s.has_channel(PEER, p), self.m.has_channel(PEER, p));
            for mailbox in 0..2 {
                let to = Destination::Mailbox(mailbox);
                assert_eq!(*self.s.mailbox_status(mailbox).level(p), self.m.level(to, p));
            }
            self.agree_on_list(Destination::Peer(PEER), p);
        }
        let late = |r: &&Row| matches!(r.at, At::Waiting { .. }) && r.item.expires <= self.m.now;
        let spared = self.m.rows.iter().filter(late).count();
        assert!(self.s.spared_count() >= spared, "in transfer, they may be more");
        assert!(self.m.expiry_waits || self.s.spared_count() == 0);
        assert!(self.s.deadline().is_none_or(|at| at > self.m.now), "no deadline has passed");
        self.names_what_changed(now);
    }

    /// A caller that asks only about the peers and mailboxes named as changed misses nothing.
    fn names_what_changed(&mut self, now: Instant) {
        let wanted: Vec<ChannelId> = self.s.wanted(now).map(|open| open.channel).collect();
        let mut notified = Vec::new();
        for channel in (0..CHANNELS).map(id) {
            let is_wanted = self.s.is_wanted(now, channel);
            assert_eq!(is_wanted, wanted.contains(&channel));
            let surplus = self.s.has_surplus(now, channel);
            // Without items it does not matter.
            let to = Destination::Peer(channel.peer);
            let any = self.m.rows.iter().any(|row| row.item.destination == to);
            let down = self.s.is_down(channel) && any;
            notified.push((self.s.peek(now, channel), surplus, is_wanted, down));
        }
        let any = self.s.has_changes();
        let peers: Vec<PeerId> = std::iter::from_fn(|| self.s.changed(now)).collect();
        let mailboxes: Vec<u32> = std::iter::from_fn(|| self.s.changed_mailbox(now)).collect();
        assert_eq!(any, !(peers.is_empty() && mailboxes.is_empty()));
        assert!(!self.s.has_changes());
        let before = std::mem::replace(&mut self.notified, notified);
        for channel in 0..CHANNELS {
            let same = before.get(channel) == self.notified.get(channel);
            assert!(same || peers.contains(&id(channel).peer), "{channel}: it was not named");
        }
        for mailbox in 0..2u32 {
            let first = self.s.mailboxes.get(&mailbox).and_then(|queues| queues.first());
            let before = std::mem::replace(&mut self.first[mailbox as usize], first);
            let new = first.is_some() && before.is_none();
            assert!(!new || mailboxes.contains(&mailbox), "it was not named");
        }
    }

    /// Pages of three return everything once, in order.
    fn agree_on_list(&self, to: Destination, p: Precedence) {
        let mut all: Vec<_> = self.m.rows_of(to, p).map(|r| (r.item.accepted, r.item.id)).collect();
        all.sort();
        let mut listed = Vec::new();
        loop {
            let page = self.s.list(to, p, listed.last().copied(), 3);
            listed.extend(page.iter().map(|l| (l.item.accepted, l.item.id)));
            if page.len() < 3 {
                break;
            }
        }
        assert_eq!(listed, all);
    }

    /// Nothing changes before the deadline by time alone.
    fn wait(&mut self, to: Instant) {
        while let Some(at) = self.s.deadline().filter(|at| *at < to) {
            self.wait_still(at);
        }
        self.wait_still(to);
    }

    fn wait_still(&mut self, to: Instant) {
        let before = snapshot(&self.m);
        self.m.now = Instant(to.0 - 1).max(self.m.now);
        let mut later = self.m.clone();
        later.settle();
        assert_eq!(before, snapshot(&later), "a change that was not reported");
        self.m.now = to;
        self.m.settle();
        self.s.tick(to);
    }

    pub(super) fn step(&mut self, verb: Verb) {
        let mut now = self.m.now;
        match verb {
            Verb::Insert(item) => {
                let new = self.m.row(item.id).is_none();
                assert_eq!(self.s.insert(now, item), new);
                if new {
                    let at = At::Waiting { until: item.not_before };
                    let (notified, failures) = ([false; 4], 0);
                    self.m.rows.push(Row {
                        item,
                        at,
                        failures,
                        operator: false,
                        paused: false,
                        notified,
                    });
                }
            }
            Verb::Next(channel) => self.next(now, channel),
            Verb::Mailbox(mailbox) => {
                let next = self.m.next_for_mailbox(mailbox);
                assert_eq!(self.s.next_for_mailbox(now, mailbox), next);
                if let Some(id) = next {
                    let (since, progress) = (now, now);
                    self.m.row(id).unwrap().at =
                        At::InTransfer { channel: None, since, progress, share: false };
                }
            }
            Verb::Progress(id) => {
                let row = self.m.in_transfer(EntryId(id));
                assert_eq!(self.s.progress(now, EntryId(id)), row.is_some());
                if let Some(Row { at: At::InTransfer { progress, .. }, .. }) = row {
                    *progress = now;
                }
            }
            Verb::Finished(id) => _ = self.finish(EntryId(id)),
            Verb::Retry(id, seed) => self.retry(now, EntryId(id), seed),
            Verb::PutBack(id) => self.put_back(now, EntryId(id)),
            Verb::Hold(id) => {
                let row = self.m.row(EntryId(id)).filter(|r| !r.operator && r.at != At::Expired);
                assert_eq!(self.s.hold(EntryId(id)), row.is_some());
                if let Some(row) = row {
                    row.operator = true;
                }
            }
            Verb::Release(id) => {
                let row = self.m.row(EntryId(id)).filter(|r| r.operator && r.at != At::Expired);
                assert_eq!(self.s.release(now, EntryId(id)), row.is_some());
                if let Some(row) = row {
                    row.operator = false;
                }
            }
            Verb::Hasten(id) => self.hasten(now, EntryId(id)),
            Verb::GiveUp(id) => _ = self.give_up(EntryId(id)),
            Verb::Reroute(id, new, to) => self.reroute(EntryId(id), EntryId(new), to),
            Verb::Floor(which, lowest) => {
                let scopes = [Scope::Mta, Scope::Peer(PEER), Scope::Channel(id(which % CHANNELS))];
                let scope = scopes[which % 3];
                let known = !matches!(scope, Scope::Channel(id) if self.m.line(id).is_none());
                assert_eq!(self.s.set_floor(now, scope, lowest), known);
                self.m.floors.retain(|(s, _)| *s != scope);
                self.m.floors.extend(lowest.filter(|_| known).map(|lowest| (scope, lowest)));
            }
            Verb::Configure(variant, policy) => self.configure(now, variant, policy),
            Verb::Drain => self.drain_notified(now),
            Verb::OpenWanted => self.open_wanted(now),
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
            Verb::Bar(c, barred) => self.barred[c] = barred,
            Verb::PeerOpens(c) => self.open[c][2] = 1,
            Verb::PeerCloses(c) => self.open[c][2] = 0,
            Verb::Receives(c, incoming) => self.incoming[c] = incoming,
            Verb::Wait(d) => {
                now = Instant(now.0 + d);
                if d > 0 {
                    self.wait(now);
                }
            }
            Verb::Shift(by) => self.shift(now, by),
            Verb::ExpiryWaits(waits) => self.let_expiry_wait(now, waits),
            Verb::StepBack(d) => self.s.tick(Instant(now.0.saturating_sub(d))),
            Verb::Opened(_) | Verb::OpenFailed(_) | Verb::Lost(_) => {}
        }
        self.m.settle();
        self.check_all(now);
        if !self.draining {
            self.agree(now);
        }
    }

    fn finish(&mut self, id: EntryId) -> Option<Row> {
        let at = self.m.rows.iter().position(|r| r.item.id == id);
        let row = at.map(|at| self.m.rows.remove(at));
        assert_eq!(self.s.finished(id).map(|item| item.id), row.as_ref().map(|r| r.item.id));
        if let Some(Row { at: At::InTransfer { .. }, item, .. }) = row
            && let Destination::Peer(peer) = item.destination
        {
            self.m.failures.retain(|(of, ..)| *of != peer);
        }
        row
    }

    fn hasten(&mut self, now: Instant, id: EntryId) {
        let delayed =
            |r: &&mut Row| !r.operator && matches!(r.at, At::Waiting { until } if until > now);
        let row = self.m.row(id).filter(delayed);
        assert_eq!(self.s.hasten(now, id), row.is_some());
        if let Some(row) = row {
            row.at = At::Waiting { until: Instant(0) };
        }
    }

    /// What a caller does with an item at rest: it is held until the order is durable, then it is gone.
    fn give_up(&mut self, id: EntryId) -> Option<Row> {
        let rests = |r: &Row| r.item.id == id && matches!(r.at, At::Waiting { .. });
        let at = self.m.rows.iter().position(rests)?;
        let was_held = self.m.rows[at].operator;
        assert_eq!(self.s.hold(id), !was_held);
        // Held, it starts nowhere and holds nothing.
        self.m.rows[at].operator = true;
        for channel in 0..CHANNELS {
            let start = self.s.peek(self.m.now, self::id(channel));
            assert!(start.is_none_or(|start| start.id != id));
        }
        let row = self.finish(id);
        row.map(|row| Row { operator: was_held, ..row })
    }

    fn reroute(&mut self, id: EntryId, new: EntryId, to: Destination) {
        if self.m.row(new).is_some() {
            return;
        }
        let Some(old) = self.give_up(id) else { return };
        assert_eq!(self.s.get(id), None);
        let item = Item { id: new, destination: to, not_before: Instant(0), ..old.item };
        self.step(Verb::Insert(item));
        if old.operator {
            self.step(Verb::Hold(new.0));
        }
    }

    fn shift(&mut self, now: Instant, by: i64) {
        let size = Duration::from_micros(by.unsigned_abs());
        self.s.shift(now, if by < 0 { Shift::Sooner(size) } else { Shift::Later(size) });
        let moved = |at: Instant| match at {
            NEVER => NEVER,
            Instant(at) => Instant(at.saturating_add_signed(by)),
        };
        for row in &mut self.m.rows {
            row.item.expires = moved(row.item.expires);
            row.item.alert_at = moved(row.item.alert_at);
            if row.failures == 0 && row.item.not_before != Instant(0) {
                row.item.not_before = moved(row.item.not_before);
                if let At::Waiting { until } = &mut row.at
                    && *until != Instant(0)
                {
                    *until = moved(*until);
                }
            }
            if row.at == At::Expired && !row.notified[1] {
                // The caller does not know yet that it had expired.
                row.at = At::Waiting { until: self.s.get(row.item.id).unwrap().not_before };
            }
            row.notified[2] &= row.item.alert_at <= now;
        }
    }

    fn let_expiry_wait(&mut self, now: Instant, waits: bool) {
        self.s.let_expiry_wait(now, waits);
        let begins = waits && !self.m.expiry_waits;
        self.m.expiry_waits = waits;
        for row in
            self.m.rows.iter_mut().filter(|r| begins && r.at == At::Expired && !r.notified[1])
        {
            row.at = At::Waiting { until: self.s.get(row.item.id).unwrap().not_before };
        }
    }

    fn retry(&mut self, now: Instant, id: EntryId, seed: u64) {
        let again = self.s.retry(now, id, seed);
        let row = self.m.in_transfer(id).cloned();
        assert_eq!(again.is_some(), row.is_some());
        let (Some(row), Some(again)) = (row, again) else { return };
        let At::InTransfer { since, .. } = row.at else { return };
        let mut failures = row.failures + 1;
        let retry = self.m.policy.retry[usize::from(row.item.precedence.number())];
        if let Destination::Peer(peer) = row.item.destination {
            let known = self.m.failures.iter().find(|(of, ..)| *of == peer).copied();
            let (_, count, last, until) = known.unwrap_or((peer, 0, Instant(0), Instant(0)));
            let new = if count == 0 || (since > last && since >= until) {
                (peer, count + 1, now, now + retry.delay(count + 1, 0).min(retry.least(count + 1)))
            } else {
                (peer, count, last, until)
            };
            self.m.failures.retain(|(of, ..)| *of != peer);
            self.m.failures.push(new);
            failures = failures.max(new.1);
        }
        assert_eq!(again, now + retry.delay(failures, seed ^ id.0));
        let row = self.m.row(id).unwrap();
        (row.failures, row.at) = (row.failures + 1, At::Waiting { until: again });
        (row.paused, row.notified[3]) = (false, false);
    }

    fn configure(&mut self, now: Instant, variant: usize, policy: Policy) {
        let rules = network(variant);
        self.s.configure(now, rules.clone(), policy);
        self.m.policy = policy;
        let old = std::mem::take(&mut self.m.lines);
        self.m.lines = rules
            .into_iter()
            .map(|rules| match old.iter().find(|l| l.rules.id == rules.id) {
                Some(known) => Line { rules, ..known.clone() },
                None => line(rules),
            })
            .collect();
        for channel in 0..CHANNELS {
            let is = |lines: &[Line]| lines.iter().any(|l| l.rules.id == id(channel));
            match (is(&old), is(&self.m.lines)) {
                // Transfers there still have their associations.
                (false, true) => self.open[channel] = [self.on(channel).len() as u32, 0, 0],
                (true, false) => {
                    self.m.floors.retain(|(s, _)| *s != Scope::Channel(id(channel)));
                }
                _ => {}
            }
        }
    }

    fn open_wanted(&mut self, now: Instant) {
        let wanted: Vec<Open> = self.s.wanted(now).collect();
        for open in wanted {
            let at = (0..CHANNELS).find(|c| id(*c) == open.channel).unwrap();
            self.open[at][1] += 1;
            let rules = &self.m.line(open.channel).unwrap().rules;
            let max = rules.max + u32::from(open.urgent);
            let [ours, opening, _] = self.open[at];
            assert!(ours + opening <= max, "{open:?}: {ours} open, {opening} opening");
        }
    }

    /// With all channels up and no floor, everything that may leave does leave: nothing is lost.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        let policy = self.m.policy;
        self.step(Verb::Configure(0, policy));
        self.step(Verb::ExpiryWaits(false));
        for which in 0..12 {
            self.step(Verb::Floor(which, None));
            self.step(Verb::Bar(which % CHANNELS, false));
            self.step(Verb::Receives(which % CHANNELS, 0));
        }
        for id in IDS {
            self.step(Verb::Release(id));
        }
        for _ in 0..IDS.end + 3 {
            self.step(Verb::OpenWanted);
            self.step(Verb::Wait(1_800_000_000));
            for channel in 0..CHANNELS {
                self.step(Verb::Opened(channel));
                self.next(self.m.now, channel);
                self.check_all(self.m.now);
            }
            for mailbox in 0..2 {
                self.step(Verb::Mailbox(mailbox));
            }
            self.drain_notified(self.m.now);
            let waits = |r: &&Row| !matches!(r.at, At::Waiting { .. });
            let done: Vec<EntryId> = self.m.rows.iter().filter(waits).map(|r| r.item.id).collect();
            for id in done {
                self.step(Verb::Finished(id.0));
            }
        }
        // Except items that no channel ever carries.
        let stays = |r: &Row| {
            r.item.destination == Destination::Peer(PeerId(8))
                && r.item.precedence == Precedence::Flash
        };
        assert!(self.m.rows.iter().all(stays), "{:?}", self.m.rows);
        assert_eq!(self.s.len(), self.m.rows.len());
    }
}

/// Everything that time alone might change.
fn snapshot(m: &Model) -> impl PartialEq + std::fmt::Debug + use<> {
    let starts = m.lines.iter().map(|l| m.startable(l.rules.id)).collect::<Vec<_>>();
    let lines = m.lines.iter().map(|l| (m.wanted(l), m.surplus(l))).collect::<Vec<_>>();
    let row = |r: &Row| (r.item.id, r.paused, r.at == At::Expired, r.item.alert_at <= m.now);
    (starts, lines, m.rows.iter().map(row).collect::<Vec<_>>())
}
