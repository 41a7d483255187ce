//! Passwords in octets, however they are divided.

use base::AssociationId;
use base::ber::{Tag, Writer, universal as u};
use record::mask::{Key, Masks};

const ID: AssociationId = AssociationId(1);
const PASSWORD: &[u8] = b"correct-horse";

/// A TSDU in DT TPDUs with at most so many octets of it.
pub(crate) fn packets(tsdu: &[u8], most: usize) -> Vec<u8> {
    let count = tsdu.chunks(most).count();
    let packet = |(n, part): (usize, &[u8])| {
        let end = if n + 1 == count { 0x80 } else { 0 };
        let length = u16::try_from(part.len() + 7).unwrap().to_be_bytes();
        [&[3, 0][..], &length, &[2, 0xF0, end], part].concat()
    };
    tsdu.chunks(most).enumerate().flat_map(packet).collect()
}

/// A CONNECT whose user data is an MTA's bind with this password in this string type.
fn connect(tag: Tag, password: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.constructed(Tag::context(16), |w| {
        w.constructed(Tag::context(3), |w| {
            w.constructed(Tag::context(0), |w| {
                w.constructed(Tag::context(16), |w| {
                    w.constructed(Tag::context(1), |w| {
                        w.primitive(Tag::context(0), b"MTA-A");
                        w.constructed(Tag::context(1), |w| w.primitive(tag, password));
                    });
                });
            });
        });
    });
    let rtorq = w.into_vec();
    let mut w = Writer::new();
    w.constructed(u::SET, |w| {
        w.constructed(Tag::context(2), |w| {
            w.constructed(Tag::application(1), |w| {
                w.constructed(u::SEQUENCE, |w| {
                    w.constructed(Tag::context(0), |w| {
                        w.constructed(Tag::application(0), |w| {
                            w.constructed(Tag::context(30), |w| {
                                w.constructed(u::EXTERNAL, |w| {
                                    w.constructed(Tag::context(0), |w| w.raw(&rtorq));
                                });
                            });
                        });
                    });
                });
            });
        });
    });
    let data = w.into_vec();
    let length = |n: usize| {
        let n = u16::try_from(n).unwrap().to_be_bytes();
        [255, n[0], n[1]]
    };
    let user_data = [&[193][..], &length(data.len()), &data].concat();
    let selector = [0x34, 2, 0, 7];
    let parameters = [&selector[..], &user_data].concat();
    [&[13][..], &length(parameters.len()), &parameters].concat()
}

