//! What TPKT, transport and session answer to every kind of fault, and what is logged: the rows
//! of `docs/refusals.md`. The snapshot is the answer octet for octet.

use super::*;
use crate::tpkt;
use std::fmt::Write as _;

/// How far a connection has come when the fault comes.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Responder: TCP stands.
    Called,
    /// Responder: the transport connection stands, a CN is due.
    Connected,
    /// Responder: the session connection stands, the turn is the peer's.
    Open,
    /// Initiator: the CR is sent.
    Calling,
    /// The same, with a TPDU size of 128 proposed.
    CallingSmall,
    /// Initiator: the CN is sent.
    Asking,
}

fn end(at: At) -> End {
    let mut end = match at {
        At::Called | At::Connected => End::new(Role::Responder, None),
        At::Open => answering(),
        At::Calling | At::Asking => End::new(Role::Initiator, None),
        At::CallingSmall => End::new(Role::Initiator, Some(128)),
    };
    match at {
        At::Called => end.lower.tick(T0),
        At::Connected => end.receive(CR),
        At::Open => {}
        At::Calling | At::CallingSmall => end.ask(connect(RTSE, b"")),
        At::Asking => {
            end.ask(connect(RTSE, b""));
            end.receive(CC);
        }
    }
    end.sent();
    end.indicated();
    end
}

const CC: &[u8] = &[3, 0, 0, 11, 6, 0xD0, 0, 1, 0, 2, 0];

fn packet(tpdu: &[u8]) -> Vec<u8> {
    [&tpkt::header(tpdu.len())[..], tpdu].concat()
}

/// A TSDU in as many DTs as it needs.
fn tsdu(octets: &[u8]) -> Vec<u8> {
    let mut chunks = octets.chunks(60_000).peekable();
    let mut all = Vec::new();
    while let Some(chunk) = chunks.next() {
        let eot = if chunks.peek().is_none() { 0x80 } else { 0 };
        all.extend(packet(&[&[2, 0xF0, eot], chunk].concat()));
    }
    all
}

fn long_connect() -> Vec<u8> {
    let data = vec![0; 10_241];
    let mut parameters = vec![0x05, 3, 0x16, 1, 2, 0x14, 2, 0x02, 0x49, 0xC2, 0xFF];
    parameters.extend((data.len() as u16).to_be_bytes());
    parameters.extend(data);
    let mut spdu = vec![0x0D, 0xFF];
    spdu.extend((parameters.len() as u16).to_be_bytes());
    spdu.extend(parameters);
    tsdu(&spdu)
}

