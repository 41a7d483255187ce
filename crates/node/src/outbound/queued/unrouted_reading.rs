//! Entries for peers that are no longer configured are read and routed again.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::RETRY_AFTER;
use crate::commits::pending::PendingAnswer;
use crate::context::Context;
use crate::error::{self, ReadError};
use crate::outbound::Outbound;
use crate::queue::is_at_rest;
use base::{EntryId, Instant, Now, PeerId, Precedence};
use bytes::Bytes;
use engine::NextHop;
use scheduler::Destination;
use std::collections::BTreeSet;

/// Entries being read to be routed again, or not yet durably so, at once.
const MAX_READ: usize = 32;

/// What is queued for a peer that is not configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Nothing,
    /// Only what waits for another configuration.
    LedBack,
    Some,
}

impl Outbound {
    /// Peers that are gone leave what is queued for them.
    pub(crate) fn find_unrouted(&mut self, cx: &mut Context, old: &BTreeSet<PeerId>) {
        self.unrouted.peers.extend(old);
        let config = &cx.config;
        self.unrouted.peers.retain(|peer| config.peer(*peer).is_none());
        self.unrouted.led_back.clear();
        self.unrouted.looked_at.clear();
    }

    /// The peer that an unrouted entry came from, if its route leads back there.
    pub(crate) fn led_back(&self, id: EntryId) -> Option<&str> {
        self.unrouted.led_back.get(&id).map(String::as_str)
    }

    /// An entry is queued for this peer. If the peer is not configured, the entry is unrouted.
    pub(crate) fn note_unrouted(&mut self, cx: &mut Context, peer: PeerId) {
        if cx.config.peer(peer).is_none() {
            self.unrouted.peers.insert(peer);
            self.unrouted.looked_at.remove(&peer);
        }
    }

    /// Peers that are no longer configured, and for which something may be queued.
    pub(crate) fn unrouted_peers(&self) -> impl Iterator<Item = PeerId> + use<'_> {
        self.unrouted.peers.iter().copied()
    }

    /// Whether it is one of these.
    pub(crate) fn is_unrouted(&self, peer: PeerId) -> bool {
        self.unrouted.peers.contains(&peer)
    }

    fn room_for_unrouted(&self, cx: &Context) -> usize {
        cx.room_for_retries(self.unrouted.reading.len(), MAX_READ)
    }

    /// When to read again after the store failed, where there is room: what makes room wakes us.
    pub(crate) fn unrouted_deadline(&self, cx: &Context) -> Option<Instant> {
        self.unrouted.not_before.filter(|_| self.room_for_unrouted(cx) > 0)
    }

    /// Has the next unrouted read, as many at once as may be.
    pub(crate) fn read_unrouted(&mut self, cx: &mut Context, now: Now) {
        if self.room_for_unrouted(cx) == 0 {
            return;
        }
        if self.unrouted.not_before.is_some_and(|at| at > now.mono) {
            return;
        }
        self.unrouted.not_before = None;
        let peers: Vec<PeerId> =
            self.unrouted.peers.difference(&self.unrouted.looked_at).copied().collect();
        for peer in peers {
            let mut left = Left::Nothing;
            for precedence in Precedence::ALL.into_iter().rev() {
                left = left.max(self.read_unrouted_of(cx, peer, precedence));
            }
            match left {
                Left::Nothing => _ = self.unrouted.peers.remove(&peer),
                Left::LedBack => _ = self.unrouted.looked_at.insert(peer),
                Left::Some => {}
            }
        }
    }

    /// What is left. What is in transfer, or reported as expired, is left alone: it comes back here or goes.
    fn read_unrouted_of(&mut self, cx: &mut Context, peer: PeerId, precedence: Precedence) -> Left {
        let (mut left, mut after) = (Left::Nothing, None);
        while self.room_for_unrouted(cx) > 0 {
            let to = Destination::Peer(peer);
            let page = cx.queue.scheduler.list(to, precedence, after, MAX_READ);
            let Some(last) = page.last() else { return left };
            after = Some((last.item.accepted, last.item.id));
            for listed in &page {
                let id = listed.item.id;
                if self.unrouted.led_back.contains_key(&id) {
                    left = left.max(Left::LedBack);
                    continue;
                }
                left = Left::Some;
                let room = self.room_for_unrouted(cx) > 0;
                if is_at_rest(listed.at) && room && self.unrouted.reading.insert(id) {
                    let token = cx.token(PendingAnswer::Unrouted { entry: id });
                    cx.output(Output::Load { token, precedence, id });
                }
            }
        }
        Left::Some
    }

    /// The record of an unrouted entry was read.
    pub(crate) fn unrouted_loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        self.unrouted.reading.remove(&entry);
        let listed = cx.queue.scheduler.listed(entry);
        if listed.is_none_or(|listed| !is_at_rest(listed.at)) {
            return; // it expired meanwhile
        }
        match error::record(result) {
            Ok(record) => {
                let NextHop::Peer(peer) = record.next_hop else { return };
                // It may be there again.
                if cx.config.peer(peer).is_none() {
                    self.reroute(cx, now, entry, &record);
                }
            }
            Err(error) if error.is_damage() => {
                self.set_record_aside(cx, now, None, entry, &error);
            }
            Err(error) if cx.queue.went(entry, &error) => {}
            Err(error) => {
                cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string()).entry(entry);
                self.unrouted.not_before = Some(now.mono + RETRY_AFTER);
            }
        }
    }
}
