//! Reroutes a copy whose next hop was removed.

use crate::Engine;
use crate::arrival::accept::{duplicates, reused, without_seen};
use crate::journal::Digest;
use crate::onward::copying::plan;
use crate::onward::delivered::{Delivering, delivery_keys, fingerprint_of, identifies, report_key};
use crate::onward::split::{Disposition, Failure, Sorted, deferred};
use crate::outcome::{Concluded, NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::report::discarded;
use crate::subject::{Carried, StoredContent};
use base::{PeerId, Utc};
use bytes::Bytes;
use p1::apdu::MtsApduHead;
use p1::envelope::PerRecipientFields;
use p1::names::ORName;
use p1::reason::Diagnostic;
use std::collections::BTreeMap;

/// Identifiers that were given out.
#[derive(Debug)]
pub struct Given(crate::ids::Source);

impl Engine {
    /// Routes a copy again by the current tables. The node calls this for an entry whose peer was
    /// removed from the configuration. Each recipient goes to its new next hop or, if there is
    /// none, is reported.
    ///
    /// The result replaces the copy: the node commits its entries and the removal of the old entry
    /// in one batch. It may be several copies, or none. All name the same body as the old copy.
    /// The body must outlive that batch if there is any such entry, and must be deleted with it if
    /// there is none and no other copy names it.
    ///
    /// The envelope already has our trace element and gets no second one. The time of acceptance
    /// does not change, so expiry continues to count. The earlier route is not noted in the trace:
    /// attempted-domain is for an attempt that a peer refused.
    ///
    /// `seen` is what the store remembers under each of [`Engine::reroute_keys`]: a recipient to
    /// whom the message was delivered by another path is dropped; one who got another content
    /// under its identifier is not.
    pub fn reroute(&mut self, now: Utc, record: &Record, seen: &[Option<Bytes>]) -> Concluded {
        self.reroute_to(now, record, None, seen)
    }

    /// As [`Engine::reroute`], but by an operator's order: to this peer, or where the routes lead now.
    /// A recipient whose route leads to a mailbox here is delivered here all the same.
    ///
    /// # Errors
    /// In words: what is to go there cannot, or would not leave its next hop. An order causes no
    /// non-delivery report.
    pub fn reroute_by_order(
        &mut self,
        now: Utc,
        record: &Record,
        to: Option<PeerId>,
        seen: &[Option<Bytes>],
    ) -> Result<Concluded, String> {
        let concluded = self.reroute_to(now, record, to, seen);
        let failed = [NoteKind::NonDelivery, NoteKind::ReportDiscarded];
        if let Some(note) = concluded.notes.iter().find(|note| failed.contains(&note.kind)) {
            return Err(note.detail.clone());
        }
        let stays = |entry: &NewEntry| entry.record.next_hop == record.next_hop;
        if !concluded.entries.is_empty() && concluded.entries.iter().all(stays) {
            return Err(match record.next_hop {
                NextHop::Mailbox(_) => "it waits for a user of this MTA, not for a peer".to_owned(),
                NextHop::Peer(_) => "it goes there already".to_owned(),
            });
        }
        Ok(concluded)
    }

    /// Why the content that a report returns may not go where it is routed again to.
    fn returned_to_uncleared(&self, record: &Record, to: Option<PeerId>) -> Option<String> {
        let MtsApduHead::Report(report) = &record.head else { return None };
        record.body?;
        let address = &report.envelope.destination.address;
        let hop = match (self.resolve(address).ok()?, to) {
            (NextHop::Peer(_), Some(to)) => NextHop::Peer(to),
            (hop, _) => hop,
        };
        let labels = (&report.envelope.extensions, &record.content_labels);
        self.next_hop_not_cleared(labels, address, &hop).map(|failure| failure.text)
    }

    /// The identifiers given so far, before something is only tried.
    #[must_use]
    pub fn given(&self) -> Given {
        Given(self.ids.clone())
    }

    /// What was given since is given again: nothing of it was made.
    pub fn take_back(&mut self, given: Given) {
        self.ids = given.0;
    }

    fn reroute_to(
        &mut self,
        now: Utc,
        record: &Record,
        to: Option<PeerId>,
        seen: &[Option<Bytes>],
    ) -> Concluded {
        let digest = record.digest.and_then(|digest| fingerprint_of(&record.head, &digest));
        let compare = |seen: &Option<Bytes>| seen.as_ref().map(|s| identifies(s, digest.as_ref()));
        // The keys of what waits for a user are its own: it was accepted for him.
        let is_own = matches!(record.next_hop, NextHop::Mailbox(_));
        let same = seen.iter().map(|seen| compare(seen).filter(|_| !is_own));
        let same: Vec<Option<bool>> = same.collect();
        let dropped: Vec<bool> = same.iter().map(|same| *same == Some(true)).collect();
        let mut notes = duplicates(&dropped);
        let others = match same.contains(&Some(false)) {
            true => other_contents(&record.head, seen, &dropped),
            false => BTreeMap::new(),
        };
        if !others.is_empty() {
            notes.push(reused(others.len(), dropped.len()));
        }
        let delivering = Delivering { now, digest, others: Some(&others), known: None };
        let carried = match &record.head {
            MtsApduHead::Message(e) => Carried::Message(e.clone()),
            MtsApduHead::Probe(e) => Carried::Probe(e.clone()),
            MtsApduHead::Report(report) => {
                if dropped.contains(&true) {
                    return Concluded { notes, ..Concluded::default() };
                }
                let key = report_key(report);
                let report = (**report).clone();
                let times = (record.accepted, record.first_arrival);
                let uncleared = self.returned_to_uncleared(record, to);
                let without;
                let record = match uncleared {
                    Some(why) => {
                        let detail = format!("its content is not returned: {why}");
                        notes.push(Note::new(NoteKind::ContentNotReturned, detail));
                        without = Record { size: 0, body: None, digest: None, ..record.clone() };
                        &without
                    }
                    None => record,
                };
                let at = self.resolve(&report.envelope.destination.address);
                let is_ours = matches!(at, Ok(NextHop::Mailbox(_)));
                let to = to.filter(|_| !is_ours).map(NextHop::Peer);
                let lost = to
                    .as_ref()
                    .and_then(|hop| self.destination_lost(&report.envelope.destination, hop));
                let entry = match (to, lost) {
                    (Some(_), Some(lost)) => {
                        notes.push(discarded(&report, &lost));
                        None
                    }
                    (Some(next_hop), None) => {
                        let record = Record { next_hop, ..record.clone() };
                        let (id, precedence) = (self.ids.entry(), record.precedence);
                        Some(NewEntry { id, precedence, record })
                    }
                    (None, _) => {
                        let report = (report, StoredContent::of_record(record));
                        self.queue_report(times, report, record.precedence, &mut notes)
                    }
                };
                let entries: Vec<_> = entry.into_iter().collect();
                let here = entries.iter().any(|e| matches!(e.record.next_hop, NextHop::Mailbox(_)));
                let seen = here.then(|| delivering.seen(key)).into_iter().collect();
                return Concluded { entries, seen, notes };
            }
        };
        let mut carried = without_seen(carried, &dropped);
        let mut dispositions = self.dispositions(&carried.subject(), false);
        if let Some(peer) = to {
            dispositions.iter_mut().flatten().for_each(|disposition| send_to(peer, disposition));
        }
        let sorted = self.sort_out(now, &mut carried, record.measured(), dispositions, &mut notes);
        let seen = delivering.keys_for(&carried, &sorted);
        let entries = self.instead_of(now, record, &carried, sorted, &mut notes);
        Concluded { entries, seen, notes }
    }

    /// The copies and reports that replace a queued copy, whose recipients were sorted again.
    pub(crate) fn instead_of(
        &mut self,
        now: Utc,
        record: &Record,
        carried: &Carried,
        sorted: Sorted,
        notes: &mut Vec<Note>,
    ) -> Vec<NewEntry> {
        let earliest = self.earliest(now);
        let mut entries = Vec::new();
        let plan = plan(carried, sorted.ways, notes);
        for copy in &plan.copies {
            let head = self.head_of(carried, &plan, copy);
            let next_hop = copy.way.hop.clone();
            let record = Record {
                not_before: record.not_before.or_else(|| deferred(earliest, carried, &next_hop)),
                head,
                next_hop,
                message: record.message.clone(),
                content_labels: record.content_labels.clone(),
                ..*record
            };
            entries.push(NewEntry { id: self.ids.entry(), precedence: record.precedence, record });
        }
        let subject = carried
            .subject()
            .with_content(StoredContent::of_record(record), &record.content_labels);
        entries.extend(self.reports(now, &subject, record.precedence, sorted.outcomes, notes));
        entries
    }

    /// The keys to look up before a copy is rerouted: delivery keys, one for each of its
    /// recipients, if a route leads to a local mailbox; else none.
    pub fn reroute_keys(&self, record: &Record) -> Vec<Digest> {
        let is_here =
            |name: &ORName| matches!(self.resolve(&name.address), Ok(NextHop::Mailbox(_)));
        let responsible =
            |r: &PerRecipientFields| r.indicators.responsible() && is_here(&r.recipient);
        let any = match &record.head {
            MtsApduHead::Message(e) => e.recipients.iter().any(responsible),
            MtsApduHead::Probe(e) => e.recipients.iter().any(responsible),
            MtsApduHead::Report(report) => is_here(&report.envelope.destination),
        };
        if any { delivery_keys(&record.head) } else { Vec::new() }
    }
}

/// An operator sends this recipient's copy to a peer, whatever the routes are.
fn send_to(peer: PeerId, disposition: &mut Disposition) {
    let no_route = |failure: &Failure| failure.diagnostic == Some(Diagnostic::UNRECOGNISED_OR_NAME);
    match disposition {
        Ok(NextHop::Peer(to)) => *to = peer,
        Err(failure) if no_route(failure) => *disposition = Ok(NextHop::Peer(peer)),
        Ok(NextHop::Mailbox(_)) | Err(_) => {}
    }
}

/// Other contents delivered under the keys of the recipients that remain.
fn other_contents(
    head: &MtsApduHead,
    seen: &[Option<Bytes>],
    dropped: &[bool],
) -> BTreeMap<Digest, Bytes> {
    let keys = delivery_keys(head).into_iter().zip(seen).zip(dropped);
    keys.filter(|(_, dropped)| !**dropped)
        .filter_map(|((key, seen), _)| Some((key, seen.clone()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use crate::testing::{
        BAKER, CARTER, NOWHERE, SMITH, at, content, engine_of, failures, message, name, received,
        report, submission, submit,
    };

    /// Alpha with its current configuration: these domains behind peers.
    fn alpha(peers: &[(&str, u32)]) -> Engine {
        engine_of("alpha", "mta1", &["Smith", "Jones"], peers)
    }

    #[test]
    fn recipients_part_where_they_have_other_ways_now() {
        let other = "C=XX;ADMD=;PRMD=delta;S=Other";
        let mut before = alpha(&[("", 7)]);
        let done = submit(&mut before, &submission(&[BAKER, CARTER, other]));
        let [old] = &done.accepted.entries[..] else { panic!() };
        let mut now = alpha(&[("beta", 0), ("gamma", 1)]);
        let again = now.reroute(at(100), &old.record, &[]);
        let hops: Vec<_> = again.entries.iter().map(|e| e.record.next_hop.clone()).collect();
        let smith = crate::canonical(&name(SMITH).address);
        let expected =
            [NextHop::Peer(PeerId(0)), NextHop::Peer(PeerId(1)), NextHop::Mailbox(smith)];
        assert_eq!(hops, expected);
        for (entry, number) in again.entries.iter().zip([1, 2]) {
            let head = received(&now, entry);
            let (new, was) = (message(&head), message(&old.record.head));
            let mine = new.recipients.iter().filter(|r| r.indicators.responsible());
            assert_eq!(mine.map(|r| r.number).collect::<Vec<_>>(), [number]);
            assert_eq!((new.recipients.len(), new.trace.len()), (3, was.trace.len()));
            assert_eq!(crate::arrival::trace::internal(&new.extensions).len(), 1);
            let kept = |r: &Record| (r.body, r.size, r.precedence, r.accepted, r.first_arrival);
            assert_eq!(kept(&entry.record), kept(&old.record));
            assert!(entry.record.body.is_some());
        }
        let failed = failures(report(&again.entries[2]));
        assert_eq!(failed, [(3, Some((1, Some(0))))]);
        assert_eq!(again.notes[0].kind, NoteKind::NonDelivery);
        let mut ids: Vec<_> = again.entries.iter().map(|e| e.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }

    #[test]
    fn only_its_own_recipients_are_routed() {
        let mut before = alpha(&[("beta", 0), ("gamma", 7)]);
        let done = submit(&mut before, &submission(&[BAKER, CARTER]));
        let again = alpha(&[("", 0)]).reroute(at(100), &done.accepted.entries[1].record, &[]);
        let [entry] = &again.entries[..] else { panic!() };
        let responsible: Vec<_> = message(&entry.record.head)
            .recipients
            .iter()
            .map(|r| r.indicators.responsible())
            .collect();
        assert_eq!(responsible, [false, true]);
    }

    #[test]
    fn deferral_holds_on_another_way() {
        let mut envelope = submission(&[BAKER]);
        envelope.deferred_delivery_time = Some(p1::time::Time::from(at(600)));
        let old = submit(&mut alpha(&[("beta", 7)]), &envelope).accepted.entries.remove(0);
        let again = alpha(&[("beta", 0)]).reroute(at(100), &old.record, &[]);
        assert_eq!(again.entries[0].record.not_before, Some(at(600)));
    }

    #[test]
    fn a_report_goes_another_way_or_nowhere() {
        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 7)]);
        let mut source = alpha(&[("beta", 0)]);
        let sent = submit(&mut source, &submission(&[BAKER])).accepted.entries.remove(0);
        let made = beta.accept(at(1), received(&source, &sent), &content(1000), &[]);
        let [old] = &made.accepted.entries[..] else { panic!() };
        assert_eq!(old.record.kind(), RecordKind::Report);
        let mut now = engine_of("beta", "mta2", &[], &[("", 2)]);
        let again = now.reroute(at(100), &old.record, &[]);
        let expected = Record { next_hop: NextHop::Peer(PeerId(2)), ..old.record.clone() };
        assert_eq!(again.entries[0].record, expected);
        let lost = engine_of("beta", "mta2", &[], &[]).reroute(at(100), &old.record, &[]);
        assert_eq!((lost.entries.len(), lost.notes[0].kind), (0, NoteKind::ReportDiscarded));
    }

    #[test]
    fn an_order_names_a_peer_or_follows_the_routes_and_reports_nothing() {
        let mut now = alpha(&[("beta", 0), ("gamma", 1)]);
        let old = submit(&mut now, &submission(&[BAKER])).accepted.entries.remove(0).record;
        let hops = |concluded: Concluded| -> Vec<NextHop> {
            concluded.entries.into_iter().map(|e| e.record.next_hop).collect()
        };
        let there = now.reroute_by_order(at(9), &old, Some(PeerId(1)), &[]).unwrap();
        assert_eq!(hops(there), [NextHop::Peer(PeerId(1))]);
        for to in [None, Some(PeerId(0))] {
            let refused = now.reroute_by_order(at(9), &old, to, &[]).unwrap_err();
            assert_eq!(refused, "it goes there already");
        }
        // No route is left: nothing happens, unless a peer is named.
        let mut none = alpha(&[]);
        let refused = none.reroute_by_order(at(9), &old, None, &[]).unwrap_err();
        assert!(refused.starts_with("no route to this address: "), "{refused}");
        let there = none.reroute_by_order(at(9), &old, Some(PeerId(5)), &[]).unwrap();
        assert_eq!(hops(there), [NextHop::Peer(PeerId(5))]);
    }

    #[test]
    fn without_any_way_all_are_reported() {
        let old = submit(&mut alpha(&[("", 7)]), &submission(&[BAKER, NOWHERE]));
        let again = alpha(&[]).reroute(at(100), &old.accepted.entries[0].record, &[]);
        let [entry] = &again.entries[..] else { panic!() };
        assert_eq!(failures(report(entry)).len(), 2);
        assert_eq!(entry.record.body, None);
    }
}