fn cases() -> Vec<(At, &'static str, Vec<u8>)> {
    use At::{Asking, Called, Calling, CallingSmall, Connected, Open};
    vec![
        (Called, "malformed: TPKT version", vec![4, 0, 0, 7]),
        (Called, "malformed: TPKT length", vec![3, 0, 0, 6]),
        (Open, "malformed: TPKT version", vec![0x47, 0x45, 0x54, 0x20]),
        (Called, "out of order: DT before CR", packet(&[2, 0xF0, 0x80])),
        (Called, "out of order: CC before CR", CC.to_vec()),
        (Called, "malformed: TPDU code", packet(&[3, 0x33, 1, 2])),
        (Called, "malformed: length indicator", packet(&[9, 0xE0, 0, 0])),
        (Called, "malformed: CR parameter length", packet(&[9, 0xE0, 0, 0, 0, 5, 0, 0xC1, 4, 1])),
        (Called, "malformed: CR TPDU size", packet(&[9, 0xE0, 0, 0, 0, 5, 0, 0xC0, 1, 6])),
        (Called, "malformed: CR class 5", packet(&[6, 0xE0, 0, 0, 0, 5, 0x50])),
        (Called, "refused: CR for class 4 alone", packet(&[6, 0xE0, 0, 0, 0, 5, 0x40])),
        (Called, "refused: called selector", packet(&[9, 0xE0, 0, 0, 0, 5, 0, 0xC2, 1, b'x'])),
        (Called, "the peer gives up: DR", packet(&[6, 0x80, 0, 0, 0, 5, 0])),
        (Called, "the peer gives up: ER", packet(&[4, 0x70, 0, 0, 3])),
        (Open, "out of order: a second CR", CR.to_vec()),
        (Calling, "out of order: DT before CC", packet(&[2, 0xF0, 0x80])),
        (Calling, "malformed: CC for class 2", packet(&[6, 0xD0, 0, 1, 0, 2, 0x20])),
        (Calling, "malformed: CC for another reference", packet(&[6, 0xD0, 0, 7, 0, 2, 0])),
        (CallingSmall, "too large: CC TPDU size", packet(&[9, 0xD0, 0, 1, 0, 2, 0, 0xC0, 1, 0xB])),
        (Calling, "refused: DR", packet(&[6, 0x80, 0, 1, 0, 0, 3])),
        (Calling, "refused: ER", packet(&[4, 0x70, 0, 1, 3])),
        (Connected, "out of order: DT before CN", tsdu(&[1, 0, 1, 0, 5])),
        (Connected, "malformed: SPDU identifier", tsdu(&[99, 0])),
        (Connected, "malformed: CN parameter length", tsdu(&[0x0D, 3, 0x05, 9, 0])),
        (
            Connected,
            "malformed: CN version number twice",
            tsdu(&[0x0D, 12, 0x05, 6, 0x16, 1, 2, 0x16, 1, 2, 0x14, 2, 2, 0x49]),
        ),
        (
            Connected,
            "malformed: CN initial serial number",
            tsdu(&[0x0D, 12, 0x05, 6, 0x16, 1, 2, 0x17, 1, b'x', 0x14, 2, 2, 0x49]),
        ),
        (
            Connected,
            "malformed: CN token setting",
            tsdu(&[0x0D, 12, 0x05, 6, 0x16, 1, 2, 0x1A, 1, 3, 0x14, 2, 2, 0x49]),
        ),
        (Connected, "too large: CN beyond 64 KiB", tsdu(&vec![0x0D; 130_000])),
        (Connected, "too large: CN user data", long_connect()),
        (
            Connected,
            "refused: version 1 alone",
            tsdu(&[0x0D, 9, 0x05, 3, 0x16, 1, 1, 0x14, 2, 2, 0x49]),
        ),
        (
            Connected,
            "refused: called session selector",
            tsdu(&[0x0D, 12, 0x05, 3, 0x16, 1, 2, 0x14, 2, 2, 0x49, 0x34, 1, b'x']),
        ),
        (Open, "out of order: a second CN", CN.to_vec()),
        (Open, "out of order: AEA", tsdu(&[2, 0, 0x2A, 3, 0x2A, 1, b'1'])),
        (Open, "out of order: MIP outside an activity", tsdu(&[1, 0, 0x31, 3, 0x2A, 1, b'1'])),
        (Open, "out of order: GTA", tsdu(&[0x16, 0])),
        (Open, "malformed: SPDU identifier", tsdu(&[1, 0, 99, 0])),
        (Open, "malformed: serial number", tsdu(&[1, 0, 0x31, 3, 0x2A, 1, b'x'])),
        (Open, "malformed: activity identifier missing", tsdu(&[1, 0, 0x2D, 0])),
        (Open, "malformed: a third SPDU", tsdu(&[1, 0, 0x2D, 3, 0x29, 1, 1, 0x31, 3, 0x2A, 1, 49])),
        (
            Open,
            "too large: an SPDU beyond 64 KiB",
            tsdu(&[&[1, 0, 0x2D, 0xFF, 0xFF, 0xFF][..], &[0; 130_000]].concat()),
        ),
        (Asking, "out of order: DT before AC", tsdu(&[1, 0, 1, 0, 5])),
        (Asking, "out of order: CN to the initiator", CN.to_vec()),
        (Asking, "malformed: AC parameter length", tsdu(&[0x0E, 3, 0x05, 9, 0])),
        (Asking, "malformed: AC version", tsdu(&[0x0E, 9, 0x05, 3, 0x16, 1, 1, 0x14, 2, 2, 0x49])),
        (
            Asking,
            "malformed: AC version number twice",
            tsdu(&[0x0E, 12, 0x05, 6, 0x16, 1, 2, 0x16, 1, 2, 0x14, 2, 2, 0x49]),
        ),
        (
            Asking,
            "malformed: AC initial serial number",
            tsdu(&[
                0x0E, 18, 0x05, 12, 0x16, 1, 2, 0x17, 7, 49, 50, 51, 52, 53, 54, 55, 0x14, 2, 2,
                0x49,
            ]),
        ),
        (
            Asking,
            "malformed: AC token setting",
            tsdu(&[0x0E, 12, 0x05, 6, 0x16, 1, 2, 0x1A, 1, 2, 0x14, 2, 2, 0x49]),
        ),
        (
            Asking,
            "malformed: AC functional units",
            tsdu(&[0x0E, 9, 0x05, 3, 0x16, 1, 2, 0x14, 2, 2, 0x48]),
        ),
        (Asking, "refused: RF", tsdu(&[0x0C, 6, 0x11, 1, 1, 0x32, 1, 132])),
        (Asking, "the peer's provider aborts", tsdu(&[0x19, 3, 0x11, 1, 5])),
    ]
}

fn shown(octets: &[u8]) -> String {
    octets.iter().map(|o| format!("{o:02X}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_fault_is_answered_and_named() {
    let mut text = String::new();
    for (at, name, octets) in cases() {
        let mut end = end(at);
        end.receive(&octets);
        let indicated: Vec<_> = end
            .indicated()
            .into_iter()
            .map(|i| match i {
                Indication::ProviderAbort { reason } => reason,
                Indication::Refused(refuse) => {
                    let why = end.lower.refusal_detail().unwrap_or_default();
                    format!("Refused({}) {why}", refuse.reason)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        // Before there is a session connection only the log shows it.
        let log = match &indicated[..] {
            [] => end.lower.refusal_detail().unwrap_or_default().to_owned(),
            [one] => one.clone(),
            more => panic!("{more:?}"),
        };
        assert!(log.contains("X.22") || log.contains("RFC 1006"), "{at:?} {name}: {log:?}");
        let wire = end.sent();
        writeln!(text, "{at:?}, {name}\n  {log}").unwrap();
        let over = if end.closed { "closed" } else { "waits for the peer to close" };
        writeln!(text, "  [{}] {over}", shown(wire.get(4..).unwrap_or_default())).unwrap();
        // Later octets are ignored, and the wait for the end is bounded.
        if !end.closed {
            end.receive(TRANSFER);
            assert!(end.indicated.is_empty(), "{at:?} {name}: {:?}", end.indicated);
            let due = end.lower.deadline().unwrap();
            assert!(due <= T0 + SETUP);
            end.lower.tick(due);
            end.drain();
        }
        assert!(end.closed, "{at:?} {name}");
    }
    insta::assert_snapshot!("lower_refusals", text);
}
