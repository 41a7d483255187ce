//! Reads BER incrementally and keeps the octets: what is inside an element goes on as it came, in
//! slices of the input, without being assembled.

use base::ber::{Fault, Header, Limits, MAX_HEADER_OCTETS, Tag, Token, Tokenizer, universal as u};
use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// One step of an encoding, its content as a slice of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BerEvent {
    /// An element begins.
    Begin {
        /// Its header.
        header: Header,
        /// How many elements are open around it.
        depth: usize,
    },
    /// Contents of a primitive element.
    Data(Bytes),
    /// An element ends.
    End {
        /// As in its `Begin`.
        depth: usize,
    },
}

/// Which octets of an element's contents are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Contents {
    /// All of them, headers included (an explicit tag's).
    Elements,
    /// The octets of an OCTET STRING, its segments' headers left out.
    OctetString,
    /// The octets of a BIT STRING, without headers and counts of unused bits, which must be 0.
    BitString,
}

/// A tokenizer that can hand on raw octets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RawReader {
    tokens: Tokenizer,
    /// Octets of an unfinished header inside [`Contents::Elements`]: they are content unless they
    /// turn out to be the end-of-contents of the element around them.
    held: SmallVec<[u8; MAX_HEADER_OCTETS]>,
    /// The next octet of a BIT STRING segment is its count of unused bits.
    unused_due: bool,
}

impl RawReader {
    /// For one element.
    pub(crate) fn new() -> RawReader {
        RawReader {
            tokens: Tokenizer::new(Limits::default()),
            held: SmallVec::new(),
            unused_due: true,
        }
    }

    /// Whether the element has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.tokens.is_done()
    }

    /// The next token, taken from the front of `input`.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<BerEvent>, Fault> {
        let (event, left) = {
            let mut rest: &[u8] = input;
            let event = match self.tokens.next(&mut rest)? {
                None => None,
                Some(Token::Begin { header, depth }) => Some(BerEvent::Begin { header, depth }),
                Some(Token::Data(data)) => Some(BerEvent::Data(input.slice_ref(data))),
                Some(Token::End { depth }) => Some(BerEvent::End { depth }),
            };
            (event, rest.len())
        };
        input.advance(input.len() - left);
        Ok(event)
    }

    /// Hands on the contents of the element open at `depth` as far as `input` goes; whether the
    /// element has ended. What follows it stays in `input`.
    pub(crate) fn contents(
        &mut self,
        depth: usize,
        wanted: Contents,
        input: &mut Bytes,
        out: impl FnMut(Bytes),
    ) -> Result<bool, Fault> {
        match wanted {
            Contents::Elements => self.elements(depth, input, out),
            Contents::OctetString => self.segments(depth, u::OCTET_STRING, input, out),
            Contents::BitString => self.segments(depth, u::BIT_STRING, input, out),
        }
    }

    fn elements(
        &mut self,
        depth: usize,
        input: &mut Bytes,
        mut out: impl FnMut(Bytes),
    ) -> Result<bool, Fault> {
        let whole = input.clone();
        let mut rest: &[u8] = &whole;
        let mut known = 0;
        let ended = loop {
            // Who gets the octets reads them, within limits of his own: how deep they nest is his
            // to refuse.
            let token = self.tokens.next_passing(depth, &mut rest)?;
            let used = whole.len() - rest.len();
            match token {
                Some(Token::End { depth: d }) if d == depth => {
                    self.held.clear();
                    input.advance(used);
                    break true;
                }
                Some(_) => {
                    if !self.held.is_empty() {
                        out(Bytes::copy_from_slice(&self.held));
                        self.held.clear();
                    }
                    known = used;
                }
                None => {
                    self.held.extend_from_slice(whole.get(known..).unwrap_or_default());
                    input.clear();
                    break false;
                }
            }
        };
        if known > 0 {
            out(whole.slice(..known));
        }
        Ok(ended)
    }

    fn segments(
        &mut self,
        depth: usize,
        segment: Tag,
        input: &mut Bytes,
        mut out: impl FnMut(Bytes),
    ) -> Result<bool, Fault> {
        while let Some(event) = self.next(input)? {
            match event {
                BerEvent::End { depth: d } if d == depth => return Ok(true),
                BerEvent::End { .. } => {}
                BerEvent::Begin { header, .. } if header.tag == segment => self.unused_due = true,
                BerEvent::Begin { header, .. } => return Err(Fault::Unexpected(header.tag)),
                BerEvent::Data(mut bytes) => {
                    if segment == u::BIT_STRING && self.unused_due {
                        self.unused_due = false;
                        if bytes.get_u8() != 0 {
                            return Err(Fault::Value("BIT STRING of whole octets"));
                        }
                    }
                    if !bytes.is_empty() {
                        out(bytes);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contents of the first element inside a SEQUENCE, fed in these pieces.
    fn inner(pieces: &[&[u8]], wanted: Contents) -> Result<(Vec<u8>, bool), Fault> {
        let mut reader = RawReader::new();
        let (mut out, mut inside, mut ended) = (Vec::new(), false, false);
        for piece in pieces {
            let mut input = Bytes::copy_from_slice(piece);
            while !inside {
                match reader.next(&mut input)? {
                    Some(BerEvent::Begin { depth: 1, .. }) => inside = true,
                    Some(_) => {}
                    None => break,
                }
            }
            if inside && !ended {
                ended = reader.contents(1, wanted, &mut input, |b| out.extend_from_slice(&b))?;
            }
            while ended && reader.next(&mut input)?.is_some() {}
        }
        Ok((out, ended && reader.is_done()))
    }

    #[test]
    fn contents_are_the_same_at_every_cut() {
        let elements = [0x30, 0x80, 0xa0, 0x80, 0x02, 0x01, 0x00, 0x30, 0x80, 0, 0, 0, 0, 0, 0];
        let string = [0x30, 0x0a, 0x24, 0x80, 0x24, 0x04, 0x04, 0x02, b'a', b'b', 0, 0];
        let bits = [0x30, 0x09, 0xa2, 0x07, 0x03, 0x02, 0, b'x', 0x03, 0x01, 0];
        let cases: [(&[u8], Contents, &[u8]); 3] = [
            (&elements, Contents::Elements, &[0x02, 0x01, 0x00, 0x30, 0x80, 0, 0]),
            (&string, Contents::OctetString, b"ab"),
            (&bits, Contents::BitString, b"x"),
        ];
        for (input, wanted, expected) in cases {
            for a in 0..=input.len() {
                for b in a..=input.len() {
                    let got = inner(&[&input[..a], &input[a..b], &input[b..]], wanted);
                    assert_eq!(got, Ok((expected.to_vec(), true)), "cuts at {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn elements_may_nest_as_they_like() {
        let deep = 1_000;
        let mut elements = [0x30, 0x80].repeat(deep);
        elements.extend([0, 0].repeat(deep));
        let whole = [&[0x30, 0x80, 0xa0, 0x80][..], &elements, &[0; 4]].concat();
        for cut in 0..whole.len() {
            let got = inner(&[&whole[..cut], &whole[cut..]], Contents::Elements);
            assert_eq!(got, Ok((elements.clone(), true)), "cut at {cut}");
        }
    }

    #[test]
    fn segments_must_be_of_the_string_type() {
        let wrong = [0x30, 0x05, 0x24, 0x03, 0x02, 0x01, 0];
        assert!(matches!(inner(&[&wrong], Contents::OctetString), Err(Fault::Unexpected(_))));
        let odd = [0x30, 0x04, 0x82, 0x02, 3, 0xf8];
        assert!(inner(&[&odd], Contents::BitString).is_err());
    }
}
