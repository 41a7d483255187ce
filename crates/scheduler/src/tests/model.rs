//! The rules once more, naively: one unsorted `Vec` of rows, everything recomputed from it.

use crate::*;
use base::{EntryId, Instant, PeerId, Precedence, Utc};
use std::cmp::Reverse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Waiting { until: Instant },
    InTransfer { channel: Option<ChannelId>, progress: Instant },
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) item: Item,
    pub(super) at: At,
    pub(super) failures: u32,
    pub(super) operator: bool,
    pub(super) told: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) rules: ChannelRules,
    pub(super) seen: Associations,
    absent: Option<Instant>,
    free: Option<Instant>,
}

pub(super) struct Model {
    pub(super) now: Instant,
    pub(super) policy: Policy,
    pub(super) rows: Vec<Row>,
    pub(super) lines: Vec<Line>,
}

impl Model {
    pub(super) fn new(rules: Vec<ChannelRules>, policy: Policy) -> Model {
        let line = |rules| Line { rules, seen: Associations::default(), absent: None, free: None };
        let lines = rules.into_iter().map(line).collect();
        Model { now: Instant(0), policy, rows: Vec::new(), lines }
    }

    pub(super) fn row(&mut self, id: EntryId) -> Option<&mut Row> {
        self.rows.iter_mut().find(|r| r.item.id == id)
    }

    pub(super) fn in_transfer(&mut self, id: EntryId) -> Option<&mut Row> {
        self.row(id).filter(|r| matches!(r.at, At::InTransfer { .. }))
    }

    pub(super) fn is_ready(&self, row: &Row) -> bool {
        !row.operator && matches!(row.at, At::Waiting { until } if until <= self.now)
    }

    fn is_for(row: &Row, peer: PeerId, precedence: Precedence) -> bool {
        row.item.destination == Destination::Peer(peer) && row.item.precedence == precedence
    }

    /// Ready ones for a peer of a precedence, first in first out.
    pub(super) fn ready(&self, peer: PeerId, p: Precedence) -> Vec<&Row> {
        let mut ready: Vec<&Row> =
            self.rows.iter().filter(|r| Model::is_for(r, peer, p) && self.is_ready(r)).collect();
        ready.sort_by_key(|r| (r.item.accepted, r.item.id));
        ready
    }

    pub(super) fn line(&self, id: ChannelId) -> &Line {
        self.lines.iter().find(|l| l.rules.id == id).unwrap()
    }

    pub(super) fn see(&mut self, id: ChannelId, seen: Associations) {
        let now = self.now;
        let line = self.lines.iter_mut().find(|l| l.rules.id == id).unwrap();
        line.seen = seen;
        let lacking = seen.usable == 0 && (seen.changing > 0 || seen.failing);
        let at_rest = seen.free > 0 && seen.changing == 0;
        line.free = at_rest.then(|| line.free.unwrap_or(now));
        line.absent = lacking.then(|| line.absent.unwrap_or(now));
    }

    pub(super) fn down(&self, line: &Line) -> bool {
        line.absent.is_some_and(|since| self.now.since(since) >= self.policy.patience)
    }

