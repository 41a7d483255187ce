//! Redirection of recipients to alternates (X.411 14.3, error processing and redirection).
//!
//! A recipient is redirected for one of three reasons:
//!
//! * He has redirected what comes for him ([`Engine::set_redirection`]). The originator may prohibit
//!   it (recipient-reassignment-prohibited, X.411 8.2.1.1.1.4).
//! * He cannot be served, and the originator named an alternate
//!   (originator-requested-alternate-recipient, X.411 8.2.1.1.1.5).
//! * His address is of this site but nobody's, the site has an alternate for such addresses, and the
//!   originator allows it (alternate-recipient-allowed, X.411 8.2.1.1.1.3). The originator's alternate
//!   comes first.
//!
//! The alternate is a recipient as any other: he may have no route, or be redirected too. So there
//! may be several redirections here. Each is noted in the recipient's redirection-history. A name
//! that the recipient had before is never taken again: that is a loop, and is reported.
//!
//! A redirected copy notes the redirection in its traces, and may therefore visit MTAs again.

use crate::Engine;
use crate::arrival::critical::{Step, unsupported};
use crate::journal::Digest;
use crate::onward::delivered::{Delivering, common_of_carried, fingerprint_of, key};
use crate::onward::route::{RouteTarget, canonical};
use crate::onward::split::{Critical, Disposition, Failure};
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::subject::{Carried, Measured};
use base::Utc;
use base::ber::Element;
use p1::apdu::MtsApduHead;
use p1::envelope::PerRecipientFields;
use p1::extension::{ExtensionField, ExtensionType, Extensions, number};
use p1::flags::PerMessageIndicators;
use p1::history::{Redirection, RedirectionReason, add_redirection, redirection_history};
use p1::names::ORName;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use std::collections::BTreeMap;

/// Most redirections of one recipient in one MTA. A history may have 512; but users of one site who
/// redirect to one another would make a message to thousands of them grow as much.
const MAX_HERE: usize = 16;

/// What was decided about the recipients we are responsible for.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// In order; `None` for those others are responsible for.
    pub dispositions: Vec<Option<Disposition>>,
    /// Those redirected here, by index, with the delivery key each had before.
    pub redirected: BTreeMap<usize, Digest>,
}

/// The next step with a recipient.
enum Next {
    /// The disposition holds.
    Stays,
    /// Nothing can be done.
    Fails(Failure),
    /// He is redirected.
    To(ORName, RedirectionReason),
}

impl Engine {
    /// From now on messages for the user of this mailbox ([`canonical`] address) are redirected to
    /// the alternate; `None` ends that. What is queued for the mailbox stays there.
    ///
    /// Probes are redirected as messages are; reports are not. The alternate may be anywhere. It is
    /// not checked that he exists: if he cannot be served, the message goes to the alternate that
    /// the originator requested, or is reported.
    ///
    /// The redirections are not durable here: the caller keeps them and sets them at each start.
    /// [`Engine::configure`] keeps them.
    pub fn set_redirection(&mut self, mailbox: &str, alternate: Option<ORName>) {
        match alternate {
            Some(name) => _ = self.redirections.insert(mailbox.to_owned(), name),
            None => _ = self.redirections.remove(mailbox),
        }
        self.generation += 1;
    }

    /// The alternate that the user of this mailbox has set.
    pub fn redirection(&self, mailbox: &str) -> Option<&ORName> {
        self.redirections.get(mailbox)
    }

    /// Gives a copy up: redirections, and reports for the others. The time of a redirected copy counts
    /// from now. Its keys are not looked up: no other copy was redirected at this time, for what was
    /// redirected on arrival is no longer queued for the recipient.
    pub(crate) fn give_up(&mut self, now: Utc, record: &Record, failure: &Failure) -> Concluded {
        let mut carried = match &record.head {
            MtsApduHead::Message(e) => Carried::Message(e.clone()),
            MtsApduHead::Probe(e) => Carried::Probe(e.clone()),
            MtsApduHead::Report(_) => return Concluded::default(),
        };
        let failed = |r: &PerRecipientFields| -> Option<Disposition> {
            r.indicators.responsible().then(|| Err(failure.clone()))
        };
        let dispositions = carried.subject().recipients.iter().map(failed).collect();
        let mut notes = Vec::new();
        let sorted = self.sort_out(now, &mut carried, record.measured(), dispositions, &mut notes);
        // The node has logged the failure.
        notes.retain(|note| note.kind == NoteKind::Redirected);
        let digest = record.digest.and_then(|digest| fingerprint_of(&record.head, &digest));
        let delivering = Delivering { now, digest, others: None, known: None };
        let seen = delivering.keys_for(&carried, &sorted);
        let mut entries = self.instead_of(now, record, &carried, sorted, &mut notes);
        let copies = entries.iter_mut().filter(|e| e.record.kind() == record.kind());
        copies.for_each(|copy| copy.record.first_arrival = now);
        Concluded { entries, seen, notes }
    }

