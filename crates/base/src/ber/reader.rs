use super::{Error, Fault, Header, Length, MAX_DEPTH, Oid, Tag, universal};
use crate::Utc;
use asn1_rs::Any;
use std::borrow::Cow;

/// Walks the elements of a buffered encoding, one level at a time. Copies nothing.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
    accepted: bool,
}

/// One element of a buffered encoding.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// Tag.
    pub tag: Tag,
    /// Whether the contents are elements.
    pub constructed: bool,
    /// Contents, without end-of-contents octets.
    pub content: &'a [u8],
    /// The whole element: header, contents and any end-of-contents octets.
    pub raw: &'a [u8],
    depth: usize,
    accepted: bool,
}

/// A BIT STRING's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits<'a> {
    /// Octets, first bit highest.
    pub octets: Cow<'a, [u8]>,
    /// How many of the last octet's bits are not part of the value, 0 to 7.
    pub unused: u8,
}

impl Bits<'_> {
    /// Bit `n`, false beyond the end (X.680 22.7: trailing zero bits do not matter).
    pub fn get(&self, n: usize) -> bool {
        n < self.len() && self.octets.get(n / 8).is_some_and(|o| o & (0x80 >> (n % 8)) != 0)
    }

    /// The number of bits in the BIT STRING.
    pub fn len(&self) -> usize {
        (self.octets.len() * 8).saturating_sub(usize::from(self.unused))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const NO_INTEGER: Fault = Fault::Value("INTEGER (X.690 8.3)");

/// Length of the element at the front of `input`, of which the header is known.
/// Iterative: each level that is open costs one counter, never a stack frame.
fn element_size(input: &[u8], header: &Header, depth: usize) -> Result<usize, Fault> {
    let fits = |at: usize, n: u64| {
        let end = usize::try_from(n).ok().and_then(|n| at.checked_add(n));
        end.filter(|end| *end <= input.len()).ok_or(Fault::Truncated)
    };
    if let Length::Definite(n) = header.length {
        return fits(header.size, n);
    }
    let mut open = 1usize;
    let mut at = header.size;
    while open > 0 {
        let next = input.get(at..).ok_or(Fault::Truncated)?;
        let inner = Header::parse(next)?.ok_or(Fault::Truncated)?;
        at += inner.size;
        if inner.is_end_of_contents() {
            open -= 1;
            continue;
        }
        match inner.length {
            Length::Definite(n) => at = fits(at, n)?,
            Length::Indefinite if depth + open >= MAX_DEPTH => {
                return Err(Fault::TooDeep(MAX_DEPTH));
            }
            Length::Indefinite => open += 1,
        }
    }
    Ok(at)
}

impl<'a> Reader<'a> {
    /// Over the elements in `octets`.
    pub fn new(octets: &'a [u8]) -> Reader<'a> {
        Reader { rest: octets, depth: 0, accepted: false }
    }

    /// Over the elements in `octets`, which were accepted before: see [`Element::is_accepted`].
    pub fn of_accepted(octets: &'a [u8]) -> Reader<'a> {
        Reader { accepted: true, ..Reader::new(octets) }
    }

    /// The next element, or `None` at the end.
    ///
    /// # Errors
    /// A malformed header, an element longer than what holds it, or nesting beyond the limit.
    #[expect(clippy::should_implement_trait, reason = "fallible, and used element by element")]
    pub fn next(&mut self) -> Result<Option<Element<'a>>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep(MAX_DEPTH).into());
        }
        let header = Header::parse(self.rest)?.ok_or(Fault::Truncated)?;
        if header.is_end_of_contents() {
            return Err(Fault::UnexpectedEnd.into());
        }
        let size = element_size(self.rest, &header, self.depth)?;
        let (raw, rest) = self.rest.split_at_checked(size).ok_or(Fault::Truncated)?;
        self.rest = rest;
        let trailer = if header.length == Length::Indefinite { 2 } else { 0 };
        let content = raw.get(header.size..raw.len() - trailer).ok_or(Fault::Truncated)?;
        Ok(Some(Element {
            tag: header.tag,
            constructed: header.constructed,
            content,
            raw,
            depth: self.depth + 1,
            accepted: self.accepted,
        }))
    }

    /// The tag of the next element without taking it.
    pub fn peek(&self) -> Option<Tag> {
        Header::parse(self.rest).ok().flatten().map(|h| h.tag)
    }

    /// The next element, which must have this tag.
    ///
    /// # Errors
    /// As [`Reader::next`]; another tag, or none.
    pub fn require(&mut self, tag: Tag) -> Result<Element<'a>, Error> {
        match self.next()? {
            Some(e) if e.tag == tag => Ok(e),
            Some(e) => Err(Fault::Unexpected(e.tag).into()),
            None => Err(Fault::Missing(tag).into()),
        }
    }

    /// The next element if it has this tag.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn optional(&mut self, tag: Tag) -> Result<Option<Element<'a>>, Error> {
        if self.peek() == Some(tag) { self.next() } else { Ok(None) }
    }

    /// The octets that are not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Ends reading.
    ///
    /// # Errors
    /// Octets are left.
    pub fn finish(self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Fault::Trailing.into()) }
    }
}

