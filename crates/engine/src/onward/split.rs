//! One copy per next hop, each responsible for its own recipients only (X.411 14.3.6).

use crate::arrival::accept::Known;
use crate::arrival::classify::Policy;
use crate::arrival::critical::{Step, unsupported};
use crate::arrival::prepare::Preparation;
use crate::journal::Digest;
use crate::onward::asked::unfulfilled;
use crate::onward::copying::plan;
use crate::onward::delivered::{Delivering, fingerprint};
use crate::onward::redirect::Settled;
use crate::outcome::{Accepted, NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::report::RecipientOutcome;
use crate::subject::{Carried, Measured, StoredContent, Subject};
use crate::{Content, Engine};
use base::{BodyId, Precedence, Utc};
use p1::ContentLabels;
use p1::envelope::{PerRecipientFields, ReportType};
use p1::extension::Extensions;
use p1::names::Attribute;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Why a recipient cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub reason: NonDeliveryReason,
    pub diagnostic: Option<Diagnostic>,
    /// In words, for the report's supplementary information and the log.
    pub text: String,
}

/// The unsupported critical extensions of a message as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Critical {
    pub for_transfer: Option<String>,
    pub for_delivery: Option<String>,
}

/// The disposition of a recipient we are responsible for.
pub(crate) type Disposition = Result<NextHop, Failure>;

impl Engine {
    /// The disposition of one recipient, by address and extensions, given the message's critical
    /// extensions.
    pub(crate) fn disposition(
        &self,
        message: &Critical,
        address: &[(Attribute, String)],
        extensions: &Extensions,
    ) -> Disposition {
        let hop = self.resolve_by(address)?;
        let (step, of_message) = match hop {
            NextHop::Peer(_) => (Step::Transfer, &message.for_transfer),
            NextHop::Mailbox(_) => (Step::Delivery, &message.for_delivery),
        };
        let critical = of_message
            .clone()
            .or_else(|| unsupported(step, extensions))
            // A delivering MTA also performs transfer.
            .or_else(|| message.for_transfer.clone())
            .or_else(|| unsupported(Step::Transfer, extensions));
        match critical {
            None => Ok(hop),
            Some(name) => Err(Failure {
                reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
                diagnostic: Some(Diagnostic::UNSUPPORTED_CRITICAL_FUNCTION),
                text: format!("unsupported critical extension {name}"),
            }),
        }
    }

    /// The disposition of each recipient, in order; `None` for those others are responsible for.
    pub(crate) fn dispositions(
        &self,
        message: &Subject<'_>,
        looped: bool,
    ) -> Vec<Option<Disposition>> {
        // Once for all recipients.
        let critical = Critical {
            for_transfer: unsupported(Step::Transfer, message.extensions),
            for_delivery: unsupported(Step::Delivery, message.extensions),
        };
        let disposition = |recipient: &PerRecipientFields| {
            if looped {
                Err(Failure {
                    reason: NonDeliveryReason::TRANSFER_FAILURE,
                    diagnostic: Some(Diagnostic::LOOP_DETECTED),
                    text: "the trace shows that this was here before".to_owned(),
                })
            } else {
                let address = recipient.recipient.address.attributes();
                self.disposition(&critical, &address, &recipient.extensions)
            }
        };
        let responsible = |r: &&PerRecipientFields| r.indicators.responsible();
        message.recipients.iter().map(|r| Some(r).filter(responsible).map(disposition)).collect()
    }

