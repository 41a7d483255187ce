//! Reads what our sender sends, without any decoder of ours: TSDUs from TPKTs, the transferred APDU
//! from its data values, its content from the APDU.

use super::peer::{Peer, Wire};
use super::script::dump;

/// The TSDU in these TPKTs and how many octets each TPKT has.
pub(crate) fn tsdu<W: Wire>(peer: &mut Peer<W>, what: &str) -> (Vec<u8>, Vec<usize>) {
    let (mut tsdu, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let tpkt = peer.receive(what);
        assert_eq!(&tpkt[4..6], [2, 0xf0], "no DT TPDU:\n{}", dump(&tpkt, 5));
        sizes.push(tpkt.len());
        tsdu.extend_from_slice(&tpkt[7..]);
        match tpkt[6] {
            0x80 => return (tsdu, sizes),
            0x00 => {}
            other => panic!("a DT TPDU of class 0 has no number {other:02X}"),
        }
    }
}

/// What a TSDU of the data phase is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tsdu {
    ActivityStart {
        identifier: Vec<u8>,
    },
    /// An RTTR: the octets in it.
    Data(Vec<u8>),
    MinorSync {
        serial: String,
    },
    ActivityEnd {
        serial: String,
    },
    Finish,
    Other(Vec<u8>),
}

/// Distinguishes TSDUs by their first octets (X.225 8.2.6: Give Tokens goes before).
pub(crate) fn kind(tsdu: &[u8]) -> Tsdu {
    let serial = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    match tsdu {
        [1, 0, 0x2d, _, 0x29, n, rest @ ..] if rest.len() == usize::from(*n) => {
            Tsdu::ActivityStart { identifier: rest.to_vec() }
        }
        [1, 0, 1, 0, ppdu @ ..] => Tsdu::Data(rttr(ppdu)),
        [1, 0, 0x31, _, 0x2a, n, rest @ ..] if rest.len() == usize::from(*n) => {
            Tsdu::MinorSync { serial: serial(rest) }
        }
        [1, 0, 0x29, _, 0x2a, n, rest @ ..] if rest.len() == usize::from(*n) => {
            Tsdu::ActivityEnd { serial: serial(rest) }
        }
        [9, ..] => Tsdu::Finish,
        other => Tsdu::Other(other.to_vec()),
    }
}

/// The octets in the OCTET STRING that `61 {30 {02 01 03, A0 {..}}}` holds.
fn rttr(ppdu: &[u8]) -> Vec<u8> {
    let pdv = Element::only(ppdu).is(0x61).children();
    let [list] = pdv.as_slice() else { panic!("{} PDV lists", pdv.len()) };
    let parts = list.is(0x30).children();
    let [context, single] = parts.as_slice() else { panic!("{} parts of a PDV list", parts.len()) };
    assert_eq!(context.is(0x02).value, [3], "the context of mta-rtse");
    let values = single.is(0xa0).children();
    let [string] = values.as_slice() else { panic!("{} single types", values.len()) };
    string.octets()
}

/// A transferred message or report: what stands in its EXTERNAL.
pub(crate) struct Apdu {
    pub(crate) envelope: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

/// Takes apart `28 {02 01 05, A0 {A0 {31 {envelope}, 04 content}}}`.
pub(crate) fn message(transferred: &[u8]) -> Apdu {
    let [envelope, content] = parts(transferred, 0xa0);
    Apdu { envelope: envelope.is(0x31).value.to_vec(), content: content.octets() }
}

/// Takes apart `28 {02 01 05, A0 {A1 {31 {envelope}, 31 {content}}}}`.
pub(crate) fn report(transferred: &[u8]) -> Apdu {
    let [envelope, content] = parts(transferred, 0xa1);
    Apdu { envelope: envelope.is(0x31).value.to_vec(), content: content.is(0x31).value.to_vec() }
}

/// The two parts of the MTS-APDU with this tag.
fn parts(transferred: &[u8], tag: u8) -> [Element<'_>; 2] {
    let parts = apdu(transferred).is(tag).children();
    parts.try_into().unwrap_or_else(|parts| panic!("not two parts of an APDU: {parts:?}"))
}

/// The MTS-APDU in this EXTERNAL.
fn apdu(transferred: &[u8]) -> Element<'_> {
    let parts = Element::only(transferred).is(0x28).children();
    let [context, single] = parts.as_slice() else {
        panic!("{} parts of an EXTERNAL", parts.len())
    };
    assert_eq!(context.is(0x02).value, [5], "the context of mtse");
    let apdu = single.is(0xa0).children();
    let [apdu] = apdu.as_slice() else { panic!("{} APDUs", apdu.len()) };
    *apdu
}

