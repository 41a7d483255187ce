//! P1 of 1984: octets written by hand from X.411 of 1984 (not by our own encoder), both ways, and what is left out.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where it fails, in helpers too"
)]

use p1::extension::{CommonName, Dialect};
use p1::{ApduParser, Event, MtsApduHead};

mod messages;
mod names;
mod properties;
mod reports;

const OF_1984: Dialect = Dialect::RedBook1984(CommonName::NoForm);
const WITH_COMMON: Dialect = Dialect::RedBook1984(CommonName::DomainDefined);

/// An element with a definite length.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        n @ 0..0x80 => out.push(n as u8),
        n @ 0x80..0x100 => out.extend([0x81, n as u8]),
        n => out.extend([0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend(content);
    out
}

/// C=IT, ADMD=NET.
const PUBLIC: &[u8] = b"\x61\x04\x13\x02IT\x62\x05\x13\x03NET";

fn domain(prmd: &[u8]) -> Vec<u8> {
    tlv(0x63, &[PUBLIC, &tlv(0x13, &[prmd])])
}

fn identifier(local: &[u8]) -> Vec<u8> {
    tlv(0x64, &[&domain(b"ACT"), &tlv(0x16, &[local])])
}

/// An O/R name of 1984: PRMD and surname, with further parts after the standard attributes.
fn name(tag: u8, prmd: &[u8], surname: &[u8], rest: &[u8]) -> Vec<u8> {
    let prmd = tlv(0xa2, &[&tlv(0x13, &[prmd])]);
    let person = tlv(0xa5, &[&tlv(0x80, &[surname])]);
    tlv(tag, &[&tlv(0x30, &[PUBLIC, &prmd, &person]), rest])
}

/// Two elements: ACT and, by a second route after VIA failed, NAPLES. `also` is added to the first.
fn trace(also: &[u8]) -> Vec<u8> {
    let first = tlv(0x31, &[b"\x80\x0d860814093000Z", &[0x82, 1, 0], also]);
    let second = tlv(0x31, &[b"\x80\x0d860814093100Z", &[0x82, 1, 1], &domain(b"VIA")]);
    let element = |prmd: &[u8], supplied: &[u8]| tlv(0x30, &[&domain(prmd), supplied]);
    tlv(0x69, &[&element(b"ACT", &first), &element(b"NAPLES", &second)])
}

/// A common name as extension-attributes of 1988.
fn common_name(name: &[u8]) -> Vec<u8> {
    let attribute = tlv(0x30, &[&[0x80, 1, 1], &tlv(0xa1, &[&tlv(0x13, &[name])])]);
    tlv(0x31, &[&attribute])
}

/// The same as domain-defined-attributes.
fn common(name: &[u8]) -> Vec<u8> {
    tlv(0x30, &[&tlv(0x30, &[b"\x13\x06Common", &tlv(0x13, &[name])])])
}

/// An extension of 1988, in the form of 1994.
fn extension(number: u8) -> Vec<u8> {
    tlv(0x30, &[&[0x80, 1, number], &[0xa2, 2, 0x31, 0]])
}

fn read(octets: &[u8]) -> (MtsApduHead, Vec<u8>) {
    let (mut parser, mut head, mut content) = (ApduParser::default(), None, Vec::new());
    let pushed = parser.push(octets, &mut |event| match event {
        Event::Head(found) => head = Some(found),
        Event::Content(octets) => content.extend_from_slice(octets),
        Event::End => {}
    });
    assert_eq!((pushed, parser.is_done()), (Ok(()), true));
    (head.unwrap_or_else(|| panic!("no head")), content)
}

fn write(head: &MtsApduHead, content: &[u8]) -> Vec<u8> {
    match head {
        MtsApduHead::Message(e) => {
            let head = p1::apdu::encode_message_head(e, content.len() as u64);
            [&head[..], content].concat()
        }
        MtsApduHead::Probe(e) => p1::apdu::encode_probe(e),
        MtsApduHead::Report(report) => p1::apdu::encode_report(report),
    }
}

/// Read, brought into this form and written, with the number of extensions that are left out.
fn through(octets: &[u8], dialect: Dialect) -> (Vec<u8>, usize) {
    let (mut head, content) = read(octets);
    let left_out = head.set_form(dialect.into());
    (write(&head, &content), left_out)
}

/// EncodedInformationTypes: IA5 text.
const IA5: &[u8] = &[0x65, 4, 0x80, 2, 5, 0x20];

/// One recipient: report 10, user report 01.
fn recipient(name: &[u8], flags: u8, rest: &[u8]) -> Vec<u8> {
    tlv(0x31, &[name, &[0x80, 1, 1], &[0x81, 2, 0, flags], rest])
}
