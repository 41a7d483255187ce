//! The model: the nine rules in naive form, recomputed from unsorted rows.

use super::rows::{At, At::InTransfer, Line, Model, Row, highest_first};
use crate::*;
use base::{EntryId, PeerId, Precedence};
use std::cmp::Reverse;

impl Model {
    /// Ready items of a precedence for a peer, first in first out: rule 3.
    pub(super) fn ready(&self, peer: PeerId, p: Precedence) -> Vec<&Row> {
        let of = self.rows_of(Destination::Peer(peer), p);
        let mut ready: Vec<&Row> = of.filter(|r| self.is_ready(r)).collect();
        ready.sort_by_key(|r| (r.item.accepted, r.item.id));
        ready
    }
    pub(super) fn see(&mut self, id: ChannelId, seen: Associations) {
        let now = self.now;
        let Some(l) = self.lines.iter_mut().find(|l| l.rules.id == id) else { return };
        let lacking = seen.usable == 0 && !seen.barred && (seen.changing > 0 || seen.failing);
        let at_rest = seen.free > 0 && seen.changing == 0;
        l.free = at_rest.then(|| l.free.unwrap_or(now));
        l.absent = lacking.then(|| l.absent.unwrap_or(now));
        l.seen = seen;
    }
    pub(super) fn down(&self, line: &Line) -> bool {
        let lost = line.absent.is_some_and(|at| self.now.since(at) >= self.policy.patience);
        lost || (line.seen.barred && line.seen.usable == 0)
    }

    // Rule 6.
    pub(super) fn below(&self, scope: Scope, p: Precedence) -> Option<Floor> {
        let mut floors = self.floors.iter().filter(|(s, lowest)| *s == scope && p < *lowest);
        floors.next().map(|(scope, lowest)| Floor { lowest: *lowest, scope: *scope })
    }
    pub(super) fn below_peer(&self, peer: PeerId, p: Precedence) -> Option<Floor> {
        self.below(Scope::Mta, p).or_else(|| self.below(Scope::Peer(peer), p))
    }
    fn owns(line: &Line, p: Precedence) -> bool {
        line.rules.precedences.contains(&p)
    }
    fn able(&self, peer: PeerId, p: Precedence) -> Vec<&Line> {
        let able = |l: &&Line| Model::owns(l, p) || l.rules.fallback.contains(&p);
        self.lines.iter().filter(|l| l.rules.id.peer == peer).filter(able).collect()
    }
    fn carriers(&self, peer: PeerId, p: Precedence) -> Vec<&Line> {
        let bars = |l: &Line| self.below(Scope::Channel(l.rules.id), p).is_some();
        let able = self.able(peer, p);
        let up_but_barred = able.iter().any(|l| Model::owns(l, p) && bars(l) && !self.down(l));
        let free = |l: &&Line| !bars(l) && (Model::owns(l, p) || !up_but_barred);
        able.into_iter().filter(free).collect()
    }
    pub(super) fn has_channel(&self, peer: PeerId, p: Precedence) -> bool {
        self.carriers(peer, p).iter().any(|l| !self.down(l))
    }
    fn minimized(&self, peer: PeerId, p: Precedence) -> Option<Reason> {
        let barred = || {
            self.able(peer, p).into_iter().find_map(|l| self.below(Scope::Channel(l.rules.id), p))
        };
        let none = self.carriers(peer, p).is_empty();
        self.below_peer(peer, p).or_else(|| barred().filter(|_| none)).map(Reason::Minimize)
    }

    // Rules 1 and 2.
    fn alive(&self, peer: PeerId, p: Precedence) -> Option<EntryId> {
        let transfers = self.rows_of(Destination::Peer(peer), p).filter(|r| !r.paused);
        let alive = transfers.filter_map(|r| match r.at {
            InTransfer { progress, .. } => Some((progress, r.item.id)),
            _ => None,
        });
        alive.max().filter(|t| self.now.since(t.0) < self.policy.stall).map(|t| t.1)
    }
    pub(super) fn holder(&self, peer: PeerId, p: Precedence) -> Option<Reason> {
        let could = self.below_peer(peer, p).is_none() && !self.carriers(peer, p).is_empty();
        let waits =
            self.ready(peer, p).first().filter(|_| could).map(|r| Reason::Waiting(p, r.item.id));
        self.alive(peer, p).map(|id| Reason::InTransfer(p, id)).or(waits)
    }
    fn is_passed(&self, peer: PeerId, p: Precedence) -> bool {
        self.policy.hold == Hold::Conserving && !self.has_channel(peer, p)
    }
    /// The precedence passed, or the reason for the hold.
    fn standing(&self, peer: PeerId, p: Precedence) -> Result<Option<Precedence>, Reason> {
        let on = self.policy.hold != Hold::Off;
        let above: Vec<_> = highest_first().filter(|a| on && *a > p).collect();
        let holders = above.into_iter().filter_map(|a| Some((a, self.holder(peer, a)?)));
        let (passed, held): (Vec<_>, Vec<_>) = holders.partition(|(a, _)| self.is_passed(peer, *a));
        held.first().map_or(Ok(passed.first().map(|(a, _)| *a)), |(_, why)| Err(*why))
    }
    pub(super) fn held(&self, peer: PeerId, p: Precedence) -> Option<Reason> {
        self.minimized(peer, p).or(self.standing(peer, p).err())
    }

    // Rule 5: whether a channel may carry a precedence, and if so whether as a fallback.
    pub(super) fn would_carry(&self, line: &Line, p: Precedence) -> Option<bool> {
        let able = self.able(line.rules.id.peer, p);
        let down = able.iter().filter(|l| Model::owns(l, p)).all(|l| self.down(l));
        let fallback = line.rules.fallback.contains(&p) && down;
        (Model::owns(line, p) || fallback).then_some(!Model::owns(line, p))
    }