impl<'a> Element<'a> {
    /// The element in `octets`, which must hold one and nothing else.
    ///
    /// # Errors
    /// As [`Reader::next`]; none, or trailing octets.
    pub fn parse(octets: &'a [u8]) -> Result<Element<'a>, Error> {
        Element::only(Reader::new(octets))
    }

    /// As [`Element::parse`], of octets that were accepted before: see [`Element::is_accepted`].
    ///
    /// # Errors
    /// As [`Element::parse`].
    pub fn parse_accepted(octets: &'a [u8]) -> Result<Element<'a>, Error> {
        Element::only(Reader::of_accepted(octets))
    }

    /// Whether this was accepted before, be it by an earlier version, as what is queued was. Who reads
    /// values refuses none then for its characters or its length: it would be lost.
    pub fn is_accepted(&self) -> bool {
        self.accepted
    }

    fn only(mut reader: Reader<'a>) -> Result<Element<'a>, Error> {
        let element = reader.next()?.ok_or(Fault::Truncated)?;
        reader.finish()?;
        Ok(element)
    }

    /// The elements inside.
    ///
    /// # Errors
    /// The element is primitive.
    pub fn children(&self) -> Result<Reader<'a>, Error> {
        if self.constructed {
            Ok(Reader { rest: self.content, depth: self.depth, accepted: self.accepted })
        } else {
            Err(Fault::Value("primitive form, constructed is required").into())
        }
    }

    /// The one element inside (an explicit tag's, X.690 8.14.3).
    ///
    /// # Errors
    /// None, or more than one.
    pub fn only_child(&self) -> Result<Element<'a>, Error> {
        let mut children = self.children()?;
        let child = children.next()?.ok_or(Fault::Truncated)?;
        children.finish()?;
        Ok(child)
    }

    /// A string's octets, its segments put together where it is constructed (X.690 8.7.3, 8.23).
    ///
    /// A segment is an OCTET STRING; of a character string also one of that very type, as encoders
    /// by X.409 make them.
    ///
    /// # Errors
    /// A segment that is malformed or of another type, for example an unexpected explicit tag.
    pub fn octets(&self) -> Result<Cow<'a, [u8]>, Error> {
        if !self.constructed {
            return Ok(Cow::Borrowed(self.content));
        }
        let own = self.tag.is_character_string().then_some(self.tag);
        let mut out = Vec::new();
        self.segments([Some(universal::OCTET_STRING), own], |segment| {
            out.extend_from_slice(segment.content);
            Ok(())
        })?;
        Ok(Cow::Owned(out))
    }

