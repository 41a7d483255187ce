//! Binds and changes of credentials in which an octet is wrong, or that are cut: no part of a password stays.

use crate::masks::packets;
use base::AssociationId;
use base::ber::{Tag, Writer, universal as u};
use p1::bind::{MtaAuthentication, PasswordForm};
use p1::p3::{ChangeCredentials, MtsBind, ObjectName};
use p1::{Credentials, MtaBindArgument, ORName, Password};
use p7::bind::MsBindArgument;
use record::mask::{Key, Masks};
use std::collections::BTreeSet;
use std::sync::LazyLock;

const ID: AssociationId = AssociationId(1);
const PASSWORD: &[u8] = b"correct-horse-battery";
const NEW_PASSWORD: &[u8] = b"Staple4ever=and_longer";
/// So many octets of a password in a row are a part of it.
const PART: usize = 6;

fn c(number: u32) -> Tag {
    Tag::context(number)
}

/// An element around others.
fn around(tag: Tag, inner: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.constructed(tag, |w| w.raw(inner));
    w.into_vec()
}

fn written(body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    body(&mut w);
    w.into_vec()
}

fn oid(arcs: &[u8]) -> Vec<u8> {
    written(|w| w.primitive(u::OID, arcs))
}

/// A PDV-list's or EXTERNAL's members: a context and a value.
fn value(value: &[u8]) -> Vec<u8> {
    [written(|w| w.integer(u::INTEGER, 3)), around(c(0), value)].concat()
}

/// CP of normal mode with an AARQ, or CPA with an AARE.
fn presentation(apdu: u32, bind: &[u8]) -> Vec<u8> {
    let external = around(u::EXTERNAL, &[oid(&[0x51, 1]), value(bind)].concat());
    let acse = [around(c(1), &oid(&[0x56, 0, 1, 6])), around(c(30), &external)].concat();
    let acse = around(Tag::application(apdu), &acse);
    let context = [
        written(|w| w.integer(u::INTEGER, 1)),
        oid(&[0x52, 1, 0, 1]),
        around(u::SEQUENCE, &oid(&[0x51, 1])),
    ];
    let parameters = [
        written(|w| w.primitive(c(1), b"X4")),
        written(|w| w.primitive(c(2), b"X4")),
        around(c(4), &around(u::SEQUENCE, &context.concat())),
        around(Tag::application(1), &around(u::SEQUENCE, &value(&acse))),
    ];
    let mode = around(c(0), &written(|w| w.integer(c(0), 1)));
    around(u::SET, &[mode, around(c(2), &parameters.concat())].concat())
}

/// An RTORQ, or an RTOAC, around a bare bind.
fn rtse(tag: u32, bind: &[u8]) -> Vec<u8> {
    let data = around(c(0), &around(c(tag), bind));
    let sizes = written(|w| {
        w.integer(c(0), 32);
        w.integer(c(1), 2);
    });
    around(c(tag), &[sizes, around(c(if tag == 16 { 3 } else { 2 }), &data)].concat())
}

/// A CONNECT or an ACCEPT with this user data.
fn connect(identifier: u8, user_data: &[u8]) -> Vec<u8> {
    let parameter = |code: u8, value: &[u8]| match u8::try_from(value.len()) {
        Ok(length @ ..=254) => [&[code, length], value].concat(),
        _ => {
            let [high, low] = u16::try_from(value.len()).unwrap().to_be_bytes();
            [&[code, 255, high, low], value].concat()
        }
    };
    let reference = [parameter(10, b"\x04\x03ACT"), parameter(11, b"\x17\x0d260101000000Z")];
    let items = [parameter(19, &[0]), parameter(22, &[2]), parameter(26, &[0])].concat();
    let all = [
        parameter(1, &reference.concat()),
        parameter(5, &items),
        parameter(20, &[0, 0x0A]),
        parameter(51, b"S1"),
        parameter(52, b"S2"),
        parameter(193, user_data),
    ];
    parameter(identifier, &all.concat())
}

/// A CR TPDU, which comes first.
fn opening() -> Vec<u8> {
    let parameters = [0xC0, 1, 13, 0xC2, 2, b'T', b'1'];
    [&[3, 0, 0, 18, 13, 0xE0, 0, 0, 0, 1, 0][..], &parameters].concat()
}

