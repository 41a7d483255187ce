//! TPKT, class 0 transport and the SPDUs.

use super::cut;
use bytes::Bytes;
use explain::{Direction, Explainer, Line, MAX_LINES};
use osi::cotp::pdu::{self as cotp_pdu, Tpdu};
use osi::session::pdu::{Place, Spdu, header_length};
use osi::session::tsdu;
use osi::tpkt::{Decoder, Error};

/// Each packet's payload as far as it came, whether it ended, and its announced length.
type Packets = (Vec<(Vec<u8>, bool, usize)>, Option<Error>);

fn packets(pieces: &[&[u8]]) -> Packets {
    let mut decoder = Decoder::default();
    let mut found: Vec<(Vec<u8>, bool, usize)> = Vec::new();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            let piece = match decoder.next(&mut input) {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(e) => return (found, Some(e)),
            };
            assert!(!piece.bytes.is_empty(), "an empty piece");
            if piece.first {
                assert!(found.last().is_none_or(|(_, ended, _)| *ended));
                found.push((Vec::new(), false, piece.length));
            }
            let (octets, ended, length) = found.last_mut().expect("a first piece precedes");
            octets.extend_from_slice(&piece.bytes);
            *ended = piece.last;
            assert_eq!((*length, *ended), (piece.length, octets.len() == *length));
        }
        assert!(input.is_empty());
    }
    (found, None)
}

pub(super) fn tpkt(octets: &[u8]) {
    let whole = packets(&[octets]);
    assert_eq!(packets(&cut(octets)), whole);
    for (payload, ended, length) in &whole.0 {
        assert!((osi::tpkt::MIN_PAYLOAD..=osi::tpkt::MAX_PAYLOAD).contains(length));
        if *ended {
            let mut packet = osi::tpkt::header(payload.len()).to_vec();
            packet.extend_from_slice(payload);
            assert_eq!(packets(&[&packet]).0, [(payload.clone(), true, *length)]);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Transport {
    Tpdu(Tpdu, usize),
    Data(Vec<u8>, bool),
    Rejected(cotp_pdu::Rejected),
    NoTpkt(Error),
}

fn tpdus(pieces: &[&[u8]]) -> Vec<Transport> {
    let mut packets = Decoder::default();
    let mut decoder = cotp_pdu::Decoder::default();
    let mut found = Vec::new();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            let piece = match packets.next(&mut input) {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(e) => {
                    found.push(Transport::NoTpkt(e));
                    return found;
                }
            };
            let items = match decoder.push(piece) {
                Ok(items) => items,
                Err(rejected) => {
                    assert!(rejected.header.len() <= 255);
                    found.push(Transport::Rejected(rejected));
                    return found;
                }
            };
            for item in items {
                match (item, found.last_mut()) {
                    (cotp_pdu::Item::Tpdu { tpdu, length }, _) => {
                        found.push(Transport::Tpdu(tpdu, length));
                    }
                    (cotp_pdu::Item::Data { bytes, last }, Some(Transport::Data(held, ended)))
                        if !*ended =>
                    {
                        held.extend_from_slice(&bytes);
                        *ended = last;
                    }
                    (cotp_pdu::Item::Data { bytes, last }, _) => {
                        found.push(Transport::Data(bytes.to_vec(), last));
                    }
                }
            }
        }
    }
    found
}

pub(super) fn cotp(octets: &[u8]) {
    let whole = tpdus(&[octets]);
    assert_eq!(tpdus(&cut(octets)), whole);
    for item in &whole {
        match item {
            Transport::Tpdu(tpdu, _) => {
                let written = tpdu.encode();
                let (length, header) = written.split_first().expect("a length indicator");
                assert_eq!(usize::from(*length), header.len());
                assert_eq!(Tpdu::decode(header), Ok(tpdu.clone()));
            }
            Transport::Rejected(rejected) => {
                let answer = cotp_pdu::encode_error(1, rejected.error, &rejected.header);
                assert!(answer.len() <= 4096);
            }
            Transport::Data(..) | Transport::NoTpkt(_) => {}
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Session {
    Spdu(Spdu),
    Data(Vec<u8>, bool),
    Rejected(tsdu::Rejected),
}

/// What is found in one TSDU, and after it in a TSDU of a finish.
fn spdus(pieces: &[&[u8]]) -> Vec<Session> {
    let mut decoder = tsdu::Decoder::default();
    let mut found = Vec::new();
    let finish: &[u8] = &[9, 0];
    let count = pieces.len();
    let all = pieces.iter().zip(1..).map(|(piece, n)| (*piece, n == count));
    for (piece, last) in all.chain([(finish, true)]) {
        match decoder.push(Bytes::copy_from_slice(piece), last) {
            Err(rejected) => {
                assert!(rejected.reflect.len() <= 9);
                found.push(Session::Rejected(rejected));
            }
            Ok(items) => {
                for item in items {
                    match (item, found.last_mut()) {
                        (tsdu::Item::Spdu(spdu), _) => found.push(Session::Spdu(spdu)),
                        (tsdu::Item::Data { bytes, last }, Some(Session::Data(held, ended)))
                            if !*ended =>
                        {
                            held.extend_from_slice(&bytes);
                            *ended = last;
                        }
                        (tsdu::Item::Data { bytes, last }, _) => {
                            found.push(Session::Data(bytes.to_vec(), last));
                        }
                    }
                }
            }
        }
    }
    let finished = Session::Spdu(Spdu::Finish { keep: false, user_data: Bytes::new() });
    assert_eq!(found.last(), Some(&finished), "a bad TSDU spoils the next");
    found
}

pub(super) fn session(octets: &[u8]) {
    if octets.is_empty() {
        return;
    }
    let whole = spdus(&[octets]);
    assert_eq!(spdus(&cut(octets)), whole);
    for place in [Place::Alone, Place::Concatenated] {
        let Ok((spdu, rest)) = Spdu::decode(octets, place) else { continue };
        assert_eq!(header_length(octets), Some(octets.len() - rest.len()));
        let written = spdu.encode();
        assert_eq!(Spdu::decode(&written, place), Ok((spdu, &[][..])));
    }
}

/// A secret, which no line has.
const SECRET: &[u8] = b"harbour";

fn lines(direction: Direction, pieces: &[&[u8]]) -> Vec<Line> {
    let mut explainer = Explainer::new([Bytes::from_static(SECRET)]);
    let mut lines = Vec::new();
    for piece in pieces {
        explainer.octets(direction, piece);
        lines.extend(std::iter::from_fn(|| explainer.poll()));
    }
    assert!(lines.len() <= MAX_LINES, "{} lines", lines.len());
    lines
}

/// The explanation of an association: what a peer sends, at any cut, and the same as octets of ours.
pub(super) fn explained(octets: &[u8]) {
    for direction in [Direction::Received, Direction::Sent] {
        let whole = lines(direction, &[octets]);
        let shown = format!("{whole:?}");
        assert!(!shown.contains("harbour") && !shown.contains("68 61 72 62"), "{shown}");
        // A stream that cannot be read further ends with what had come by then.
        let reads_on =
            |line: &Line| line.trouble.as_ref().is_none_or(|t| t.cause != explain::Cause::NotTpkt);
        let (a, b) = octets.split_at(octets.len() / 2);
        if whole.iter().all(reads_on) {
            assert_eq!(lines(direction, &[a, b]), whole);
        }
    }
}