    /// Hands on the primitive segments of a constructed string, in order, which must have one of
    /// these tags, as must the constructed ones they stand in.
    fn segments(
        &self,
        tags: [Option<Tag>; 2],
        mut take: impl FnMut(Element<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut open = vec![self.children()?];
        while let Some(level) = open.last_mut() {
            match level.next()? {
                None => {
                    open.pop();
                }
                Some(segment) if !tags.contains(&Some(segment.tag)) => {
                    return Err(Fault::Unexpected(segment.tag).into());
                }
                Some(segment) if segment.constructed => open.push(segment.children()?),
                Some(segment) => take(segment)?,
            }
        }
        Ok(())
    }

    /// A character string's text where it is ASCII or UTF-8; T.61 and Latin-1 octets above 127 are
    /// read as Latin-1.
    ///
    /// # Errors
    /// As [`Element::octets`].
    pub fn text(&self) -> Result<String, Error> {
        let octets = self.octets()?;
        Ok(match std::str::from_utf8(&octets) {
            Ok(text) => text.to_owned(),
            Err(_) => octets.iter().map(|b| char::from(*b)).collect(),
        })
    }

    /// INTEGER or ENUMERATED.
    ///
    /// # Errors
    /// As [`Element::check_integer`].
    pub fn integer(&self) -> Result<i64, Error> {
        self.check_integer()?;
        let contents = Any::from_tag_and_data(asn1_rs::Tag::Integer, self.content);
        i64::try_from(contents).map_err(|_| NO_INTEGER.into())
    }

    /// Whether the contents are those of an INTEGER or ENUMERATED, whoever reads them then.
    ///
    /// # Errors
    /// Empty, constructed, or of more than eight octets.
    pub fn check_integer(&self) -> Result<(), Error> {
        // X.690 8.3.2 has no padding, but some encoders write a fixed width: eight octets at most,
        // so that a reader of pieces reads the same as a reader with all octets.
        // asn1-rs reads no octet as 0, and padding of any length before a positive number; rasn reads
        // constructed ones too.
        match !self.constructed && (1..=size_of::<i64>()).contains(&self.content.len()) {
            true => Ok(()),
            false => Err(NO_INTEGER.into()),
        }
    }

    /// BOOLEAN.
    ///
    /// # Errors
    /// Constructed, or not one octet.
    pub fn boolean(&self) -> Result<bool, Error> {
        let bad = || Error::from(Fault::Value("BOOLEAN (X.690 8.2)"));
        if self.constructed {
            return Err(bad());
        }
        let contents = Any::from_tag_and_data(asn1_rs::Tag::Boolean, self.content);
        bool::try_from(contents).map_err(|_| bad())
    }

    /// OBJECT IDENTIFIER.
    ///
    /// # Errors
    /// Constructed, or malformed.
    pub fn oid(&self) -> Result<Oid, Error> {
        if self.constructed {
            return Err(Fault::Value("OBJECT IDENTIFIER (X.690 8.19)").into());
        }
        Ok(Oid::from_content(self.content)?)
    }

    /// BIT STRING, put together where it is constructed (X.690 8.6.4).
    ///
    /// # Errors
    /// Malformed, a segment that is not a BIT STRING, or one other than the last with unused bits.
    pub fn bits(&self) -> Result<Bits<'a>, Error> {
        let bad = || Error::from(Fault::Value("BIT STRING (X.690 8.6)"));
        if !self.constructed {
            let contents = Any::from_tag_and_data(asn1_rs::Tag::BitString, self.content);
            let bits = asn1_rs::BitString::try_from(contents).map_err(|_| bad())?;
            // asn1-rs takes any number of unused bits, more than there are too.
            if bits.unused_bits > 7 || (bits.data.is_empty() && bits.unused_bits != 0) {
                return Err(bad());
            }
            return Ok(Bits { octets: bits.data, unused: bits.unused_bits });
        }
        let (mut out, mut unused) = (Vec::new(), 0u8);
        self.segments([Some(universal::BIT_STRING), None], |segment| {
            let part = segment.bits()?;
            if unused != 0 {
                return Err(bad());
            }
            unused = part.unused;
            out.extend_from_slice(&part.octets);
            Ok(())
        })?;
        Ok(Bits { octets: Cow::Owned(out), unused })
    }

