//! An MTS-APDU, read in pieces of any size.

mod report;

use crate::apdu::{MESSAGE, MtsApduHead, PROBE, REPORT, Report};
use crate::envelope::{MessageTransferEnvelope, ProbeTransferEnvelope};
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Limits, MAX_DEPTH, Token, Tokenizer, universal,
};
use report::Parts;
use serde::{Deserialize, Serialize};

/// What an [`ApduParser`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The envelope, or the whole of a probe or report; comes first, once. After [`ApduParser::split_reports`] a
    /// report comes after its returned content, and names an empty one in its place.
    Head(MtsApduHead),
    /// Octets of a content, in order, without any header; never empty.
    Content(&'a [u8]),
    /// The APDU ended. Nothing comes after it.
    End,
}

/// Reads one MTS-APDU: hands the content on as it comes, and holds the rest until it is whole.
///
/// All of BER's forms are read: definite and indefinite lengths, a content in one piece or in nested
/// segments. Cutting the octets anywhere gives the same events, but for how `Content` is divided.
/// After an error the parser is of no use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApduParser {
    tokens: Tokenizer,
    state: State,
    /// Every octet so far, until the head is decoded.
    held: Vec<u8>,
    envelope_limit: usize,
    report_limit: usize,
    /// Octets of content so far, and the most there may be.
    content: u64,
    content_limit: u64,
    /// Whether returned contents are handed on.
    splits_reports: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Before the APDU's tag.
    Start,
    /// Within a message, before its envelope.
    Message,
    /// Within the envelope, whose header begins at this octet of `held`.
    Envelope { start: usize },
    /// Within a report or probe.
    Whole { limit: usize },
    /// Within a report whose returned content is handed on.
    Report(Parts),
    /// Within that content.
    Returned(Parts),
    /// After the envelope: before, within or after the content.
    Content { begun: bool },
    /// The head is out; `End` is due.
    Ending,
    /// `End` is out.
    Done,
}

/// Longest envelope and probe by default: 1 MiB.
pub const DEFAULT_ENVELOPE_LIMIT: usize = 1 << 20;

/// Longest report by default, the returned content with it: 16 MiB.
pub const DEFAULT_REPORT_LIMIT: usize = 1 << 24;

impl Default for ApduParser {
    fn default() -> ApduParser {
        ApduParser::new(DEFAULT_ENVELOPE_LIMIT)
    }
}

impl ApduParser {
    /// With envelopes and probes of at most `envelope_limit` octets, and the default limit on reports.
    pub fn new(envelope_limit: usize) -> ApduParser {
        let limits = Limits { depth: MAX_DEPTH, elements: u64::MAX, octets: u64::MAX >> 1 };
        ApduParser {
            tokens: Tokenizer::new(limits),
            state: State::Start,
            held: Vec::new(),
            envelope_limit,
            report_limit: DEFAULT_REPORT_LIMIT.max(envelope_limit),
            content: 0,
            content_limit: u64::MAX,
            splits_reports: false,
        }
    }

    /// With reports of at most `limit` octets, the returned content with them.
    #[must_use]
    pub fn with_report_limit(self, limit: usize) -> ApduParser {
        ApduParser { report_limit: limit, ..self }
    }

    /// With contents of at most `limit` octets, returned ones too. One whose length is announced is refused before its
    /// first octet.
    #[must_use]
    pub fn with_content_limit(self, limit: u64) -> ApduParser {
        ApduParser { content_limit: limit, ..self }
    }

    /// Hands the returned content of a report on as it comes, as it does the content of a message. The limit on reports
    /// is one of the rest.
    #[must_use]
    pub fn split_reports(self) -> ApduParser {
        ApduParser { splits_reports: true, ..self }
    }

    /// Whether a report is being read, whose head comes at its end.
    pub fn is_report(&self) -> bool {
        matches!(self.state, State::Report(_) | State::Returned(_))
            || matches!(self.state, State::Whole { limit } if limit == self.report_limit)
    }

