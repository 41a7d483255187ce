//! The heading of a content, as it came, from the content's first octets.

use base::ber::{Element, Limits, Tag, Token, Tokenizer, universal as u};
use p772::Heading;

/// Longest heading that an item keeps, octets. A longer one is in the content alone, and the item has no
/// attributes of its heading but the subject, if the first octets of the content had all of it.
pub const MAX_HEADING: usize = 16 << 10;

/// `[0]` of InformationObject: an IPM, not a notification (X.420 clause 7).
const IPM: Tag = Tag::context(0);

/// The element of the Heading, whole, if `first` has all of it and it is an IPM's.
pub(crate) fn find(first: &[u8]) -> Option<&[u8]> {
    let mut tokenizer = Tokenizer::new(Limits::default());
    let mut input = first;
    let mut begin = None;
    loop {
        let token = tokenizer.next(&mut input).ok()??;
        let at = usize::try_from(tokenizer.offset()).ok()?;
        match token {
            Token::Begin { header, depth: 0 } if header.tag != IPM => return None,
            Token::Begin { header, depth: 1 } => {
                if header.tag != u::SET {
                    return None;
                }
                begin = at.checked_sub(header.size);
            }
            Token::End { depth: 1 } => return first.get(begin?..at),
            _ => {}
        }
    }
}

/// The subject in a heading; `None` if it has none, or is malformed.
pub(crate) fn subject(heading: &[u8]) -> Option<String> {
    let element = Element::parse_accepted(heading).ok()?;
    Heading::decode(&element).ok()?.subject
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ber::Writer;

    fn heading() -> Vec<u8> {
        let mut w = Writer::new();
        let subject = Some("Convoy".to_owned());
        Heading { subject, ..Heading::default() }.encode(&mut w);
        w.into_vec()
    }

    #[test]
    fn a_heading_is_found_if_all_of_it_is_there() {
        let heading = heading();
        let mut content = Writer::new();
        content.constructed(IPM, |w| {
            w.raw(&heading);
            w.constructed(u::SEQUENCE, |w| w.string(u::OCTET_STRING, [0; 100]));
        });
        let content = content.into_vec();
        for cut in 0..content.len() {
            let found = find(&content[..cut]);
            assert!(found.is_none() || found == Some(&heading[..]), "cut at {cut}");
        }
        assert_eq!(find(&content[..heading.len() + 2]), Some(&heading[..]));
        assert_eq!(subject(&heading).as_deref(), Some("Convoy"));
    }

    #[test]
    fn a_heading_of_indefinite_length_is_kept_as_it_came() {
        let content = [0xa0, 0x80, 0x31, 0x80, 0x6b, 3, 0x13, 1, b'1', 0, 0, 0x30, 0x80];
        assert_eq!(find(&content), content.get(2..11));
        assert!(Heading::decode(&Element::parse(&content[2..11]).unwrap()).is_ok());
    }

    #[test]
    fn a_notification_and_anything_else_have_no_heading() {
        for content in [&[0xa1, 4, 0x31, 2, 5, 0][..], &[0xa0, 4, 0x30, 2, 5, 0], b"text", &[]] {
            assert_eq!(find(content), None);
        }
    }
}