    /// UTCTime; `None` if the text is not a time (an invalid time must not lose a message).
    ///
    /// # Errors
    /// As [`Element::octets`].
    pub fn utc_time(&self) -> Result<Option<Utc>, Error> {
        Ok(Utc::from_utc_time(&self.octets()?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Writer, universal as u};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constructed_and_indefinite_strings_read_as_one() {
        let e =
            [0x36, 0x80, 0x04, 0x03, b'h', b'e', b'l', 0x24, 0x04, 0x04, 0x02, b'l', b'o', 0, 0];
        let e = Element::parse(&e).unwrap();
        assert_eq!(e.text().unwrap(), "hello");
        assert_eq!(e.tag, u::IA5_STRING);
    }

    #[test]
    fn segments_are_of_the_string_s_type() {
        let octets = |e: &[u8]| Element::parse(e).unwrap().octets().map(Cow::into_owned);
        let bits = |e: &[u8]| Element::parse(e).unwrap().bits().map(|b| b.octets.into_owned());
        let fault = |tag: Tag| Err(Error::from(Fault::Unexpected(tag)));
        // Of the string's own type, as X.409 has it, at any level.
        assert_eq!(octets(&[0x36, 5, 0x36, 3, 0x16, 1, b'x']), Ok(b"x".to_vec()));
        assert_eq!(octets(&[0x33, 6, 0x04, 1, b'x', 0x13, 1, b'y']), Ok(b"xy".to_vec()));
        assert_eq!(octets(&[0x80, 1, b'x']), Ok(b"x".to_vec()));
        // An INTEGER, another string type, an explicit tag read as an implicit one, a SEQUENCE.
        assert_eq!(octets(&[0x24, 3, 0x02, 1, 5]), fault(u::INTEGER));
        assert_eq!(octets(&[0x24, 3, 0x16, 1, b'x']), fault(u::IA5_STRING));
        assert_eq!(octets(&[0x36, 3, 0x13, 1, b'x']), fault(u::PRINTABLE_STRING));
        assert_eq!(octets(&[0xa0, 3, 0x16, 1, b'x']), fault(u::IA5_STRING));
        assert_eq!(octets(&[0xa0, 5, 0x24, 3, 0x02, 1, 5]), fault(u::INTEGER));
        assert_eq!(octets(&[0x24, 5, 0x30, 3, 0x04, 1, b'x']), fault(u::SEQUENCE));
        assert_eq!(octets(&[0x24, 3, 0x80, 1, b'x']), fault(Tag::context(0)));
        assert_eq!(bits(&[0x23, 6, 0x23, 4, 0x03, 2, 4, 0xf0]), Ok(vec![0xf0]));
        assert_eq!(bits(&[0x23, 4, 0x04, 2, 0, 0xf0]), fault(u::OCTET_STRING));
        assert_eq!(bits(&[0xa1, 5, 0x30, 3, 0x03, 1, 0]), fault(u::SEQUENCE));
        // What has no constructed form at all.
        assert!(Element::parse(&[0x21, 1, 0xff]).unwrap().boolean().is_err());
        assert!(Element::parse(&[0x26, 2, 0x51, 1]).unwrap().oid().is_err());
    }

    #[test]
    fn end_of_contents_is_two_octets() {
        // The length 0 in the long form: an element of the reserved tag, no end.
        let padded = [0x30, 0x80, 0x02, 0x01, 5, 0, 0x81, 0, 0, 0];
        let e = Element::parse(&padded).unwrap();
        assert_eq!(e.content, &padded[2..8]);
        assert_eq!(Element::parse(&padded[..8]).unwrap_err().fault, Fault::Truncated);
    }

    #[test]
    fn nesting_bombs_stop_at_the_limit() {
        let bomb: Vec<u8> = [0x30, 0x80].repeat(40_000);
        assert_eq!(Element::parse(&bomb).unwrap_err().fault, Fault::TooDeep(MAX_DEPTH));
        let strings: Vec<u8> = (0..40).rev().flat_map(|n: u8| [0x24, n * 2]).collect();
        assert_eq!(
            Element::parse(&strings).unwrap().octets().unwrap_err().fault,
            Fault::TooDeep(MAX_DEPTH)
        );
    }

    #[test]
    fn bits_beyond_the_end_are_zero() {
        let e = [0x81, 0x03, 0x07, 0xF0, 0x00];
        let bits = Element::parse(&e).unwrap().bits().unwrap();
        assert_eq!((bits.len(), bits.get(0), bits.get(4), bits.get(200)), (9, true, false, false));
        assert!(Element::parse(&[0x80, 1, 0]).unwrap().bits().unwrap().is_empty());
    }

    #[test]
    fn an_integer_is_padded_to_eight_octets_at_most() {
        let read = |octets: &[u8]| {
            let mut w = Writer::new();
            w.primitive(u::INTEGER, octets);
            Element::parse(w.as_slice()).unwrap().integer().ok()
        };
        assert_eq!(read(&[0, 0, 0, 0, 0, 0, 0, 4]), Some(4));
        assert_eq!(read(&[0xff; 8]), Some(-1));
        assert_eq!(read(&[0, 0, 0, 0, 0, 0, 0, 0, 4]), None);
        assert_eq!((read(&[0xff; 9]), read(&[])), (None, None));
    }

    proptest! {
        #[test]
        fn integers_agree_with_an_independent_codec(value: i64) {
            let mut w = Writer::new();
            w.integer(u::INTEGER, value);
            prop_assert_eq!(rasn::ber::encode(&value).unwrap(), w.as_slice());
            prop_assert_eq!(Element::parse(w.as_slice()).unwrap().integer(), Ok(value));
        }

        #[test]
        fn oids_agree_with_an_independent_codec(
            root in 0u64..3, second in 0u64..39, rest in proptest::collection::vec(0u64..u64::from(u32::MAX), 0..8)
        ) {
            let arcs: Vec<u64> = [root, second].into_iter().chain(rest).collect();
            let oid = Oid::from_arcs(&arcs).unwrap();
            let theirs = rasn::types::ObjectIdentifier::new(arcs.iter().map(|a| *a as u32).collect::<Vec<_>>()).unwrap();
            let mut w = Writer::new();
            w.oid(u::OID, &oid);
            prop_assert_eq!(rasn::ber::encode(&theirs).unwrap(), w.as_slice());
        }

        #[test]
        fn any_octets_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut open = vec![Reader::new(&bytes)];
            while let Some(level) = open.last_mut() {
                match level.next() {
                    Ok(Some(e)) => {
                        let _ = (e.octets(), e.bits(), e.integer(), e.oid(), e.text(), e.utc_time());
                        if e.constructed { open.push(e.children().unwrap()); }
                    }
                    _ => { open.pop(); }
                }
            }
        }
    }
}