    fn able(&self, peer: PeerId, p: Precedence) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |l| {
            let rules = &l.rules;
            rules.id.peer == peer
                && [&rules.precedences, &rules.fallback].iter().any(|s| s.contains(&p))
        })
    }

    pub(super) fn way(&self, peer: PeerId, p: Precedence) -> bool {
        self.able(peer, p).any(|l| !self.down(l))
    }

    /// Rule 1, of one higher precedence.
    pub(super) fn holder(&self, peer: PeerId, p: Precedence) -> Option<Reason> {
        let alive =
            self.rows.iter().filter(|r| Model::is_for(r, peer, p)).filter_map(|r| match r.at {
                At::InTransfer { progress, .. } if self.now.since(progress) < self.policy.stall => {
                    Some((progress, r.item.id))
                }
                _ => None,
            });
        if let Some((_, id)) = alive.max() {
            return Some(Reason::InTransfer(p, id));
        }
        let first = self.ready(peer, p).first().map(|r| r.item.id)?;
        self.able(peer, p).next().map(|_| Reason::Waiting(p, first))
    }

    /// Rules 1 and 2: what is passed, or what holds.
    pub(super) fn standing(
        &self,
        peer: PeerId,
        p: Precedence,
    ) -> Result<Option<Precedence>, Reason> {
        let mut passes = None;
        for above in Precedence::ALL.into_iter().rev().filter(|a| *a > p) {
            match self.holder(peer, above) {
                Some(_) if self.policy.hold == Hold::Off => {}
                Some(_) if self.policy.hold == Hold::Conserving && !self.way(peer, above) => {
                    passes = passes.max(Some(above));
                }
                Some(reason) => return Err(reason),
                None => {}
            }
        }
        Ok(passes)
    }

    /// Rule 5: whether a channel may carry a precedence, and if so whether as a fallback.
    pub(super) fn carries(&self, id: ChannelId, p: Precedence) -> Option<bool> {
        let rules = &self.line(id).rules;
        if rules.precedences.contains(&p) {
            return Some(false);
        }
        let peers = self.lines.iter().filter(|l| l.rules.id.peer == id.peer);
        let owners: Vec<&Line> = peers.filter(|l| l.rules.precedences.contains(&p)).collect();
        (rules.fallback.contains(&p) && owners.iter().all(|l| self.down(l))).then_some(true)
    }

    pub(super) fn startable(&self, id: ChannelId) -> Vec<Start> {
        let start = |p: Precedence| {
            let first = self.ready(id.peer, p).first().map(|r| r.item.id)?;
            let fallback = self.carries(id, p)?;
            let passes = self.standing(id.peer, p).ok()?;
            Some(Start { id: first, precedence: p, licence: Licence { passes, fallback } })
        };
        Precedence::ALL.into_iter().rev().filter_map(start).collect()
    }

    pub(super) fn newly_held(&self, id: ChannelId) -> Option<(EntryId, Reason)> {
        Precedence::ALL.into_iter().rev().find_map(|p| {
            self.carries(id, p)?;
            let reason = self.standing(id.peer, p).err()?;
            let ready = self.ready(id.peer, p);
            ready.first().filter(|r| !r.told).map(|r| (r.item.id, reason))
        })
    }

    fn urgent(&self, id: ChannelId) -> bool {
        let on = |r: &&Row| matches!(r.at, At::InTransfer { channel, .. } if channel == Some(id));
        let busy = self.rows.iter().filter(on).map(|r| r.item.precedence).max();
        busy.is_some_and(|busy| self.startable(id).iter().any(|s| s.precedence > busy))
    }

    /// Most messages of one precedence that could start.
    fn crowd(&self, id: ChannelId) -> u64 {
        let crowds =
            self.startable(id).into_iter().map(|s| self.ready(id.peer, s.precedence).len());
        crowds.max().unwrap_or(0) as u64
    }

    pub(super) fn wanted(&self, line: &Line) -> Option<Open> {
        let (rules, seen, id) = (&line.rules, line.seen, line.rules.id);
        let all_busy = seen.changing == 0 && seen.free == 0 && seen.ours > 0;
        let first = seen.ours == 0 && (rules.permanent || !self.startable(id).is_empty());
        let urgent = all_busy && seen.ours < rules.max + 1 && self.urgent(id);
        let grow = all_busy && seen.ours < rules.max && self.crowd(id) >= u64::from(rules.grow_at);
        (first || urgent || grow).then_some(Open { channel: id, urgent })
    }

    pub(super) fn surplus(&self, id: ChannelId) -> bool {
        let Line { rules, seen, free, .. } = self.line(id);
        let spare = seen.ours > 1 && seen.changing == 0 && seen.free > 0;
        let kept = free.is_some_and(|since| self.now.since(since) >= rules.keep);
        spare && !self.urgent(id) && (kept || seen.ours > rules.max)
    }

    pub(super) fn held_because(&self, id: EntryId) -> Option<Reason> {
        let row = self.rows.iter().find(|r| r.item.id == id)?;
        match (row.at, row.item.destination) {
            (At::InTransfer { .. }, _) => None,
            _ if row.operator => Some(Reason::Operator),
            (_, Destination::Peer(peer)) if self.is_ready(row) => {
                self.standing(peer, row.item.precedence).err()
            }
            _ => None,
        }
    }

    /// What waits of these rows.
    pub(super) fn status<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> QueueStatus {
        let (mut status, mut oldest_held) = (QueueStatus::default(), None::<(Utc, EntryId)>);
        for r in rows.filter(|r| matches!(r.at, At::Waiting { .. })) {
            let n = usize::from(r.item.precedence.number());
            status.by_precedence[n] += 1;
            status.bytes += r.item.size;
            status.oldest = status.oldest.into_iter().chain([r.item.accepted]).min();
            if self.held_because(r.item.id).is_some() {
                status.held[n] += 1;
                let key = (r.item.accepted, r.item.id);
                oldest_held = oldest_held.into_iter().chain([key]).min();
            }
        }
        status.oldest_held = oldest_held.map(|(_, id)| id);
        status
    }

    pub(super) fn channel_status(&self, id: ChannelId) -> QueueStatus {
        let home = |p| {
            self.lines
                .iter()
                .find(|l| l.rules.id.peer == id.peer && l.rules.precedences.contains(&p))
        };
        let mine = |r: &&Row| {
            r.item.destination == Destination::Peer(id.peer)
                && home(r.item.precedence).is_some_and(|l| l.rules.id == id)
        };
        self.status(self.rows.iter().filter(mine))
    }

    pub(super) fn next_for_mailbox(&self, mailbox: u32) -> Option<EntryId> {
        let mine =
            |r: &&Row| r.item.destination == Destination::Mailbox(mailbox) && self.is_ready(r);
        let order = |r: &&Row| (Reverse(r.item.precedence), r.item.accepted, r.item.id);
        self.rows.iter().filter(mine).min_by_key(order).map(|r| r.item.id)
    }
}
