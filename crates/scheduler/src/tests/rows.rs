//! The model's data: unsorted rows and lines. No rule is here.

use crate::*;
use base::{EntryId, Instant, PeerId, Precedence};
use std::cmp::Reverse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Waiting { until: Instant },
    InTransfer { channel: Option<ChannelId>, since: Instant, progress: Instant, share: bool },
    Expired,
}
use At::InTransfer;

/// An item, and which of its states the scheduler has returned: held, expired, overdue, paused.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) item: Item,
    pub(super) at: At,
    pub(super) failures: u32,
    pub(super) operator: bool,
    pub(super) paused: bool,
    pub(super) notified: [bool; 4],
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) rules: ChannelRules,
    pub(super) seen: Associations,
    pub(super) absent: Option<Instant>,
    pub(super) free: Option<Instant>,
}

#[derive(Clone)]
pub(super) struct Model {
    pub(super) expiry_waits: bool,
    pub(super) now: Instant,
    pub(super) policy: Policy,
    pub(super) rows: Vec<Row>,
    pub(super) lines: Vec<Line>,
    pub(super) floors: Vec<(Scope, Precedence)>,
    pub(super) credit: Vec<(PeerId, u64)>,
    /// Consecutive failures, and when the last was counted.
    pub(super) failures: Vec<(PeerId, u32, Instant, Instant)>,
}

pub(super) fn highest_first() -> impl Iterator<Item = Precedence> {
    Precedence::ALL.into_iter().rev()
}

impl Model {
    pub(super) fn row(&mut self, id: EntryId) -> Option<&mut Row> {
        self.rows.iter_mut().find(|r| r.item.id == id)
    }
    pub(super) fn in_transfer(&mut self, id: EntryId) -> Option<&mut Row> {
        self.row(id).filter(|r| matches!(r.at, InTransfer { .. }))
    }
    pub(super) fn is_ready(&self, row: &Row) -> bool {
        !row.operator && matches!(row.at, At::Waiting { until } if until <= self.now)
    }
    pub(super) fn rows_of(&self, to: Destination, p: Precedence) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |r| r.item.destination == to && r.item.precedence == p)
    }
    pub(super) fn line(&self, id: ChannelId) -> Option<&Line> {
        self.lines.iter().find(|l| l.rules.id == id)
    }
    pub(super) fn credit(&mut self, peer: PeerId) -> &mut u64 {
        let at = self.credit.iter().position(|(of, _)| *of == peer);
        let at = at.unwrap_or_else(|| {
            self.credit.push((peer, 0));
            self.credit.len() - 1
        });
        &mut self.credit[at].1
    }
    pub(super) fn newly_held(&self, id: ChannelId) -> Option<(EntryId, Reason)> {
        highest_first().find_map(|p| {
            self.would_carry(self.line(id)?, p)?;
            let reason = self.held(id.peer, p)?;
            self.ready(id.peer, p).first().filter(|r| !r.notified[0]).map(|r| (r.item.id, reason))
        })
    }

    // The status for an operator.
    pub(super) fn held_because(&self, row: &Row) -> Option<Reason> {
        let by_operator = matches!(row.at, At::Waiting { .. }) && row.operator;
        match row.item.destination {
            _ if by_operator => Some(Reason::Operator),
            Destination::Peer(peer) if self.is_ready(row) => self.held(peer, row.item.precedence),
            _ => None,
        }
    }
    pub(super) fn level(&self, to: Destination, p: Precedence) -> LevelStatus {
        let mut level = LevelStatus::default();
        let mut rows: Vec<&Row> = self.rows_of(to, p).collect();
        rows.sort_by_key(|r| (r.item.accepted, r.item.id));
        for r in rows {
            level.overdue += u64::from(r.item.alert_at <= self.now);
            match r.at {
                At::Expired => level.expired += 1,
                InTransfer { .. } => {
                    level.in_transfer += 1;
                    level.paused += u64::from(r.paused);
                }
                At::Waiting { .. } => {
                    (level.queued, level.bytes) = (level.queued + 1, level.bytes + r.item.size);
                    level.oldest = level.oldest.or(Some(r.item.accepted));
                    let why = self.held_because(r);
                    level.first_held =
                        level.first_held.or(why.map(|why| (r.item.accepted, r.item.id, why)));
                    match why {
                        Some(Reason::Operator) => level.operator += 1,
                        Some(Reason::Minimize(_)) => level.minimized += 1,
                        Some(_) => level.held += 1,
                        None => level.delayed += u64::from(!self.is_ready(r)),
                    }
                }
            }
        }
        level
    }
    pub(super) fn next_for_mailbox(&self, mailbox: u32) -> Option<EntryId> {
        let mine =
            |r: &&Row| r.item.destination == Destination::Mailbox(mailbox) && self.is_ready(r);
        let order = |r: &&Row| (Reverse(r.item.precedence), r.item.accepted, r.item.id);
        self.rows.iter().filter(mine).min_by_key(order).map(|r| r.item.id)
    }
}
