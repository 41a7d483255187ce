//! Clearances of peers and users, held against the security labels of messages (X.411 10.2, 14.3).
//!
//! A label is compared where a message comes in and where it would go out:
//!
//! * A user submits only what he is cleared for; else security-error, security-policy-violation.
//! * What a peer transfers that it is not cleared for is reported to the originator.
//! * Recipients behind a peer, or with a mailbox here, that is not cleared are reported; the other
//!   recipients of the message are served.
//!
//! These reports have reason transfer-failure-for-security-reason (8) and diagnostic
//! security-policy-violation (53). Alternate recipients do not get around them. Reports pass whatever
//! their label is: a sender must learn that he was refused.
//!
//! Who has no clearance configured is not restricted. A change holds for what is accepted or rerouted
//! from then on, and for what is queued as its transfer or delivery is about to begin.

use crate::Engine;
use crate::onward::route::Prefixes;
use crate::onward::split::{Disposition, Failure};
use crate::record::{NextHop, Record};
use base::PeerId;
use p1::apdu::MtsApduHead;
use p1::extension::Extensions;
use p1::names::ORAddress;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::{Clearance, ContentLabels, NotCleared, SecurityContext};
use std::collections::BTreeMap;

/// What peers and users are cleared for, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Clearances {
    /// Peers.
    pub peers: BTreeMap<PeerId, Clearance>,
    /// Users: of the prefixes of O/R addresses that match, the longest applies.
    pub users: Vec<(ORAddress, Clearance)>,
    /// Whether contents are opened: the labels inside signed ones count too (RFC 2634 3.2).
    pub open_contents: bool,
}

/// The same, as it is looked up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cleared {
    peers: BTreeMap<PeerId, Clearance>,
    users: Prefixes<Clearance>,
    pub(crate) open_contents: bool,
}

impl From<Clearances> for Cleared {
    fn from(configured: Clearances) -> Cleared {
        let users = configured.users.iter().map(|(prefix, clearance)| (prefix, clearance.clone()));
        let users = Prefixes::new(users);
        Cleared { users, peers: configured.peers, open_contents: configured.open_contents }
    }
}

impl Cleared {
    fn peer(
        &self,
        peer: PeerId,
        extensions: &Extensions,
        content: &ContentLabels,
    ) -> Result<(), NotCleared> {
        self.peers.get(&peer).map_or(Ok(()), |clearance| clearance.admits(extensions, content))
    }

    /// Whether the user of this address may submit, or be delivered, a message with these extensions, in whose
    /// content these labels are.
    pub(crate) fn user(
        &self,
        address: &ORAddress,
        extensions: &Extensions,
        content: &ContentLabels,
    ) -> Result<(), NotCleared> {
        if self.users.is_empty() {
            return Ok(());
        }
        let clearance = self.users.look_up(&address.attributes());
        clearance.map_or(Ok(()), |clearance| clearance.admits(extensions, content))
    }
}

fn violation(who: &str, why: &NotCleared) -> Failure {
    Failure {
        reason: NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON,
        diagnostic: Some(Diagnostic::SECURITY_POLICY_VIOLATION),
        text: format!("{who} is not cleared for {why}"),
    }
}

impl Engine {
    /// The failure if the next hop of this address is not cleared for the message.
    pub(crate) fn next_hop_not_cleared(
        &self,
        (extensions, content): (&Extensions, &ContentLabels),
        address: &ORAddress,
        hop: &NextHop,
    ) -> Option<Failure> {
        let (who, cleared) = match hop {
            NextHop::Peer(peer) => ("the next MTA", self.cleared.peer(*peer, extensions, content)),
            // A list is not a user: its members are compared, each.
            NextHop::Mailbox(name) if self.is_list(name) => return None,
            NextHop::Mailbox(_) => ("the user", self.cleared.user(address, extensions, content)),
        };
        cleared.err().map(|why| violation(who, &why))
    }

    /// Whether a queued copy for a peer may not go to it as it is, for the configuration has changed: the peer is not
    /// cleared for it any more, or its dialect has no form for a critical extension. [`Engine::reroute`] then
    /// reports those whom it concerns, and transfers the rest. A report goes in any case, but without the content
    /// that it returns.
    #[must_use]
    pub fn no_longer_fits(&self, record: &Record) -> bool {
        self.would_lose_critical(record) || self.lost_clearance(record).is_some()
    }

    /// The failure if the next hop of a queued copy is not cleared for it any more.
    pub(crate) fn lost_clearance(&self, record: &Record) -> Option<Failure> {
        let (extensions, recipients) = match &record.head {
            MtsApduHead::Message(e) => (&e.extensions, &e.recipients),
            MtsApduHead::Probe(e) => (&e.extensions, &e.recipients),
            MtsApduHead::Report(report) => {
                // It goes in any case; what it returns does not.
                let labels = (&report.envelope.extensions, &record.content_labels);
                let to = &report.envelope.destination.address;
                record.body?;
                return self.next_hop_not_cleared(labels, to, &record.next_hop);
            }
        };
        let mine = recipients.iter().find(|r| r.indicators.responsible())?;
        let labels = (extensions, &record.content_labels);
        self.next_hop_not_cleared(labels, &mine.recipient.address, &record.next_hop)
    }

    /// Fails all recipients of what came from a peer that is not cleared for it, or on an association in whose
    /// security-context it is not.
    pub(crate) fn hold_source_to_clearance(
        &self,
        (source, context): (Option<PeerId>, Option<&SecurityContext>),
        (extensions, content): (&Extensions, &ContentLabels),
        dispositions: &mut [Option<Disposition>],
    ) {
        let cleared = source.map_or(Ok(()), |peer| self.cleared.peer(peer, extensions, content));
        let failure = match (cleared, context.map(|context| context.admits(extensions, content))) {
            (Err(why), _) => violation("the MTA it came from", &why),
            (Ok(()), Some(Err(outside))) => Failure {
                text: format!("outside the security-context of its association: {outside}"),
                ..violation("", &NotCleared::Unknown)
            },
            (Ok(()), None | Some(Ok(()))) => return,
        };
        let ours = dispositions.iter_mut().flatten();
        ours.for_each(|disposition| *disposition = Err(failure.clone()));
    }

    /// The security-context that a peer asks for in its bind, if its clearance has all of it.
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    pub fn peer_context(&self, peer: PeerId, octets: &[u8]) -> Result<SecurityContext, String> {
        context_within(self.cleared.peers.get(&peer), octets)
    }

    /// The same for the user of this address.
    ///
    /// # Errors
    /// As [`Engine::peer_context`].
    pub fn user_context(
        &self,
        address: &ORAddress,
        octets: &[u8],
    ) -> Result<SecurityContext, String> {
        context_within(self.cleared.users.look_up(&address.attributes()), octets)
    }
}

/// X.411 8.1.1.1.1.3: a context has to be allowed by the labels of who binds. Who has no clearance has none that it
/// could be compared with.
fn context_within(clearance: Option<&Clearance>, octets: &[u8]) -> Result<SecurityContext, String> {
    let clearance = clearance.ok_or("a security-context, and no clearance is configured")?;
    let context = SecurityContext::parse(octets).map_err(|error| error.to_string())?;
    let within = context.is_within(clearance);
    within.map_err(|why| format!("a security-context that is not cleared: {why}"))?;
    Ok(context)
}

#[cfg(test)]
mod tests;
