use super::*;
use crate::envelope::security_label::SecurityLabel;
use crate::testing::signed;
use base::ber::Oid;
use proptest::prelude::*;

/// Made by hand, with a UTF8String as privacy mark and a category; `openssl cms -verify` finds its
/// signature right, and `-cmsout -print` shows id-smime-aa-securityLabel.
const VERIFIED: &str = include_str!("verified.hex");
/// `openssl cms -sign -nodetach -stream`: indefinite lengths around the content, and no label.
const STREAMED: &str = include_str!("streamed.hex");

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |c: u8| u8::try_from(char::from(c).to_digit(16).unwrap()).unwrap();
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn contents() -> ContentType {
    ContentType::Extended(Oid::from_content(&CONTENT_INFO).unwrap())
}

fn read(pieces: &[&[u8]], content_type: &ContentType) -> ContentLabels {
    let mut reader = SignedReader::default();
    for piece in pieces {
        reader.take(piece);
        assert!(reader.held() <= MAX_LABEL * (MAX_LABELS + 1));
    }
    reader.labels(content_type)
}

fn texts(found: &ContentLabels) -> Vec<String> {
    let text = |label: &Bytes| SecurityLabel::parse_ess(label).unwrap().to_string();
    found.labels.iter().map(text).collect()
}

fn unreadable(octets: &[u8], content_type: &ContentType) -> bool {
    read(&[octets], content_type).unreadable
}

fn label(text: &str) -> Vec<u8> {
    let mut w = base::ber::Writer::new();
    text.parse::<SecurityLabel>().unwrap().write(&mut w, u::SET);
    w.into_vec()
}

#[test]
fn the_label_that_openssl_verifies_is_read_at_every_cut() {
    let verified = octets(VERIFIED);
    let whole = read(&[&verified], &contents());
    assert_eq!(texts(&whole), ["1.3.26.0.4406.0.5.1/secret/RELEASABLE TO X (and 1 category)"]);
    assert!(!whole.unreadable);
    for cut in 0..verified.len() {
        let (front, rest) = verified.split_at(cut);
        assert_eq!(read(&[front, rest], &contents()), whole, "cut at {cut}");
        assert!(unreadable(front, &contents()), "ends at {cut}");
    }
    let single: Vec<&[u8]> = verified.chunks(1).collect();
    assert_eq!(read(&single, &ContentType::P22), whole);
}

#[test]
fn a_signed_content_without_a_label_has_none_in_either_form_of_lengths() {
    let streamed = octets(STREAMED);
    assert_eq!(streamed[..2], [0x30, 0x80]);
    for pieces in [vec![&streamed[..]], streamed.chunks(1).collect(), streamed.chunks(7).collect()]
    {
        assert_eq!(read(&pieces, &contents()), ContentLabels::default());
    }
    assert_eq!(read(&[&signed(&[], b"x")], &contents()), ContentLabels::default());
    // Certificates alone: no signer.
    assert_eq!(texts(&read(&[&signed(&[&[]], b"x")], &contents())), [""; 0]);
}

#[test]
fn each_different_label_of_several_signers_counts() {
    let (a, b) = (label("1.2.3/secret"), label("1.2.4/restricted"));
    let two = read(&[&signed(&[&[&a[..]], &[], &[&b[..]], &[&a[..]]], b"text")], &contents());
    assert_eq!(texts(&two), ["1.2.3/secret", "1.2.4/restricted"]);
    let five: Vec<Vec<u8>> = (0..5).map(|n| label(&format!("1.2.{n}/0"))).collect();
    let five: Vec<&[u8]> = five.iter().map(Vec::as_slice).collect();
    let found = read(&[&signed(&[&five[..4]], b"")], &contents());
    assert_eq!((found.labels.len(), found.unreadable), (4, false));
    assert!(unreadable(&signed(&[&five], b""), &contents()));
}

#[test]
fn what_is_no_signed_content_has_no_label_and_what_should_be_is_unreadable() {
    for other in [&b"\xa0\x05hello"[..], b"", b"text", &[0x30, 0], &[0x30, 3, 2, 1, 1]] {
        assert!(!unreadable(other, &ContentType::P22), "{other:?}");
        assert!(unreadable(other, &contents()), "{other:?}");
    }
    // envelopedData is a ContentInfo: nothing in it can be read, nor is that expected.
    let mut enveloped = signed(&[], b"x");
    let at = enveloped.windows(9).position(|w| w == SIGNED_DATA).unwrap();
    enveloped[at + 8] = 3;
    assert!(!unreadable(&enveloped, &contents()));
    assert!(!unreadable(&enveloped[..40], &contents()));
    let verified = octets(VERIFIED);
    assert!(unreadable(&verified[..verified.len() - 1], &ContentType::P22));
    let mut late = SignedReader::without_beginning();
    late.take(&verified);
    assert!(late.labels(&contents()).unreadable);
    assert!(late.labels(&ContentType::P22).is_empty());
}

#[test]
fn an_attribute_beyond_its_limit_or_without_a_value_is_unreadable() {
    let long = vec![0; MAX_LABEL];
    for (value, expected) in [(&long[..0], true), (&long, true), (&[0x31, 0], false)] {
        let found = read(&[&signed(&[&[value]], b"x")], &contents());
        assert_eq!(found.unreadable, expected, "{} octets", value.len());
    }
    // Not a label that anybody could be cleared for, but passed on as it is.
    let policyless = read(&[&signed(&[&[&label("/0")[..]]], b"x")], &contents());
    assert!(SecurityLabel::parse_ess(&policyless.labels[0]).is_err());
}

#[test]
fn what_is_signed_costs_no_memory() {
    let big = vec![0x30; 3_000_000];
    let octets = signed(&[&[&label("1.2.3/secret")[..]]], &big);
    let mut reader = SignedReader::default();
    for piece in octets.chunks(5_000) {
        reader.take(piece);
        assert!(reader.held() < 200);
    }
    assert_eq!(texts(&reader.labels(&contents())), ["1.2.3/secret"]);
}

proptest! {
    /// Whatever the octets: cuts change nothing, and a reader that is written and read between them goes
    /// on.
    #[test]
    fn cuts_change_nothing(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        streamed in any::<bool>(),
    ) {
        let mut octets = octets(if streamed { STREAMED } else { VERIFIED });
        for (at, octet) in &damage {
            let at = at.index(octets.len());
            octets[at] = *octet;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|at| at.index(octets.len())).collect();
        cuts.sort_unstable();
        let (mut pieces, mut from) = (Vec::new(), 0);
        for to in cuts.into_iter().chain([octets.len()]) {
            pieces.push(&octets[from..to]);
            from = to;
        }
        let whole = read(&[&octets], &contents());
        prop_assert_eq!(read(&pieces, &contents()), whole);
    }
}