    /// All outputs of a message or probe that has no trace of ours yet: copies for the next hops, and
    /// reports of failures or, for a probe, of success.
    pub(crate) fn distribute(
        &mut self,
        now: Utc,
        mut carried: Carried,
        content: Option<&Content>,
        origin: Origin<'_>,
        prepared: Option<Preparation>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        let (looped, first_arrival) = {
            let Subject { trace, extensions, .. } = carried.subject();
            (self.loops(trace, extensions), self.first_arrival(now, trace, extensions))
        };
        let (source, context) = prepared.as_ref().map(Preparation::origin).unwrap_or_default();
        let prepared = prepared.filter(|_| !looped);
        let dispositions =
            prepared.and_then(|p| p.dispositions(self.generation, carried.subject().recipients));
        let mut dispositions =
            dispositions.unwrap_or_else(|| self.dispositions(&carried.subject(), looped));
        let none = ContentLabels::default();
        let inside = content.map_or(&none, |c| &c.labels);
        let labels = (carried.subject().extensions, inside);
        self.hold_source_to_clearance((source, context.as_ref()), labels, &mut dispositions);
        notes.extend(first_arrival.doubt.map(|doubt| Note::new(NoteKind::TraceDoubted, doubt)));
        let held = origin.held_until(self.earliest(now), &carried);
        let (trace, extensions) = carried.traces_mut();
        self.add_trace(now, held, trace, extensions);

        let size = content.map_or(0, |c| c.length);
        let measured = Measured { size, labels: inside };
        let sorted = self.sort_out(now, &mut carried, measured, dispositions, notes);
        let others = origin.known().map(Known::others);
        let digest = content.map(|content| content.digest);
        let fingerprint = match (&carried, &digest) {
            (Carried::Message(e), Some(digest)) => Some(fingerprint(e, digest)),
            _ => None,
        };
        let delivering = Delivering { now, digest: fingerprint, others, known: origin.known() };
        let seen = delivering.keys_for(&carried, &sorted);
        let Sorted { ways, outcomes, redirected: _ } = sorted;
        let precedence = level(&self.policy, &carried, content);
        let first_arrival = first_arrival.at;
        let body = match &carried {
            Carried::Message(_) => Some(self.ids.body()),
            Carried::Probe(_) => None,
        };
        let common =
            Common { carried: &carried, precedence, measured, digest, body, held, first_arrival };
        let mut accepted = self.copies(now, &common, ways, notes);
        let stored = body.map(|body| StoredContent { body, size, digest });
        let subject = carried.subject().with_content(stored, inside);
        let reports = self.reports(now, &subject, precedence, outcomes, notes);
        accepted.entries.extend(reports);
        accepted.body = body.filter(|_| accepted.entries.iter().any(|e| e.record.body.is_some()));
        accepted.seen = seen;
        accepted
    }

    /// The failure if the content is too long for the peer: else its transfer would fail until it
    /// expires. That of a probe, by its content-length (X.411 8.2.1.2.1), may be too long for this MTA.
    fn too_long(&self, carried: &Carried, size: u64, hop: &NextHop) -> Option<Failure> {
        let of_peer = match hop {
            NextHop::Peer(peer) => self.content_max.get(peer).copied(),
            NextHop::Mailbox(_) => None,
        };
        let (octets, here) = match carried {
            Carried::Message(_) => (size, None),
            Carried::Probe(e) => {
                let length = e.content_length.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                (length, Some(self.accepted_max))
            }
        };
        let failure = |who, most: u64| Failure {
            reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
            diagnostic: Some(Diagnostic::CONTENT_TOO_LONG),
            text: format!("{octets} octets of content, and {who} takes {most}"),
        };
        let here = here.filter(|most| octets > *most).map(|most| failure("this MTA", most));
        here.or_else(|| Some(failure("the next MTA", of_peer.filter(|most| octets > *most)?)))
    }

    /// A disposition, or the failure if its next hop cannot take the message for this recipient.
    pub(crate) fn fitting(
        &self,
        carried: &Carried,
        content: Measured<'_>,
        recipient: &PerRecipientFields,
        disposition: Disposition,
    ) -> Disposition {
        let hop = disposition?;
        let Measured { size, labels } = content;
        let labels = (carried.subject().extensions, labels);
        if let Some(failure) = self.next_hop_not_cleared(labels, &recipient.recipient.address, &hop)
        {
            return Err(failure);
        }
        let of_user = || match &hop {
            NextHop::Mailbox(mailbox) => self
                .list_refusal(carried, &hop)
                .or_else(|| unfulfilled(recipient))
                .or_else(|| self.undeliverable_to(carried, size, mailbox)),
            NextHop::Peer(_) => None,
        };
        let failure = self.too_long(carried, size, &hop).or_else(of_user);
        match failure.or_else(|| self.form_missing(&carried.subject(), recipient, &hop)) {
            None => Ok(hop),
            Some(failure) => Err(failure),
        }
    }

