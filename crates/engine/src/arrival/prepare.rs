//! Prepares an arrival with many recipients in slices: computes their keys and next hops.
//!
//! A message may have tens of thousands of recipients. The node does one slice, serves other work,
//! and continues. The result does not depend on the slicing.

use crate::Engine;
use crate::arrival::critical::{Step, unsupported};
use crate::arrival::dedupe::{Common, Hasher, PROBE, arrival_keys};
use crate::journal::Digest;
use crate::onward::delivered::{self, delivery_keys};
use crate::onward::route::text_of;
use crate::onward::split::{Critical, Disposition};
use crate::subject::Subject;
use base::PeerId;
use p1::SecurityContext;
use p1::apdu::MtsApduHead;
use p1::envelope::PerRecipientFields;

/// The keys and dispositions of an arrival's recipients so far.
#[derive(Clone, Debug)]
pub struct Preparation {
    /// The common part for all recipients; `None` for a report.
    common: Option<ForAll>,
    /// Arrival keys of the recipients we are responsible for.
    arrivals: Vec<Digest>,
    deliveries: Vec<Digest>,
    /// Disposition of each recipient; `None` for those others are responsible for.
    dispositions: Vec<Option<Disposition>>,
    /// The generation of the tables that the dispositions were computed with.
    generation: u64,
    /// The peer it came from, where that is known.
    source: Option<PeerId>,
    /// The security-context of the association it came on, if it has one.
    context: Option<SecurityContext>,
}

/// The common part for all recipients of a message or probe.
#[derive(Clone)]
struct ForAll {
    /// Of their arrival keys.
    arrival: Common,
    /// Of their delivery keys.
    delivery: Hasher,
    critical: Critical,
}

impl std::fmt::Debug for ForAll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForAll").field("critical", &self.critical).finish_non_exhaustive()
    }
}

impl Preparation {
    /// The keys, as [`crate::keys`]; complete once [`Engine::prepare`] returns true.
    pub fn keys(&self) -> Vec<Digest> {
        [&self.arrivals[..], &self.deliveries].concat()
    }

    /// It comes from this peer, which must be cleared for its security label.
    #[must_use]
    pub fn from_peer(self, peer: Option<PeerId>) -> Preparation {
        Preparation { source: peer, ..self }
    }

    /// It came on an association of this security-context, in which its labels must be.
    #[must_use]
    pub fn in_context(self, context: Option<SecurityContext>) -> Preparation {
        Preparation { context, ..self }
    }

    /// Peer and context.
    pub(crate) fn origin(&self) -> (Option<PeerId>, Option<SecurityContext>) {
        (self.source, self.context.clone())
    }

    /// The dispositions of these recipients, if all are computed, and with tables of this
    /// generation.
    pub(crate) fn dispositions(
        self,
        generation: u64,
        recipients: &[PerRecipientFields],
    ) -> Option<Vec<Option<Disposition>>> {
        let whole = self.generation == generation && self.dispositions.len() == recipients.len();
        // Recipients accepted before are no longer ours.
        let ours = |(disposition, r): (Option<Disposition>, &PerRecipientFields)| {
            disposition.filter(|_| r.indicators.responsible())
        };
        whole.then(|| self.dispositions.into_iter().zip(recipients).map(ours).collect())
    }
}

impl Engine {
    /// Begins with an arrival. A report is prepared at once.
    pub fn begin(&self, head: &MtsApduHead) -> Preparation {
        let common =
            subject(head).zip(delivered::common_of(head)).map(|((kind, subject), delivery)| {
                let critical = Critical {
                    for_transfer: unsupported(Step::Transfer, subject.extensions),
                    for_delivery: unsupported(Step::Delivery, subject.extensions),
                };
                ForAll { arrival: Common::new(kind, &subject), delivery, critical }
            });
        let (arrivals, deliveries) = match common {
            Some(_) => (Vec::new(), Vec::new()),
            None => (arrival_keys(head), delivery_keys(head)),
        };
        let generation = self.generation;
        Preparation {
            common,
            arrivals,
            deliveries,
            dispositions: Vec::new(),
            generation,
            source: None,
            context: None,
        }
    }

