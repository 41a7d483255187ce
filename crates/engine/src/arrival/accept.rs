//! Accepts what arrives over P1 (X.411 14.3, 14.4).

use crate::arrival::dedupe::arrival_keys;
use crate::arrival::prepare::Preparation;
use crate::journal::Digest;
use crate::onward::delivered::{Delivering, delivery_keys, fingerprint_of, identifies};
use crate::onward::split::Origin;
use crate::outcome::{Accepted, Arrival, Note, NoteKind, Seen};
use crate::record::NextHop;
use crate::subject::{Carried, StoredContent};
use crate::{Content, Engine};
use base::Utc;
use bytes::Bytes;
use p1::ContentLabels;
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::PerRecipientFields;
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// Accepts a transfer from a peer. `seen` is what the store remembers under each of [`keys`],
    /// in their order, `None` where nothing is remembered or no key is given. Recipients that are
    /// remembered are dropped; the others are processed.
    ///
    /// A message that has looped has a longer trace, and so another arrival key than on its first
    /// visit: it is not dropped as a duplicate but reported as a loop. Whatever was delivered here
    /// is dropped by whichever path it arrives again, without a report. The clearance of the peer is not
    /// asked: see [`Preparation::from_peer`].
    pub fn accept(
        &mut self,
        now: Utc,
        head: MtsApduHead,
        content: &Content,
        seen: &[Option<Bytes>],
    ) -> Arrival {
        let mut prepared = self.begin(&head);
        self.prepare(&mut prepared, &head, usize::MAX);
        self.accept_prepared(now, head, content, prepared, seen)
    }

    /// The same after [`Engine::prepare`] has done the work that grows with the recipients.
    pub fn accept_prepared(
        &mut self,
        now: Utc,
        head: MtsApduHead,
        content: &Content,
        prepared: Preparation,
        seen: &[Option<Bytes>],
    ) -> Arrival {
        let keys = prepared.keys();
        let known = Known::new(&head, content, &keys, seen);
        let transfer = Transfer { known: &known, prepared };
        let fingerprint = fingerprint_of(&head, &content.digest);
        let mut notes = known.notes();
        let (message, mut accepted) = match head {
            MtsApduHead::Message(e) => {
                let message = e.message_identifier.to_string();
                let carried = without_seen(Carried::Message(e), &known.dropped);
                (message, self.take(now, carried, Some(content), transfer, &mut notes))
            }
            MtsApduHead::Probe(e) => {
                let message = e.probe_identifier.to_string();
                let carried = without_seen(Carried::Probe(e), &known.dropped);
                (message, self.take(now, carried, None, transfer, &mut notes))
            }
            MtsApduHead::Report(report) => {
                let message = report.envelope.report_identifier.to_string();
                (message, self.take_report(now, *report, content, &known, &mut notes))
            }
        };
        known.remember_arrival(now, fingerprint, &mut accepted.seen);
        Arrival { accepted, message, notes }
    }

    fn take(
        &mut self,
        now: Utc,
        carried: Carried,
        content: Option<&Content>,
        transfer: Transfer<'_>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        if !carried.subject().recipients.iter().any(|r| r.indicators.responsible()) {
            return Accepted::default();
        }
        let Transfer { known, prepared } = transfer;
        let origin = Origin::Transfer(known);
        self.distribute(now, carried, content, origin, Some(prepared), notes)
    }

    fn take_report(
        &mut self,
        now: Utc,
        mut report: Report,
        content: &Content,
        known: &Known<'_>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        if known.dropped.contains(&true) {
            return Accepted::default();
        }
        // A returned content that was received apart from the report has an empty one in its place.
        let returned = report.content.returned_content.take_if(|octets| octets.is_empty());
        let labels = (&report.envelope.extensions, &ContentLabels::default());
        let destination = &report.envelope.destination;
        let returned = returned.filter(|_| self.returns_to_cleared(labels, destination, notes));
        let returned = returned.map(|_| StoredContent {
            body: self.ids.body(),
            size: content.length,
            digest: Some(content.digest),
        });
        let level = self.policy.relayed_report();
        let entry = self.forward_report(now, (report, returned), level, notes);
        let body = entry.as_ref().and_then(|entry| entry.record.body);
        let entries = entry.into_iter().collect();
        let mut accepted = Accepted { entries, body, ..Accepted::default() };
        if accepted.entries.iter().any(|e| matches!(e.record.next_hop, NextHop::Mailbox(_))) {
            let delivering =
                Delivering { now, digest: None, others: Some(&known.others), known: Some(known) };
            accepted.seen.extend(known.deliveries.iter().map(|key| delivering.seen(*key)));
        }
        accepted
    }
}

/// All keys of an arrival: [`arrival_keys`], then [`delivery_keys`].
pub fn keys(head: &MtsApduHead) -> Vec<Digest> {
    let mut keys = arrival_keys(head);
    keys.extend(delivery_keys(head));
    keys
}

/// A transfer before its recipients are distributed.
struct Transfer<'a> {
    known: &'a Known<'a>,
    prepared: Preparation,
}