/// The octets as a recording has them, if they come in pieces of this size.
fn masked(masks: &mut Masks, octets: &[u8], piece: usize) -> Vec<u8> {
    let of = |piece: &[u8]| {
        let piece = bytes::Bytes::copy_from_slice(piece);
        masks.find(ID, &piece).copy(&piece).to_vec()
    };
    octets.chunks(piece).flat_map(of).collect()
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_password_is_masked_however_it_is_divided_and_nothing_else_is() {
    for tag in [u::IA5_STRING, u::OCTET_STRING, u::PRINTABLE_STRING] {
        for size in [1, 3, 7, 64, 1_000] {
            let octets = packets(&connect(tag, PASSWORD), size);
            let whole = masked(&mut Masks::of_others(Key([1; 32])), &octets, octets.len());
            for piece in [1, 2, 5, 11] {
                let mut masks = Masks::of_others(Key([1; 32]));
                assert_eq!(masked(&mut masks, &octets, piece), whole);
            }
            let differ = octets.iter().zip(&whole).filter(|(a, b)| a != b).count();
            assert!(differ <= PASSWORD.len() && differ >= PASSWORD.len() - 3, "{differ}");
            assert!(!contains(&whole, PASSWORD) && (size < 5 || contains(&whole, b"MTA-A")));
        }
    }
}

#[test]
fn equal_passwords_have_equal_masks_on_every_association() {
    let mut masks = Masks::of_others(Key([9; 32]));
    let mut of = |association: u64, password: &[u8]| {
        let octets = bytes::Bytes::from(packets(&connect(u::IA5_STRING, password), 1_000));
        masks.find(AssociationId(association), &octets).copy(&octets)
    };
    assert_eq!(of(1, PASSWORD), of(2, PASSWORD));
    assert_ne!(of(3, PASSWORD), of(4, b"correct-mouse"));
}

#[test]
fn every_octet_of_our_own_has_the_same_mask() {
    let octets = packets(&connect(u::IA5_STRING, PASSWORD), 1_000);
    let masked = masked(&mut Masks::of_ours(), &octets, 4);
    assert!(contains(&masked, b"*************") && !contains(&masked, PASSWORD));
}

#[test]
fn what_cannot_be_read_in_a_bind_is_overwritten() {
    let mut tsdu = connect(u::IA5_STRING, PASSWORD);
    // An element longer than the one around it.
    let at = tsdu.iter().position(|octet| *octet == 0xBE).unwrap();
    tsdu[at + 3] = 0x7F;
    let octets = packets(&tsdu, 1_000);
    assert!(!contains(&masked(&mut Masks::of_others(Key([1; 32])), &octets, 9), b"horse"));
    // No TPKT at all.
    let mut masks = Masks::of_others(Key([1; 32]));
    assert!(!contains(&masked(&mut masks, b"password: correct-horse", 5), b"horse"));
}

#[test]
fn what_an_mta_sends_after_its_bind_stays_as_it_is() {
    let mut masks = Masks::of_others(Key([1; 32]));
    masked(&mut masks, &packets(&connect(u::IA5_STRING, PASSWORD), 1_000), 1_000);
    let transfer = packets(&[&[1, 0, 1, 0][..], &connect(u::IA5_STRING, PASSWORD)].concat(), 100);
    assert_eq!(masked(&mut masks, &transfer, 9), transfer);
    let second = packets(&connect(u::IA5_STRING, PASSWORD), 1_000);
    assert!(!contains(&masked(&mut masks, &second, 50), PASSWORD), "another bind");
    masks.forget(ID);
    let again = packets(&connect(u::IA5_STRING, PASSWORD), 1_000);
    assert!(!contains(&masked(&mut masks, &again, 50), PASSWORD), "another association");
}

/// An invoke in a DATA TRANSFER.
fn invoke(code: i64, argument: impl Fn(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.constructed(Tag::application(1), |w| {
        w.constructed(u::SEQUENCE, |w| {
            w.integer(u::INTEGER, 3);
            w.constructed(Tag::context(0), |w| {
                w.constructed(Tag::context(1), |w| {
                    w.integer(u::INTEGER, 300);
                    w.integer(u::INTEGER, code);
                    argument(w);
                });
            });
        });
    });
    packets(&[&[1, 0, 1, 0][..], &w.into_vec()].concat(), 20)
}

fn credentials(w: &mut Writer, around: Tag) {
    w.constructed(around, |w| {
        w.constructed(Tag::context(0), |w| w.primitive(u::IA5_STRING, PASSWORD));
        w.constructed(Tag::context(1), |w| w.primitive(u::OCTET_STRING, b"battery-staple"));
    });
}

#[test]
fn a_change_of_credentials_is_masked_and_a_submission_is_not() {
    let change = invoke(8, |w| credentials(w, u::SET));
    let register = invoke(24, |w| {
        w.constructed(u::SET, |w| {
            w.constructed(Tag::context(2), |w| w.primitive(u::OID, &[1, 2, 3]));
            w.constructed(Tag::context(4), |w| credentials(w, u::SEQUENCE));
        });
    });
    let submission = invoke(3, |w| credentials(w, u::SEQUENCE));
    for piece in [1, 7, 1_000] {
        let mut masks = Masks::of_others(Key([1; 32]));
        masks.of_user(ID);
        masked(&mut masks, &packets(&connect(u::IA5_STRING, PASSWORD), 1_000), piece);
        for octets in [&change, &register] {
            let masked = masked(&mut masks, octets, piece);
            for part in [&b"horse"[..], b"batte", b"staple"] {
                assert!(!contains(&masked, part));
            }
            assert_eq!(masked.len(), octets.len());
        }
        assert_eq!(masked(&mut masks, &submission, piece), submission);
    }
}