    /// Redirects the recipients that are to be redirected, given their dispositions.
    pub(crate) fn settle(
        &self,
        now: Utc,
        carried: &mut Carried,
        content: Measured<'_>,
        dispositions: Vec<Option<Disposition>>,
        notes: &mut Vec<Note>,
    ) -> Settled {
        let mut settled = Settled::default();
        let mut changed: Vec<(usize, PerRecipientFields)> = Vec::new();
        for (index, disposition) in dispositions.into_iter().enumerate() {
            let recipient = carried.subject().recipients.get(index);
            let Some((recipient, disposition)) = recipient.zip(disposition) else {
                settled.dispositions.push(None);
                continue;
            };
            let first = self.fitting(carried, content, recipient, disposition);
            let (disposition, moved) = self.redirect(now, carried, content, recipient, first);
            settled.dispositions.push(Some(disposition));
            changed.extend(moved.map(|moved| (index, moved)));
        }
        if changed.is_empty() {
            return settled;
        }
        let common = common_of_carried(carried);
        notes.extend(noted(carried, &changed));
        let recipients = carried.recipients_mut();
        for (index, moved) in changed {
            let Some(place) = recipients.get_mut(index) else { continue };
            let before = key(&common, place, &canonical(&place.recipient.address));
            settled.redirected.insert(index, before);
            *place = moved;
        }
        settled
    }

    /// Follows the redirections of one recipient: his last disposition and, if he was redirected,
    /// his new fields.
    fn redirect(
        &self,
        now: Utc,
        carried: &Carried,
        content: Measured<'_>,
        recipient: &PerRecipientFields,
        mut disposition: Disposition,
    ) -> (Disposition, Option<PerRecipientFields>) {
        let mut moved: Option<PerRecipientFields> = None;
        for redirections in 0..=MAX_HERE {
            let current = moved.as_ref().unwrap_or(recipient);
            let (to, reason) = match self.next(carried, current, &disposition) {
                Next::Stays => break,
                Next::Fails(failure) => {
                    disposition = Err(for_alternate(failure, moved.is_some()));
                    break;
                }
                Next::To(name, reason) => (name, reason),
            };
            let redirected = match redirections < MAX_HERE {
                true => redirected(now, current, to, reason),
                false => None,
            };
            let Some(redirected) = redirected else {
                disposition = Err(looped("he was redirected too often"));
                break;
            };
            disposition = self.disposition_of(carried, content, &redirected);
            moved = Some(redirected);
        }
        (disposition, moved)
    }

    fn next(
        &self,
        carried: &Carried,
        recipient: &PerRecipientFields,
        disposition: &Disposition,
    ) -> Next {
        let failure = match disposition {
            Ok(NextHop::Peer(_)) => return Next::Stays,
            Ok(NextHop::Mailbox(mailbox)) => match self.redirections.get(mailbox) {
                None => return Next::Stays,
                Some(_) if is_prohibited(carried.subject().extensions) => prohibited(),
                Some(alternate) if is_loop(recipient, alternate) => {
                    looped("the recipient's alternate had the message before")
                }
                Some(alternate) => {
                    return Next::To(alternate.clone(), RedirectionReason::RECIPIENT_ASSIGNED);
                }
            },
            Err(failure) => failure.clone(),
        };
        // An alternate does not get around a security policy.
        if failure.reason == NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON {
            return Next::Fails(failure);
        }
        let requested = requested(&recipient.extensions);
        let requested = requested.map(|name| (name, RedirectionReason::ORIGINATOR_REQUESTED));
        let assigned = || {
            let name = self.assigned(carried, recipient, &failure)?;
            Some((name.clone(), RedirectionReason::RECIPIENT_DOMAIN_ASSIGNED))
        };
        match requested.or_else(assigned) {
            None => Next::Fails(failure),
            Some((name, _)) if is_same(&name, &recipient.recipient) => Next::Fails(failure),
            Some((name, _)) if is_loop(recipient, &name) => {
                Next::Fails(looped("the alternate had the message before"))
            }
            Some((name, reason)) => Next::To(name, reason),
        }
    }

    /// The site's alternate for an address that is nobody's here.
    fn assigned(
        &self,
        carried: &Carried,
        recipient: &PerRecipientFields,
        failure: &Failure,
    ) -> Option<&ORName> {
        let alternate = self.alternate_recipient.as_ref()?;
        let unknown = failure.diagnostic == Some(Diagnostic::UNRECOGNISED_OR_NAME)
            && self.routes.look_up(&recipient.recipient.address) == Some(RouteTarget::Local);
        let allowed = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
        (unknown && carried.indicators().contains(allowed)).then_some(alternate)
    }

