//! What users register for all their deliveries (X.411 8.4.1.1), and the controls with which one holds
//! deliveries back for now (X.411 8.3.1.3).
//!
//! A registration refuses: what it does not admit is reported to the originator. Controls hold: what they
//! do not permit waits in the queue.

mod controls;

pub use controls::{Deliverable, DeliveryControls, HeldBy};

use crate::Engine;
use crate::onward::split::Failure;
use crate::record::{NextHop, Record};
use crate::subject::Carried;
use base::ber::{Element, Error, Writer};
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::names::ORName;
use p1::p3::{AccessError, Controls, MAX_CONTENT_LENGTH, RefusedArgument, RegisterArgument};
use p1::reason::{Diagnostic, NonDeliveryReason};

/// What the names of the store's values begin with that have registrations; the mailbox follows.
pub const REGISTERED: &str = "registered/";

/// Most octets of a registration as it is stored: the store writes those of all users again and again.
const MAX_STORED: usize = 4096;

/// What a user has registered. The default admits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// deliverable-maximum-content-length, octets; `None` for no limit.
    pub max_content_length: Option<u64>,
    /// deliverable-content-types; `None` for all.
    pub content_types: Option<Vec<ContentType>>,
    /// default-delivery-controls: in force from each bind on.
    pub default_controls: Option<Controls>,
    /// recipient-assigned-alternate-recipient: who gets what comes for the user.
    pub alternate: Option<ORName>,
}

impl Registration {
    /// Whether nothing is registered.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Registration::default()
    }

    /// The registration after this argument of register; the user's mailbox is the canonical address
    /// `mailbox`.
    ///
    /// # Errors
    /// operation-refused, which names what is not registered here or has no acceptable value; register-rejected
    /// for what contradicts itself. Nothing of the argument is registered then.
    pub fn register(
        &self,
        mailbox: &str,
        argument: RegisterArgument,
    ) -> Result<Registration, AccessError> {
        let RegisterArgument {
            max_content_length,
            content_types,
            default_controls,
            alternate,
            undone,
        } = argument;
        if let Some(undone) = undone {
            return Err(undone.unavailable());
        }
        let mut after = self.clone();
        if let Some(length) = max_content_length {
            after.max_content_length = match length.map(u64::try_from) {
                None => None,
                Some(Err(_)) => {
                    return Err(RefusedArgument::DELIVERABLE_MAX_CONTENT_LENGTH.unacceptable());
                }
                // ub-content-length: no content is longer.
                Some(Ok(octets)) => {
                    Some(octets).filter(|octets| *octets < MAX_CONTENT_LENGTH.unsigned_abs())
                }
            };
        }
        if let Some(types) = content_types {
            if types.as_ref().is_some_and(Vec::is_empty) {
                return Err(RefusedArgument::DELIVERABLE_CONTENT_TYPES.unacceptable());
            }
            after.content_types = types;
        }
        if let Some(alternate) = alternate {
            let is_own = |name: &ORName| {
                let address = crate::canonical(&name.address);
                address.is_empty() || address == mailbox
            };
            // We have no directory to look a name up in.
            if alternate.as_ref().is_some_and(is_own) {
                return Err(RefusedArgument::REDIRECTIONS.unacceptable());
            }
            after.alternate = alternate;
        }
        if let Some(controls) = default_controls {
            // The default of restrict is the only value here.
            if !controls.restrict {
                return Err(RefusedArgument::BuiltIn(RESTRICT).unacceptable());
            }
            after.default_controls = Some(controls).filter(|c| *c != Controls::default());
        }
        // Controls that are registered later than a limit may not exceed it, nor may a limit be lowered
        // beneath them.
        DeliveryControls::from_registration(&after).map_err(|_| AccessError::RegisterRejected)?;
        if after.encode().len() > MAX_STORED {
            return Err(AccessError::RegisterRejected);
        }
        Ok(after)
    }

    /// The name of the value in the store that has the registration of this mailbox.
    #[must_use]
    pub fn name(mailbox: &str) -> String {
        format!("{REGISTERED}{mailbox}")
    }

    /// As octets for the store: a RegisterArgument that registers this. Empty if nothing is registered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if self.is_none() {
            return Vec::new();
        }
        let length = self.max_content_length.and_then(|octets| i64::try_from(octets).ok());
        let mut w = Writer::new();
        RegisterArgument {
            max_content_length: length.map(Some),
            content_types: self.content_types.clone().map(Some),
            default_controls: self.default_controls.clone(),
            alternate: self.alternate.clone().map(Some),
            undone: None,
        }
        .write(&mut w);
        w.into_vec()
    }

    /// The registration of [`Registration::encode`].
    ///
    /// # Errors
    /// The octets are damaged; the field is named.
    pub fn decode(octets: &[u8]) -> Result<Registration, Error> {
        if octets.is_empty() {
            return Ok(Registration::default());
        }
        let argument = RegisterArgument::read(&Element::parse(octets)?)?;
        let length = argument.max_content_length.flatten();
        Ok(Registration {
            max_content_length: length.and_then(|octets| u64::try_from(octets).ok()),
            content_types: argument.content_types.flatten(),
            default_controls: argument.default_controls,
            alternate: argument.alternate.flatten(),
        })
    }

    /// Why a content is not deliverable to this user, with the diagnostic of its report.
    fn refuses(&self, length: u64, content_type: &ContentType) -> Option<(Diagnostic, String)> {
        if let Some(most) = self.max_content_length.filter(|most| length > *most) {
            let text = format!("{length} octets of content, and the recipient takes {most}");
            return Some((Diagnostic::CONTENT_TOO_LONG, text));
        }
        let types = self.content_types.as_ref()?;
        (!types.contains(content_type)).then(|| {
            let text = "the recipient takes no content of this type".to_owned();
            (Diagnostic::CONTENT_TYPE_NOT_SUPPORTED, text)
        })
    }
}

