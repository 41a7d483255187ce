//! MTS-APDU: what a transfer carries (X.411 12.2, MTAAbstractService).

use crate::envelope::{
    MessageTransferEnvelope, ProbeTransferEnvelope, ReportTransferContent, ReportTransferEnvelope,
};
use crate::extension::{Defaults, Dialect, Form};
use crate::names::ORName;
use crate::red_book;
use crate::wire::tag;
use base::ber::{Element, Error, Fault, Field, Header, Length, Tag, Writer, universal};

pub(crate) const MESSAGE: Tag = Tag::context(0);
pub(crate) const REPORT: Tag = Tag::context(1);
pub(crate) const PROBE: Tag = Tag::context(2);

/// Everything of an MTS-APDU but a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MtsApduHead {
    /// message: its content follows.
    Message(Box<MessageTransferEnvelope>),
    /// probe.
    Probe(Box<ProbeTransferEnvelope>),
    /// report.
    Report(Box<Report>),
}

/// Report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// envelope.
    pub envelope: ReportTransferEnvelope,
    /// content.
    pub content: ReportTransferContent,
}

impl MtsApduHead {
    /// Brings all extensions into this form: of the envelope, of each recipient's fields and of a
    /// report's content. Gives how many it does not have and are left out. In the dialect of 1984 all else gets its
    /// form of 1984 as well (see [`crate::red_book`]).
    pub fn set_form(&mut self, form: Form) -> usize {
        if let Dialect::RedBook1984(common_name) = form.dialect {
            return red_book::set_form(self, common_name);
        }
        match self {
            MtsApduHead::Message(envelope) => envelope.set_form(form),
            MtsApduHead::Probe(envelope) => envelope.set_form(form),
            MtsApduHead::Report(report) => {
                report.envelope.extensions.set_form(form) + report.content.set_form(form)
            }
        }
    }

    /// All octets of an APDU before a content of so many octets, of a message or returned in a report; nothing comes
    /// after it. `None`: of what is whole in itself, a probe or a report.
    pub fn encode(&self, content_length: Option<u64>, defaults: Defaults) -> Vec<u8> {
        let mut w = Writer::new();
        match (self, content_length) {
            (MtsApduHead::Message(envelope), length) => {
                envelope.write(&mut w, defaults);
                return message_head(w.as_slice(), length.unwrap_or(0));
            }
            (MtsApduHead::Probe(envelope), _) => envelope.write_as(&mut w, PROBE, defaults),
            (MtsApduHead::Report(report), None) => report.write(&mut w, defaults),
            (MtsApduHead::Report(report), Some(length)) => {
                return report_head(report, length, defaults);
            }
        }
        w.into_vec()
    }
}

impl MtsApduHead {
    /// Undoes what a peer of this dialect has to do with names: the domain-defined attribute `Common` is a
    /// common-name again, where it stands for one (RFC 1328 section 3.2). Where an address has a common-name, or the
    /// attribute more than once, it stays.
    pub fn restore_common_names(&mut self, dialect: Dialect) {
        red_book::names::restore(self, dialect);
    }
}

impl Report {
    /// Reads the whole APDU.
    ///
    /// # Errors
    /// Malformed, or a mandatory part missing.
    pub fn read(e: &Element<'_>) -> Result<Report, Error> {
        let mut inner = e.children().field("report")?;
        let envelope = inner.require(universal::SET).field("report-transfer-envelope")?;
        let content = inner.require(universal::SET).field("report-transfer-content")?;
        inner.finish().field("report")?;
        Ok(Report {
            envelope: ReportTransferEnvelope::read(&envelope)?,
            content: ReportTransferContent::read(&content)?,
        })
    }

    /// Writes the whole APDU, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(REPORT, |w| {
            self.envelope.write(w, defaults);
            self.content.write(w, defaults);
        });
    }
}

/// The envelope alone, a SET; as all of the functions below without members of the value of their DEFAULT.
pub fn encode_envelope(envelope: &MessageTransferEnvelope) -> Vec<u8> {
    let mut w = Writer::new();
    envelope.write(&mut w, Defaults::LeftOut);
    w.into_vec()
}

/// All octets of a message APDU before a content of `content_length` octets; nothing comes after it.
pub fn encode_message_head(envelope: &MessageTransferEnvelope, content_length: u64) -> Vec<u8> {
    message_head(&encode_envelope(envelope), content_length)
}

/// As [`encode_message_head`], of an envelope that is encoded already.
pub fn message_head(envelope: &[u8], content_length: u64) -> Vec<u8> {
    let length = Length::Definite(content_length);
    let content_header = Header::encoded_size(universal::OCTET_STRING, length) as u64;
    let all = (envelope.len() as u64).saturating_add(content_header).saturating_add(content_length);
    let mut w = Writer::new();
    w.header(MESSAGE, true, Length::Definite(all));
    w.raw(envelope);
    w.header(universal::OCTET_STRING, false, length);
    w.into_vec()
}

/// A probe APDU.
pub fn encode_probe(envelope: &ProbeTransferEnvelope) -> Vec<u8> {
    let mut w = Writer::new();
    envelope.write_as(&mut w, PROBE, Defaults::LeftOut);
    w.into_vec()
}

/// A report APDU.
pub fn encode_report(report: &Report) -> Vec<u8> {
    let mut w = Writer::new();
    report.write(&mut w, Defaults::LeftOut);
    w.into_vec()
}

/// All octets of a report APDU before a returned content of `content_length` octets; nothing comes after it. The
/// content in the report itself is not written.
pub fn encode_report_head(report: &Report, content_length: u64) -> Vec<u8> {
    report_head(report, content_length, Defaults::LeftOut)
}

fn report_head(report: &Report, content_length: u64, defaults: Defaults) -> Vec<u8> {
    let mut inner = Writer::new();
    report.envelope.write(&mut inner, defaults);
    report.content.write_before_content(&mut inner, content_length, defaults);
    let all = (inner.as_slice().len() as u64).saturating_add(content_length);
    let mut w = Writer::new();
    w.header(REPORT, true, Length::Definite(all));
    w.raw(inner.as_slice());
    w.into_vec()
}

/// The originator in a message envelope or a probe that was accepted before, without a look at its
/// other members: there may be thousands of recipients.
///
/// # Errors
/// Malformed as far as it was read, or without originator.
pub fn originator_of(octets: &[u8]) -> Result<ORName, Error> {
    let e = Element::parse_accepted(octets).field("envelope")?;
    let mut members = e.children().field("envelope")?;
    while let Some(member) = members.next().field("envelope")? {
        if member.tag == tag::OR_NAME {
            return ORName::read(&member).field("originator-name");
        }
    }
    Err(Fault::Missing(tag::OR_NAME)).field("originator-name")
}

/// Reads a message envelope that was accepted before and encoded alone, as [`encode_envelope`] does.
///
/// # Errors
/// Malformed, a mandatory member missing, or octets after it.
pub fn decode_envelope(octets: &[u8]) -> Result<MessageTransferEnvelope, Error> {
    let e = Element::parse_accepted(octets).field("message-transfer-envelope")?;
    if e.tag != universal::SET {
        return Err(Fault::Unexpected(e.tag)).field("message-transfer-envelope");
    }
    MessageTransferEnvelope::read(&e)
}