    /// Whether the whole APDU was read.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes octets from the front of `input` until something is found; `None` where more are needed,
    /// or where the APDU has ended (what follows it stays in `input`).
    ///
    /// # Errors
    /// Malformed or beyond a limit; the field is named.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Error> {
        loop {
            match self.state {
                State::Done => return Ok(None),
                State::Ending => {
                    self.state = State::Done;
                    return Ok(Some(Event::End));
                }
                _ => {}
            }
            let before = *input;
            let token = self.tokens.next(input).field("mts-apdu")?;
            let taken = before.get(..before.len() - input.len()).unwrap_or_default();
            let event = match self.state {
                State::Content { begun } => match token {
                    None => return Ok(None),
                    Some(token) => self.content(begun, token)?,
                },
                State::Returned(parts) => match token {
                    None => return Ok(None),
                    Some(token) => self.returned(parts, token)?,
                },
                _ => {
                    self.hold(taken)?;
                    match token {
                        None => return Ok(None),
                        Some(token) => self.head(token)?,
                    }
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Reads all of `input`, handing what is found to `sink`.
    ///
    /// # Errors
    /// As [`ApduParser::next`]; octets after the end of the APDU.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        let mut rest = input;
        while let Some(event) = self.next(&mut rest)? {
            sink(event);
        }
        if rest.is_empty() { Ok(()) } else { Err(Fault::Trailing).field("mts-apdu") }
    }

    /// Keeps octets of the head within the limit for what it is.
    fn hold(&mut self, taken: &[u8]) -> Result<(), Error> {
        let limit = match self.state {
            State::Whole { limit } => limit,
            State::Report(_) => self.report_limit,
            _ => self.envelope_limit,
        };
        if self.held.len().saturating_add(taken.len()) > limit {
            return Err(Fault::TooLong(limit as u64)).field("envelope");
        }
        self.held.extend_from_slice(taken);
        Ok(())
    }

    /// A token before the content.
    fn head<'a>(&mut self, token: Token<'a>) -> Result<Option<Event<'a>>, Error> {
        match (self.state, token) {
            (State::Start, Token::Begin { header, .. }) => {
                if !header.constructed {
                    return Err(Fault::Unexpected(header.tag)).field("mts-apdu");
                }
                self.state = match header.tag {
                    MESSAGE => State::Message,
                    REPORT if self.splits_reports => State::Report(Parts::default()),
                    REPORT => State::Whole { limit: self.report_limit },
                    PROBE => State::Whole { limit: self.envelope_limit },
                    other => return Err(Fault::Unexpected(other)).field("mts-apdu"),
                };
                Ok(None)
            }
            (State::Message, Token::Begin { header, .. }) => {
                if header.tag != universal::SET || !header.constructed {
                    return Err(Fault::Unexpected(header.tag)).field("message-transfer-envelope");
                }
                self.state = State::Envelope { start: self.held.len() - header.size };
                Ok(None)
            }
            (State::Message, Token::End { .. }) => {
                Err(Fault::Missing(universal::SET)).field("message-transfer-envelope")
            }
            (State::Envelope { start }, Token::End { depth: 1 }) => {
                let held = std::mem::take(&mut self.held);
                let octets = held.get(start..).unwrap_or_default();
                let e = Element::parse(octets).field("message-transfer-envelope")?;
                let envelope = MessageTransferEnvelope::read(&e)?;
                self.state = State::Content { begun: false };
                Ok(Some(Event::Head(MtsApduHead::Message(Box::new(envelope)))))
            }
            (State::Whole { .. }, Token::End { depth: 0 }) => {
                let held = std::mem::take(&mut self.held);
                let e = Element::parse(&held).field("mts-apdu")?;
                let head = if e.tag == PROBE {
                    MtsApduHead::Probe(Box::new(ProbeTransferEnvelope::read(&e)?))
                } else {
                    MtsApduHead::Report(Box::new(Report::read(&e)?))
                };
                self.state = State::Ending;
                Ok(Some(Event::Head(head)))
            }
            (State::Report(parts), token) => self.report(parts, &token),
            _ => Ok(None),
        }
    }

    /// A token after the envelope.
    fn content<'a>(&mut self, begun: bool, token: Token<'a>) -> Result<Option<Event<'a>>, Error> {
        match token {
            // Segments of a constructed OCTET STRING are OCTET STRINGs (X.690 8.7.3.2).
            Token::Begin { header, depth }
                if header.tag == universal::OCTET_STRING && (depth > 1 || !begun) =>
            {
                self.announced(&header)?;
                self.state = State::Content { begun: true };
                Ok(None)
            }
            Token::Begin { header, .. } => Err(Fault::Unexpected(header.tag)).field("content"),
            Token::Data(octets) => self.octets(octets),
            Token::End { depth: 0 } if begun => {
                self.state = State::Done;
                Ok(Some(Event::End))
            }
            Token::End { depth: 0 } => {
                Err(Fault::Missing(universal::OCTET_STRING)).field("content")
            }
            Token::End { .. } => Ok(None),
        }
    }

    /// A content, or a segment of one, of this header begins.
    fn announced(&self, header: &Header) -> Result<(), Error> {
        let announced = match header.length {
            Length::Definite(length) if !header.constructed => length,
            _ => 0,
        };
        self.within(announced)
    }

    /// Octets of a content.
    fn octets<'a>(&mut self, octets: &'a [u8]) -> Result<Option<Event<'a>>, Error> {
        let length = octets.len() as u64;
        self.within(length)?;
        self.content = self.content.saturating_add(length);
        Ok(Some(Event::Content(octets)))
    }

    /// Whether so many more octets of content are within the limit.
    fn within(&self, more: u64) -> Result<(), Error> {
        match self.content.saturating_add(more) <= self.content_limit {
            true => Ok(()),
            false => Err(Fault::TooLong(self.content_limit)).field("content"),
        }
    }
}
