//! Attributes of the argument of a delivery (X.411 8.3.1).

use super::Attributes;
use base::ber::{Element, Tag, Writer, universal as u};
use p1::extension::{ExtensionType, Extensions, number as n};
use p1::p3::{ArgumentEvent, DeliveryParser, MessageDeliveryEnvelope, ReportDelivery};
use p7::Value;
use p7::attributes::{self as a, AttributeType};

/// The envelope in an argument of message-delivery; `None` if it is malformed.
pub(super) fn read_message(mut argument: &[u8]) -> Option<Box<MessageDeliveryEnvelope>> {
    match DeliveryParser::default().next(&mut argument) {
        Ok(Some(ArgumentEvent::Envelope(envelope))) => Some(envelope),
        _ => None,
    }
}

/// The argument of report-delivery; `None` if it is malformed.
pub(super) fn read_report(argument: &[u8]) -> Option<Box<ReportDelivery>> {
    let element = Element::parse_accepted(argument).ok()?;
    ReportDelivery::read(&element).ok().map(Box::new)
}

/// Values of a message's envelope; `None` if the attribute is not one of it.
pub(super) fn of_message(item: &Attributes<'_>, kind: &AttributeType) -> Option<Vec<Value>> {
    let envelope = item.message();
    let one = |attribute: Option<p7::Attribute>| {
        Some(attribute.map(|attribute| attribute.values).unwrap_or_default())
    };
    match *kind {
        a::MESSAGE_DELIVERY_ENVELOPE => Some(message_envelope(item.brief().argument)),
        a::MESSAGE_IDENTIFIER => one(envelope.map(|e| a::message_identifier(&e.identifier))),
        a::MESSAGE_DELIVERY_TIME => {
            one(envelope.map(|e| a::message_delivery_time(&e.delivery_time)))
        }
        a::MESSAGE_SUBMISSION_TIME => {
            one(envelope.map(|e| a::message_submission_time(&e.submission_time)))
        }
        a::ORIGINATOR_NAME => one(envelope.map(|e| a::originator_name(&e.originator))),
        a::THIS_RECIPIENT_NAME => one(envelope.map(|e| a::this_recipient_name(&e.this_recipient))),
        a::OTHER_RECIPIENT_NAMES => {
            one(envelope.and_then(|e| a::other_recipient_names(&e.other_recipients)))
        }
        a::ORIGINALLY_INTENDED_RECIPIENT_NAME => {
            let intended = envelope.and_then(|e| e.intended_recipient.as_ref());
            Some(intended.map(Value::from_or_name).into_iter().collect())
        }
        a::PRIORITY => one(envelope.map(|e| a::priority(e.priority))),
        a::CONTENT_IDENTIFIER => {
            one(envelope.and_then(|e| e.content_identifier.as_deref().map(a::content_identifier)))
        }
        a::ORIGINAL_EITS => {
            one(envelope.and_then(|e| e.original_eits.as_ref()).and_then(a::original_eits))
        }
        a::CONVERTED_EITS => {
            let eits = envelope.and_then(|e| e.converted_eits.as_ref());
            Some(eits.map(a::eits).unwrap_or_default().iter().map(Value::from_oid).collect())
        }
        a::DELIVERED_EITS => Some(item.delivered_eits().iter().map(Value::from_oid).collect()),
        a::MESSAGE_SECURITY_LABEL => {
            Some(extension(envelope.map(|e| &e.extensions), n::MESSAGE_SECURITY_LABEL))
        }
        a::DL_EXPANSION_HISTORY => {
            let histories = extension(envelope.map(|e| &e.extensions), n::DL_EXPANSION_HISTORY);
            Some(each(histories.first()))
        }
        a::REDIRECTION_HISTORY => {
            let histories = extension(envelope.map(|e| &e.extensions), n::REDIRECTION_HISTORY);
            Some(each(histories.first()))
        }
        _ => None,
    }
}

/// Values of a report's argument.
pub(super) fn of_report(item: &Attributes<'_>, kind: &AttributeType) -> Vec<Value> {
    let Some(report) = item.report() else { return Vec::new() };
    match *kind {
        a::SUBJECT_SUBMISSION_IDENTIFIER => {
            a::subject_submission_identifier(&report.subject_identifier).values
        }
        a::REPORT_DELIVERY_ENVELOPE => report_envelope(report),
        a::CONTENT_RETURNED => {
            vec![Value::from_boolean(report.returned_content.is_some())]
        }
        a::CONTENT_IDENTIFIER => {
            let identifier = report.content_identifier.as_deref().map(a::content_identifier);
            identifier.map(|attribute| attribute.values).unwrap_or_default()
        }
        a::ORIGINAL_EITS => {
            let eits = report.original_eits.as_ref().and_then(a::original_eits);
            eits.map(|attribute| attribute.values).unwrap_or_default()
        }
        a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS => {
            let fields = report.recipients.iter();
            fields.filter_map(|fields| Value::new(|w| fields.write(w)).ok()).collect()
        }
        a::MESSAGE_SECURITY_LABEL => extension(Some(&report.extensions), n::MESSAGE_SECURITY_LABEL),
        _ => Vec::new(),
    }
}

/// MessageDeliveryEnvelope, a SEQUENCE: the argument without its content, which comes last.
fn message_envelope(argument: &[u8]) -> Vec<Value> {
    let members = || {
        let element = Element::parse_accepted(argument).ok()?;
        let mut reader = element.children().ok()?;
        let mut members = Vec::new();
        while let Some(member) = reader.next().ok()? {
            members.push(member.raw);
        }
        members.pop()?;
        Some(members)
    };
    let Some(members) = members() else { return Vec::new() };
    let envelope = Value::new(|w| {
        w.constructed(u::SEQUENCE, |w| members.iter().for_each(|member| w.raw(member)));
    });
    envelope.into_iter().collect()
}

/// ReportDeliveryEnvelope, a SET: the argument without the returned content.
fn report_envelope(report: &ReportDelivery) -> Vec<Value> {
    let envelope = ReportDelivery { returned_content: None, ..report.clone() };
    Value::new(|w| envelope.write(w)).into_iter().collect()
}

/// The value of an extension.
fn extension(extensions: Option<&Extensions>, number: i64) -> Vec<Value> {
    let fields = extensions.map(|extensions| &extensions.0[..]).unwrap_or_default();
    let field = fields.iter().find(|field| field.kind == ExtensionType::Standard(number));
    field.and_then(|field| Value::from_octets(field.value.clone()).ok()).into_iter().collect()
}

/// The elements in a value.
pub(super) fn each(value: Option<&Value>) -> Vec<Value> {
    let mut all = Vec::new();
    let members = value.map(|value| value.element().and_then(|element| element.children()));
    let Some(Ok(mut members)) = members else { return all };
    while let Ok(Some(member)) = members.next() {
        all.extend(Value::from_octets(member.raw.to_vec()));
    }
    all
}

/// The element with another tag: the one of its type instead of an implicit one.
pub(super) fn retagged(element: &Element<'_>, tag: Tag) -> Option<Value> {
    if !element.constructed {
        return Value::new(|w| w.primitive(tag, element.content)).ok();
    }
    let mut members = element.children().ok()?;
    let mut inside = Writer::new();
    while let Some(member) = members.next().ok()? {
        inside.raw(member.raw);
    }
    Value::new(|w| w.constructed(tag, |w| w.raw(inside.as_slice()))).ok()
}
