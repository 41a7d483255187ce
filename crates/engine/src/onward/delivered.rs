//! Keys of deliveries: they identify a copy that arrives again by another path.
//!
//! If the confirmation of a transfer is lost and the sender reroutes the message, it arrives by
//! another path and has other arrival keys ([`crate::arrival_keys`]). A final delivery is
//! therefore remembered without its trace: by its identifier, the number its recipient has at the
//! origin, the actual recipient, and its redirection and expansion histories. Of the histories the
//! names count and not the times: a copy made by a redirection or a list is another copy, and its
//! time may differ between two copies of one message.
//!
//! A message's key is stored with its [`fingerprint`]. So no message is lost if an MTA reuses an
//! identifier for another content, or if an identifier is forged.

use crate::arrival::accept::Known;
use crate::arrival::critical::{Step, unsupported};
use crate::arrival::dedupe::{Hasher, REMEMBERED};
use crate::journal::Digest;
use crate::onward::route::canonical;
use crate::onward::split::Sorted;
use crate::outcome::Seen;
use crate::subject::{Carried, Subject};
use base::Utc;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ReportType};
use p1::extension::{Extensions, number};
use p1::history::{
    Expansion, dl_expansion_history, originator_and_dl_expansion_history, redirection_history,
};
use p1::names::ORName;
use std::collections::BTreeMap;

/// Separates the keys of messages from those of probes, whose delivery is their report.
const MESSAGE: &str = "delivered";
const PROBE: &str = "probed";
/// And from those of expansions.
const EXPANDED: &str = "expanded";

/// Octets of a fingerprint in a record.
const DIGEST: usize = 32;
/// Contents remembered per key: those delivered last.
const CONTENTS: usize = 8;

/// The keys of the deliveries that an arrival may lead to: one for each of its
/// [`crate::arrival_keys`], in the same order.
pub fn delivery_keys(head: &MtsApduHead) -> Vec<Digest> {
    match head {
        MtsApduHead::Message(e) => subject_keys(MESSAGE, &Subject::from(&**e)),
        MtsApduHead::Probe(e) => subject_keys(PROBE, &Subject::from(&**e)),
        MtsApduHead::Report(report) => vec![report_key(report)],
    }
}

fn subject_keys(kind: &str, subject: &Subject<'_>) -> Vec<Digest> {
    let common = common(kind, subject);
    let responsible = subject.recipients.iter().filter(|r| r.indicators.responsible());
    responsible.map(|r| key(&common, r, &canonical(&r.recipient.address))).collect()
}

/// As [`common_of`].
pub(crate) fn common_of_carried(carried: &Carried) -> Hasher {
    common(kind(carried), &carried.subject())
}

/// The common part of the delivery keys of all recipients.
pub(crate) fn common_of(head: &MtsApduHead) -> Option<Hasher> {
    match head {
        MtsApduHead::Message(e) => Some(common(MESSAGE, &Subject::from(&**e))),
        MtsApduHead::Probe(e) => Some(common(PROBE, &Subject::from(&**e))),
        MtsApduHead::Report(_) => None,
    }
}

fn common(kind: &str, subject: &Subject<'_>) -> Hasher {
    let mut common = Hasher::new(kind);
    common.identifier(subject.identifier);
    history(&mut common, subject.extensions, number::DL_EXPANSION_HISTORY);
    common
}

/// The key of a recipient with this canonical address.
pub(crate) fn key(common: &Hasher, recipient: &PerRecipientFields, address: &str) -> Digest {
    let mut hasher = common.clone();
    hasher.part(&recipient.number.to_be_bytes());
    hasher.part(address.as_bytes());
    history(&mut hasher, &recipient.extensions, number::REDIRECTION_HISTORY);
    hasher.finish()
}

/// The key of the expansion of a message by the list with this canonical address. The histories do not
/// count: whatever way a recipient of this number comes to the list by, its members are the same, except
/// for those whom the originator exempts.
pub(crate) fn expansion_key(
    subject: &Subject<'_>,
    recipient: &PerRecipientFields,
    list: &str,
) -> Digest {
    let mut hasher = Hasher::new(EXPANDED);
    hasher.identifier(subject.identifier);
    hasher.part(&recipient.number.to_be_bytes());
    hasher.part(list.as_bytes());
    let exempted = subject.extensions.standard(number::DL_EXEMPTED_RECIPIENTS);
    hasher.part(exempted.map(|field| &field.value[..]).unwrap_or_default());
    hasher.finish()
}

