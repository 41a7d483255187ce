//! A strict decoder of what an MTA of 1988 takes: MTS-APDUs as in X.411 (1988) figure 2, with no other member, tag or
//! value than it has. It is written from the standard and uses no decoder of ours; a peer that has it refuses what
//! it panics at.

use super::reader::Element;

/// A type: what the octets of an element with its tag may be.
#[derive(Clone, Copy)]
enum Type {
    /// INTEGER or ENUMERATED, in this range.
    Number(i64, i64),
    /// BIT STRING, of which only the first so many may be one.
    Bits(usize),
    /// A string of at most so many of these characters.
    Text(usize, fn(u8) -> bool),
    /// UTCTime.
    Time,
    Oid,
    /// OCTET STRING, of any form.
    Octets,
    /// SEQUENCE: members in this order.
    Sequence(&'static [Member]),
    /// SET: members in any order.
    Set(&'static [Member]),
    /// SEQUENCE OF or SET OF elements with this tag, one at least.
    Of(u8, &'static Type),
    /// The same, or none: extensions have the DEFAULT {} (X.411 figure 2), which may be written.
    OrNone(u8, &'static Type),
    /// An element of one of these tags, in an explicit tag.
    Choice(&'static [Member]),
    /// Anything that is BER.
    Any,
}

/// A tag, its type and whether it must be there.
type Member = (u8, Type, bool);

const fn must(tag: u8, kind: Type) -> Member {
    (tag, kind, true)
}

const fn may(tag: u8, kind: Type) -> Member {
    (tag, kind, false)
}

fn printable(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&octet)
}

fn numeric(octet: u8) -> bool {
    octet.is_ascii_digit() || octet == b' '
}

fn ia5(octet: u8) -> bool {
    octet.is_ascii()
}

fn any(_: u8) -> bool {
    true
}

/// CountryName, AdministrationDomainName: a NumericString or a PrintableString.
const DOMAIN: Type =
    Type::Choice(&[may(0x12, Type::Text(16, numeric)), may(0x13, Type::Text(16, printable))]);
const GLOBAL_DOMAIN: Type = Type::Sequence(&[
    must(0x61, DOMAIN),
    must(0x62, DOMAIN),
    may(0x12, Type::Text(16, numeric)),
    may(0x13, Type::Text(16, printable)),
]);
const MTS_IDENTIFIER: Type =
    Type::Sequence(&[must(0x63, GLOBAL_DOMAIN), must(0x16, Type::Text(32, ia5))]);
const PERSONAL_NAME: Type = Type::Set(&[
    must(0x80, Type::Text(40, printable)),
    may(0x81, Type::Text(16, printable)),
    may(0x82, Type::Text(5, printable)),
    may(0x83, Type::Text(3, printable)),
]);
const STANDARD_ATTRIBUTES: Type = Type::Sequence(&[
    may(0x61, DOMAIN),
    may(0x62, DOMAIN),
    may(0x80, Type::Text(15, numeric)),
    may(0x81, Type::Text(24, printable)),
    may(0xA2, DOMAIN),
    may(0x83, Type::Text(64, printable)),
    may(0x84, Type::Text(32, numeric)),
    may(0xA5, PERSONAL_NAME),
    may(0xA6, Type::Of(0x13, &Type::Text(32, printable))),
]);
const DOMAIN_ATTRIBUTE: Type =
    Type::Sequence(&[must(0x13, Type::Text(8, printable)), must(0x13, Type::Text(128, printable))]);
/// Extension attributes are 1 to 23 in 1988.
const EXTENSION_ATTRIBUTE: Type =
    Type::Sequence(&[must(0x80, Type::Number(1, 23)), must(0xA1, Type::Any)]);
const OR_NAME: Type = Type::Sequence(&[
    must(0x30, STANDARD_ATTRIBUTES),
    may(0x30, Type::Of(0x30, &DOMAIN_ATTRIBUTE)),
    may(0x31, Type::Of(0x30, &EXTENSION_ATTRIBUTE)),
    may(0xA0, Type::Any),
]);
const ENCODED_INFORMATION_TYPES: Type = Type::Set(&[
    must(0x80, Type::Bits(10)),
    may(0x81, Type::Bits(32)),
    may(0xA2, Type::Any),
    may(0xA4, Type::Of(0x06, &Type::Oid)),
]);
/// extension-type is a CHOICE in an explicit tag, and private ones are not agreed on. Criticality has three bits.
const EXTENSION: Type = Type::Sequence(&[
    must(0xA0, Type::Choice(&[may(0x02, Type::Number(0, 256))])),
    may(0x81, Type::Bits(3)),
    may(0xA2, Type::Any),
]);
const EXTENSIONS: Type = Type::OrNone(0x30, &EXTENSION);
const SUPPLIED: Type = Type::Set(&[
    must(0x80, Type::Time),
    must(0x82, Type::Number(0, 1)),
    may(0x63, GLOBAL_DOMAIN),
    may(0x81, Type::Time),
    may(0x65, ENCODED_INFORMATION_TYPES),
    may(0x83, Type::Bits(2)),
]);
const TRACE: Type =
    Type::Of(0x30, &Type::Sequence(&[must(0x63, GLOBAL_DOMAIN), must(0x31, SUPPLIED)]));
/// Value of extension 38.
const INTERNAL_TRACE: Type = Type::Of(
    0x30,
    &Type::Sequence(&[
        must(0x63, GLOBAL_DOMAIN),
        must(0x16, Type::Text(32, ia5)),
        must(
            0x31,
            Type::Set(&[
                must(0x80, Type::Time),
                must(0x82, Type::Number(0, 1)),
                may(0xA0, Type::Any),
                may(0x81, Type::Time),
                may(0x65, ENCODED_INFORMATION_TYPES),
                may(0x83, Type::Bits(2)),
            ]),
        ),
    ]),
);
/// Of 1988: unidentified, external, interpersonal messaging of 1984 and of 1988.
const CONTENT_TYPE: Type = Type::Number(0, 22);
const RECIPIENT: Type = Type::Set(&[
    must(0x60, OR_NAME),
    must(0x80, Type::Number(1, 32_767)),
    must(0x81, Type::Bits(5)),
    may(0x82, Type::Number(0, 256)),
    may(0xA3, EXTENSIONS),
]);
const MESSAGE: Type = Type::Set(&[
    must(0x64, MTS_IDENTIFIER),
    must(0x60, OR_NAME),
    may(0x65, ENCODED_INFORMATION_TYPES),
    may(0x46, CONTENT_TYPE),
    may(0x06, Type::Oid),
    may(0x4A, Type::Text(16, printable)),
    may(0x47, Type::Number(0, 2)),
    may(0x48, Type::Bits(4)),
    may(0x80, Type::Time),
    may(0xA1, Type::Any),
    must(0xA2, Type::Of(0x31, &RECIPIENT)),
    may(0xA3, EXTENSIONS),
    must(0x69, TRACE),
]);
const PROBE: Type = Type::Set(&[
    must(0x64, MTS_IDENTIFIER),
    must(0x60, OR_NAME),
    may(0x65, ENCODED_INFORMATION_TYPES),
    may(0x46, CONTENT_TYPE),
    may(0x06, Type::Oid),
    may(0x4A, Type::Text(16, printable)),
    may(0x80, Type::Number(0, 2_147_483_647)),
    may(0x48, Type::Bits(4)),
    may(0xA1, Type::Any),
    must(0xA2, Type::Of(0x31, &RECIPIENT)),
    may(0xA3, EXTENSIONS),
    must(0x69, TRACE),
]);
const REPORT: Type = Type::Set(&[
    must(0x64, MTS_IDENTIFIER),
    must(0x60, OR_NAME),
    must(0x69, TRACE),
    may(0xA1, EXTENSIONS),
]);
/// Reasons 0 to 6 and diagnostics 0 to 48 are those of 1988.
const LAST_TRACE: Type = Type::Set(&[
    must(0x80, Type::Time),
    may(0x65, ENCODED_INFORMATION_TYPES),
    must(
        0xA1,
        Type::Choice(&[
            may(0xA0, Type::Set(&[must(0x80, Type::Time), may(0x81, Type::Number(0, 6))])),
            may(0xA1, Type::Set(&[must(0x80, Type::Number(0, 6)), may(0x81, Type::Number(0, 48))])),
        ]),
    ),
]);
const REPORTED: Type = Type::Set(&[
    must(0xA0, OR_NAME),
    must(0x81, Type::Number(1, 32_767)),
    must(0x82, Type::Bits(5)),
    must(0xA3, LAST_TRACE),
    may(0xA4, OR_NAME),
    may(0x85, Type::Text(64, any)),
    may(0xA6, EXTENSIONS),
]);
const REPORT_CONTENT: Type = Type::Set(&[
    must(0x64, MTS_IDENTIFIER),
    may(0x69, TRACE),
    may(0x65, ENCODED_INFORMATION_TYPES),
    may(0x46, CONTENT_TYPE),
    may(0x06, Type::Oid),
    may(0x4A, Type::Text(16, printable)),
    may(0x81, Type::Octets),
    may(0xA1, Type::Octets),
    may(0xA2, Type::Any),
    may(0xA3, EXTENSIONS),
    must(0xA0, Type::Of(0x31, &REPORTED)),
]);

/// What an MTA of 1988 has from an APDU.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Content of a message.
    pub(crate) content: Vec<u8>,
    /// Priority of a message: normal(0) where there is none (X.411 1988: DEFAULT).
    pub(crate) priority: u8,
    /// The numbers of the envelope's extensions.
    pub(crate) extensions: Vec<u8>,
}

/// Reads an MTS-APDU: message, report or probe.
///
/// # Panics
/// It is another one than X.411 of 1988 has.
pub(crate) fn read(apdu: &[u8]) -> Read {
    let whole = Element::only(apdu);
    let parts = whole.children();
    let mut read = Read::default();
    match (whole.tag(), &parts[..]) {
        (0xA0, [envelope, content]) => {
            check("message", MESSAGE, envelope.is(0x31));
            read.content = content.octets();
            read.envelope(envelope, 0xA3);
        }
        (0xA1, [envelope, content]) => {
            check("report", REPORT, envelope.is(0x31));
            check("report content", REPORT_CONTENT, content.is(0x31));
            read.envelope(envelope, 0xA1);
        }
        // A probe is its envelope: [2] IMPLICIT SET.
        (0xA2, _) => {
            check("probe", PROBE, whole);
            read.envelope(&whole, 0xA3);
        }
        (other, _) => panic!("no MTS-APDU: {other:02X}"),
    }
    read
}

impl Read {
    fn envelope(&mut self, envelope: &Element<'_>, extensions: u8) {
        for member in envelope.children() {
            if member.tag() == 0x47 {
                self.priority = member.value()[0];
            } else if member.tag() == extensions {
                for field in member.children() {
                    let field = field.children();
                    let number = field[0].children()[0].value();
                    self.extensions.push(*number.last().unwrap());
                    if number == [38] {
                        let value = field.last().unwrap().children();
                        check("internal trace", INTERNAL_TRACE, value[0]);
                    }
                }
            }
        }
    }
}

fn check(place: &str, kind: Type, element: Element<'_>) {
    let value = element.value();
    let wrong = |what: &str| panic!("{place}: {what}: {:02X} {value:02X?}", element.tag());
    let may_be_empty = matches!(kind, Type::OrNone(..));
    match kind {
        Type::Number(least, most) => {
            let minimal = !matches!(value, [0, 0..=0x7F, ..] | [0xFF, 0x80..=0xFF, ..]);
            let number = value.iter().fold(0, |sum, octet| sum << 8 | i64::from(*octet));
            if value.is_empty() || !minimal || !(least..=most).contains(&number) {
                wrong("no such number");
            }
        }
        Type::Bits(known) => {
            let [unused @ 0..=7, bits @ ..] = value else { return wrong("no BIT STRING") };
            let count = bits.len() * 8 - usize::from(*unused);
            let is_set = |n: &usize| bits[n / 8] & (0x80 >> (n % 8)) != 0;
            if (known..count).any(|n| is_set(&n)) {
                wrong("a bit that has no meaning");
            }
        }
        Type::Text(most, of) => {
            if value.is_empty() || value.len() > most || !value.iter().all(|octet| of(*octet)) {
                wrong("no such text");
            }
        }
        Type::Time => match value {
            [digits @ .., b'Z'] if matches!(digits.len(), 10 | 12) && digits.is_ascii() => {
                assert!(digits.iter().all(u8::is_ascii_digit), "{place}: {value:02X?}");
            }
            _ => wrong("no UTCTime"),
        },
        Type::Oid => {
            if value.is_empty() || value.last().is_some_and(|last| last & 0x80 != 0) {
                wrong("no OBJECT IDENTIFIER");
            }
        }
        Type::Octets | Type::Any => {}
        Type::Sequence(members) => sequence(place, members, &element.children()),
        Type::Set(members) => set(place, members, &element.children()),
        Type::Of(tag, kind) | Type::OrNone(tag, kind) => {
            let all = element.children();
            if all.is_empty() && !may_be_empty {
                wrong("none of them");
            }
            all.iter().for_each(|one| check(place, *kind, one.is(tag)));
        }
        Type::Choice(members) => match &element.children()[..] {
            [one] => set(place, members, &[*one]),
            _ => wrong("not one of a choice"),
        },
    }
}

fn sequence(place: &str, members: &[Member], elements: &[Element<'_>]) {
    let mut left = members.iter();
    for element in elements {
        let (_, kind, _) = left
            .by_ref()
            .find(|(tag, _, must)| {
                assert!(
                    *tag == element.tag() || !must,
                    "{place}: {tag:02X} is missing before {:02X}",
                    element.tag()
                );
                *tag == element.tag()
            })
            .unwrap_or_else(|| panic!("{place}: unknown member {:02X}", element.tag()));
        check(place, *kind, *element);
    }
    let missing = left.find(|(_, _, must)| *must);
    assert!(missing.is_none(), "{place}: {:02X} is missing", missing.map_or(0, |m| m.0));
}

fn set(place: &str, members: &[Member], elements: &[Element<'_>]) {
    for element in elements {
        let of_it = elements.iter().filter(|other| other.tag() == element.tag());
        assert_eq!(of_it.count(), 1, "{place}: {:02X} twice", element.tag());
        let known = members.iter().find(|(tag, ..)| *tag == element.tag());
        let (_, kind, _) =
            known.unwrap_or_else(|| panic!("{place}: unknown member {:02X}", element.tag()));
        check(place, *kind, *element);
    }
    for (tag, _, must) in members {
        let is_there = elements.iter().any(|element| element.tag() == *tag);
        assert!(is_there || !must, "{place}: {tag:02X} is missing");
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::time_of_the_run;
    use super::super::script::{self, Names};
    use super::super::stack::{content_of, sha256};
    use super::*;

    /// The MTS-APDU that a transfer case carries in one RTTR.
    fn apdu_of(case: &str) -> Vec<u8> {
        let names = Names::from([("utc".to_owned(), time_of_the_run())]);
        let data = script::load(case)[1].octets(&names);
        let at = data.windows(4).position(|w| w[..3] == [2, 1, 5] && w[3] == 0xA0).unwrap();
        let external = Element::first(&data[at + 3..]).0;
        external.value().to_vec()
    }

    /// The S-DATA of a transfer in X.410 mode, behind TPKT, DT, Give Tokens and DATA TRANSFER.
    #[test]
    fn what_an_mta_of_1988_sends_is_read() {
        let names = Names::from([("utc".to_owned(), time_of_the_run())]);
        let steps = script::load("x410-transfer");
        let data = [1, 4].map(|n| steps[n].octets(&names)[11..].to_vec());
        let message = read(&data.concat());
        assert_eq!((message.priority, &message.extensions[..]), (0, &[38][..]));
        assert_eq!(sha256(&message.content), content_of("x410-transfer").sha256);
    }

    /// Sent by MTAs of later editions: not one of them is taken.
    #[test]
    fn what_1988_has_not_is_refused() {
        for case in ["transfer-primitive", "transfer-1988", "relay-modern", "transfer-p772"] {
            let apdu = apdu_of(case);
            let refused = std::panic::catch_unwind(|| read(&apdu));
            assert!(refused.is_err(), "{case}");
        }
    }
}
