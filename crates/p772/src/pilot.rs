//! Pilot forwarding information, and the information labels (STANAG 4406 Annex A).

use crate::heading::{OrDescriptor, decode_all};
use crate::military::{MmhsPrecedence, decode_strings};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal as u};
use p1::security_label::SecurityLabel;

/// PilotInformation: where a message goes on to, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PilotInformation {
    /// pilotPrecedence.
    pub precedence: Option<MmhsPrecedence>,
    /// pilotRecipient.
    pub recipients: Vec<OrDescriptor>,
    /// pilotSecurity.
    pub label: Option<SecurityLabel>,
    /// pilotHandling, each 1 to 69 printable characters.
    pub handling: Vec<String>,
}

impl PilotInformation {
    pub(crate) fn decode(e: &Element<'_>) -> Result<PilotInformation, Error> {
        let mut members = e.children()?;
        let mut pilot = PilotInformation::default();
        while let Some(m) = members.next()? {
            match m.tag {
                tag if tag == Tag::context(0) => {
                    pilot.precedence = Some(MmhsPrecedence::decode_value(&m)?);
                }
                tag if tag == Tag::context(1) => {
                    pilot.recipients = decode_all(&m, OrDescriptor::decode)?;
                }
                tag if tag == Tag::context(2) => pilot.label = Some(SecurityLabel::read(&m)?),
                tag if tag == Tag::context(3) => pilot.handling = decode_strings(&m)?,
                tag => return Err(Fault::Unexpected(tag)).field("pilot-forwarding-info"),
            }
        }
        Ok(pilot)
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            if let Some(precedence) = self.precedence {
                w.integer(Tag::context(0), i64::from(precedence.value()));
            }
            if !self.recipients.is_empty() {
                w.constructed(Tag::context(1), |w| {
                    self.recipients.iter().for_each(|r| r.encode(w, u::SET));
                });
            }
            if let Some(label) = &self.label {
                label.write(w, Tag::context(2));
            }
            if !self.handling.is_empty() {
                w.constructed(Tag::context(3), |w| {
                    self.handling.iter().for_each(|s| w.string(u::PRINTABLE_STRING, s));
                });
            }
        });
    }
}

/// SecurityInformationLabels: deprecated, replaced by the ESS security label, and still met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InformationLabels {
    /// content-security-label.
    pub content: SecurityLabel,
    /// heading-security-label.
    pub heading: Option<SecurityLabel>,
    /// body-part-security-labels.
    pub body_parts: Vec<BodyPartLabel>,
}

/// BodyPartSecurityLabel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyPartLabel {
    /// body-part-security-label.
    pub label: SecurityLabel,
    /// body-part-sequence-number; absent where each body part has a label.
    pub number: Option<i64>,
}

const CONTENT: Tag = Tag::context(0);
const HEADING: Tag = Tag::context(1);
const BODY_PARTS: Tag = Tag::context(2);
const LABEL: Tag = Tag::context(0);
const NUMBER: Tag = Tag::context(1);

impl InformationLabels {
    pub(crate) fn decode(e: &Element<'_>) -> Result<InformationLabels, Error> {
        let mut members = e.children()?;
        let content = SecurityLabel::read(&members.require(CONTENT)?)?;
        let heading = members.optional(HEADING)?.map(|m| SecurityLabel::read(&m)).transpose()?;
        let body_parts = members.optional(BODY_PARTS)?;
        let body_parts = body_parts.map(|m| decode_all(&m, BodyPartLabel::decode)).transpose()?;
        members.finish()?;
        Ok(InformationLabels { content, heading, body_parts: body_parts.unwrap_or_default() })
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            self.content.write(w, CONTENT);
            if let Some(heading) = &self.heading {
                heading.write(w, HEADING);
            }
            if !self.body_parts.is_empty() {
                w.constructed(BODY_PARTS, |w| self.body_parts.iter().for_each(|b| b.encode(w)));
            }
        });
    }
}

impl BodyPartLabel {
    fn decode(e: &Element<'_>) -> Result<BodyPartLabel, Error> {
        let mut label = Member::new("body-part-security-label");
        let mut number = Member::new("body-part-sequence-number");
        read_set(e, |m| match m.tag {
            LABEL => label.last(m, SecurityLabel::read),
            NUMBER => number.last(m, Element::integer),
            _ => Ok(false),
        })?;
        Ok(BodyPartLabel { label: label.required(LABEL)?, number: number.optional() })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.label.write(w, LABEL);
            if let Some(number) = self.number {
                w.integer(NUMBER, number);
            }
        });
    }
}