/// A report has one destination. Its key includes the recipients and their outcomes, so that no
/// report is lost whose maker reuses an identifier.
pub(crate) fn report_key(report: &Report) -> Digest {
    let (envelope, content) = (&report.envelope, &report.content);
    let mut hasher = Hasher::new("reported");
    hasher.identifier(&envelope.report_identifier);
    hasher.part(canonical(&envelope.destination.address).as_bytes());
    history(&mut hasher, &envelope.extensions, number::ORIGINATOR_AND_DL_EXPANSION_HISTORY);
    hasher.identifier(&content.subject_identifier);
    // Recipients that the user did not ask about are removed at delivery and not before, so all
    // count.
    for recipient in &content.recipients {
        hasher.part(&recipient.number.to_be_bytes());
        hasher.part(canonical(&recipient.actual_recipient.address).as_bytes());
        let (outcome, detail) = match &recipient.last_trace.report {
            ReportType::Delivery { time, .. } => (-1, format!("{time:?}")),
            ReportType::NonDelivery { reason, diagnostic } => (reason.0, format!("{diagnostic:?}")),
        };
        hasher.part(&outcome.to_be_bytes());
        hasher.part(detail.as_bytes());
        hasher.part(recipient.supplementary_information.as_deref().unwrap_or_default().as_bytes());
        history(&mut hasher, &recipient.extensions, number::REDIRECTION_HISTORY);
    }
    hasher.finish()
}

/// The names in a history, one part each; a malformed history as its octets.
fn history(hasher: &mut Hasher, extensions: &Extensions, number: i64) {
    let Some(field) = extensions.standard(number) else { return hasher.part(&[0]) };
    let Some(names) = names(extensions, number) else {
        hasher.part(&[2]);
        return hasher.part(&field.value);
    };
    hasher.part(&[1]);
    hasher.part(&(names.len() as u64).to_be_bytes());
    for name in names {
        hasher.part(canonical(&name.address).as_bytes());
        hasher.part(name.directory_name.as_deref().unwrap_or_default());
    }
}

/// The name in each element of a history; `None` if it cannot be read.
fn names(extensions: &Extensions, number: i64) -> Option<Vec<ORName>> {
    let of_lists = |all: Vec<Expansion>| all.into_iter().map(|e| e.name).collect();
    match number {
        number::REDIRECTION_HISTORY => {
            let all = redirection_history(extensions).ok()?;
            Some(all.into_iter().map(|r| r.intended).collect())
        }
        number::DL_EXPANSION_HISTORY => dl_expansion_history(extensions).ok().map(of_lists),
        _ => originator_and_dl_expansion_history(extensions).ok().map(of_lists),
    }
}

/// A message's identity beside its keys: its content, and the envelope fields that decide whether,
/// when and how it is delivered. A copy that differs is another message under the same identifier.
/// Otherwise a sender who knows a content and an identifier could displace the genuine message by
/// a copy that is deferred, or has another originator. Fields that an MTA on the path may change
/// are excluded.
pub(crate) fn fingerprint(e: &MessageTransferEnvelope, content: &[u8; DIGEST]) -> [u8; DIGEST] {
    let mut hasher = Hasher::new("message");
    hasher.part(content);
    hasher.part(canonical(&e.originator.address).as_bytes());
    hasher.part(e.content_type.to_string().as_bytes());
    // The priority of X.411: an older dialect has no form for the qualifier and loses it.
    hasher.part(format!("{:?} {:?}", e.priority, e.deferred_delivery_time).as_bytes());
    let latest = e.extensions.standard(number::LATEST_DELIVERY_TIME);
    hasher.part(latest.map(|field| &field.value[..]).unwrap_or_default());
    for step in [Step::Transfer, Step::Delivery] {
        hasher.part(unsupported(step, &e.extensions).unwrap_or_default().as_bytes());
    }
    hasher.finish().0
}

