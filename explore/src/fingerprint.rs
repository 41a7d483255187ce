//! What makes two states one: the text of a machine without what only grows.

use base::Instant;
use std::fmt::{Debug, Write as _};

/// Fields that count octets or packets and decide nothing while no acknowledgement of TCP is handed in.
const COUNTERS: &[&str] =
    &["written: ", "sends_to: ", "taken: ", "counted: ", "whole: ", "detail: "];

/// A digest of a machine: its `Debug` text, with instants relative to `now` and without counters.
pub fn fingerprint(machine: &impl Debug, now: Instant) -> u128 {
    let mut text = String::with_capacity(8 * 1024);
    let _ = write!(text, "{machine:?}");
    digest(&normalized(&text, now))
}

/// A digest of octets.
pub fn digest(octets: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(octets)
}

fn normalized(text: &str, now: Instant) -> Vec<u8> {
    const INSTANT: &[u8] = b"Instant(";
    let octets = text.as_bytes();
    let mut out = Vec::with_capacity(octets.len());
    let mut at = 0;
    while at < octets.len() {
        let rest = &octets[at..];
        let begins_word = at == 0 || !octets[at - 1].is_ascii_alphanumeric();
        if begins_word && rest.starts_with(INSTANT) {
            at += INSTANT.len();
            let end = at + octets[at..].iter().take_while(|o| o.is_ascii_digit()).count();
            let value: u64 = text[at..end].parse().unwrap_or_default();
            out.extend(value.wrapping_sub(now.0).to_le_bytes());
            at = end;
        } else if let Some(counter) =
            COUNTERS.iter().find(|c| begins_word && rest.starts_with(c.as_bytes()))
        {
            at += counter.len();
            at += octets[at..].iter().take_while(|o| o.is_ascii_digit()).count();
        } else {
            out.push(octets[at]);
            at += 1;
        }
    }
    out
}

/// The states in a machine's text, outermost first: what each `Automaton { state: ... }` has.
pub fn states(machine: &impl Debug) -> Vec<String> {
    let text = format!("{machine:?}");
    let found = text.match_indices("Automaton { state: ");
    found
        .map(|(at, mark)| {
            text[at + mark.len()..].chars().take_while(char::is_ascii_alphanumeric).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_grows_makes_no_other_state() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "read by Debug")]
        struct M {
            written: u64,
            at: Option<Instant>,
            window: u64,
        }
        let one = M { written: 7, at: Some(Instant(50)), window: 1 };
        let two = M { written: 900, at: Some(Instant(80)), window: 1 };
        assert_eq!(fingerprint(&one, Instant(10)), fingerprint(&two, Instant(40)));
        assert_ne!(fingerprint(&one, Instant(10)), fingerprint(&two, Instant(41)));
        let other = M { window: 2, ..two };
        assert_ne!(fingerprint(&one, Instant(10)), fingerprint(&other, Instant(40)));
    }
}
