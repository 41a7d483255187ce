//! Character sets of headings and text body parts.

use std::borrow::Cow;

/// A TeletexString's octets for `text`.
///
/// The field writes Latin-1 or UTF-8 where T.61 was meant; readers here take valid UTF-8 as such
/// and anything else as Latin-1, so Latin-1 is used unless it would be misread.
pub(crate) fn teletex(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    match latin1(text) {
        Some(octets) if std::str::from_utf8(&octets).is_err() => Cow::Owned(octets),
        _ => Cow::Borrowed(text.as_bytes()),
    }
}

fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

/// Character set of a text body part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// ISO 646: an ia5-text body part, or general text with registrations 1 and 6.
    Ascii,
    /// ISO 8859-1: general text with registrations 1, 6 and 100.
    Latin1,
    /// UTF-8: general text with registration 196. Readers that know 2022 code extension only will
    /// show octets.
    Utf8,
    /// Other registrations (ISO 2375): the octets are best kept as they are.
    Other,
}

impl Charset {
    /// The simplest set that holds `text`.
    pub fn for_text(text: &str) -> Charset {
        match text {
            _ if text.is_ascii() => Charset::Ascii,
            _ if latin1(text).is_some() => Charset::Latin1,
            _ => Charset::Utf8,
        }
    }

    /// From the registration numbers of general text.
    pub(crate) fn from_registrations(numbers: &[i64]) -> Charset {
        let all = |known: &[i64]| numbers.iter().all(|n| known.contains(n));
        match numbers {
            _ if all(&[1, 2, 6]) => Charset::Ascii,
            _ if all(&[1, 2, 6, 100]) => Charset::Latin1,
            // 190 to 192: UTF-8 with implementation level; 196: without.
            _ if all(&[1, 6, 190, 191, 192, 196]) => Charset::Utf8,
            _ => Charset::Other,
        }
    }

    /// Registration numbers to send in general text.
    pub(crate) fn registrations(self) -> &'static [i64] {
        match self {
            Charset::Ascii => &[1, 6],
            Charset::Latin1 => &[1, 6, 100],
            Charset::Utf8 | Charset::Other => &[196],
        }
    }

    /// `text` in this set; what it does not hold becomes `?`.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let limit = match self {
            Charset::Ascii => 0x80,
            Charset::Latin1 => 0x100,
            Charset::Utf8 | Charset::Other => return text.as_bytes().to_vec(),
        };
        text.chars().map(|c| if u32::from(c) < limit { c as u8 } else { b'?' }).collect()
    }

    /// The text of `octets`. An ASCII part with octets above 127 is read as UTF-8 where it is valid
    /// and as Latin-1 where not, for that is what senders do.
    pub fn decode(self, octets: &[u8]) -> String {
        let latin1 = || octets.iter().map(|b| char::from(*b)).collect();
        match self {
            Charset::Latin1 => latin1(),
            Charset::Utf8 => String::from_utf8_lossy(octets).into_owned(),
            Charset::Ascii | Charset::Other => {
                std::str::from_utf8(octets).map_or_else(|_| latin1(), str::to_owned)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_takes_the_simplest_set_and_comes_back() {
        for (text, set) in [
            ("ATTACK AT DAWN", Charset::Ascii),
            ("Tromsø", Charset::Latin1),
            ("Łódź Ω", Charset::Utf8),
        ] {
            assert_eq!(Charset::for_text(text), set);
            assert_eq!(set.decode(&set.encode(text)), text);
            assert_eq!(Charset::from_registrations(set.registrations()), set);
        }
        assert_eq!(Charset::from_registrations(&[1, 6, 144]), Charset::Other);
    }

    #[test]
    fn teletex_uses_latin1_unless_it_would_be_misread() {
        assert_eq!(&*teletex("Tromsø"), b"Troms\xf8");
        assert_eq!(&*teletex("Ã©"), "Ã©".as_bytes());
    }
}
