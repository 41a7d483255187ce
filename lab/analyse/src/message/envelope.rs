//! From the user data of a session to the fields of an envelope: presentation data values, RT-TRANSFER's
//! octets, and the head of an MTS-APDU.

use crate::report::{Envelope, TransferKind};
use base::ber::{Class, Header, Length, Limits, MAX_DEPTH, Tag, Token, Tokenizer, universal};
use p1::grade::{PriorityLevelQualifier, join};
use p1::{ApduParser, Event, MtsApduHead, Priority};

/// The longest envelope that is read, in octets; longer messages have a row without one.
const MAX_ENVELOPE: usize = 32 << 10;
/// Most octets before the APDU that are waited for.
const MAX_EXTERNAL: usize = 256;
/// EXTERNAL, `[UNIVERSAL 8]`.
const EXTERNAL: Tag = Tag::universal(8);
/// The tag of a P-DATA's user data (X.226 8.3: fully encoded, `[APPLICATION 1]`).
const USER_DATA: u8 = 0x61;

/// How the octets of an activity are wrapped.
#[derive(Clone, Debug)]
enum Wrap {
    /// Not known before the first octet.
    Unknown,
    /// Not at all: X.410 mode.
    Bare,
    /// In presentation data values; within one, and whether its octets are the transfer's.
    Values { tokens: Box<Tokenizer>, wanted: bool },
    /// In presentation data values of which something is missing or wrong: the next ones are read
    /// again.
    Skipping,
}

/// Octets of one activity.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    wrap: Wrap,
    parser: Option<Box<ApduParser>>,
    /// What is before the APDU, until all of it is there.
    before: Option<Vec<u8>>,
    /// Octets of the APDU so far.
    pub(crate) octets: u64,
    /// The fields of the envelope, once it is read.
    pub(crate) envelope: Option<Envelope>,
}

impl Reader {
    /// At the begin of an activity; where it is resumed, the envelope is behind.
    pub(crate) fn new(resumed: bool) -> Reader {
        let parser = ApduParser::new(MAX_ENVELOPE).with_report_limit(MAX_ENVELOPE);
        Reader {
            wrap: Wrap::Unknown,
            parser: (!resumed).then(|| Box::new(parser)),
            before: (!resumed).then(Vec::new),
            octets: 0,
            envelope: None,
        }
    }

    /// Octets are missing: what follows begins in the middle.
    pub(crate) fn gap(&mut self) {
        (self.parser, self.before) = (None, None);
        if !matches!(self.wrap, Wrap::Bare) {
            self.wrap = Wrap::Skipping;
        }
    }

    /// User data of the session; `last` where its unit ends. Gives how many octets of the transfer
    /// were in it.
    pub(crate) fn data(&mut self, octets: &[u8], last: bool) -> u64 {
        let before = self.octets;
        if let (Wrap::Unknown, Some(first)) = (&self.wrap, octets.first()) {
            self.wrap = if *first == USER_DATA { values() } else { Wrap::Bare };
        }
        match std::mem::replace(&mut self.wrap, Wrap::Skipping) {
            Wrap::Values { mut tokens, mut wanted } => {
                if self.unwrap(octets, &mut tokens, &mut wanted) {
                    self.wrap = Wrap::Values { tokens, wanted };
                }
            }
            Wrap::Bare => {
                self.transfer(octets);
                self.wrap = Wrap::Bare;
            }
            other => self.wrap = other,
        }
        // Every unit is one user data of its own.
        if last && matches!(self.wrap, Wrap::Values { .. } | Wrap::Skipping) {
            self.wrap = values();
        }
        self.octets - before
    }

    /// Takes presentation data values apart; whether that went well.
    fn unwrap(&mut self, octets: &[u8], tokens: &mut Tokenizer, wanted: &mut bool) -> bool {
        let mut rest = octets;
        loop {
            match tokens.next(&mut rest) {
                Ok(Some(Token::Begin { header, depth })) => {
                    // single-ASN1-type with an OCTET STRING in it, or octet-aligned (X.226 8.4.2).
                    let string = header.tag == universal::OCTET_STRING;
                    let aligned =
                        depth == 2 && header.tag.class == Class::Context && header.tag.number == 1;
                    *wanted = !header.constructed && (string || aligned);
                }
                Ok(Some(Token::Data(data))) => {
                    if *wanted {
                        self.transfer(data);
                    }
                }
                Ok(Some(Token::End { .. })) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Octets of RT-TRANSFER: in normal mode the APDU stands in an EXTERNAL (X.228 8.3).
    fn transfer(&mut self, octets: &[u8]) {
        let Some(mut before) = self.before.take() else { return self.apdu(octets) };
        before.extend_from_slice(octets);
        match begin(&before) {
            Some(at) => self.apdu(before.get(at..).unwrap_or_default()),
            None if before.len() > MAX_EXTERNAL => self.apdu(&before),
            None => self.before = Some(before),
        }
    }

    fn apdu(&mut self, octets: &[u8]) {
        self.octets += octets.len() as u64;
        let Some(parser) = &mut self.parser else { return };
        let mut rest = octets;
        match parser.next(&mut rest) {
            Ok(None) => {}
            Ok(Some(Event::Head(head))) => {
                self.envelope = Some(notified(&head));
                self.parser = None;
            }
            Ok(Some(_)) | Err(_) => self.parser = None,
        }
    }
}

/// Where the APDU begins: behind the references of an EXTERNAL (X.690 8.18), or at once; `None` where
/// more octets are needed.
fn begin(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let header = match Header::parse(octets.get(at..)?) {
            Ok(header) => header?,
            Err(_) => return Some(0),
        };
        let behind = at + header.size;
        at = match (header.tag, header.length) {
            (tag, _) if at == 0 && tag == EXTERNAL => behind,
            _ if at == 0 => return Some(0),
            // direct-reference, indirect-reference and data-value-descriptor.
            (tag, Length::Definite(length)) if tag.class == Class::Universal => {
                behind.saturating_add(usize::try_from(length).unwrap_or(usize::MAX))
            }
            // single-ASN1-type and octet-aligned.
            (tag, _) if tag.class == Class::Context && tag.number < 2 => return Some(behind),
            _ => return Some(0),
        };
    }
}

fn values() -> Wrap {
    let limits = Limits { depth: MAX_DEPTH, elements: u64::MAX, octets: u64::MAX >> 1 };
    Wrap::Values { tokens: Box::new(Tokenizer::new(limits)), wanted: false }
}

fn notified(head: &MtsApduHead) -> Envelope {
    let (kind, identifier) = match head {
        MtsApduHead::Message(message) => {
            (TransferKind::Message, message.message_identifier.to_string())
        }
        MtsApduHead::Probe(probe) => (TransferKind::Probe, probe.probe_identifier.to_string()),
        MtsApduHead::Report(report) => {
            (TransferKind::Report, report.envelope.report_identifier.to_string())
        }
    };
    let (precedence, priority) = match head {
        MtsApduHead::Message(message) => {
            let qualifier =
                PriorityLevelQualifier::from_extensions(&message.extensions).ok().flatten();
            let name = match message.priority {
                Priority::NonUrgent => "non-urgent",
                Priority::Normal => "normal",
                Priority::Urgent => "urgent",
            };
            (qualifier.map(|qualifier| join(message.priority, qualifier)), Some(name))
        }
        _ => (None, None),
    };
    Envelope { kind, identifier, precedence, priority }
}
