//! A report whose returned content is handed on as it comes, and not held.

use super::{ApduParser, Event, State};
use crate::apdu::{MtsApduHead, Report};
use crate::envelope::{RETURNED_CONTENT, ReportTransferContent, ReportTransferEnvelope};
use base::ber::{Element, Error, Fault, Field, Length, Token, Writer, universal};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How far a report was read: where its two SETs are among the octets held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parts {
    /// Where the envelope begins, and ends.
    envelope: Option<(usize, usize)>,
    /// The octets of the part that is open.
    open: Option<Open>,
    /// Where the members of the content begin, and end.
    members: Option<(usize, usize)>,
    /// Whether there is a returned content.
    is_returned: bool,
}

/// A part of a report that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    /// Where its header begins, and ends.
    header: (usize, usize),
    is_indefinite: bool,
}

/// end-of-contents.
const END_OF_CONTENTS: usize = 2;

impl ApduParser {
    /// A token of a report outside of its returned content.
    pub(super) fn report<'a>(
        &mut self,
        mut parts: Parts,
        token: &Token<'_>,
    ) -> Result<Option<Event<'a>>, Error> {
        match *token {
            Token::Begin { header, depth: 1 } => {
                let name = match parts.envelope {
                    None => "report-transfer-envelope",
                    Some(_) => "report-transfer-content",
                };
                if header.tag != universal::SET || !header.constructed || parts.members.is_some() {
                    return Err(Fault::Unexpected(header.tag)).field(name);
                }
                let end = self.held.len();
                let header_at = (end.saturating_sub(header.size), end);
                let is_indefinite = header.length == Length::Indefinite;
                parts.open = Some(Open { header: header_at, is_indefinite });
            }
            Token::Begin { header, depth: 2 }
                if header.tag == RETURNED_CONTENT && parts.envelope.is_some() =>
            {
                if parts.is_returned {
                    return Err(Fault::Unexpected(RETURNED_CONTENT)).field("returned-content");
                }
                parts.is_returned = true;
                self.held.truncate(self.held.len().saturating_sub(header.size));
                self.announced(&header)?;
                self.state = State::Returned(parts);
                return Ok(None);
            }
            Token::End { depth: 1 } => {
                let end = self.held.len();
                let Some(open) = parts.open.take() else { return Ok(None) };
                if parts.envelope.is_none() {
                    parts.envelope = Some((open.header.0, end));
                } else {
                    let end_of = if open.is_indefinite { END_OF_CONTENTS } else { 0 };
                    parts.members = Some((open.header.1, end.saturating_sub(end_of)));
                }
            }
            Token::End { depth: 0 } => {
                let report = self.split_report(parts)?;
                self.state = State::Ending;
                return Ok(Some(Event::Head(MtsApduHead::Report(Box::new(report)))));
            }
            _ => {}
        }
        self.state = State::Report(parts);
        Ok(None)
    }

    /// A token within a returned content.
    pub(super) fn returned<'a>(
        &mut self,
        parts: Parts,
        token: Token<'a>,
    ) -> Result<Option<Event<'a>>, Error> {
        match token {
            // Segments of a constructed OCTET STRING are OCTET STRINGs (X.690 8.7.3.2).
            Token::Begin { header, .. } if header.tag != universal::OCTET_STRING => {
                Err(Fault::Unexpected(header.tag)).field("returned-content")
            }
            Token::Begin { header, .. } => self.announced(&header).map(|()| None),
            Token::Data(octets) => self.octets(octets),
            Token::End { depth: 2 } => {
                self.state = State::Report(parts);
                Ok(None)
            }
            Token::End { .. } => Ok(None),
        }
    }

    /// The report that was read, with an empty content in place of one that was handed on.
    fn split_report(&mut self, parts: Parts) -> Result<Report, Error> {
        let held = std::mem::take(&mut self.held);
        let of = |part: Option<(usize, usize)>, name| {
            let octets = part.and_then(|(start, end)| held.get(start..end));
            octets.ok_or(Fault::Missing(universal::SET)).field(name)
        };
        let envelope = of(parts.envelope, "report-transfer-envelope")?;
        let envelope = Element::parse(envelope).field("report-transfer-envelope")?;
        let members = of(parts.members, "report-transfer-content")?;
        let mut content = Writer::new();
        content.constructed(universal::SET, |w| w.raw(members));
        let content = Element::parse(content.as_slice()).field("report-transfer-content")?;
        let mut content = ReportTransferContent::read(&content)?;
        if parts.is_returned {
            content.returned_content = Some(Bytes::new());
        }
        Ok(Report { envelope: ReportTransferEnvelope::read(&envelope)?, content })
    }
}
