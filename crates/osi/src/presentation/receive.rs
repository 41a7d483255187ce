//! P-DATA as it arrives: User-data of any length, one presentation data value after another.

use super::pdu::{FULLY_ENCODED, SIMPLY_ENCODED};
use super::service::{Contexts, Indication};
use crate::raw::{BerEvent, Contents, RawReader};
use base::ber::{Class, Element, Error, Fault, Field, Header, Tag, Writer, universal as u};
use bytes::Bytes;
use smallvec::SmallVec;

/// The position in User-data.
#[derive(Clone, Debug)]
enum At {
    /// Before, between or after PDV-lists.
    Lists,
    /// Inside a PDV-list, before its value.
    Members { context: Option<i64> },
    /// Inside transfer-syntax-name.
    Name { context: Option<i64> },
    /// Inside presentation-context-identifier.
    Identifier { octets: SmallVec<[u8; 8]> },
    /// Inside the value.
    Value(Contents),
    /// After the value, before the end of the PDV-list.
    Tail,
}

/// One S-DATA's user data.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    reader: RawReader,
    at: At,
    /// Whether no octet has come.
    untouched: bool,
}

impl Receive {
    pub(super) fn new() -> Receive {
        Receive { reader: RawReader::new(), at: At::Lists, untouched: true }
    }

    /// Whether nothing is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.reader.is_done()
    }

    /// Whether no octet has come yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// Takes a piece and hands on what it holds.
    pub(super) fn push(
        &mut self,
        mut input: Bytes,
        contexts: &Contexts,
        out: &mut impl FnMut(Indication),
    ) -> Result<(), Error> {
        self.untouched &= input.is_empty();
        loop {
            if let At::Value(contents) = self.at {
                let ended = self
                    .reader
                    .contents(2, contents, &mut input, |b| out(Indication::ValueData(b)))
                    .field("presentation-data-values")?;
                if !ended {
                    return Ok(());
                }
                out(Indication::ValueEnd);
                self.at = At::Tail;
            }
            if self.reader.is_done() && !input.is_empty() {
                return Err(Fault::Trailing).field("User-data");
            }
            match self.reader.next(&mut input).field("User-data")? {
                None => return Ok(()),
                Some(event) => self.event(event, contexts, out).field("User-data")?,
            }
        }
    }

    fn event(
        &mut self,
        event: BerEvent,
        contexts: &Contexts,
        out: &mut impl FnMut(Indication),
    ) -> Result<(), Error> {
        match (event, &mut self.at) {
            (BerEvent::Begin { header, depth: 0 }, _) => begin(&header)?,
            (BerEvent::Begin { header, depth: 1 }, At::Lists) if header.tag == u::SEQUENCE => {
                self.at = At::Members { context: None };
            }
            (BerEvent::Begin { header, depth: 2 }, At::Members { context }) => {
                self.at = member(&header, *context, contexts, out)?;
            }
            (BerEvent::Data(data), At::Identifier { octets }) => {
                if octets.len() + data.len() > 8 {
                    return Err(Fault::Value("INTEGER")).field("presentation-context-identifier");
                }
                octets.extend_from_slice(&data);
            }
            (BerEvent::End { depth: 2 }, At::Identifier { octets }) => {
                let context = Some(integer(octets).field("presentation-context-identifier")?);
                self.at = At::Members { context };
            }
            (BerEvent::Data(_), At::Name { .. }) => {}
            (BerEvent::End { depth: 2 }, At::Name { context }) => {
                self.at = At::Members { context: *context };
            }
            (BerEvent::End { depth: 1 }, At::Tail) => self.at = At::Lists,
            (BerEvent::End { depth: 0 }, At::Lists) => {}
            (BerEvent::Begin { header, .. }, _) => {
                return Err(Fault::Unexpected(header.tag)).field("PDV-list");
            }
            (BerEvent::Data(_) | BerEvent::End { .. }, _) => {
                return Err(Fault::Truncated).field("PDV-list");
            }
        }
        Ok(())
    }
}

fn begin(header: &Header) -> Result<(), Error> {
    match header.tag {
        FULLY_ENCODED if header.constructed => Ok(()),
        SIMPLY_ENCODED => {
            Err(Fault::Value("simply-encoded-data with several contexts (X.226 8.4.2)").into())
        }
        other => Err(Fault::Unexpected(other).into()),
    }
}

fn member(
    header: &Header,
    context: Option<i64>,
    contexts: &Contexts,
    out: &mut impl FnMut(Indication),
) -> Result<At, Error> {
    let contents = match (header.tag, header.constructed) {
        (u::OID, false) => return Ok(At::Name { context }),
        (u::INTEGER, false) => return Ok(At::Identifier { octets: SmallVec::new() }),
        (Tag { class: Class::Context, number: 0 }, true) => Contents::Elements,
        (Tag { class: Class::Context, number: 1 }, _) => Contents::OctetString,
        (Tag { class: Class::Context, number: 2 }, _) => Contents::BitString,
        (other, _) => return Err(Fault::Unexpected(other)).field("PDV-list"),
    };
    let id = context
        .ok_or(Fault::Missing(u::INTEGER))
        .and_then(|id| {
            contexts.contains(id).then_some(id).ok_or(Fault::Value("a context not defined"))
        })
        .field("presentation-context-identifier")?;
    out(Indication::ValueStart { context: id });
    Ok(At::Value(contents))
}

/// An INTEGER's contents, collected.
pub(crate) fn integer(octets: &[u8]) -> Result<i64, Error> {
    let mut w = Writer::new();
    w.primitive(u::INTEGER, octets);
    Element::parse(w.as_slice())?.integer()
}
