//! Keys for the detection of duplicates.
//!
//! P1 repeats a transfer after a lost confirmation. An arrival is therefore recognised by its
//! identifier, the recipient's number and name, its redirections and expansions, and its path:
//! split copies share an identifier and have other recipients, and a looped message has a longer
//! path. The content's digest is stored with the key, as another content is another message. A
//! delivery has a key without the path instead ([`crate::delivery_keys`]). P3 has no such
//! identifier: a submission is a repetition if the same user submits the same in every respect.
//! The same text to another recipient, or at another priority, is another message.

use crate::arrival::trace::internal;
use crate::journal::Digest;
use crate::onward::route::canonical;
use crate::subject::Subject;
use base::ber::{Writer, universal as u};
use p1::apdu::{MtsApduHead, encode_report};
use p1::envelope::PerRecipientFields;
use p1::extension::{Extensions, number};
use p1::names::{GlobalDomainId, MtsIdentifier};
use p1::p3::MessageSubmissionEnvelope;
use p1::trace::TraceElement;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Prefix of the keys of probes.
pub(crate) const PROBE: &str = "probe";

/// How long keys are remembered: longer than any peer or user retries.
pub const REMEMBERED: Duration = Duration::from_hours(10 * 24);

/// Hashes a sequence of parts such that different sequences have different input.
#[derive(Clone)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn new(kind: &str) -> Hasher {
        let mut hasher = Hasher(Sha256::new());
        hasher.part(kind.as_bytes());
        hasher
    }

    pub(crate) fn part(&mut self, octets: &[u8]) {
        self.0.update((octets.len() as u64).to_be_bytes());
        self.0.update(octets);
    }

    /// Adds the output of `write` as one part.
    fn encoded(&mut self, write: impl FnOnce(&mut Writer)) {
        let mut w = Writer::new();
        write(&mut w);
        self.part(&w.into_vec());
    }

    fn domain(&mut self, domain: &GlobalDomainId) {
        let (country, admd, prmd) = domain.key();
        self.part(country.as_bytes());
        self.part(admd.as_bytes());
        self.part(&[u8::from(prmd.is_some())]);
        self.part(prmd.unwrap_or_default().as_bytes());
    }

    pub(crate) fn identifier(&mut self, identifier: &MtsIdentifier) {
        self.domain(&identifier.domain);
        self.part(identifier.local.as_bytes());
    }

    fn path(&mut self, trace: &[TraceElement], extensions: &Extensions) {
        self.part(&(trace.len() as u64).to_be_bytes());
        for element in trace {
            self.domain(&element.domain);
            self.part(&element.arrival_time.raw);
        }
        let internal = internal(extensions);
        self.part(&(internal.len() as u64).to_be_bytes());
        for element in internal {
            self.domain(&element.domain);
            self.part(element.mta.0.as_bytes());
            self.part(&element.arrival_time.raw);
        }
    }

    fn extension(&mut self, extensions: &Extensions, number: i64) {
        let value = extensions.standard(number).map(|f| f.value.clone());
        self.part(&[u8::from(value.is_some())]);
        self.part(&value.unwrap_or_default());
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The keys of an arrival: one for each recipient we are responsible for, in order; one for a
/// report.
pub fn arrival_keys(head: &MtsApduHead) -> Vec<Digest> {
    match head {
        MtsApduHead::Message(e) => subject_keys("message", &Subject::from(&**e)),
        MtsApduHead::Probe(e) => subject_keys(PROBE, &Subject::from(&**e)),
        MtsApduHead::Report(report) => {
            let mut hasher = Hasher::new("report");
            hasher.identifier(&report.envelope.report_identifier);
            hasher.part(canonical(&report.envelope.destination.address).as_bytes());
            hasher.path(&report.envelope.trace, &report.envelope.extensions);
            // A report has no content to identify it, so all of it goes into the key.
            hasher.part(&encode_report(report));
            vec![hasher.finish()]
        }
    }
}

fn subject_keys(kind: &str, subject: &Subject<'_>) -> Vec<Digest> {
    let common = Common::new(kind, subject);
    let key = |r: &PerRecipientFields| common.key(r, &canonical(&r.recipient.address));
    subject.recipients.iter().filter(|r| r.indicators.responsible()).map(key).collect()
}

/// The common part of the keys of all recipients of a message or probe.
#[derive(Clone)]
pub(crate) struct Common(Hasher);

impl Common {
    pub(crate) fn new(kind: &str, subject: &Subject<'_>) -> Common {
        let mut common = Hasher::new(kind);
        common.identifier(subject.identifier);
        common.extension(subject.extensions, number::DL_EXPANSION_HISTORY);
        common.path(subject.trace, subject.extensions);
        if kind == PROBE {
            // A probe has no content to identify it. A forged one would send its report to another
            // user.
            common.part(canonical(&subject.originator.address).as_bytes());
        }
        Common(common)
    }

    /// The key of a recipient with this canonical address.
    pub(crate) fn key(&self, recipient: &PerRecipientFields, address: &str) -> Digest {
        let mut hasher = self.0.clone();
        hasher.part(&recipient.number.to_be_bytes());
        hasher.part(address.as_bytes());
        hasher.part(recipient.recipient.directory_name.as_deref().unwrap_or_default());
        hasher.extension(&recipient.extensions, number::REDIRECTION_HISTORY);
        hasher.finish()
    }
}

/// The key of a submission by the user of this mailbox; `None` without a content identifier, as
/// two equal messages may then be intended.
///
/// Besides the content it covers every part of the envelope that changes what is sent: if the key
/// omitted one, another message would be answered with the first one's identifier, and lost.
pub fn submission_key(
    mailbox: &str,
    envelope: &MessageSubmissionEnvelope,
    content_digest: &[u8; 32],
) -> Option<Digest> {
    let mut hasher = Hasher::new("submission");
    hasher.part(mailbox.as_bytes());
    hasher.part(envelope.content_identifier.as_ref()?.as_bytes());
    hasher.part(content_digest);
    hasher.encoded(|w| envelope.content_type.write(w));
    hasher.encoded(|w| envelope.original_eits.iter().for_each(|e| e.write_as(w, u::SET)));
    hasher.part(&[envelope.priority as u8]);
    hasher.encoded(|w| envelope.indicators.write(w));
    let deferred = envelope.deferred_delivery_time.as_ref();
    hasher.part(deferred.map(|t| &t.raw[..]).unwrap_or_default());
    hasher.encoded(|w| envelope.extensions.write_as(w, u::SET));
    hasher.part(&(envelope.recipients.len() as u64).to_be_bytes());
    for recipient in &envelope.recipients {
        hasher.part(canonical(&recipient.recipient.address).as_bytes());
        hasher.part(recipient.recipient.directory_name.as_deref().unwrap_or_default());
        hasher.part(&[recipient.report_request as u8]);
        let conversion = recipient.explicit_conversion;
        hasher.part(&conversion.map(|c| c.to_be_bytes().to_vec()).unwrap_or_default());
        hasher.encoded(|w| recipient.extensions.write_as(w, u::SET));
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, CARTER, at, content, engine, engine_of, message, name, private, received,
        submission, submit,
    };
    use bytes::Bytes;
    use p1::content_type::ContentType;
    use p1::eits::EncodedInformationTypes;
    use p1::envelope::MessageTransferEnvelope;
    use p1::extension::{Criticality, Dialect, ExtensionField};
    use p1::flags::{PerMessageIndicators, Priority, ReportRequest};
    use p1::grade::PriorityLevelQualifier;
    use p1::time::Time;

    #[test]
    fn a_resend_has_the_same_keys_and_a_split_copy_has_not() {
        let mut alpha = engine();
        let baker = "C=XX;ADMD=;PRMD=beta;S=Other";
        let done = submit(&mut alpha, &submission(&[BAKER, CARTER, baker]));
        let heads: Vec<_> = done.accepted.entries.iter().map(|e| received(&alpha, e)).collect();
        let keys: Vec<_> = heads.iter().map(arrival_keys).collect();
        assert_eq!(keys.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(message(&heads[0]).message_identifier, message(&heads[1]).message_identifier);
        assert_ne!(keys[0][0], keys[1][0]);
        assert_ne!(keys[0][0], keys[0][1]);
        assert_eq!(arrival_keys(&received(&alpha, &done.accepted.entries[0])), keys[0]);
    }

    #[test]
    fn another_path_or_recipient_is_not_a_repetition() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let key = arrival_keys(&head)[0];
        let changed = |change: &dyn Fn(&mut MessageTransferEnvelope)| {
            let mut envelope = message(&head).clone();
            change(&mut envelope);
            arrival_keys(&MtsApduHead::Message(Box::new(envelope)))[0]
        };
        let history =
            |number| ExtensionField::standard(number, Criticality::default(), |w| w.null(u::NULL));
        assert_eq!(changed(&|_| {}), key);
        // Fields that a user may change in a repetition do not matter.
        assert_eq!(changed(&|e| e.unknown.push(Bytes::from_static(&[5, 0]))), key);
        let elsewhere = engine_of("zeta", "mta9", &[], &[]);
        let later = |e: &mut MessageTransferEnvelope| e.trace[0].arrival_time = Time::from(at(1));
        let domain = |e: &mut MessageTransferEnvelope| {
            e.trace.push(TraceElement::relayed(elsewhere.domain.clone(), at(1)));
        };
        let mta = |e: &mut MessageTransferEnvelope| {
            elsewhere.add_trace(at(1), None, &mut Vec::new(), &mut e.extensions);
        };
        let changes: [&dyn Fn(&mut MessageTransferEnvelope); 8] = [
            &later,
            &domain,
            &mta,
            &|e| e.message_identifier.local.push('x'),
            &|e| e.recipients[0].number = 2,
            &|e| e.recipients[0].recipient = name(CARTER),
            &|e| e.recipients[0].extensions.set(history(number::REDIRECTION_HISTORY)),
            &|e| e.extensions.set(history(number::DL_EXPANSION_HISTORY)),
        ];
        let mut keys: Vec<_> = changes.iter().map(|change| changed(*change)).collect();
        keys.push(key);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), changes.len() + 1);
    }

    fn taken(before: &[bool]) -> Vec<Option<Bytes>> {
        before.iter().map(|before| before.then(Bytes::new)).collect()
    }

    #[test]
    fn only_recipients_taken_before_are_dropped() {
        let mut alpha = engine();
        let other = "C=XX;ADMD=;PRMD=beta;S=Other";
        let done = submit(&mut alpha, &submission(&[BAKER, other]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut beta = engine_of("beta", "mta2", &["Baker", "Other"], &[("alpha", 0)]);
        let both = beta.accept(at(1), head.clone(), &content(1000), &[]);
        assert_eq!((both.accepted.entries.len(), both.accepted.seen.len()), (2, 2));
        assert_eq!(both.accepted.seen[0].until, at(1) + REMEMBERED);
        let second = beta.accept(at(2), head.clone(), &content(1000), &taken(&[true, false]));
        let hops: Vec<_> = second.accepted.entries.iter().map(|e| &e.record.next_hop).collect();
        assert_eq!(hops, [&crate::NextHop::Mailbox(canonical(&crate::testing::address(other)))]);
        assert_eq!(
            second.accepted.seen[..],
            both.accepted.seen[1..]
                .iter()
                .map(|s| crate::Seen { until: at(2) + REMEMBERED, ..s.clone() })
                .collect::<Vec<_>>()[..]
        );
        let none = beta.accept(at(3), head, &content(1000), &taken(&[true, true]));
        assert_eq!(none.accepted, crate::Accepted::default());
        assert_eq!(none.notes[0].kind, crate::NoteKind::Duplicate);
    }

    #[test]
    fn a_repeated_report_is_dropped() {
        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 0)]);
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let reported = beta.accept(at(1), head, &content(1000), &[]);
        let report = received(&beta, &reported.accepted.entries[0]);
        assert_eq!(arrival_keys(&report).len(), 1);
        let first = alpha.accept(at(2), report.clone(), &content(0), &[]);
        assert_eq!((first.accepted.entries.len(), first.accepted.seen.len()), (1, 1));
        let second = alpha.accept(at(3), report, &content(0), &taken(&[true]));
        assert_eq!(second.accepted, crate::Accepted::default());
    }

    #[test]
    fn a_resubmission_has_the_same_user_content_identifier_and_content() {
        let envelope = submission(&[BAKER]);
        let mut named = envelope.clone();
        let key = submission_key("a", &envelope, &[1; 32]);
        assert_eq!(key, submission_key("a", &submission(&[BAKER]), &[1; 32]));
        assert!(key.is_some());
        assert_ne!(key, submission_key("b", &envelope, &[1; 32]));
        assert_ne!(key, submission_key("a", &envelope, &[2; 32]));
        // Adjacent parts stay separate.
        named.content_identifier = Some("ef 1".to_owned());
        assert_ne!(key, submission_key("ar", &named, &[1; 32]));
        named.content_identifier = None;
        assert_eq!(submission_key("a", &named, &[1; 32]), None);
    }

    #[test]
    fn the_same_text_submitted_otherwise_is_another_message() {
        let key = |e: &MessageSubmissionEnvelope| submission_key("a", e, &[1; 32]);
        let envelope = submission(&[BAKER, CARTER]);
        let changed = |change: &dyn Fn(&mut MessageSubmissionEnvelope)| {
            let mut envelope = envelope.clone();
            change(&mut envelope);
            key(&envelope)
        };
        // The same address in other letter case, and members that are not passed on.
        assert_eq!(
            changed(&|e| e.recipients[0].recipient = name(&BAKER.to_lowercase())),
            key(&envelope)
        );
        assert_eq!(changed(&|e| e.unknown.push(Bytes::from_static(&[5, 0]))), key(&envelope));
        let qualifier = |q: PriorityLevelQualifier| q.extension(Dialect::Modern).unwrap();
        let changes: [&dyn Fn(&mut MessageSubmissionEnvelope); 15] = [
            &|_| {},
            &|e| e.recipients[1].recipient = name("C=XX;ADMD=;PRMD=beta;S=Other"),
            &|e| e.recipients.truncate(1),
            &|e| e.recipients.swap(0, 1),
            &|e| e.recipients[0].recipient.directory_name = Some(Bytes::from_static(&[0x30, 0])),
            &|e| e.recipients[0].report_request = ReportRequest::Report,
            &|e| e.recipients[0].explicit_conversion = Some(0),
            &|e| e.recipients[0].extensions = private(Criticality::default()),
            &|e| e.priority = Priority::Urgent,
            &|e| e.indicators = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS,
            &|e| e.extensions.set(qualifier(PriorityLevelQualifier::High)),
            &|e| e.extensions.set(qualifier(PriorityLevelQualifier::Low)),
            &|e| e.content_type = ContentType::P2,
            &|e| e.original_eits = Some(EncodedInformationTypes::default()),
            &|e| e.deferred_delivery_time = Some(Time::from(at(1))),
        ];
        let mut keys: Vec<_> = changes.iter().map(|change| changed(*change)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), changes.len());
    }
}