    /// Which recipients go which way, and what there is to report at once. Recipients that are to be
    /// redirected are: `carried` then has their alternates.
    pub(crate) fn sort_out(
        &self,
        now: Utc,
        carried: &mut Carried,
        content: Measured<'_>,
        dispositions: Vec<Option<Disposition>>,
        notes: &mut Vec<Note>,
    ) -> Sorted {
        let Settled { dispositions, redirected } =
            self.settle(now, carried, content, dispositions, notes);
        let mut ways: BTreeMap<Way, Vec<usize>> = BTreeMap::new();
        let mut outcomes = Vec::new();
        let mut failed: Vec<(usize, Failure, usize)> = Vec::new();
        for (index, disposition) in dispositions.into_iter().enumerate() {
            match (disposition, &*carried) {
                (None, _) => {}
                (Some(Ok(NextHop::Mailbox(_))), Carried::Probe(_)) => {
                    let report = ReportType::Delivery { time: Time::from(now), mts_user: 0 };
                    outcomes.push(RecipientOutcome { index, report, text: None });
                }
                (Some(Ok(hop)), _) => {
                    let way = Way { hop, redirected: redirected.contains_key(&index) };
                    ways.entry(way).or_default().push(index);
                }
                (Some(Err(failure)), _) => {
                    outcomes.push(RecipientOutcome::failed(index, &failure));
                    let alike = |f: &Failure| {
                        (f.reason, f.diagnostic) == (failure.reason, failure.diagnostic)
                    };
                    match failed.iter_mut().find(|(_, first, _)| alike(first)) {
                        Some((_, _, more)) => *more += 1,
                        None => failed.push((index, failure, 0)),
                    }
                }
            }
        }
        // One note per reason, whatever the number of recipients.
        let recipients = carried.subject().recipients;
        notes.extend(failed.into_iter().map(|(index, failure, more)| {
            let first = recipients.get(index).map(|r| r.recipient.to_string()).unwrap_or_default();
            // The reason comes first: an address may be long, and the log cuts.
            let detail = match more {
                0 => format!("{}: {first}", failure.text),
                _ => format!("{}: {} recipients, the first {first}", failure.text, more + 1),
            };
            Note::new(NoteKind::NonDelivery, detail)
        }));
        Sorted { ways, outcomes, redirected }
    }

    /// A copy for each next hop; they share the content.
    fn copies(
        &mut self,
        now: Utc,
        common: &Common<'_>,
        ways: BTreeMap<Way, Vec<usize>>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        let subject = common.carried.subject();
        let earliest = self.earliest(now);
        let mut accepted = Accepted::default();
        let plan = plan(common.carried, ways, notes);
        for copy in &plan.copies {
            let head = self.head_of(common.carried, &plan, copy);
            let next_hop = copy.way.hop.clone();
            let record = Record {
                not_before: common.held.or_else(|| deferred(earliest, common.carried, &next_hop)),
                message: subject.identifier.to_string(),
                precedence: common.precedence,
                accepted: now,
                first_arrival: common.first_arrival,
                latest: crate::expire::latest(common.carried),
                size: common.measured.size,
                body: common.body,
                digest: common.digest,
                content_labels: common.measured.labels.clone(),
                head,
                next_hop,
            };
            let (id, precedence) = (self.ids.entry(), common.precedence);
            accepted.entries.push(NewEntry { id, precedence, record });
        }
        accepted
    }
}

/// The common fields of all copies of one message or probe.
struct Common<'a> {
    carried: &'a Carried,
    precedence: Precedence,
    measured: Measured<'a>,
    digest: Option<[u8; 32]>,
    /// The content; `None` for a probe.
    body: Option<BodyId>,
    held: Option<Utc>,
    first_arrival: Utc,
}

/// The source of a message or probe.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// From a user: we perform its deferral (X.411 8.2.1.1.1.9).
    Submission,
    /// From a peer, with what is remembered of it.
    Transfer(&'a Known<'a>),
}

impl<'a> Origin<'a> {
    fn known(self) -> Option<&'a Known<'a>> {
        match self {
            Origin::Submission => None,
            Origin::Transfer(known) => Some(known),
        }
    }

