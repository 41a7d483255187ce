//! Compares asn1-rs with `base::ber`: what each accepts. *Ours* is `base::ber`, *theirs* is asn1-rs. Each
//! difference is a row of a table here; the behaviour of `base::ber` is the required one.
//!
//! In production asn1-rs decodes INTEGER, BOOLEAN and BIT STRING and encodes the arcs of an OBJECT
//! IDENTIFIER. Checks before it keep the set of accepted values unchanged: the former codec is in this
//! file as the reference.
//!
//! `base::ber` decodes headers itself: asn1-rs reports a tag that is cut off as invalid, so the checks
//! before it would have to find the end of the header first (ARCHITECTURE.md has the cost). It also
//! decodes contents of OBJECT IDENTIFIERs and times itself: asn1-rs checks less there and decodes some
//! values wrongly.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use asn1_rs::{Any, FromBer};
use base::Utc;
use base::ber::{Class, Element, Fault, Header, Length, Oid, Tag, Writer, universal};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// The result of reading a header.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read {
    /// Class, number, whether constructed, length, size.
    Header(u8, u32, bool, Option<u64>, usize),
    /// More octets are needed.
    Incomplete,
    /// Malformed.
    Refused,
}
use Read::{Incomplete, Refused};

fn ours(octets: &[u8]) -> Read {
    match Header::parse(octets) {
        Ok(Some(Header { tag, constructed, length, size })) => {
            let length = match length {
                Length::Definite(n) => Some(n),
                Length::Indefinite => None,
            };
            Read::Header(tag.class as u8, tag.number, constructed, length, size)
        }
        Ok(None) => Incomplete,
        Err(_) => Refused,
    }
}

fn theirs(octets: &[u8]) -> Read {
    match asn1_rs::Header::from_ber(octets) {
        Ok((rest, h)) => {
            let length = h.length().definite().ok().map(|n| n as u64);
            let size = octets.len() - rest.len();
            Read::Header(h.class() as u8, h.tag().0, h.is_constructed(), length, size)
        }
        Err(asn1_rs::Err::Incomplete(_)) => Incomplete,
        Err(_) => Refused,
    }
}

/// Headers that the two read differently: octets, ours, theirs, and the reason for ours.
const HEADERS: &[(&[u8], Read, Read, &str)] = &[
    (
        &[0x1f],
        Incomplete,
        Refused,
        "a tag may be cut at any octet: the rest follows in the next input",
    ),
    (&[0xbf, 0x8a], Incomplete, Refused, "the same, within the number"),
    (
        &[0x1f, 0x80, 0x01, 0x00],
        Refused,
        Read::Header(0, 1, false, Some(0), 4),
        "X.690 8.1.2.4.2 c",
    ),
    (
        &[0x1f, 0x90, 0x80, 0x80, 0x80, 0x01, 0x00],
        Refused,
        Read::Header(0, 1, false, Some(0), 7),
        "33 bits of tag number: the highest is lost, and [2^32 + 1] becomes [1]",
    ),
    (
        &[0x1f, 0x88, 0x80, 0x80, 0x80, 0x00, 0x00],
        Refused,
        Read::Header(0, 0x8000_0000, false, Some(0), 7),
        "32 bits: our limit is 31",
    ),
    (
        &[0x04, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        Refused,
        Read::Header(0, 4, false, Some(1), 11),
        "nine length octets: our limit is eight, so that an unfinished header has at most 15 octets",
    ),
    (&[0x04, 0xfe], Refused, Incomplete, "126 length octets: refused before they arrive"),
];

#[test]
fn headers_that_are_read_differently() {
    for (octets, our, their, why) in HEADERS {
        let found = (ours(octets), theirs(octets));
        assert_eq!(found, (our.clone(), their.clone()), "{octets:02x?}: {why}");
    }
}

/// An error if the two differ on these octets in a way that [`HEADERS`] does not show.
fn header_difference(octets: &[u8]) -> Result<(), String> {
    let (our, their) = (ours(octets), theirs(octets));
    let long_tag = octets.first().is_some_and(|b| b & 0x1f == 0x1f);
    let cut = long_tag && octets.iter().skip(1).all(|b| b & 0x80 != 0);
    let known = match (&our, &their) {
        (a, b) if a == b => true,
        (Incomplete, Refused) => cut,
        // The tag is padded or too large, or there are too many length octets.
        (Refused, Incomplete | Read::Header(..)) => {
            let fault = Header::parse(octets).unwrap_err();
            (long_tag && fault == Fault::Tag) || fault == Fault::Length
        }
        _ => false,
    };
    if known { Ok(()) } else { Err(format!("{octets:02x?}: ours {our:?}, theirs {their:?}")) }
}

/// Random octets, with many that begin long tags and long lengths.
fn header_octets() -> impl Strategy<Value = Vec<u8>> {
    let boundaries = vec![0x00, 0x1f, 0x3f, 0x7f, 0x80, 0x81, 0x84, 0x88, 0x89, 0xbf, 0xff];
    let octet = prop_oneof![3 => any::<u8>(), 1 => prop::sample::select(boundaries)];
    prop::collection::vec(octet, 0..20)
}

fn files_below(directory: &Path, into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files_below(&path, into) } else { into.push(path) }
    }
}