/// The same for any APDU with a content; `None` for a probe or a report.
pub(crate) fn fingerprint_of(head: &MtsApduHead, content: &[u8; DIGEST]) -> Option<[u8; DIGEST]> {
    match head {
        MtsApduHead::Message(e) => Some(fingerprint(e, content)),
        MtsApduHead::Probe(_) | MtsApduHead::Report(_) => None,
    }
}

/// Whether the record of a delivery includes this content. A record without digests matches every
/// content: it belongs to a probe, a report, or a message queued by an older release.
pub(crate) fn identifies(record: &[u8], content: Option<&[u8; DIGEST]>) -> bool {
    let Some(content) = content else { return true };
    record.is_empty() || record.chunks(DIGEST).any(|digest| digest == content)
}

/// The keys and contents of deliveries to be remembered.
pub(crate) struct Delivering<'a> {
    /// The time of acceptance.
    pub now: Utc,
    /// The content's fingerprint; `None` for a probe or a report, and if unknown.
    pub digest: Option<[u8; DIGEST]>,
    /// Records of other contents delivered under the same keys.
    pub others: Option<&'a BTreeMap<Digest, Bytes>>,
    /// What is remembered of the arrival, with its keys; saves computing them again.
    pub known: Option<&'a Known<'a>>,
}

impl Delivering<'_> {
    /// The record to remember for one delivery.
    pub(crate) fn seen(&self, key: Digest) -> Seen {
        let other = self.others.and_then(|others| others.get(&key));
        let mut record = other.map(|r| r.to_vec()).unwrap_or_default();
        if let Some(digest) = &self.digest {
            record.extend_from_slice(digest);
        }
        let surplus = record.len().saturating_sub(CONTENTS * DIGEST);
        let record = Bytes::from(record.split_off(surplus));
        Seen { key, until: self.now + REMEMBERED, record }
    }

    /// The records to remember for the deliveries, and for the redirections: a copy for the
    /// recipient before one, by another path, would be redirected and delivered again.
    pub(crate) fn keys_for(&self, carried: &Carried, sorted: &Sorted) -> Vec<Seen> {
        let (delivered, redirected) = (sorted.delivered(), &sorted.redirected);
        if delivered.is_empty() && redirected.is_empty() {
            return Vec::new();
        }
        let subject = carried.subject();
        let common = common(kind(carried), &subject);
        let key_of = |index: &usize| {
            // What is known of the arrival is of the recipient before a redirection.
            let known = self.known.filter(|_| !redirected.contains_key(index));
            let known = known.and_then(|known| known.key(*index));
            let made = |r: &PerRecipientFields| key(&common, r, &canonical(&r.recipient.address));
            known.or_else(|| subject.recipients.get(*index).map(made))
        };
        let before = sorted.moved_on();
        delivered.iter().filter_map(key_of).chain(before).map(|key| self.seen(key)).collect()
    }
}

