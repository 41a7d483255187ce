//! A peer's octets in a form for the log: their text if they have one, else hexadecimal, a bounded part of
//! them. Never of a bind that may carry a password, nor of a message.

use base::ber::{Class, Element, Reader, universal as u};
use std::fmt::Write as _;

/// Most octets shown.
const MAX_OCTETS: usize = 64;
/// Most strings shown, and most characters of each.
const MAX_TEXTS: usize = 4;
const MAX_CHARACTERS: usize = 120;
/// The fewest printable octets that count as text without a type that states it.
const FEWEST: usize = 4;

/// Octets in hexadecimal: `octets B2 03 02`, the number of all where those are not all.
pub fn octets(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "no octets".to_owned();
    }
    let mut text = String::from("octets");
    for octet in octets.iter().take(MAX_OCTETS) {
        let _ = write!(text, " {octet:02X}");
    }
    if octets.len() > MAX_OCTETS {
        let _ = write!(text, " ... ({} in all)", octets.len());
    }
    text
}

/// The words in an encoding, quoted and without control characters; its octets where it has none.
pub fn value(encoding: &[u8]) -> String {
    let texts = texts(encoding);
    if texts.is_empty() { octets(encoding) } else { format!("text {}", texts.join(", ")) }
}

fn is_words(octets: &[u8], fewest: usize) -> bool {
    octets.len() >= fewest && octets.iter().all(|o| (0x20..0x7f).contains(o))
}

fn quoted(octets: &[u8]) -> String {
    let cut = octets.get(..MAX_CHARACTERS).unwrap_or(octets);
    let more = if cut.len() < octets.len() { "..." } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}

/// The character strings of an encoding at any depth, and what looks like one.
fn texts(encoding: &[u8]) -> Vec<String> {
    if is_words(encoding, FEWEST) {
        return vec![quoted(encoding)];
    }
    let mut texts = Vec::new();
    let mut open = vec![Reader::new(encoding)];
    while let Some(level) = open.last_mut() {
        match level.next() {
            Ok(Some(e)) if e.constructed => open.extend(e.children()),
            Ok(Some(e)) if texts.len() < MAX_TEXTS && is_text(&e) => {
                texts.push(quoted(e.content));
            }
            Ok(Some(_)) => {}
            // What cannot be read on ends its level.
            Ok(None) | Err(_) => {
                open.pop();
            }
        }
    }
    texts
}

fn is_text(e: &Element<'_>) -> bool {
    let typed = e.tag.is_character_string();
    let untyped = e.tag == u::OCTET_STRING || e.tag.class == Class::Context;
    (typed && !e.content.is_empty()) || (untyped && is_words(e.content, FEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_all_else_is_octets() {
        assert_eq!(value(&[0x1a, 4, b'b', b'u', b's', b'y']), "text \"busy\"");
        let nested = [&[0xa1, 11, 0x30, 9, 0x04, 7][..], b"No MTA\x21"].concat();
        assert_eq!(value(&nested), "text \"No MTA!\"");
        assert_eq!(value(b"go away"), "text \"go away\"");
        // An escape sequence does nothing to a terminal, and a number is not a text.
        assert_eq!(value(&[0x16, 4, 0x1b, b'[', b'2', b'J']), "text \"\\x1b[2J\"");
        assert_eq!(value(&[0x02, 1, 0x41]), "octets 02 01 41");
        assert_eq!(value(&[0x04, 2, b'a', b'b']), "octets 04 02 61 62");
        assert_eq!(value(&[]), "no octets");
        // Cut short: what there is.
        assert_eq!(value(&[0x30, 9, 1]), "octets 30 09 01");
    }

    #[test]
    fn it_is_bounded() {
        let long = [&[0x04, 0x82, 0x04, 0][..], &[0; 1_024]].concat();
        let shown = value(&long);
        assert!(shown.ends_with(" 00 ... (1028 in all)"), "{shown}");
        assert_eq!(shown.len(), "octets".len() + 3 * MAX_OCTETS + " ... (1028 in all)".len());
        let word = [&[0x16, 0x82, 0x04, 0][..], &[b'x'; 1_024]].concat();
        assert_eq!(value(&word).len(), "text ".len() + MAX_CHARACTERS + "...".len() + 2);
        let many = [0x16, 1, b'x'].repeat(1_000);
        assert_eq!(value(&many), "text \"x\", \"x\", \"x\", \"x\"");
        let deep = [0x30, 0x80].repeat(10_000);
        assert!(value(&deep).starts_with("octets 30 80"));
    }
}