/// The literal octets of a file: `3F`, without comments, gaps and names.
fn hex(text: &str) -> Vec<u8> {
    let words = text.lines().flat_map(|l| l.split('#').next().unwrap_or("").split_whitespace());
    words.filter(|w| w.len() == 2).filter_map(|w| u8::from_str_radix(w, 16).ok()).collect()
}

#[test]
fn vectors_and_hostile_octets_are_read_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut files, mut positions) = (Vec::new(), 0);
    for directory in ["tests/vectors", "fuzz/corpus", "fuzz/regressions"] {
        files_below(&root.join(directory), &mut files);
    }
    for path in files.iter().filter(|path| path.extension().is_some_and(|e| e == "hex")) {
        let octets = hex(&std::fs::read_to_string(path).unwrap());
        for at in 0..octets.len().min(2_000) {
            let header = &octets[at..octets.len().min(at + 24)];
            header_difference(header).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            positions += 1;
        }
    }
    assert!(positions > 10_000, "{positions} positions only");
}

/// The contents codecs that asn1-rs replaced.
mod before {
    pub(super) fn integer(content: &[u8]) -> Option<i64> {
        let first = content.first()?;
        let sign = if first & 0x80 != 0 { -1i64 } else { 0 };
        (content.len() <= 8)
            .then(|| content.iter().fold(sign, |value, b| value << 8 | i64::from(*b)))
    }

    pub(super) fn boolean(content: &[u8]) -> Option<bool> {
        if let [b] = content { Some(*b != 0) } else { None }
    }

    pub(super) fn bits(content: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (&unused, octets) = content.split_first()?;
        (unused <= 7 && (!octets.is_empty() || unused == 0)).then(|| (unused, octets.to_vec()))
    }

    pub(super) fn arcs(arcs: &[u64]) -> Option<Vec<u8>> {
        let [first, second, rest @ ..] = arcs else { return None };
        if *first > 2 || (*first < 2 && *second > 39) || *second > u64::MAX - 80 {
            return None;
        }
        let mut out = Vec::new();
        for arc in std::iter::once(&(first * 40 + second)).chain(rest) {
            let groups = (64 - arc.leading_zeros()).div_ceil(7).max(1);
            for group in (0..groups).rev() {
                let more = if group == 0 { 0 } else { 0x80 };
                out.push(more | (arc >> (7 * group)) as u8 & 0x7f);
            }
        }
        Some(out)
    }
}

fn element(tag: Tag, constructed: bool, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header::write(tag, constructed, Length::Definite(content.len() as u64), &mut out);
    out.extend_from_slice(content);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn headers_differ_only_as_listed(octets in header_octets()) {
        prop_assert_eq!(header_difference(&octets), Ok(()));
    }

    #[test]
    fn contents_are_accepted_as_before(
        content in prop::collection::vec(prop_oneof![any::<u8>(), Just(0u8), Just(0xff)], 0..12),
        class in prop::sample::select(vec![Class::Universal, Class::Application, Class::Context]),
        number in 1u32..40,
    ) {
        // With implicit tags the value's own tag is not checked.
        let octets = element(Tag { class, number }, false, &content);
        let e = Element::parse(&octets).unwrap();
        prop_assert_eq!(e.integer().ok(), before::integer(&content));
        prop_assert_eq!(e.boolean().ok(), before::boolean(&content));
        let bits = e.bits().ok().map(|bits| (bits.unused, bits.octets.into_owned()));
        prop_assert_eq!(bits, before::bits(&content));
    }

    #[test]
    fn constructed_forms_are_refused_as_before(
        content in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        for tag in [universal::INTEGER, universal::BOOLEAN, Tag::context(0)] {
            let octets = element(tag, true, &content);
            let e = Element::parse(&octets).unwrap();
            prop_assert!(e.integer().is_err() && e.boolean().is_err());
        }
    }

    #[test]
    fn arcs_are_encoded_as_before(
        root in 0u64..4, second in prop_oneof![0u64..50, any::<u64>()],
        rest in prop::collection::vec(prop_oneof![0u64..300, any::<u64>()], 0..6),
    ) {
        let arcs: Vec<u64> = [root, second].into_iter().chain(rest).collect();
        for count in 0..=arcs.len() {
            let (arcs, oid) = (&arcs[..count], Oid::from_arcs(&arcs[..count]));
            prop_assert_eq!(oid.map(|oid| oid.content().to_vec()), before::arcs(arcs));
        }
    }
}

fn contents(tag: asn1_rs::Tag, content: &[u8]) -> Any<'_> {
    Any::from_tag_and_data(tag, content)
}