fn name() -> ORName {
    "/C=IT/A=NATO/P=NAV/O=ACT/S=OPS".parse().unwrap()
}

fn credentials(password: &[u8], form: PasswordForm) -> Credentials {
    Credentials::Simple(Password::new(password.to_vec(), form))
}

/// One that is looked for: octets before those that are made wrong, these, and whether a user sends them.
struct Sample {
    what: &'static str,
    before: Vec<u8>,
    tsdu: Vec<u8>,
    of_user: bool,
}

fn mts_bind(form: PasswordForm) -> Vec<u8> {
    let bind = MtsBind::new(ObjectName::UserAgent(name()), credentials(PASSWORD, form));
    around(c(16), &written(|w| bind.write(w)))
}

fn ms_bind() -> Vec<u8> {
    let credentials = credentials(PASSWORD, PasswordForm::Ia5);
    around(c(16), &written(|w| MsBindArgument::new(name(), credentials).write(w)))
}

fn mta_bind(form: PasswordForm) -> Vec<u8> {
    let bind = MtaAuthentication::new("MTA-NAPLES", credentials(PASSWORD, form));
    written(|w| MtaBindArgument::Authenticated(bind).write(w))
}

/// An invoke of an operation in a DATA TRANSFER.
fn invoke(code: i64, argument: &[u8]) -> Vec<u8> {
    let numbers = written(|w| {
        w.integer(u::INTEGER, 5);
        w.integer(u::INTEGER, code);
    });
    let apdu = around(c(1), &[&numbers, argument].concat());
    let data = around(Tag::application(1), &around(u::SEQUENCE, &value(&apdu)));
    [&[1, 0, 1, 0][..], &data].concat()
}

fn samples() -> Vec<Sample> {
    use PasswordForm::{Ia5, Octets};
    let mut all = Vec::new();
    let mut bind = |what, of_user, tsdu| {
        all.push(Sample { what, before: opening(), tsdu, of_user });
    };
    bind("P1 argument", false, connect(13, &presentation(0, &rtse(16, &mta_bind(Ia5)))));
    bind("P1 argument, octets", false, connect(13, &presentation(0, &rtse(16, &mta_bind(Octets)))));
    bind("P1 result", false, connect(14, &presentation(1, &rtse(17, &mta_bind(Ia5)))));
    let bare = around(c(3), &around(c(0), &mta_bind(Ia5)));
    let mode = around(c(0), &written(|w| w.integer(c(0), 0)));
    let x410 = around(u::SET, &[mode, around(c(1), &bare)].concat());
    bind("P1 argument of X.410", false, connect(13, &x410));
    bind("P3 argument", true, connect(13, &presentation(0, &mts_bind(Ia5))));
    bind("P3 argument, octets", true, connect(13, &presentation(0, &mts_bind(Octets))));
    bind("P7 argument", true, connect(13, &presentation(0, &ms_bind())));
    let change = ChangeCredentials {
        old: credentials(PASSWORD, Ia5),
        new: credentials(NEW_PASSWORD, Octets),
    };
    let before = [opening(), packets(&connect(13, &presentation(0, &ms_bind())), 2_000)].concat();
    let set = written(|w| change.write(w));
    let sequence = [&[0x30][..], &set[1..]].concat();
    let list = around(c(2), &around(u::SET, &oid(&[0x56, 3, 5, 1])));
    let register = around(u::SET, &[list, around(c(4), &sequence)].concat());
    for (what, tsdu) in [("change", invoke(8, &set)), ("register", invoke(24, &register))] {
        all.push(Sample { what, before: before.clone(), tsdu, of_user: true });
    }
    all
}

/// The octets as a recording has them, in pieces of this size.
fn recorded(of_user: bool, octets: &[u8], piece: usize) -> Vec<u8> {
    let mut masks = Masks::of_others(Key([1; 32]));
    if of_user {
        masks.of_user(ID);
    }
    let of = |piece: &[u8]| {
        let piece = bytes::Bytes::copy_from_slice(piece);
        masks.find(ID, &piece).copy(&piece).to_vec()
    };
    octets.chunks(piece).flat_map(of).collect()
}

