//! The security labels inside a signed content: ESSSecurityLabel (RFC 2634 3.2), a signed attribute of
//! each SignerInfo of a SignedData (RFC 5652 5.1, 5.3) in a ContentInfo, as X.400 carries it (RFC 3855;
//! STANAG 4406 annex B).
//!
//! The signers stand at the end, behind a content of any length. [`SignedReader`] takes the octets in
//! pieces as they come, passes over what is signed, the certificates and the rest, and holds nothing but
//! the labels. It verifies no signature and opens nothing that is encrypted: a label is there as its
//! sender wrote it.

use crate::content_type::ContentType;
use base::ber::{
    Error, Fault, Field, Header, Limits, Reader, Tag, Token, Tokenizer, universal as u,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Longest attribute that holds a label, octets.
pub const MAX_LABEL: usize = 8 << 10;
/// Most different labels of one content. RFC 2634 3.2 wants them alike in all SignerInfos.
pub const MAX_LABELS: usize = 4;

/// id-signedData, 1.2.840.113549.1.7.2.
const SIGNED_DATA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
/// id-aa-securityLabel, 1.2.840.113549.1.9.16.2.2.
const SECURITY_LABEL: [u8; 11] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 2];
/// id-ct-contentInfo, 1.2.840.113549.1.9.16.1.6: the content type of X.400 for a ContentInfo.
const CONTENT_INFO: [u8; 11] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 6];

/// The security labels inside a content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentLabels {
    /// Each a whole ESSSecurityLabel; those of several signers only once.
    pub labels: Vec<Bytes>,
    /// There may be others: the content is signed, but malformed or beyond a limit.
    pub unreadable: bool,
}

impl ContentLabels {
    /// No label, and nothing that could not be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && !self.unreadable
    }
}

/// Whether a content of this type is a ContentInfo by its type: what is not one is then malformed.
#[must_use]
pub fn is_cms(content_type: &ContentType) -> bool {
    match content_type {
        ContentType::Extended(oid) => [&CONTENT_INFO[..], &SIGNED_DATA].contains(&oid.content()),
        ContentType::BuiltIn(_) => false,
    }
}

/// Elements that lead to a label, by their depth: ContentInfo, its content, SignedData, signerInfos,
/// SignerInfo, signedAttrs, Attribute.
const ATTRIBUTE: usize = 6;

/// Reads the labels of one content, in pieces of any size.
///
/// Cutting the octets anywhere gives the same labels. It holds at most [`MAX_LABELS`] labels and one
/// attribute of [`MAX_LABEL`] octets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedReader {
    tokens: Tokenizer,
    state: State,
    /// How many elements that lead to a label are open.
    open: usize,
    /// How many elements have begun inside each of these.
    children: [u64; ATTRIBUTE + 2],
    /// An object identifier that is being read, or the rest of an attribute that holds a label.
    held: Vec<u8>,
    holding: Holding,
    found: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// No content-type of ContentInfo so far.
    Start,
    /// In a SignedData, before its signerInfos.
    Signed,
    /// In or behind its signerInfos.
    Signers,
    /// It is a ContentInfo of something else.
    Other,
    /// Not a ContentInfo, or nobody knows.
    Foreign,
    /// It has ended.
    Done,
    /// It cannot be read.
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Holding {
    Nothing,
    Identifier,
    Label,
}

impl Default for SignedReader {
    fn default() -> SignedReader {
        // Each content is read once, and what is passed over costs no memory.
        let limits = Limits { depth: ATTRIBUTE + 4, elements: u64::MAX, octets: u64::MAX >> 1 };
        SignedReader {
            tokens: Tokenizer::new(limits),
            state: State::Start,
            open: 0,
            children: [0; ATTRIBUTE + 2],
            held: Vec::new(),
            holding: Holding::Nothing,
            found: Vec::new(),
        }
    }
}

impl SignedReader {
    /// For a content whose beginning was not seen: it counts as malformed if its type makes it a
    /// ContentInfo.
    #[must_use]
    pub fn without_beginning() -> SignedReader {
        SignedReader { state: State::Foreign, ..SignedReader::default() }
    }

    /// Takes the next octets of the content.
    pub fn take(&mut self, mut piece: &[u8]) {
        while matches!(self.state, State::Start | State::Signed | State::Signers) {
            let before = piece;
            let token = self.tokens.next_passing(self.open, &mut piece);
            let taken = before.get(..before.len() - piece.len()).unwrap_or_default();
            let step = match token {
                Ok(None) => {
                    // Part of a header.
                    self.hold_label(taken).unwrap_or_else(|()| self.fail());
                    return;
                }
                Ok(Some(token)) => self.step(token, taken),
                Err(_) => Err(()),
            };
            step.unwrap_or_else(|()| self.fail());
        }
    }

    /// Octets of memory that it holds beside itself.
    #[must_use]
    pub fn held(&self) -> usize {
        self.found.iter().map(Bytes::len).sum::<usize>() + self.held.len()
    }