#[test]
fn contents_that_asn1_rs_accepts_and_the_checks_refuse() {
    // No octet (X.690 8.3.1), and more than eight, which is our limit.
    for (content, value) in [(&[][..], 0), (&[0, 0, 0, 0, 0, 0, 0, 0, 4], 4)] {
        assert_eq!(i64::try_from(contents(asn1_rs::Tag::Integer, content)), Ok(value));
        assert_eq!(before::integer(content), None);
    }
    // A constructed BOOLEAN, X.690 8.2.1.
    let (_, constructed) = Any::from_ber(&[0x21, 1, 0xff]).unwrap();
    assert_eq!(bool::try_from(constructed), Ok(true));
    assert!(Element::parse(&[0x21, 1, 0xff]).unwrap().boolean().is_err());
    // More unused bits than an octet has; unused bits without an octet: X.690 8.6.2.2 and 8.6.2.3.
    for content in [&[8u8, 0xff][..], &[1], &[0xff, 0]] {
        let any = contents(asn1_rs::Tag::BitString, content);
        assert_eq!(asn1_rs::BitString::try_from(any).unwrap().unused_bits, content[0]);
        assert_eq!(before::bits(content), None);
    }
    // asn1-rs returns the segments of a constructed string with their headers as its contents.
    let constructed = [0x24, 4, 0x04, 2, b'h', b'i'];
    let (_, string) = asn1_rs::OctetString::from_ber(&constructed).unwrap();
    assert_eq!(string.as_ref(), &constructed[2..]);
    assert_eq!(&*Element::parse(&constructed).unwrap().octets().unwrap(), b"hi");
}

#[test]
fn object_identifiers_that_asn1_rs_decodes_wrongly() {
    // Contents that X.690 8.19 does not allow: none, unfinished, a padded arc.
    for content in [&[][..], &[0x56, 0x80], &[0x80, 1]] {
        assert!(asn1_rs::Oid::try_from(contents(asn1_rs::Tag::Oid, content)).is_ok());
        assert!(Oid::from_content(content).is_err());
    }
    // A second arc above 47, which takes a second octet, as text.
    let content = [0x88, 0x37];
    assert_eq!(Oid::from_content(&content).unwrap().to_string(), "2.999");
    let theirs = asn1_rs::Oid::try_from(contents(asn1_rs::Tag::Oid, &content)).unwrap();
    assert_eq!(theirs.to_id_string(), "3.16.55");
    // From arcs: asn1-rs refuses 2.40 and above, and accepts roots 3 to 6.
    assert!(asn1_rs::Oid::from(&[2, 999]).is_err() && Oid::from_arcs(&[2, 999]).is_some());
    assert!(asn1_rs::Oid::from(&[6, 1]).is_ok() && Oid::from_arcs(&[6, 1]).is_none());
}

/// UTCTime: text, ours in RFC 3339, theirs as asn1-rs displays it.
const TIMES: &[(&str, Option<&str>, Option<&str>)] = &[
    ("070814093000Z", Some("2007-08-14T09:30:00.000000Z"), Some("0007-08-14 09:30:00Z")),
    ("0708140930Z", Some("2007-08-14T09:30:00.000000Z"), Some("0007-08-14 09:30:00Z")),
    // Without seconds and with a zone: asn1-rs reads the zone as seconds.
    ("0708141130+0200", Some("2007-08-14T09:30:00.000000Z"), None),
    // Half an hour west: asn1-rs loses the sign with the hours.
    ("070814093000-0030", Some("2007-08-14T10:00:00.000000Z"), Some("0007-08-14 09:30:00-0030")),
    // No such days, months and zones.
    ("070230093000Z", None, Some("0007-02-30 09:30:00Z")),
    ("070014093000Z", None, Some("0007-00-14 09:30:00Z")),
    ("070800093000Z", None, Some("0007-08-00 09:30:00Z")),
    ("070814093000+9999", None, Some("0007-08-14 09:30:00+9999")),
    // Before 1970, the first year of `Utc`.
    ("600814093000Z", None, Some("0060-08-14 09:30:00Z")),
];

#[test]
fn times_that_asn1_rs_decodes_wrongly() {
    for (text, our, their) in TIMES {
        let shown = Utc::from_utc_time(text.as_bytes()).map(|time| time.to_string());
        assert_eq!(shown.as_deref(), *our, "{text}");
        let shown = asn1_rs::UtcTime::from_bytes(text.as_bytes()).ok().map(|time| time.to_string());
        assert_eq!(shown.as_deref(), *their, "{text}");
    }
    // Half an hour east and half an hour west are one value to asn1-rs.
    let zone = |text: &[u8]| asn1_rs::UtcTime::from_bytes(text).unwrap().0.tz;
    assert_eq!(zone(b"070814093000-0030"), zone(b"070814093000+0030"));
}

#[test]
fn integers_are_written_as_before() {
    for value in [0, 1, -1, 127, 128, -128, -129, 255, 256, 32_767, -32_769, i64::MAX, i64::MIN] {
        let mut w = Writer::new();
        w.integer(universal::INTEGER, value);
        let octets = w.into_vec();
        assert_eq!(Element::parse(&octets).unwrap().integer(), Ok(value));
        assert_eq!(octets, rasn::ber::encode(&value).unwrap());
    }
}
