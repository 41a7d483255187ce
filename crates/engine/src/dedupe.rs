//! Keys of what must not be taken twice.
//!
//! P1 sends again after a lost confirmation, so an arrival is recognised by its identifier, the
//! recipient's number and name, its redirections and expansions, and the path it came: split copies
//! share an identifier and have other recipients, and what has looped has come further. P3 has no
//! such key: a resubmission is one of the same originator, content identifier and content.

use crate::journal::Digest;
use crate::route::canonical;
use crate::subject::Subject;
use crate::trace::internal;
use p1::apdu::MtsApduHead;
use p1::envelope::PerRecipientFields;
use p1::extension::{Extensions, number};
use p1::names::{GlobalDomainId, MtsIdentifier};
use p1::trace::TraceElement;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// How long keys are remembered: longer than any peer or user goes on trying.
pub const REMEMBERED: Duration = Duration::from_hours(10 * 24);

/// Hashes parts so that no two sequences of parts look alike.
#[derive(Clone)]
struct Hasher(Sha256);

impl Hasher {
    fn new(kind: &str) -> Hasher {
        let mut hasher = Hasher(Sha256::new());
        hasher.part(kind.as_bytes());
        hasher
    }

    fn part(&mut self, octets: &[u8]) {
        self.0.update((octets.len() as u64).to_be_bytes());
        self.0.update(octets);
    }

    fn domain(&mut self, domain: &GlobalDomainId) {
        let (country, admd, prmd) = domain.key();
        self.part(country.as_bytes());
        self.part(admd.as_bytes());
        self.part(&[u8::from(prmd.is_some())]);
        self.part(prmd.unwrap_or_default().as_bytes());
    }

    fn identifier(&mut self, identifier: &MtsIdentifier) {
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

    fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The keys of an arrival: one for each recipient we would be responsible for, in order; for a
/// report, one.
pub fn arrival_keys(head: &MtsApduHead) -> Vec<Digest> {
    match head {
        MtsApduHead::Message(e) => subject_keys("message", &Subject::from(&**e)),
        MtsApduHead::Probe(e) => subject_keys("probe", &Subject::from(&**e)),
        MtsApduHead::Report(report) => {
            let mut hasher = Hasher::new("report");
            hasher.identifier(&report.envelope.report_identifier);
            hasher.part(canonical(&report.envelope.destination.address).as_bytes());
            hasher.path(&report.envelope.trace, &report.envelope.extensions);
            vec![hasher.finish()]
        }
    }
}

fn subject_keys(kind: &str, subject: &Subject<'_>) -> Vec<Digest> {
    let mut common = Hasher::new(kind);
    common.identifier(subject.identifier);
    common.extension(subject.extensions, number::DL_EXPANSION_HISTORY);
    common.path(subject.trace, subject.extensions);
    let key = |recipient: &PerRecipientFields| {
        let mut hasher = common.clone();
        hasher.part(&recipient.number.to_be_bytes());
        hasher.part(canonical(&recipient.recipient.address).as_bytes());
        hasher.part(recipient.recipient.directory_name.as_deref().unwrap_or_default());
        hasher.extension(&recipient.extensions, number::REDIRECTION_HISTORY);
        hasher.finish()
    };
    subject.recipients.iter().filter(|r| r.indicators.responsible()).map(key).collect()
}

/// The key of a submission by the user of this mailbox; `None` without a content identifier, for
/// then two equal messages may well be meant.
pub fn submission_key(
    mailbox: &str,
    content_identifier: Option<&str>,
    content_digest: &[u8; 32],
) -> Option<Digest> {
    let mut hasher = Hasher::new("submission");
    hasher.part(mailbox.as_bytes());
    hasher.part(content_identifier?.as_bytes());
    hasher.part(content_digest);
    Some(hasher.finish())
}