/// restrict, as operation-refused names it.
const RESTRICT: i64 = 10;

impl Engine {
    /// From now on this is registered for the user of this mailbox ([`crate::canonical`] address), and his
    /// redirection is that of the registration ([`Engine::set_redirection`]).
    ///
    /// Registrations are not durable here: the caller keeps them and sets them at each start.
    /// [`Engine::configure`] keeps them.
    pub fn set_registration(&mut self, mailbox: &str, registration: Registration) {
        self.set_redirection(mailbox, registration.alternate.clone());
        match registration.is_none() {
            true => _ = self.registrations.remove(mailbox),
            false => _ = self.registrations.insert(mailbox.to_owned(), registration),
        }
    }

    /// The registration of this mailbox after this argument of register.
    ///
    /// # Errors
    /// As [`Registration::register`]; a redirection to an address that is nobody's here, or without a route, is
    /// unacceptable too.
    pub fn register(
        &self,
        mailbox: &str,
        argument: RegisterArgument,
    ) -> Result<Registration, AccessError> {
        let to = argument.alternate.clone().flatten();
        let before = self.registration(mailbox).cloned().unwrap_or_default();
        let after = before.register(mailbox, argument)?;
        // One that was registered before may have gone: he keeps it until he changes it.
        if to.is_some_and(|to| self.resolve(&to.address).is_err()) {
            return Err(RefusedArgument::REDIRECTIONS.unacceptable());
        }
        Ok(after)
    }

    /// What the user of this mailbox has registered.
    pub fn registration(&self, mailbox: &str) -> Option<&Registration> {
        self.registrations.get(mailbox)
    }

    /// The mailboxes whose users have registered something.
    pub fn registered(&self) -> impl Iterator<Item = (&str, &Registration)> {
        self.registrations.iter().map(|(mailbox, of)| (mailbox.as_str(), of))
    }

    /// Why a queued copy is not deliverable to its user, who registered a limit or lost a clearance since: the
    /// reason, the diagnostic and the words of its report.
    pub fn refuses_delivery(
        &self,
        record: &Record,
    ) -> Option<(NonDeliveryReason, Diagnostic, String)> {
        let NextHop::Mailbox(mailbox) = &record.next_hop else { return None };
        if let Some(Failure { reason, diagnostic, text }) = self.lost_clearance(record) {
            let diagnostic = diagnostic.unwrap_or(Diagnostic::SECURITY_POLICY_VIOLATION);
            return Some((reason, diagnostic, text));
        }
        let MtsApduHead::Message(e) = &record.head else { return None };
        let registered = self.registrations.get(mailbox).filter(|r| r.alternate.is_none())?;
        let (diagnostic, text) = registered.refuses(record.size, &e.content_type)?;
        Some((NonDeliveryReason::UNABLE_TO_TRANSFER, diagnostic, text))
    }

    /// The failure if the user of this mailbox has registered that he does not take it. Who is redirected
    /// takes nothing himself.
    pub(crate) fn undeliverable_to(
        &self,
        carried: &Carried,
        size: u64,
        mailbox: &str,
    ) -> Option<Failure> {
        let registered = self.registrations.get(mailbox).filter(|r| r.alternate.is_none())?;
        let (length, content_type) = match carried {
            Carried::Message(e) => (size, &e.content_type),
            Carried::Probe(e) => {
                let length = e.content_length.and_then(|length| u64::try_from(length).ok());
                (length.unwrap_or_default(), &e.content_type)
            }
        };
        let (diagnostic, text) = registered.refuses(length, content_type)?;
        let reason = NonDeliveryReason::UNABLE_TO_TRANSFER;
        Some(Failure { reason, diagnostic: Some(diagnostic), text })
    }
}

#[cfg(test)]
mod tests;