fn shows_a_part(octets: &[u8]) -> bool {
    static PARTS: LazyLock<BTreeSet<&[u8]>> =
        LazyLock::new(|| [PASSWORD, NEW_PASSWORD].iter().flat_map(|p| p.windows(PART)).collect());
    // Most windows begin with none of these octets.
    static FIRST: LazyLock<[bool; 256]> = LazyLock::new(|| {
        let begins = |octet| PARTS.iter().any(|part| part.first() == Some(&octet));
        std::array::from_fn(|octet| begins(octet as u8))
    });
    let first: &[bool; 256] = &FIRST;
    octets.windows(PART).any(|window| first[usize::from(window[0])] && PARTS.contains(window))
}

fn assert_masked(sample: &Sample, octets: &[u8], pieces: &[usize], how: &str) {
    for piece in pieces.iter().copied() {
        let recorded = recorded(sample.of_user, octets, piece);
        assert_eq!(recorded.len(), octets.len());
        assert!(
            !shows_a_part(&recorded),
            "{}, {how}, pieces of {piece}: {}",
            sample.what,
            recorded.escape_ascii()
        );
    }
}

#[test]
fn a_right_bind_keeps_all_but_its_passwords() {
    for sample in samples() {
        let octets = [sample.before.clone(), packets(&sample.tsdu, 2_000)].concat();
        assert!(shows_a_part(&octets), "{}", sample.what);
        for piece in [octets.len(), 1, 37] {
            let recorded = recorded(sample.of_user, &octets, piece);
            assert!(!shows_a_part(&recorded), "{}", sample.what);
            let differ = octets.iter().zip(&recorded).filter(|(a, b)| a != b).count();
            assert!(differ <= 3 * PASSWORD.len() + 1, "{}: {differ} octets", sample.what);
            assert!(differ >= PASSWORD.len() - 3, "{}: {differ} octets", sample.what);
        }
    }
}

#[test]
fn one_wrong_octet_anywhere_shows_no_password() {
    for sample in samples() {
        for (most, pieces) in [(2_000, &[10_000, 1][..]), (60, &[37])] {
            let right = packets(&sample.tsdu, most);
            for at in 0..right.len() {
                let bits = (0..8).map(|bit| right[at] ^ 1 << bit);
                for wrong in bits.chain([0, 0xFF, 0x7F, 0x80, 3, right[at] ^ 0xFF]) {
                    let mut octets = [&sample.before[..], &right].concat();
                    octets[sample.before.len() + at] = wrong;
                    assert_masked(
                        &sample,
                        &octets,
                        pieces,
                        &format!("octet {at} of {most} is {wrong}"),
                    );
                }
            }
        }
    }
}

#[test]
fn a_wrong_octet_before_shows_no_password() {
    for sample in samples() {
        let right = [&sample.before[..], &packets(&sample.tsdu, 2_000)].concat();
        for at in 0..sample.before.len() {
            for bit in 0..8 {
                let mut octets = right.clone();
                octets[at] ^= 1 << bit;
                assert_masked(&sample, &octets, &[10_000], &format!("octet {at}, bit {bit}"));
            }
        }
    }
}

#[test]
fn a_cut_anywhere_shows_no_password() {
    for sample in samples() {
        let right = packets(&sample.tsdu, 2_000);
        for cut in 0..right.len() {
            assert_masked(&sample, &[&sample.before, &right[..cut]].concat(), &[10_000, 1], "cut");
        }
        for cut in 1..sample.tsdu.len() {
            // In packets that are whole, at either end, with another after it.
            for part in [&sample.tsdu[..cut], &sample.tsdu[cut..]] {
                let octets = [&sample.before[..], &packets(part, 2_000), &right].concat();
                assert_masked(&sample, &octets, &[10_000, 37], &format!("cut at {cut}"));
            }
        }
    }
}

#[test]
fn a_missing_and_an_additional_octet_show_no_password() {
    for sample in samples() {
        let right = packets(&sample.tsdu, 2_000);
        for at in 0..right.len() {
            let (front, back) = right.split_at(at);
            for octets in [[front, &back[1..]].concat(), [front, &[0x1F], back].concat()] {
                assert_masked(
                    &sample,
                    &[&sample.before, &octets[..]].concat(),
                    &[10_000, 1],
                    &format!("at {at}"),
                );
            }
        }
    }
}