    // Rule 7: the earliest accepted item that rule 1 alone holds, and the credit left after its
    // start.
    fn starving(&self, peer: PeerId, below: Option<Precedence>) -> Option<&Row> {
        self.policy.share?;
        let alone =
            |p: &Precedence| self.below_peer(peer, *p).is_none() && self.has_channel(peer, *p);
        let held = highest_first().filter(|p| below.is_none_or(|b| *p < b) && alone(p));
        let firsts = held
            .filter(|p| self.standing(peer, *p).is_err())
            .filter_map(|p| self.ready(peer, p).first().copied());
        firsts.min_by_key(|r| (r.item.accepted, r.item.id))
    }
    pub(super) fn account(&mut self, peer: PeerId, start: Start) {
        let size = self.row(start.id).unwrap().item.size.max(1);
        let share = u64::from(self.policy.share.unwrap_or(1));
        let next = self.starving(peer, None).map(|r| r.item.size.max(1));
        let earns = self.starving(peer, Some(start.precedence)).is_some();
        let earned = (size * share / (100 - share)).max(1);
        let credit = self.credit(peer);
        *credit = match next {
            None => 0,
            Some(_) if start.reason.share => *credit - size,
            Some(next) if earns => (*credit).max((*credit + earned).min(earned.max(next))),
            Some(_) => *credit,
        };
    }
    pub(super) fn startable(&self, id: ChannelId) -> Vec<Start> {
        let Some(line) = self.line(id) else { return Vec::new() };
        let credit = self.credit.iter().find(|(of, _)| *of == id.peer).map_or(0, |c| c.1);
        let affordable = self.starving(id.peer, None).filter(|r| r.item.size.max(1) <= credit);
        let start = |p: Precedence| {
            let first = self.ready(id.peer, p).first().map(|r| r.item.id)?;
            let fallback = self.would_carry(line, p)?;
            let standing = self.standing(id.peer, p);
            let share = standing.is_err() && affordable.is_some_and(|r| r.item.id == first);
            let barred = self.below_peer(id.peer, p).or(self.below(Scope::Channel(id), p));
            let passes = standing.ok().or(share.then_some(None)).filter(|_| barred.is_none())?;
            Some(Start {
                id: first,
                precedence: p,
                reason: StartReason { passes, fallback, share },
            })
        };
        highest_first().filter_map(start).collect()
    }
    pub(super) fn pick(&self, id: ChannelId) -> Option<Start> {
        let startable = self.startable(id);
        startable.iter().find(|s| s.reason.share).or(startable.first()).copied()
    }
    // Rule 4.
    fn urgent(&self, id: ChannelId) -> bool {
        let on = |r: &&Row| matches!(r.at, InTransfer { channel, .. } if channel == Some(id));
        let busy = self.rows.iter().filter(on).map(|r| r.item.precedence).max();
        let may = self.startable(id);
        let Some(busy) = busy else {
            let seen = self.line(id).map(|l| l.seen).unwrap_or_default();
            let only = seen.usable <= seen.free + seen.receiving;
            return !may.is_empty() && seen.receiving != 0 && only;
        };
        may.iter().any(|s| s.precedence > busy)
    }
    pub(super) fn wanted(&self, line: &Line) -> Option<Open> {
        let (rules, seen, id) = (&line.rules, line.seen, line.rules.id);
        let may = self.startable(id);
        let crowd =
            |s: &Start| if s.reason.share { 1 } else { self.ready(id.peer, s.precedence).len() };
        let crowded = may.iter().map(crowd).max().unwrap_or(0) >= rules.grow_at as usize;
        let busy = seen.changing == 0 && seen.free == 0 && seen.ours > 0 && !seen.barred;
        let first = seen.ours == 0 && !seen.barred && (rules.permanent || !may.is_empty());
        let urgent = busy && seen.ours < rules.max + 1 && self.urgent(id);
        let grow = busy && seen.ours < rules.max && crowded;
        (first || urgent || grow).then_some(Open { channel: id, urgent })
    }
    pub(super) fn surplus(&self, line: &Line) -> bool {
        let Line { rules, seen, free, .. } = line;
        let spare = seen.ours > 1 && seen.changing == 0 && seen.free > 0;
        let kept = free.is_some_and(|since| self.now.since(since) >= rules.keep);
        spare && !self.urgent(rules.id) && (kept || seen.ours > rules.max)
    }

    /// Rule 8 and the second half of rule 9: the effect of time and of other items on the rows.
    pub(super) fn settle(&mut self) {
        let (now, waits) = (self.now, self.expiry_waits);
        for r in self.rows.iter_mut().filter(|r| !waits && r.item.expires <= now) {
            r.at = if matches!(r.at, At::Waiting { .. }) { At::Expired } else { r.at };
        }
        self.rows.sort_by_key(|r| Reverse(r.item.precedence));
        for at in 0..self.rows.len() {
            let Row { item, at: InTransfer { share, .. }, .. } = self.rows[at] else { continue };
            let Destination::Peer(peer) = item.destination else { continue };
            let on = self.policy.preempt && self.policy.hold != Hold::Off && !share;
            let above = highest_first().filter(|a| on && *a > item.precedence);
            let fresh = |a: &Precedence| {
                self.rows_of(item.destination, *a).any(|r| matches!(r.at, InTransfer { progress, .. } if now.since(progress) < self.policy.stall))
            };
            let pauses = above.filter(fresh).any(|a| !self.is_passed(peer, a));
            let row = &mut self.rows[at];
            if let InTransfer { progress, .. } = &mut row.at
                && row.paused
                && !pauses
            {
                *progress = now;
            }
            row.paused = pauses;
        }
    }
}