    /// Prepares at most `most` further recipients of that arrival; returns whether all are done.
    pub fn prepare(&self, done: &mut Preparation, head: &MtsApduHead, most: usize) -> bool {
        let (Some(common), Some((_, subject))) = (&done.common, subject(head)) else {
            return true;
        };
        for recipient in subject.recipients.iter().skip(done.dispositions.len()).take(most) {
            let disposition = recipient.indicators.responsible().then(|| {
                let attributes = recipient.recipient.address.attributes();
                let address = text_of(&attributes);
                done.arrivals.push(common.arrival.key(recipient, &address));
                done.deliveries.push(delivered::key(&common.delivery, recipient, &address));
                self.disposition(&common.critical, &attributes, &recipient.extensions)
            });
            done.dispositions.push(disposition);
        }
        done.dispositions.len() >= subject.recipients.len()
    }
}

/// The kind of a message or probe in its keys, and its subject.
fn subject(head: &MtsApduHead) -> Option<(&'static str, Subject<'_>)> {
    match head {
        MtsApduHead::Message(e) => Some(("message", Subject::from(&**e))),
        MtsApduHead::Probe(e) => Some((PROBE, Subject::from(&**e))),
        MtsApduHead::Report(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, CARTER, JONES, NOBODY, NOWHERE, SMITH, at, content, engine_of, name, received,
        submission,
    };
    use bytes::Bytes;
    use proptest::prelude::*;

    /// A message from another MTA to these recipients, as it arrives.
    fn arriving(to: &[&str]) -> MtsApduHead {
        let mut elsewhere = engine_of("zeta", "mta9", &["Smith"], &[("", 0)]);
        let mut envelope = submission(to);
        envelope.originator = name("C=XX;ADMD=;PRMD=zeta;S=Smith");
        let mailbox = crate::canonical(&envelope.originator.address);
        let done = elsewhere.submit(at(0), &mailbox, &envelope, &content(9), &[]).unwrap();
        received(&elsewhere, &done.accepted.entries[0])
    }

    proptest! {
        /// The result is the same for all recipients, slices and remembered keys.
        #[test]
        fn slices_give_what_the_whole_gives(
            picks in proptest::collection::vec(0usize..6, 1..20),
            ours in proptest::collection::vec(any::<bool>(), 20),
            seen in proptest::collection::vec(any::<bool>(), 0..40),
            slice in 1usize..8,
            changed in any::<bool>(),
        ) {
            let all = [SMITH, JONES, BAKER, CARTER, NOBODY, NOWHERE];
            let to: Vec<&str> = picks.iter().map(|p| all[*p]).collect();
            let mut head = arriving(&to);
            if let MtsApduHead::Message(e) = &mut head {
                for (recipient, ours) in e.recipients.iter_mut().zip(&ours) {
                    recipient.indicators = recipient.indicators.with_responsibility(*ours);
                }
            }
            let users = &["Smith", "Jones"];
            let mut whole = engine_of("alpha", "mta1", users, &[("beta", 0), ("gamma", 1), ("zeta", 2)]);
            let mut sliced = whole.clone();
            let mut done = sliced.begin(&head);
            let mut slices = 1;
            while !sliced.prepare(&mut done, &head, slice) {
                slices += 1;
            }
            prop_assert_eq!(slices, to.len().div_ceil(slice));
            prop_assert_eq!(done.keys(), crate::keys(&head));
            // What was delivered has the digest of its content.
            let digest = Bytes::copy_from_slice(&content(9).digest);
            let seen: Vec<_> = seen.iter().map(|seen| seen.then(|| digest.clone())).collect();
            if changed {
                // The users have changed: earlier dispositions are not used.
                for engine in [&mut whole, &mut sliced] {
                    engine.set_mailboxes([crate::canonical(&name(SMITH).address)].into());
                }
            }
            let expected = whole.accept(at(5), head.clone(), &content(9), &seen);
            let found = sliced.accept_prepared(at(5), head, &content(9), done, &seen);
            prop_assert_eq!(found, expected);
        }
    }
}