/// The octets of the MTS-APDU in this EXTERNAL.
pub(crate) fn apdu_octets(transferred: &[u8]) -> Vec<u8> {
    let single = Element::only(transferred).is(0x28).children();
    apdu(transferred);
    single[1].value.to_vec()
}

/// One BER element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    tag: u8,
    value: &'a [u8],
}

impl<'a> Element<'a> {
    /// The one element that these octets are.
    pub(crate) fn only(octets: &'a [u8]) -> Element<'a> {
        let (element, rest) = Element::first(octets);
        assert!(rest.is_empty(), "octets after the element:\n{}", dump(rest, 0));
        element
    }

    /// The first element, and what is behind it.
    pub(crate) fn first(octets: &'a [u8]) -> (Element<'a>, &'a [u8]) {
        let [tag, length, rest @ ..] = octets else { panic!("half an element: {octets:02X?}") };
        assert_ne!(tag & 0x1f, 0x1f, "no tag of several octets is met here");
        match length {
            0x80 => {
                let mut left = rest;
                while !left.starts_with(&[0, 0]) {
                    (_, left) = Element::first(left);
                }
                let value = &rest[..rest.len() - left.len()];
                (Element { tag: *tag, value }, &left[2..])
            }
            short @ 0..=0x7f => {
                let (value, left) = rest.split_at(usize::from(*short));
                (Element { tag: *tag, value }, left)
            }
            long => {
                let (count, rest) = rest.split_at(usize::from(long & 0x7f));
                let length = count.iter().fold(0, |sum, o| sum << 8 | usize::from(*o));
                let (value, left) = rest.split_at(length);
                (Element { tag: *tag, value }, left)
            }
        }
    }

    pub(crate) fn tag(self) -> u8 {
        self.tag
    }

    pub(crate) fn value(self) -> &'a [u8] {
        self.value
    }

    pub(crate) fn is(self, tag: u8) -> Element<'a> {
        assert_eq!(self.tag, tag, "the tag {:02X} should be {tag:02X}", self.tag);
        self
    }

    pub(crate) fn children(self) -> Vec<Element<'a>> {
        let (mut children, mut left) = (Vec::new(), self.value);
        while !left.is_empty() {
            let (child, rest) = Element::first(left);
            children.push(child);
            left = rest;
        }
        children
    }

    /// Of an OCTET STRING, primitive or constructed.
    pub(crate) fn octets(self) -> Vec<u8> {
        match self.tag {
            0x04 => self.value.to_vec(),
            0x24 => self.children().into_iter().flat_map(Element::octets).collect(),
            other => panic!("the tag {other:02X} is not an OCTET STRING's"),
        }
    }
}

/// The elements in the member of a SET with this tag, each whole.
pub(crate) fn member(set: &[u8], tag: u8) -> Vec<Vec<u8>> {
    let members = Element { tag: 0x31, value: set }.children();
    let member = members.iter().find(|member| member.tag == tag);
    let mut left = member.unwrap_or_else(|| panic!("no member {tag:02X}")).value;
    let mut elements = Vec::new();
    while !left.is_empty() {
        let (_, rest) = Element::first(left);
        elements.push(left[..left.len() - rest.len()].to_vec());
        left = rest;
    }
    elements
}

/// The session references in a CN: calling user reference and common reference (X.225 8.3: PGI 01
/// with PI 0A and 0B).
pub(crate) fn references(cn: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let [_, _, _, _, _, _, _, 0x0d, parameters @ ..] = cn else { panic!("no CN: {cn:02X?}") };
    let parameters = if parameters[0] == 0xff { &parameters[3..] } else { &parameters[1..] };
    let [1, _, 0x0a, length, rest @ ..] = parameters else { panic!("{parameters:02X?}") };
    let (user, rest) = rest.split_at(usize::from(*length));
    let [0x0b, length, rest @ ..] = rest else { panic!("{rest:02X?}") };
    (user.to_vec(), rest[..usize::from(*length)].to_vec())
}

/// Whether the one stands in the other.
pub(crate) fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}
