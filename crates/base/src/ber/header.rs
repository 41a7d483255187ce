//! Identifier and length octets of BER (X.690 8.1.2, 8.1.3).

use super::Fault;
use std::fmt;

/// Tag class (X.690 8.1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Types of X.680 itself.
    Universal = 0,
    /// `[APPLICATION n]`.
    Application = 1,
    /// `[n]`.
    Context = 2,
    /// `[PRIVATE n]`.
    Private = 3,
}

/// Class and number of a tag; whether it is constructed belongs to the [`Header`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Class.
    pub class: Class,
    /// Number, up to 2^31 - 1.
    pub number: u32,
}

impl Tag {
    /// `[UNIVERSAL n]`.
    pub const fn universal(number: u32) -> Tag {
        Tag { class: Class::Universal, number }
    }
    /// `[APPLICATION n]`.
    pub const fn application(number: u32) -> Tag {
        Tag { class: Class::Application, number }
    }
    /// `[n]`.
    pub const fn context(number: u32) -> Tag {
        Tag { class: Class::Context, number }
    }
    /// `[PRIVATE n]`.
    pub const fn private(number: u32) -> Tag {
        Tag { class: Class::Private, number }
    }

    /// Whether this is the universal tag of a character string or time type, UTF8String and
    /// NumericString to BMPString (X.680 8.4): types that are encoded like an OCTET STRING.
    pub const fn is_character_string(self) -> bool {
        matches!(self.class, Class::Universal) && matches!(self.number, 7 | 12 | 18..=28 | 30)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::Universal => write!(f, "[UNIVERSAL {}]", self.number),
            Class::Application => write!(f, "[APPLICATION {}]", self.number),
            Class::Context => write!(f, "[{}]", self.number),
            Class::Private => write!(f, "[PRIVATE {}]", self.number),
        }
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Length octets (X.690 8.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This number of content octets follows.
    Definite(u64),
    /// Elements follow until end-of-contents.
    Indefinite,
}

/// Largest size of a header, in octets: 1 + 5 of tag, 1 + 8 of length.
pub const MAX_HEADER_OCTETS: usize = 15;

/// Identifier and length octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tag.
    pub tag: Tag,
    /// Whether the contents are elements.
    pub constructed: bool,
    /// Length of the contents.
    pub length: Length,
    /// Size of the header itself, in octets.
    pub size: usize,
}

