//! A peer's octets in a form for the log: their text if they have one, else hexadecimal, a bounded part of
//! them. Never of a bind that may carry a password, nor of a message. A peer may repeat our bind in any
//! user data: what has the form of one is not shown, and text is not shown in hexadecimal.

use base::ber::{Class, Element, Reader, universal as u};
use std::fmt::Write as _;

/// Most octets shown.
const MAX_OCTETS: usize = 64;
/// Most strings shown, and most characters of each.
const MAX_TEXTS: usize = 4;
const MAX_CHARACTERS: usize = 120;
/// The fewest printable octets that count as text without a type that states it.
const FEWEST: usize = 4;

/// The shortest run of printable octets that hexadecimal does not show.
const HIDDEN_RUN: usize = 3;

/// Octets in hexadecimal: `octets B2 03 02`, the number of all where those are not all. `..` stands for an
/// octet of a text.
pub fn octets(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "no octets".to_owned();
    }
    if may_be_bind(octets) {
        return hidden(octets);
    }
    let mut text = String::from("octets");
    let is_printable = |octet: &u8| (0x20..0x7f).contains(octet);
    let mut left = MAX_OCTETS;
    for run in octets.chunk_by(|a, b| is_printable(a) == is_printable(b)) {
        let is_text = run.len() >= HIDDEN_RUN && run.iter().all(is_printable);
        for octet in run.iter().take(left) {
            let _ = if is_text { write!(text, " ..") } else { write!(text, " {octet:02X}") };
        }
        left = left.saturating_sub(run.len());
    }
    if octets.len() > MAX_OCTETS {
        let _ = write!(text, " ... ({} in all)", octets.len());
    }
    text
}

/// The words in an encoding, quoted and without control characters; its octets where it has none.
pub fn value(encoding: &[u8]) -> String {
    if may_be_bind(encoding) {
        return hidden(encoding);
    }
    let texts = texts(encoding);
    if texts.is_empty() { octets(encoding) } else { format!("text {}", texts.join(", ")) }
}

fn hidden(encoding: &[u8]) -> String {
    format!("{} octets, not shown: they have the form of a bind", encoding.len())
}

/// Whether an encoding has the form of a bind or of credentials at any depth: a bind's argument or
/// result (`[16]`, `[17]` of X.218 and X.219) with more than a number, or a string by itself under
/// an explicit tag, as the password of credentials (X.411 8.1.1, 12.1.1).
fn may_be_bind(encoding: &[u8]) -> bool {
    let mut open = vec![Reader::new(encoding)];
    while let Some(level) = open.last_mut() {
        match level.next() {
            Ok(Some(e)) if e.constructed => {
                if e.tag.class == Class::Context && (is_bind(&e) || is_password(&e)) {
                    return true;
                }
                open.extend(e.children());
            }
            Ok(Some(_)) => {}
            // What cannot be read on ends its level.
            Ok(None) | Err(_) => {
                open.pop();
            }
        }
    }
    false
}

fn is_bind(e: &Element<'_>) -> bool {
    let is_number = |e: Element<'_>| e.tag == u::INTEGER || e.tag == u::NULL;
    matches!(e.tag.number, 16 | 17) && !e.only_child().is_ok_and(is_number)
}

fn is_password(e: &Element<'_>) -> bool {
    e.only_child().is_ok_and(|e| e.tag == u::IA5_STRING || e.tag == u::OCTET_STRING)
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
        // A text that cannot be read is not shown in hexadecimal either.
        assert_eq!(value(b"\x30\x09\x16\x06vesuvi"), "octets 30 09 16 06 .. .. .. .. .. ..");
        assert_eq!(value(&[]), "no octets");
        // Cut short: what there is.
        assert_eq!(value(&[0x30, 9, 1]), "octets 30 09 01");
    }

    /// As peers repeat a bind: in the user data of a refusal, an abort and a reflected parameter.
    #[test]
    fn a_bind_that_a_peer_repeats_is_not_shown() {
        let credentials = b"\xa1\x09\x16\x07vesuvio";
        let bind = [&b"\xb0\x19\xa1\x17\x80\x0aMTA-NAPLES"[..], credentials].concat();
        let p3 = b"\x31\x0b\xa2\x09\x04\x07vesuvio".to_vec();
        let result = b"\xb1\x09\xa1\x07\x80\x05etna!".to_vec();
        let wrapped = [&[0xb2, 29, 0xa1, 27][..], &bind].concat();
        for encoding in [credentials.to_vec(), bind, p3, result, wrapped] {
            for shown in [value(&encoding), octets(&encoding)] {
                let expected = format!("{} octets, not shown", encoding.len());
                assert!(shown.starts_with(&expected), "{shown}");
            }
            // Cut anywhere, so that it cannot be read.
            for end in 1..encoding.len() {
                let shown = value(&encoding[..end]) + &octets(&encoding[..end]);
                assert!(!shown.contains("ves") && !shown.contains("76 65 73"), "{end}: {shown}");
            }
        }
        // The number of a bind error is shown.
        assert_eq!(value(&[0xb2, 5, 0xb2, 3, 2, 1, 2]), "octets B2 05 B2 03 02 01 02");
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