    /// What was found in the whole content, which has this type.
    #[must_use]
    pub fn labels(&self, content_type: &ContentType) -> ContentLabels {
        let unreadable = match self.state {
            State::Done | State::Other => false,
            State::Start | State::Foreign => is_cms(content_type),
            State::Signed | State::Signers | State::Malformed => true,
        };
        ContentLabels { labels: self.found.clone(), unreadable }
    }

    /// It cannot be read further. Anything but a ContentInfo need not be BER at all.
    fn fail(&mut self) {
        self.state = match self.state {
            State::Start => State::Foreign,
            _ => State::Malformed,
        };
    }

    fn step(&mut self, token: Token<'_>, taken: &[u8]) -> Result<(), ()> {
        self.hold_label(taken)?;
        match token {
            Token::Begin { header, depth } if depth == self.open => self.begin(&header, depth),
            Token::Begin { .. } => Ok(()),
            Token::Data(octets) => {
                if self.holding == Holding::Identifier {
                    self.hold(octets)?;
                }
                Ok(())
            }
            Token::End { depth } => self.end(depth),
        }
    }

    /// A child of the innermost element that leads to a label.
    fn begin(&mut self, header: &Header, depth: usize) -> Result<(), ()> {
        let place = self.children.get_mut(depth).ok_or(())?;
        let index = *place;
        *place += 1;
        let signers = self.state == State::Signed && index >= 3;
        // What has to stand here, and whether it leads on.
        let (wanted, leads) = match (depth, index) {
            (0, _) | (2, 0) | (4, _) | (ATTRIBUTE, _) => (Some(u::SEQUENCE), true),
            (1, 0) | (7, 0) => {
                self.held.clear();
                self.holding = Holding::Identifier;
                (Some(u::OID), false)
            }
            (1, 1) => (Some(Tag::context(0)), true),
            (3, 2) => (Some(u::SEQUENCE), false),
            (3, _) if signers && header.tag == u::SET => {
                self.state = State::Signers;
                (None, true)
            }
            (5, 3) if header.tag == Tag::context(0) => (None, true),
            (2, _) => return Err(()),
            _ => (None, false),
        };
        let fits = wanted.is_none_or(|tag| tag == header.tag);
        // An object identifier is primitive.
        let form = leads || wanted != Some(u::OID);
        if !fits || (leads && !header.constructed) || (!form && header.constructed) {
            return Err(());
        }
        if leads {
            self.open += 1;
            *self.children.get_mut(self.open).ok_or(())? = 0;
        }
        Ok(())
    }

    fn end(&mut self, depth: usize) -> Result<(), ()> {
        if depth == self.open && self.holding == Holding::Identifier {
            return self.identified();
        }
        if depth + 1 != self.open {
            return Ok(());
        }
        self.open = depth;
        if depth == ATTRIBUTE && self.holding == Holding::Label {
            return self.label_ends();
        }
        match self.state {
            State::Signers if depth == 0 => self.state = State::Done,
            _ if depth == 0 => return Err(()),
            _ => {}
        }
        Ok(())
    }

    /// An object identifier is there: of ContentInfo, or of an attribute.
    fn identified(&mut self) -> Result<(), ()> {
        let oid = std::mem::take(&mut self.held);
        self.holding = Holding::Nothing;
        if self.open == 1 {
            self.state = if oid == SIGNED_DATA { State::Signed } else { State::Other };
        } else if oid == SECURITY_LABEL {
            self.holding = Holding::Label;
        }
        Ok(())
    }

    /// The values of an attribute that is a label: a SET of one.
    fn label_ends(&mut self) -> Result<(), ()> {
        let attribute = std::mem::take(&mut self.held);
        self.holding = Holding::Nothing;
        let found = values(&attribute).map_err(|_| ())?;
        for label in found {
            if self.found.contains(&label) {
                continue;
            }
            if self.found.len() == MAX_LABELS {
                return Err(());
            }
            self.found.push(label);
        }
        Ok(())
    }

    fn hold_label(&mut self, taken: &[u8]) -> Result<(), ()> {
        match self.holding {
            Holding::Label => self.hold(taken),
            Holding::Nothing | Holding::Identifier => Ok(()),
        }
    }

    fn hold(&mut self, octets: &[u8]) -> Result<(), ()> {
        if self.held.len().saturating_add(octets.len()) > MAX_LABEL {
            return Err(());
        }
        self.held.extend_from_slice(octets);
        Ok(())
    }
}

/// The elements in the SET at the front, at least one.
fn values(octets: &[u8]) -> Result<Vec<Bytes>, Error> {
    let set = Reader::new(octets).require(u::SET)?;
    let (mut all, mut members) = (Vec::new(), set.children()?);
    while let Some(value) = members.next()? {
        all.push(Bytes::copy_from_slice(value.raw));
    }
    if all.is_empty() { Err(Fault::Missing(u::SET)).field("attrValues") } else { Ok(all) }
}

#[cfg(test)]
mod tests;