impl Header {
    /// Parses a header at the beginning of `input`; `Ok(None)` if more octets are needed.
    ///
    /// # Errors
    /// A malformed tag or length, or the indefinite form on a primitive element.
    pub fn parse(input: &[u8]) -> Result<Option<Header>, Fault> {
        let Some((&first, mut rest)) = input.split_first() else { return Ok(None) };
        let class = match first >> 6 {
            0 => Class::Universal,
            1 => Class::Application,
            2 => Class::Context,
            _ => Class::Private,
        };
        let constructed = first & 0x20 != 0;
        let mut number = u32::from(first & 0x1f);
        if number == 0x1f {
            number = 0;
            loop {
                let Some((&b, after)) = rest.split_first() else {
                    // 5 octets carry 31 bits; a longer tag never completes.
                    return if rest.len() + 6 <= input.len() { Err(Fault::Tag) } else { Ok(None) };
                };
                rest = after;
                if (number == 0 && b == 0x80) || number > (u32::MAX >> 8) {
                    return Err(Fault::Tag);
                }
                number = number << 7 | u32::from(b & 0x7f);
                if b & 0x80 == 0 {
                    break;
                }
            }
        }
        let Some((&l, after)) = rest.split_first() else { return Ok(None) };
        rest = after;
        let length = match l {
            0..=0x7f => Length::Definite(u64::from(l)),
            0x80 if constructed => Length::Indefinite,
            0x80 => return Err(Fault::IndefinitePrimitive),
            0xff => return Err(Fault::Length),
            _ => {
                let count = usize::from(l & 0x7f);
                if count > 8 {
                    return Err(Fault::Length);
                }
                let Some((octets, after)) = rest.split_at_checked(count) else { return Ok(None) };
                rest = after;
                Length::Definite(octets.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
            }
        };
        let size = input.len() - rest.len();
        Ok(Some(Header { tag: Tag { class, number }, constructed, length, size }))
    }

    /// Whether this is end-of-contents: two octets of zero. The long form of the length is not allowed
    /// (X.690 8.1.5).
    pub fn is_end_of_contents(&self) -> bool {
        let empty = self.length == Length::Definite(0) && self.size == 2;
        self.tag == Tag::universal(0) && empty && !self.constructed
    }

    /// Appends the shortest encoding of a header; returns the number of octets appended.
    pub fn write(tag: Tag, constructed: bool, length: Length, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let lead = (tag.class as u8) << 6 | u8::from(constructed) << 5;
        if tag.number < 0x1f {
            out.push(lead | tag.number as u8);
        } else {
            out.push(lead | 0x1f);
            let groups = (32 - tag.number.leading_zeros()).div_ceil(7).max(1);
            for group in (0..groups).rev() {
                let more = if group == 0 { 0 } else { 0x80 };
                out.push(more | (tag.number >> (7 * group)) as u8 & 0x7f);
            }
        }
        match length {
            Length::Indefinite => out.push(0x80),
            Length::Definite(n) if n < 0x80 => out.push(n as u8),
            Length::Definite(n) => {
                let count = (64 - n.leading_zeros()).div_ceil(8);
                out.push(0x80 | count as u8);
                for octet in (0..count).rev() {
                    out.push((n >> (8 * octet)) as u8);
                }
            }
        }
        out.len() - start
    }

    /// The number of octets that [`Header::write`] appends.
    pub fn encoded_size(tag: Tag, length: Length) -> usize {
        let tag_size = if tag.number < 0x1f {
            1
        } else {
            1 + (32 - tag.number.leading_zeros()).div_ceil(7).max(1) as usize
        };
        tag_size
            + match length {
                Length::Definite(n) if n >= 0x80 => {
                    1 + (64 - n.leading_zeros()).div_ceil(8) as usize
                }
                _ => 1,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip_and_need_every_octet(
            class in 0u8..4, number in 0u32..0x7fff_ffff, constructed: bool, length in proptest::option::of(any::<u64>())
        ) {
            let class = [Class::Universal, Class::Application, Class::Context, Class::Private][usize::from(class)];
            let tag = Tag { class, number: number >> (number % 31) };
            let length = match length {
                Some(n) => Length::Definite(n >> (n % 63)),
                None if constructed => Length::Indefinite,
                None => Length::Definite(0),
            };
            let mut out = Vec::new();
            let size = Header::write(tag, constructed, length, &mut out);
            prop_assert_eq!(size, Header::encoded_size(tag, length));
            prop_assert_eq!(Header::parse(&out), Ok(Some(Header { tag, constructed, length, size })));
            for cut in 0..out.len() {
                prop_assert_eq!(Header::parse(&out[..cut]), Ok(None));
            }
        }

        #[test]
        fn a_header_that_needs_more_octets_is_short(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(None) = Header::parse(&bytes) {
                prop_assert!(bytes.len() < MAX_HEADER_OCTETS);
            }
        }
    }

    #[test]
    fn malformed_headers_are_refused() {
        assert_eq!(Header::parse(&[0x04, 0x80]), Err(Fault::IndefinitePrimitive));
        assert_eq!(Header::parse(&[0x04, 0xff]), Err(Fault::Length));
        assert_eq!(Header::parse(&[0x04, 0x89]), Err(Fault::Length));
        assert_eq!(Header::parse(&[0x1f, 0x80, 0x01]), Err(Fault::Tag));
        assert_eq!(Header::parse(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Err(Fault::Tag));
    }
}