fn kind(carried: &Carried) -> &'static str {
    match carried {
        Carried::Message(_) => MESSAGE,
        Carried::Probe(_) => PROBE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, JONES, NOBODY, SMITH, at, content, engine, engine_of, message, name, private,
        received, report, submission, submit,
    };
    use crate::{Content, Engine, NextHop, NoteKind, arrival_keys, keys};
    use base::ber::universal as u;
    use p1::extension::{Criticality, ExtensionField};
    use p1::time::Time;

    const OTHER: &str = "C=XX;ADMD=;PRMD=beta;S=Other";
    const NEW: &str = "C=XX;ADMD=;PRMD=beta;S=New";

    fn beta() -> Engine {
        engine_of("beta", "mta2", &["Baker", "Other"], &[("alpha", 0)])
    }

    /// The same message as it arrives by a relay.
    fn relayed(head: &MtsApduHead) -> MtsApduHead {
        let mut gamma = engine_of("gamma", "mta3", &[], &[("", 1)]);
        let there = gamma.accept(at(5), head.clone(), &content(1_000), &[]);
        received(&gamma, &there.accepted.entries[0])
    }

    /// The answer of a store that holds these records.
    fn look_up(seen: &[Seen], head: &MtsApduHead) -> Vec<Option<Bytes>> {
        let found = |key| seen.iter().rfind(|s| s.key == key).map(|s| s.record.clone());
        keys(head).into_iter().map(found).collect()
    }

    fn sent(to: &[&str]) -> MtsApduHead {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(to));
        received(&alpha, &done.accepted.entries[0])
    }

    fn list_history(names: &[(&str, u64)]) -> ExtensionField {
        let critical = Criticality::default();
        ExtensionField::standard(number::DL_EXPANSION_HISTORY, critical, |w| {
            w.constructed(u::SEQUENCE, |w| {
                for (list, time) in names {
                    w.constructed(u::SEQUENCE, |w| {
                        name(list).write(w);
                        Time::from(at(*time)).write_as(w, u::UTC_TIME);
                    });
                }
            });
        })
    }

    fn redirections(names: &[(&str, u64)]) -> ExtensionField {
        let critical = Criticality::default();
        ExtensionField::standard(number::REDIRECTION_HISTORY, critical, |w| {
            w.constructed(u::SEQUENCE, |w| {
                for (from, time) in names {
                    w.constructed(u::SEQUENCE, |w| {
                        w.constructed(u::SEQUENCE, |w| {
                            name(from).write(w);
                            Time::from(at(*time)).write_as(w, u::UTC_TIME);
                        });
                        w.primitive(u::ENUMERATED, &[0]);
                    });
                }
            });
        })
    }

    type Change<'a> = &'a dyn Fn(&mut MessageTransferEnvelope);

    fn with(head: &MtsApduHead, change: Change<'_>) -> MtsApduHead {
        let mut envelope = message(head).clone();
        change(&mut envelope);
        MtsApduHead::Message(Box::new(envelope))
    }

    #[test]
    fn a_copy_by_another_way_has_the_same_key_and_its_recipient_is_dropped() {
        let head = sent(&[BAKER, OTHER, NEW]);
        let round = relayed(&head);
        assert!(arrival_keys(&head).iter().zip(arrival_keys(&round)).all(|(a, b)| *a != b));
        assert_eq!(delivery_keys(&head), delivery_keys(&round));
        assert_eq!(delivery_keys(&head).len(), 3);

        // New has no mailbox yet, so the arrival is remembered by the path.
        let first = beta().accept(at(10), head.clone(), &content(1_000), &[]).accepted;
        let mut remembered: Vec<Digest> = first.seen.iter().map(|s| s.key).collect();
        remembered.sort_unstable();
        let mut expected = delivery_keys(&head)[..2].to_vec();
        expected.extend(&arrival_keys(&head)[2..]);
        expected.sort_unstable();
        assert_eq!(remembered, expected);

        let mut beta = engine_of("beta", "mta2", &["Baker", "Other", "New"], &[("alpha", 0)]);
        let seen = look_up(&first.seen, &round);
        let second = beta.accept(at(20), round.clone(), &content(1_000), &seen);
        let hops: Vec<_> = second.accepted.entries.iter().map(|e| &e.record.next_hop).collect();
        assert_eq!(hops, [&NextHop::Mailbox(canonical(&name(NEW).address))]);
        let notes: Vec<_> = second.notes.iter().map(|n| (n.kind, n.detail.as_str())).collect();
        let dropped = "2 of 3 taken before, 2 of them delivered or in the mailbox already";
        assert_eq!(notes, [(NoteKind::Duplicate, dropped)]);

        // All three are delivered now: a further copy is dropped, whatever its path.
        let mut seen = first.seen;
        seen.extend(second.accepted.seen);
        for copy in [round, head] {
            let before = look_up(&seen, &copy);
            let none = beta.accept(at(30), copy, &content(1_000), &before);
            assert_eq!(none.accepted, crate::Accepted::default());
        }
    }

    #[test]
    fn names_in_the_histories_count_and_their_times_do_not() {
        let head = sent(&[BAKER]);
        let key = |change: Change<'_>| delivery_keys(&with(&head, change))[0];
        let lists = |names: &[(&str, u64)]| key(&|e| e.extensions.set(list_history(names)));
        let redirected =
            |names: &[(&str, u64)]| key(&|e| e.recipients[0].extensions.set(redirections(names)));
        assert_eq!(lists(&[(SMITH, 1), (JONES, 2)]), lists(&[(SMITH, 3), (JONES, 4)]));
        assert_eq!(redirected(&[(JONES, 1)]), redirected(&[(JONES, 2)]));
        // A malformed history is compared as a whole.
        let raw = |value: &'static [u8]| {
            let field = ExtensionField { value: Bytes::from_static(value), ..list_history(&[]) };
            key(&|e| e.extensions.set(field.clone()))
        };
        let all = [
            key(&|_| {}),
            lists(&[]),
            lists(&[(SMITH, 1)]),
            lists(&[(JONES, 1)]),
            lists(&[(SMITH, 1), (JONES, 2)]),
            lists(&[(JONES, 1), (SMITH, 2)]),
            redirected(&[(JONES, 1)]),
            redirected(&[(SMITH, 1)]),
            redirected(&[(SMITH, 1), (JONES, 1)]),
            raw(&[5, 0]),
            raw(&[0x30, 2, 5, 0]),
            key(&|e| e.recipients[0].number = 2),
            key(&|e| e.recipients[0].recipient = name(JONES)),
            key(&|e| e.message_identifier.local.push('x')),
        ];
        let mut different = all.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), all.len());
        assert_eq!(key(&|e| e.trace.clear()), key(&|_| {}));
    }

    #[test]
    fn copies_that_a_list_or_a_redirection_makes_are_all_delivered() {
        let head = sent(&[BAKER]);
        let copies = [
            head.clone(),
            with(&head, &|e| e.extensions.set(list_history(&[(JONES, 1)]))),
            with(&head, &|e| e.recipients[0].extensions.set(redirections(&[(JONES, 1)]))),
        ];
        let (mut beta, mut remembered) = (beta(), Vec::new());
        for copy in copies {
            let seen = look_up(&remembered, &copy);
            let taken = beta.accept(at(10), copy, &content(1_000), &seen);
            assert_eq!((taken.accepted.entries.len(), taken.accepted.seen.len()), (1, 1));
            remembered.extend(taken.accepted.seen);
        }
    }

    #[test]
    fn an_identifier_that_is_used_again_for_another_content_loses_nothing() {
        let (head, mut beta) = (sent(&[BAKER]), beta());
        let (mut remembered, other) = (Vec::new(), Content { digest: [8; 32], ..content(1_000) });
        let later = with(&head, &|e| e.trace[0].arrival_time = Time::from(at(9)));
        for (copy, content, entries, kind) in [
            (&head, &content(1_000), 1, None),
            (&later, &other, 1, Some(NoteKind::IdentifierReused)),
            // Both contents are known now.
            (&later, &content(1_000), 0, Some(NoteKind::Duplicate)),
            (&head, &other, 0, Some(NoteKind::Duplicate)),
        ] {
            let seen = look_up(&remembered, copy);
            let taken = beta.accept(at(10), copy.clone(), content, &seen);
            assert_eq!(taken.accepted.entries.len(), entries);
            assert_eq!(taken.notes.first().map(|n| n.kind), kind);
            remembered.extend(taken.accepted.seen);
        }
        // Any number of contents: the last ones are remembered.
        for n in 10..40 {
            let seen = look_up(&remembered, &head);
            let content = Content { digest: [n; 32], ..content(1_000) };
            let taken = beta.accept(at(10), head.clone(), &content, &seen);
            assert_eq!(taken.accepted.entries.len(), 1);
            remembered.extend(taken.accepted.seen);
        }
        assert_eq!(remembered.last().unwrap().record.len(), 8 * 32);
    }

    /// A co-recipient knows the content, the identifier and the trace.
    #[test]
    fn a_forged_copy_of_the_same_content_keeps_the_true_message_from_nobody() {
        let critical = Criticality { for_delivery: true, ..Criticality::default() };
        let late = || {
            let (number, never) = (number::LATEST_DELIVERY_TIME, Criticality::default());
            ExtensionField::standard(number, never, |w| {
                Time::from(at(1)).write_as(w, u::UTC_TIME);
            })
        };
        let forgeries: [Change<'_>; 6] = [
            &|e| e.deferred_delivery_time = Some(Time::from(at(86_400))),
            &|e| e.extensions.set(late()),
            &|e| private(critical).0.into_iter().for_each(|field| e.extensions.set(field)),
            &|e| e.originator = name(JONES),
            &|e| e.content_type = p1::ContentType::BuiltIn(0),
            &|e| e.priority = p1::flags::Priority::NonUrgent,
        ];
        for (n, change) in forgeries.into_iter().enumerate() {
            for to in [BAKER, "C=XX;ADMD=;PRMD=gamma;S=Far"] {
                let head = sent(&[to]);
                let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 0), ("gamma", 1)]);
                let forgery = with(&head, change);
                let first = beta.accept(at(10), forgery, &content(1_000), &[]).accepted;
                let seen = look_up(&first.seen, &head);
                let taken = beta.accept(at(11), head.clone(), &content(1_000), &seen);
                assert_eq!(taken.accepted.entries.len(), 1, "forgery {n} to {to}");
                assert_eq!(taken.accepted.entries[0].record.not_before, None);
                // Fields that an MTA on the path may change do not distinguish messages.
                let mut all = first.seen;
                all.extend(taken.accepted.seen);
                let round = relayed(&head);
                let seen = look_up(&all, &round);
                let again = beta.accept(at(12), round, &content(1_000), &seen);
                let entries = again.accepted.entries.len();
                assert!(to != BAKER || entries == 0, "forgery {n}: delivered twice");
            }
        }
    }

    #[test]
    fn who_guesses_an_identifier_and_a_path_has_no_true_message_dropped() {
        let critical = Criticality { for_transfer: true, ..Criticality::default() };
        let forged = Content { digest: [66; 32], ..content(1_000) };
        let transit = "C=XX;ADMD=;PRMD=gamma;S=Far";
        for to in [&[BAKER][..], &[transit], &[NEW]] {
            let head = sent(to);
            let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 0), ("gamma", 1)]);
            // The forgery fails, and its report goes to another user.
            let forgery = with(&head, &|e| {
                e.originator = name(JONES);
                private(critical).0.into_iter().for_each(|field| e.extensions.set(field));
            });
            let first = beta.accept(at(10), forgery.clone(), &forged, &[]).accepted;
            let seen = look_up(&first.seen, &head);
            assert_eq!(seen.iter().flatten().count(), 1, "it is remembered by the path");
            let taken = beta.accept(at(11), head.clone(), &content(1_000), &seen);
            assert_eq!(taken.accepted.entries.len(), 1);
            assert_eq!(taken.notes[0].kind, NoteKind::IdentifierReused);
            // A repetition of it is recognised, as is one of the forgery.
            let mut seen = first.seen;
            seen.extend(taken.accepted.seen);
            for (copy, content) in [(&head, &content(1_000)), (&forgery, &forged)] {
                let seen = look_up(&seen, copy);
                let again = beta.accept(at(12), copy.clone(), content, &seen);
                assert_eq!(again.accepted, crate::Accepted::default());
            }
        }
    }

    #[test]
    fn a_report_by_another_way_is_dropped() {
        let (mut alpha, mut beta) = (engine(), beta());
        let done = submit(&mut alpha, &submission(&["C=XX;ADMD=;PRMD=beta;S=Nobody"]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let made = beta.accept(at(1), head, &content(1_000), &[]).accepted;
        let relayed = received(&beta, &made.entries[0]);
        let mut gamma = engine_of("gamma", "mta3", &[], &[("", 1)]);
        let there = gamma.accept(at(5), relayed.clone(), &content(0), &[]).accepted;
        assert_eq!(there.seen[0].key, arrival_keys(&relayed)[0], "not delivered, relayed");
        let round = received(&gamma, &there.entries[0]);
        let first = alpha.accept(at(10), relayed.clone(), &content(0), &[]).accepted;
        assert_eq!((first.entries.len(), first.seen[0].key), (1, delivery_keys(&relayed)[0]));
        let seen = look_up(&first.seen, &round);
        let second = alpha.accept(at(11), round.clone(), &content(0), &seen);
        assert_eq!(second.accepted, crate::Accepted::default());
        assert_eq!(second.notes[0].kind, NoteKind::Duplicate);
        // Another outcome under the same identifier is another report.
        let MtsApduHead::Report(mut other) = round else { panic!() };
        other.content.recipients[0].number = 2;
        let other = MtsApduHead::Report(other);
        let seen = look_up(&first.seen, &other);
        assert_eq!(alpha.accept(at(12), other, &content(0), &seen).accepted.entries.len(), 1);
    }

    #[test]
    fn what_is_not_delivered_is_not_remembered_as_such() {
        // The looped copy is reported, not delivered; the direct copy is still delivered.
        let (head, mut beta) = (sent(&[BAKER]), beta());
        let looped = with(&head, &|e| {
            beta.add_trace(at(1), None, &mut e.trace, &mut e.extensions);
            let gamma = engine_of("gamma", "mta3", &[], &[]);
            gamma.add_trace(at(2), None, &mut e.trace, &mut e.extensions);
        });
        let taken = beta.accept(at(3), looped.clone(), &content(1_000), &[]).accepted;
        assert_eq!(report(&taken.entries[0]).content.recipients.len(), 1);
        assert_eq!(taken.seen[0].key, arrival_keys(&looped)[0]);
        let seen = look_up(&taken.seen, &head);
        let straight = beta.accept(at(4), head, &content(1_000), &seen).accepted;
        assert!(matches!(straight.entries[0].record.next_hop, NextHop::Mailbox(_)));
        // In the other order the looped copy is dropped without a report.
        let seen = look_up(&straight.seen, &looped);
        let again = beta.accept(at(5), looped, &content(1_000), &seen);
        assert_eq!(again.accepted, crate::Accepted::default());
    }

    #[test]
    fn a_submission_s_own_deliveries_are_remembered_too() {
        let done = submit(&mut engine(), &submission(&[JONES, BAKER, NOBODY]));
        let is_here = |e: &&crate::NewEntry| matches!(e.record.next_hop, NextHop::Mailbox(_));
        let here = done.accepted.entries.iter().find(is_here).unwrap();
        let keys: Vec<Digest> = done.accepted.seen.iter().map(|s| s.key).collect();
        assert_eq!(keys, delivery_keys(&here.record.head));
    }

    #[test]
    fn a_copy_routed_to_a_mailbox_is_looked_up_and_remembered() {
        let before = &mut engine();
        let done = submit(before, &submission(&[BAKER, OTHER]));
        let copy = &done.accepted.entries[0].record;
        assert_eq!(before.reroute_keys(copy), []);
        let mut beta = beta();
        let keys = beta.reroute_keys(copy);
        assert_eq!(keys, delivery_keys(&copy.head));
        let again = beta.reroute(at(9), copy, &[None, None]);
        assert_eq!(again.entries.len(), 2);
        assert_eq!(again.seen.iter().map(|s| s.key).collect::<Vec<_>>(), keys);
        let again = beta.reroute(at(9), copy, &[Some(Bytes::new()), None]);
        assert_eq!((again.entries.len(), again.seen.len()), (1, 1));
        assert_eq!(again.notes[0].kind, NoteKind::Duplicate);
        let again = beta.reroute(at(9), copy, &[Some(Bytes::new()), Some(Bytes::new())]);
        assert_eq!((again.entries.len(), again.seen.len()), (0, 0));
    }

    #[test]
    fn a_copy_routed_to_a_mailbox_is_known_by_its_content_too() {
        let done = submit(&mut engine(), &submission(&[BAKER]));
        let mut copy = done.accepted.entries[0].record.clone();
        let mut beta = beta();
        let mine = fingerprint_of(&copy.head, &copy.digest.unwrap()).unwrap();
        let other = [8; 32];
        let delivered = |digest: [u8; 32]| [Some(Bytes::copy_from_slice(&digest))];
        assert_eq!(beta.reroute(at(9), &copy, &delivered(mine)).entries.len(), 0);
        // Another content under its identifier: it is delivered, and both are known then.
        let again = beta.reroute(at(9), &copy, &delivered(other));
        let kinds: Vec<_> = again.notes.iter().map(|n| n.kind).collect();
        assert_eq!((again.entries.len(), &kinds[..]), (1, &[NoteKind::IdentifierReused][..]));
        assert_eq!(again.seen[0].record, [other, mine].concat());
        // An older release stored no digest: this may be what was delivered.
        copy.digest = None;
        assert_eq!(beta.reroute(at(9), &copy, &delivered(other)).entries.len(), 0);
    }
}