/// Log notes for recipients of a rerouted copy to whom the message was already delivered by
/// another path.
pub(crate) fn duplicates(dropped: &[bool]) -> Vec<Note> {
    let (all, count) = (dropped.len(), dropped.iter().filter(|d| **d).count());
    let text = || format!("{count} of {all} delivered already, by another path");
    (count > 0).then(|| Note::new(NoteKind::Duplicate, text())).into_iter().collect()
}

/// A log note for recipients for whom another content was accepted under the same identifier.
pub(crate) fn reused(others: usize, all: usize) -> Note {
    let text = format!(
        "its identifier was used before, for another content: taken for {others} of {all} as a \
         message of its own; either the MTA that made the identifier uses one twice, or somebody \
         forges them"
    );
    Note::new(NoteKind::IdentifierReused, text)
}

/// What the store remembers of an arrival, by recipient.
pub(crate) struct Known<'a> {
    arrivals: &'a [Digest],
    deliveries: &'a [Digest],
    /// Accepted before by the same path, or delivered before by any.
    dropped: Vec<bool>,
    /// How many of these were delivered.
    elsewhere: usize,
    /// How many were accepted before with another content only.
    reused: usize,
    /// The records of other contents, by key.
    others: BTreeMap<Digest, Bytes>,
    /// The delivery key of each recipient, including those others are responsible for.
    by_index: Vec<Option<Digest>>,
}

impl Known<'_> {
    fn new<'a>(
        head: &MtsApduHead,
        content: &Content,
        keys: &'a [Digest],
        seen: &[Option<Bytes>],
    ) -> Known<'a> {
        let (arrivals, deliveries) = keys.split_at(keys.len() / 2);
        let content = fingerprint_of(head, &content.digest);
        let content = content.as_ref();
        let found = |n: usize| seen.get(n).and_then(Option::as_ref);
        let (mut dropped, mut elsewhere, mut others) = (Vec::new(), 0, BTreeMap::new());
        let mut reused = 0;
        // Whether this content is known under a key. The record of another content is kept.
        let mut compare = |key: &Digest, record: Option<&Bytes>| {
            let same = record.is_some_and(|record| identifies(record, content));
            if let Some(record) = record.filter(|_| !same) {
                others.insert(*key, record.clone());
            }
            (same, record.is_some() && !same)
        };
        for (n, (arrival, delivery)) in arrivals.iter().zip(deliveries).enumerate() {
            let (repeated, other) = compare(arrival, found(n));
            let (delivered, another) = compare(delivery, found(arrivals.len() + n));
            let drop = repeated || delivered;
            elsewhere += usize::from(delivered && !repeated);
            reused += usize::from(!drop && (other || another));
            dropped.push(drop);
        }
        let mut next = deliveries.iter().copied();
        let mut key = |r: &PerRecipientFields| r.indicators.responsible().then(|| next.next());
        let by_index = match head {
            MtsApduHead::Message(e) => e.recipients.iter().map(|r| key(r).flatten()).collect(),
            MtsApduHead::Probe(e) => e.recipients.iter().map(|r| key(r).flatten()).collect(),
            MtsApduHead::Report(_) => Vec::new(),
        };
        Known { arrivals, deliveries, dropped, elsewhere, reused, others, by_index }
    }

    /// The delivery key of the recipient of this index.
    pub(crate) fn key(&self, index: usize) -> Option<Digest> {
        self.by_index.get(index).copied().flatten()
    }

    /// The records of other contents accepted under the same keys.
    pub(crate) fn others(&self) -> &BTreeMap<Digest, Bytes> {
        &self.others
    }

    fn notes(&self) -> Vec<Note> {
        let (all, count) = (self.dropped.len(), self.dropped.iter().filter(|d| **d).count());
        let mut notes = Vec::new();
        if count > 0 {
            let text = match self.elsewhere {
                0 => format!("{count} of {all} taken before"),
                n => format!(
                    "{count} of {all} taken before, {n} of them delivered or in the mailbox already"
                ),
            };
            notes.push(Note::new(NoteKind::Duplicate, text));
        }
        if self.reused > 0 {
            notes.push(reused(self.reused, all));
        }
        notes
    }

    /// Remembers the arrival for the recipients to whom nothing was delivered: for them the path
    /// distinguishes a repetition from a loop. The content's digest is stored with the key, so
    /// that a sender who guesses an identifier and a path cannot have a genuine message dropped as
    /// a duplicate.
    fn remember_arrival(&self, now: Utc, content: Option<[u8; 32]>, seen: &mut Vec<Seen>) {
        let delivered: BTreeSet<Digest> = seen.iter().map(|s| s.key).collect();
        let keys = self.arrivals.iter().zip(self.deliveries).zip(&self.dropped);
        let new =
            keys.filter(|((_, delivery), dropped)| !**dropped && !delivered.contains(delivery));
        let arriving = Delivering { now, digest: content, others: Some(&self.others), known: None };
        seen.extend(new.map(|((arrival, _), _)| arriving.seen(*arrival)));
    }
}

/// Removes the responsibility for recipients accepted before.
pub(crate) fn without_seen(mut carried: Carried, seen: &[bool]) -> Carried {
    let responsible = carried.recipients_mut().iter_mut().filter(|r| r.indicators.responsible());
    for (recipient, seen) in responsible.zip(seen) {
        if *seen {
            recipient.indicators = recipient.indicators.with_responsibility(false);
        }
    }
    carried
}