    fn held_until(self, now: Utc, carried: &Carried) -> Option<Utc> {
        match self {
            Origin::Submission => deferral(now, carried),
            Origin::Transfer(_) => None,
        }
    }
}

/// The way of a copy. Redirected recipients have copies of their own: their path begins anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    pub hop: NextHop,
    /// Its recipients were redirected here.
    pub redirected: bool,
}

/// The recipients of a message or probe, sorted.
#[derive(Debug)]
pub(crate) struct Sorted {
    pub ways: BTreeMap<Way, Vec<usize>>,
    pub outcomes: Vec<RecipientOutcome>,
    /// Those redirected here, by index, with the delivery key each had before.
    pub redirected: BTreeMap<usize, Digest>,
}

impl Sorted {
    /// The recipients whose copy ends here: in a mailbox or, for a probe, in a report on it.
    pub(crate) fn delivered(&self) -> Vec<usize> {
        let here = self.ways.iter().filter(|(way, _)| matches!(way.hop, NextHop::Mailbox(_)));
        let probed =
            self.outcomes.iter().filter(|o| matches!(o.report, ReportType::Delivery { .. }));
        here.flat_map(|(_, mine)| mine).copied().chain(probed.map(|o| o.index)).collect()
    }

    /// The keys that recipients had before a redirection to somebody who is served.
    pub(crate) fn moved_on(&self) -> Vec<Digest> {
        let delivered = self.delivered();
        let relayed = self.ways.iter().filter(|(way, _)| way.redirected);
        let served = relayed.flat_map(|(_, mine)| mine).copied().chain(delivered);
        let served: BTreeSet<usize> = served.collect();
        served.iter().filter_map(|index| self.redirected.get(index)).copied().collect()
    }
}

/// deferred-delivery-time, if it is in the future.
fn deferral(now: Utc, carried: &Carried) -> Option<Utc> {
    match carried {
        Carried::Message(e) => {
            e.deferred_delivery_time.as_ref().and_then(|t| t.utc).filter(|t| *t > now)
        }
        Carried::Probe(_) => None,
    }
}

/// The delivering MTA holds a message that no MTA held before; a relay does not.
pub(crate) fn deferred(now: Utc, carried: &Carried, hop: &NextHop) -> Option<Utc> {
    match hop {
        NextHop::Mailbox(_) => deferral(now, carried),
        NextHop::Peer(_) => None,
    }
}