    /// The disposition of a recipient who was not among those of the message.
    fn disposition_of(
        &self,
        carried: &Carried,
        content: Measured<'_>,
        recipient: &PerRecipientFields,
    ) -> Disposition {
        let of_message = carried.subject().extensions;
        let critical = Critical {
            for_transfer: unsupported(Step::Transfer, of_message),
            for_delivery: unsupported(Step::Delivery, of_message),
        };
        let attributes = recipient.recipient.address.attributes();
        let disposition = self.disposition(&critical, &attributes, &recipient.extensions);
        self.fitting(carried, content, recipient, disposition)
    }
}

/// The recipient's fields after a redirection; `None` if his history is full or malformed.
fn redirected(
    now: Utc,
    before: &PerRecipientFields,
    to: ORName,
    reason: RedirectionReason,
) -> Option<PerRecipientFields> {
    let mut after = before.clone();
    let intended = std::mem::replace(&mut after.recipient, to);
    let redirection = Redirection { intended, time: Time::from(now), reason };
    add_redirection(&mut after.extensions, redirection).ok()?;
    if reason == RedirectionReason::ORIGINATOR_REQUESTED {
        // It is used: no MTA is to use it again.
        let used = number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
        after.extensions.remove(&ExtensionType::Standard(used));
    }
    Some(after)
}

/// The alternate in an originator-requested-alternate-recipient; `None` if it cannot be read.
pub(crate) fn alternate_in(field: &ExtensionField) -> Option<ORName> {
    ORName::read(&Element::parse(&field.value).ok()?).ok()
}

/// The alternate that the originator requested for a recipient.
fn requested(extensions: &Extensions) -> Option<ORName> {
    extensions.standard(number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT).and_then(alternate_in)
}

/// The value of an extension that prohibits: 0 allowed, 1 prohibited; `None` if it cannot be read.
pub(crate) fn prohibition_in(field: &ExtensionField) -> Option<bool> {
    match Element::parse(&field.value).ok()?.integer().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// recipient-reassignment-prohibited. One that cannot be read prohibits.
fn is_prohibited(extensions: &Extensions) -> bool {
    let field = extensions.standard(number::RECIPIENT_REASSIGNMENT_PROHIBITED);
    field.is_some_and(|field| prohibition_in(field) != Some(false))
}

/// Whether two names are of one recipient. A name without address is compared by its directory
/// name.
fn is_same(a: &ORName, b: &ORName) -> bool {
    let (left, right) = (canonical(&a.address), canonical(&b.address));
    left == right && (!left.is_empty() || a.directory_name == b.directory_name)
}

/// Whether this alternate is the recipient, or had the message before. A history that cannot be read
/// may have any name.
fn is_loop(recipient: &PerRecipientFields, alternate: &ORName) -> bool {
    let Ok(history) = redirection_history(&recipient.extensions) else { return true };
    is_same(&recipient.recipient, alternate)
        || history.iter().any(|before| is_same(&before.intended, alternate))
}

fn looped(text: &str) -> Failure {
    Failure {
        reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
        diagnostic: Some(Diagnostic::REDIRECTION_LOOP_DETECTED),
        text: text.to_owned(),
    }
}

fn prohibited() -> Failure {
    Failure {
        reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
        diagnostic: Some(Diagnostic::RECIPIENT_REASSIGNMENT_PROHIBITED),
        text: "the recipient has redirected his messages, and the originator prohibits it"
            .to_owned(),
    }
}

/// The failure of an alternate whom the security policy forbids has a diagnostic of its own.
fn for_alternate(failure: Failure, is_alternate: bool) -> Failure {
    let forbidden = failure.diagnostic == Some(Diagnostic::SECURITY_POLICY_VIOLATION);
    match is_alternate && forbidden {
        true => {
            let diagnostic = Some(Diagnostic::FORBIDDEN_ALTERNATE_RECIPIENT);
            Failure { diagnostic, ..failure }
        }
        false => failure,
    }
}

/// One note per reason, whatever the number of recipients.
fn noted(carried: &Carried, changed: &[(usize, PerRecipientFields)]) -> Vec<Note> {
    let recipients = carried.subject().recipients;
    let mut by_reason: BTreeMap<RedirectionReason, (String, usize)> = BTreeMap::new();
    for (index, moved) in changed {
        let last = redirection_history(&moved.extensions).ok().and_then(|h| h.last().cloned());
        let (Some(last), Some(before)) = (last, recipients.get(*index)) else { continue };
        let first = || format!("{} to {}", before.recipient, moved.recipient);
        by_reason.entry(last.reason).or_insert_with(|| (first(), 0)).1 += 1;
    }
    let note = |(reason, (first, count)): (RedirectionReason, (String, usize))| {
        let detail = match count {
            1 => format!("{reason}: {first}"),
            _ => format!("{reason}: {count} recipients, the first {first}"),
        };
        Note::new(NoteKind::Redirected, detail)
    };
    by_reason.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests;
