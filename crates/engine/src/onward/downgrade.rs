//! What has no form in the older edition of P1 that a peer has (X.419 Annex B): its recipients are reported, and not
//! sent a message that has lost what matters.

use crate::Engine;
use crate::onward::split::Failure;
use crate::record::{NextHop, Record};
use crate::subject::Subject;
use base::PeerId;
use p1::apdu::MtsApduHead;
use p1::envelope::PerRecipientFields;
use p1::extension::{CommonName, Dialect, ExtensionField, Extensions, Form};
use p1::names::ORName;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::red_book::{self, names};

#[cfg(test)]
mod tests;

/// The first extension that must not be lost and that this form does not have: one that is
/// critical for transfer or for delivery. The internal trace may be lost where no other extension is sent.
fn lost_extension(form: Form, extensions: &Extensions) -> Option<String> {
    let is_critical = |field: &&ExtensionField| {
        let criticality = field.criticality;
        (criticality.for_transfer || criticality.for_delivery) && !field.is_internal_trace()
    };
    let mut lost = extensions.0.iter().filter(is_critical).filter(|f| !form.has(f));
    lost.next().map(|field| format!("critical extension {}", field.kind))
}

/// What of a message or probe has no form in 1984. A P22 content has none, even where it uses nothing that P2 does not
/// have: to know that it would have to be opened.
fn lost_in_1984(
    subject: &Subject<'_>,
    recipient: &PerRecipientFields,
    common_name: CommonName,
) -> Option<String> {
    let name = |who: &str, name: &ORName| {
        let none = names::has_form(name, common_name).err()?;
        Some(format!("{who}, {none},"))
    };
    let has_form = red_book::content_type_has_form(subject.content_type);
    let none = has_form.err().map(|none| none.to_string());
    none.or_else(|| name("the originator", subject.originator))
        .or_else(|| name("the recipient", &recipient.recipient))
}

impl Engine {
    /// The failure if the form of this next hop does not have what this recipient must get.
    pub(crate) fn form_missing(
        &self,
        subject: &Subject<'_>,
        recipient: &PerRecipientFields,
        hop: &NextHop,
    ) -> Option<Failure> {
        let NextHop::Peer(peer) = hop else { return None };
        let form = *self.forms.get(peer)?;
        let unsupported = Diagnostic::UNSUPPORTED_CRITICAL_FUNCTION;
        let (lost, diagnostic, why) = match form.dialect {
            Dialect::Modern if form.has_qualifier() => return None,
            Dialect::Modern => (None, unsupported, "is left out for this peer"),
            Dialect::BlueBook1988 => (None, unsupported, "has no form in the 1988 dialect"),
            Dialect::RedBook1984(common_name) => {
                let lost = lost_in_1984(subject, recipient, common_name);
                (lost, Diagnostic::UNABLE_TO_DOWNGRADE, "has no form in the 1984 dialect")
            }
        };
        let lost = lost
            .or_else(|| lost_extension(form, subject.extensions))
            .or_else(|| lost_extension(form, &recipient.extensions))?;
        Some(Failure {
            reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
            diagnostic: Some(diagnostic),
            text: format!("{lost} {why}"),
        })
    }

    /// Why a report cannot go to this next hop: its destination has no form there. All else that has none is left
    /// out of it, as it causes no report.
    pub(crate) fn destination_lost(&self, destination: &ORName, hop: &NextHop) -> Option<String> {
        let NextHop::Peer(peer) = hop else { return None };
        let Dialect::RedBook1984(common_name) = self.forms.get(peer)?.dialect else { return None };
        let none = names::has_form(destination, common_name).err()?;
        Some(format!("its destination, {none}, has no form in the 1984 dialect"))
    }

    /// Whether a copy for a peer cannot be sent in the peer's form, or would lose what is critical: it was queued
    /// before the peer's form was changed. [`Engine::reroute`] then reports the recipients whom that concerns and
    /// transfers the rest. A report loses what it must; only where its destination has no form it cannot go.
    pub fn would_lose_critical(&self, record: &Record) -> bool {
        let (subject, recipients) = match &record.head {
            MtsApduHead::Message(e) => (Subject::from(&**e), &e.recipients),
            MtsApduHead::Probe(e) => (Subject::from(&**e), &e.recipients),
            MtsApduHead::Report(report) => {
                let destination = &report.envelope.destination;
                return self.destination_lost(destination, &record.next_hop).is_some();
            }
        };
        let mut mine = recipients.iter().filter(|r| r.indicators.responsible());
        mine.any(|r| self.form_missing(&subject, r, &record.next_hop).is_some())
    }

    /// Gives the names of an APDU that came from this peer the form that they have here. Called before all else is
    /// done with it.
    pub fn restore_common_names(&self, peer: Option<PeerId>, head: &mut MtsApduHead) {
        if let Some(form) = peer.and_then(|peer| self.forms.get(&peer)) {
            head.restore_common_names(form.dialect);
        }
    }
}