fn level(policy: &Policy, carried: &Carried, content: Option<&Content>) -> Precedence {
    match carried {
        Carried::Message(e) => {
            let prefix = content.map(|c| c.prefix.clone()).unwrap_or_default();
            policy.message(e.priority, &e.extensions, &e.content_type, &prefix)
        }
        Carried::Probe(_) => policy.probe(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use crate::testing::{
        BAKER, CARTER, JONES, NOBODY, NOWHERE, SMITH, at, content, engine, engine_of, failures,
        message, received, report, submission, submit,
    };
    use p1::apdu::MtsApduHead;
    use p1::flags::PerMessageIndicators;
    use proptest::prelude::*;

    fn responsible(entry: &NewEntry) -> Vec<u32> {
        let MtsApduHead::Message(e) = &entry.record.head else { return Vec::new() };
        e.recipients.iter().filter(|r| r.indicators.responsible()).map(|r| r.number).collect()
    }

    proptest! {
        /// For all recipients: each is the responsibility of one copy or reported, never both; a
        /// relayed copy names all of them; no two copies have the same next hop.
        #[test]
        fn every_recipient_is_served_or_reported_once(
            picks in proptest::collection::vec(0usize..6, 1..12),
            ours in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let all = [SMITH, JONES, BAKER, CARTER, NOBODY, NOWHERE];
            let to: Vec<&str> = picks.iter().map(|p| all[*p]).collect();
            // The message as a relay receives it, with other MTAs responsible for some recipients.
            let mut elsewhere = engine_of("zeta", "mta9", &["Smith"], &[("", 0)]);
            let mut envelope = submission(&to);
            envelope.originator = crate::testing::name("C=XX;ADMD=;PRMD=zeta;S=Smith");
            let mailbox = crate::canonical(&envelope.originator.address);
            let done = elsewhere.submit(at(0), &mailbox, &envelope, &content(9), &[]).unwrap();
            let mut head = received(&elsewhere, &done.accepted.entries[0]);
            let MtsApduHead::Message(arriving) = &mut head else { panic!() };
            for (recipient, ours) in arriving.recipients.iter_mut().zip(&ours) {
                recipient.indicators = recipient.indicators.with_responsibility(*ours);
            }
            let peers = [("beta", 0), ("gamma", 1), ("zeta", 5)];
            let mut alpha = engine_of("alpha", "mta1", &["Smith", "Jones"], &peers);
            let taken = alpha.accept(at(1), head, &content(9), &[]);

            let mut served: Vec<u32> = Vec::new();
            let mut hops = BTreeSet::new();
            for entry in &taken.accepted.entries {
                match entry.record.kind() {
                    RecordKind::Message => {
                        let named = message(&entry.record.head).recipients.len();
                        let relayed = matches!(entry.record.next_hop, NextHop::Peer(_));
                        let mine = responsible(entry).len();
                        prop_assert_eq!(named, if relayed { to.len() } else { mine });
                        prop_assert!(hops.insert(entry.record.next_hop.clone()));
                        prop_assert_eq!(entry.record.body, taken.accepted.body);
                        let mine = responsible(entry);
                        for n in &mine {
                            let recipient = crate::testing::address(to[*n as usize - 1]);
                            prop_assert_eq!(alpha.resolve(&recipient), Ok(entry.record.next_hop.clone()));
                        }
                        prop_assert!(!mine.is_empty());
                        served.extend(mine);
                    }
                    _ => served.extend(failures(report(entry)).iter().map(|(n, _)| *n)),
                }
            }
            served.sort_unstable();
            let expected: Vec<u32> =
                (1..).zip(&ours[..to.len()]).filter(|(_, ours)| **ours).map(|(n, _)| n).collect();
            prop_assert_eq!(served, expected);
            prop_assert_eq!(taken.accepted.body.is_some(), !hops.is_empty());
        }
    }

    #[test]
    fn recipients_that_fail_alike_are_one_note_with_a_count() {
        let many: Vec<String> =
            (0..500).map(|n| format!("/C=XX/ADMD=/PRMD=ALPHA/S=NEMO{n}")).collect();
        let to: Vec<&str> = many.iter().map(String::as_str).collect();
        let done = submit(&mut engine(), &submission(&to));
        let notes = done.notes.iter().filter(|n| n.kind == NoteKind::NonDelivery);
        let [note] = notes.collect::<Vec<_>>()[..] else { panic!("{:?}", done.notes) };
        assert!(note.detail.contains("NEMO0"), "{note:?}");
        assert!(note.detail.contains(": 500 recipients, the first "), "{note:?}");
        let [entry] = &done.accepted.entries[..] else { panic!() };
        assert_eq!(failures(report(entry)).len(), 500);
    }

    #[test]
    fn what_a_peer_does_not_take_is_reported_at_once_and_the_rest_goes() {
        let mut alpha = engine();
        alpha.content_max.insert(base::PeerId(0), 999);
        alpha.content_max.insert(base::PeerId(1), 1_000);
        let done = submit(&mut alpha, &submission(&[BAKER, CARTER, JONES]));
        let [copy, local, reported] = &done.accepted.entries[..] else { panic!("{done:?}") };
        assert_eq!(copy.record.next_hop, NextHop::Peer(base::PeerId(1)));
        assert_eq!(local.record.kind(), RecordKind::Message);
        // unable-to-transfer, content-too-long.
        assert_eq!(failures(report(reported)), [(1, Some((1, Some(7))))]);
        // A reroute finds it in a message already queued.
        alpha.content_max.insert(base::PeerId(1), 10);
        let again = alpha.reroute(at(9), &copy.record, &[]);
        assert_eq!(failures(report(&again.entries[0])), [(2, Some((1, Some(7))))]);
        assert_eq!(again.entries.len(), 1);
    }

    /// Counted in steps, one for each recipient that a copy is made of.
    #[cfg(debug_assertions)]
    #[test]
    fn a_message_to_many_users_costs_what_its_recipients_do_not_their_square() {
        let users: Vec<String> = (0..300).map(|n| format!("User{n}")).collect();
        let names: Vec<&str> = users.iter().map(String::as_str).collect();
        let mut alpha = engine_of("alpha", "mta1", &[&names[..], &["Smith"]].concat(), &[]);
        let to: Vec<_> = users.iter().map(|u| format!("C=XX;ADMD=;PRMD=alpha;S={u}")).collect();
        let to: Vec<&str> = to.iter().map(String::as_str).chain([NOBODY; 300]).collect();
        base::steps::taken();
        let done = submit(&mut alpha, &submission(&to));
        let steps = base::steps::taken();
        assert_eq!(done.accepted.entries.len(), 301);
        assert_eq!(steps, 300, "one for each recipient of a copy");
    }

    /// Names of 60 octets in a message to so many mailboxes, which are disclosed if they are few.
    #[test]
    fn many_recipients_are_not_named_to_one_another_here() {
        let named = |count: usize| {
            let users: Vec<String> = (0..count).map(|n| format!("User{n}")).collect();
            let names: Vec<&str> = users.iter().map(String::as_str).collect();
            let mut alpha =
                engine_of("alpha", "mta1", &[&names[..], &["Smith"]].concat(), &[("", 0)]);
            let to = users.iter().map(|u| format!("C=XX;ADMD=;PRMD=alpha;S={u}"));
            let to: Vec<String> = to.chain([BAKER.to_owned()]).collect();
            let to: Vec<&str> = to.iter().map(String::as_str).collect();
            let mut envelope = submission(&to);
            envelope.indicators = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS;
            let done = submit(&mut alpha, &envelope);
            let of = |entry: &NewEntry| message(&entry.record.head).recipients.len();
            let (relayed, here): (Vec<_>, Vec<_>) = done
                .accepted
                .entries
                .iter()
                .partition(|e| matches!(e.record.next_hop, NextHop::Peer(_)));
            assert_eq!((relayed.len(), of(relayed[0]), here.len()), (1, count + 1, count));
            let octets: usize = here.iter().map(|e| e.record.encode().len()).sum();
            let noted = done.notes.iter().filter(|n| n.kind == NoteKind::NotDisclosed).count();
            (of(here[0]), octets < 16 << 20, noted)
        };
        assert_eq!(named(100), (101, true, 0));
        assert_eq!(named(1_600), (1, true, 1));
    }

    #[test]
    fn two_names_of_one_mailbox_are_one_delivery() {
        let done = submit(&mut engine(), &submission(&[JONES, "C=xx;ADMD=;PRMD=ALPHA;S=JONES"]));
        assert_eq!(done.accepted.entries.len(), 1);
        assert_eq!(responsible(&done.accepted.entries[0]), [1, 2]);
    }

    #[test]
    fn deferral_is_performed_where_it_is_submitted_and_where_it_is_delivered() {
        let mut envelope = submission(&[BAKER]);
        envelope.deferred_delivery_time = Some(Time::from(at(600)));
        envelope.indicators = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS;
        let mut alpha = engine();
        let done = submit(&mut alpha, &envelope);
        let entry = &done.accepted.entries[0];
        assert_eq!(entry.record.not_before, Some(at(600)));
        let head = received(&alpha, entry);
        let deferred = message(&head).trace[0].additional.deferred_time.clone();
        assert_eq!(deferred, Some(Time::from(at(600))));
        let relayed = engine_of("zeta", "m", &[], &[("beta", 1)])
            .accept(at(1), head.clone(), &content(1), &[])
            .accepted;
        assert_eq!(relayed.entries[0].record.not_before, None);
        let mut last = engine_of("beta", "m", &["Baker"], &[]);
        let delivered = last.accept(at(1), head.clone(), &content(1), &[]).accepted;
        assert_eq!(delivered.entries[0].record.not_before, Some(at(600)));
        let late = last.accept(at(601), head, &content(1), &[]).accepted;
        assert_eq!(late.entries[0].record.not_before, None);
    }
}
