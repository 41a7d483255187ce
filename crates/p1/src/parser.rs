//! An MTS-APDU, read in pieces of any size.

use crate::apdu::{MESSAGE, MtsApduHead, PROBE, REPORT, Report};
use crate::envelope::{MessageTransferEnvelope, ProbeTransferEnvelope};
use base::ber::{Element, Error, Fault, Field, Limits, MAX_DEPTH, Token, Tokenizer, universal};
use serde::{Deserialize, Serialize};

/// What an [`ApduParser`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The envelope, or the whole of a probe or report; comes first, once.
    Head(MtsApduHead),
    /// Octets of a message's content, in order, without any header; never empty.
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
        }
    }

    /// With reports of at most `limit` octets, the returned content with them.
    #[must_use]
    pub fn with_report_limit(self, limit: usize) -> ApduParser {
        ApduParser { report_limit: limit, ..self }
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
                self.state = State::Content { begun: true };
                Ok(None)
            }
            Token::Begin { header, .. } => Err(Fault::Unexpected(header.tag)).field("content"),
            Token::Data(octets) => Ok(Some(Event::Content(octets))),
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
}
