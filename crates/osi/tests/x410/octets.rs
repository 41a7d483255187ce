//! What goes over the wire in this mode, octet for octet: the call of a foreign MTA, its transfers, its refusals.

use crate::pair::{ARGUMENT, Notified, RESULT, Side, p1, rtse, unit};
use crate::{bytes_of, transfer};
use bytes::Bytes;
use osi::api::{
    AbortReason, Dialogue, Indication, Input, Mode, Output, RefuseReason, Request, Role,
};

/// One of our ends, and the octets that it writes, without TPKT and DT.
struct End {
    side: Side,
    written: Vec<Vec<u8>>,
}

const CR: &[u8] = &[3, 0, 0, 11, 6, 0xE0, 0, 0, 0, 1, 0];
const CC: &[u8] = &[3, 0, 0, 11, 6, 0xD0, 0, 1, 0, 1, 0];

fn tpkt(tsdu: &[u8]) -> Vec<u8> {
    let length = u16::try_from(tsdu.len() + 7).unwrap().to_be_bytes();
    [&[3, 0, length[0], length[1], 2, 0xF0, 0x80], tsdu].concat()
}

impl End {
    fn new(role: Role, change: impl FnOnce(&mut osi::api::RtseParameters)) -> End {
        let mut end = End { side: Side::new(rtse(p1(), change), role), written: Vec::new() };
        match role {
            Role::Initiator => {
                end.ask(Request::Open { bind: Bytes::from_static(ARGUMENT) });
                end.octets(CC);
            }
            Role::Responder => end.octets(CR),
        }
        end
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = base::Instant(1_000_000);
        self.side.stack.handle(now, input);
        let mut octets = Vec::new();
        loop {
            match self.side.stack.poll() {
                Some(Output::Send(bytes)) => octets.extend_from_slice(&bytes),
                Some(Output::Indication(indication)) => {
                    if let Some(answer) = self.side.answer(indication) {
                        self.side.stack.handle(now, Input::Request(answer));
                    }
                }
                Some(Output::Close) => self.side.closed = true,
                None => break,
            }
        }
        while octets.len() >= 4 {
            let rest = octets.split_off(usize::from(u16::from_be_bytes([octets[2], octets[3]])));
            if octets[5] == 0xF0 {
                self.written.push(octets.split_off(7));
            }
            octets = rest;
        }
    }

    fn ask(&mut self, request: Request) {
        self.handle(Input::Request(request));
    }

    fn octets(&mut self, octets: &[u8]) {
        self.handle(Input::Bytes(octets));
    }

    /// What it writes after this TSDU.
    fn takes(&mut self, tsdu: &[u8]) -> Vec<Vec<u8>> {
        self.written.clear();
        self.octets(&tpkt(tsdu));
        std::mem::take(&mut self.written)
    }
}

/// The CONNECT of a foreign MTA that calls in this mode: its references, TSDU sizes of 2041, versions 1 and 2.
fn call(versions: u8, tsdu: [u8; 4], protocol: &[u8]) -> Vec<u8> {
    let rtorq = [
        &[0x80, 1, 0x3F, 0x82, 1, 1, 0xA3, 0x14, 0xA0, 0x12, 0xA1, 0x10, 0x80, 4][..],
        b"MTA1\xA1\x08\x04\x06secret",
        protocol,
    ]
    .concat();
    let cp = [&[0xA0, 3, 0x80, 1, 0, 0xA1, rtorq.len() as u8], &rtorq[..]].concat();
    let cp = [&[0x31, cp.len() as u8], &cp[..]].concat();
    let parameters = [
        &[1, 0x17, 0x0A, 4, 0x14, 2][..],
        b"vm\x0B\x0F\x17\x0D900102030405Z",
        &[5, 0x0F, 0x13, 1, 0, 0x15, 4],
        &tsdu,
        &[0x16, 1, versions, 0x1A, 1, 0, 0x14, 2, 2, 0x49, 0xC1, cp.len() as u8],
        &cp,
    ]
    .concat();
    [&[13, parameters.len() as u8], &parameters[..]].concat()
}

const SIZES: [u8; 4] = [7, 0xF9, 7, 0xF9];

#[test]
fn a_foreign_call_is_taken_up_and_answered() {
    for (octets, protocol) in [
        (&[0x84, 2, 0x0C, 0][..], Some(3072)),
        (&[0x84, 2, 1, 0], Some(256)),
        (&[0x84, 1, 12], Some(12)),
        (&[], None),
    ] {
        let mut end = End::new(Role::Responder, |_| {});
        let answer = end.takes(&call(3, SIZES, octets));
        let Some(Indication::Open { bind, mode, dialogue, .. }) =
            end.side.find(|i| matches!(i, Indication::Open { .. }))
        else {
            panic!("{:?}", end.side.indicated);
        };
        assert_eq!(mode, Mode::X410 { protocol });
        assert_eq!(dialogue, Dialogue::TwoWayAlternate);
        assert_eq!(&bind[..], b"\xA1\x10\x80\x04MTA1\xA1\x08\x04\x06secret");
        // ACCEPT: the reference, TSDU sizes and version 2; CPA with an RTOAC.
        let cpa = [
            &[0x31, 0x15, 0xA0, 3, 0x80, 1, 0, 0xA1, 0x0E, 0x80, 1, 0x3F, 0xA2, 9, 0xA0, 7][..],
            RESULT,
        ]
        .concat();
        let head = [
            &[14, 0x49, 1, 0x17, 9, 4, 0x14, 2][..],
            b"vm\x0B\x0F\x17\x0D900102030405Z",
            &[5, 0x0C, 0x13, 1, 0, 0x15, 4, 7, 0xF9, 7, 0xF9, 0x16, 1, 2],
        ]
        .concat();
        assert_eq!(answer.len(), 1);
        assert_eq!(answer[0][2..head.len()], head[2..], "{:02x?}", answer[0]);
        assert!(answer[0].ends_with(&cpa), "{:02x?}", answer[0]);
    }
}

/// Bare, wrapped in OCTET STRINGs, and in pieces of a TSDU each.
#[test]
fn a_transfer_comes_in_any_form() {
    let apdu = bytes_of(&unit(40));
    let wrapped = [&[4, apdu.len() as u8], &apdu[..]].concat();
    let indefinite = [&[0x24, 0x80, 4, apdu.len() as u8], &apdu[..], &[0, 0]].concat();
    for form in [&apdu, &wrapped, &indefinite] {
        for cut in [1, 7, form.len()] {
            let mut end = End::new(Role::Responder, |_| {});
            end.takes(&call(3, SIZES, &[]));
            end.takes(&[1, 0, 45, 5, 0x29, 3, 2, 1, 1]);
            let pieces = form.len().div_ceil(cut);
            for (n, piece) in form.chunks(cut).enumerate() {
                let marks = u8::from(n == 0) | u8::from(n + 1 == pieces) << 1;
                end.takes(&[&[1, 0, 1, 3, 0x19, 1, marks], piece].concat());
            }
            assert_eq!(end.side.all_data(), apdu, "{cut}");
            assert_eq!(end.takes(&[1, 0, 41, 3, 0x2A, 1, b'1'])[0][2..], [42, 3, 0x2A, 1, b'1']);
            assert!(end.side.has_indication(|i| matches!(i, Indication::TransferEnd)));
        }
    }
}

/// Version 1 alone: the answer has it, and an abort with more than 9 octets goes without them.
#[test]
fn version_1_is_taken_up() {
    let mut end = End::new(Role::Responder, |_| {});
    let answer = end.takes(&call(1, [0; 4], &[0x84, 1, 1]));
    assert!(answer[0].windows(3).any(|w| w == [0x16, 1, 1]), "{:02x?}", answer[0]);
    end.written.clear();
    end.ask(Request::Abort(AbortReason::UserError));
    let abort = [25, 10, 0x11, 1, 3, 0xC1, 5, 0x31, 3, 0x80, 1, 6];
    assert_eq!(end.written, [&abort[..]], "{:02x?}", end.written);
}

#[test]
fn a_refusal_has_a_reason() {
    for (reason, number) in [
        (RefuseReason::Busy, 0),
        (RefuseReason::CannotRecover, 1),
        (RefuseReason::Bind, 2),
        (RefuseReason::DialogueMode, 3),
    ] {
        let mut end = End::new(Role::Responder, |_| {});
        end.side.accepts = false;
        end.takes(&call(3, SIZES, &[]));
        end.written.clear();
        let bind_error = Some(Bytes::from_static(&[2, 1, 2]));
        end.ask(Request::Refuse { reason, bind_error });
        let refuse = &end.written[0];
        assert_eq!(refuse[0], 12);
        assert!(refuse.ends_with(&[0x31, 3, 0x80, 1, number]), "{refuse:02x?}");
        assert!(refuse.windows(3).any(|w| w == [0x32, 6, 2]), "reason 2 with user data");
        // The same as we read it.
        let mut caller = End::new(Role::Initiator, |_| {});
        caller.takes(refuse);
        let refused = caller.side.find(|i| matches!(i, Indication::Refused { .. }));
        let Some(Indication::Refused { reason: read, .. }) = refused else { panic!() };
        let expected =
            if reason == RefuseReason::Bind { RefuseReason::ValidationFailure } else { reason };
        assert_eq!(read, expected);
    }
}

/// The CONNECT, a transfer in TSDUs of 64 octets, and the release.
#[test]
fn our_call_is_a_pconnect() {
    let mut end = End::new(Role::Initiator, |p| p.checkpoint_size = 1);
    let connect = end.written[0].clone();
    let pconnect = [
        &[0x31, 0x1E, 0xA0, 3, 0x80, 1, 0, 0xA1, 0x17, 0x80, 1, 1, 0x81, 1, 0x10, 0x82, 1, 1][..],
        &[0xA3, 9, 0xA0, 7],
        ARGUMENT,
        &[0x84, 1, 12],
    ]
    .concat();
    assert!(connect.ends_with(&pconnect), "{connect:02x?}");
    assert!(connect.windows(3).any(|w| w == [0x16, 1, 3]), "versions 1 and 2");
    assert!(connect.windows(10).any(|w| w == *b"\x0A\x09\x14\x07assoc-"), "{connect:02x?}");
    let cpa = [
        &[0x31, 0x19, 0xA0, 3, 0x80, 1, 0, 0xA1, 0x12, 0x80, 1, 1, 0x81, 1, 1][..],
        &[0xA2, 0x0A, 0xA0, 8, 0xA1, 6, 0x80, 4, b'M', b'T', b'A', b'2'],
    ]
    .concat();
    let accept = [
        &[5, 0x0C, 0x13, 1, 0, 0x15, 4, 0, 64, 0, 64, 0x16, 1, 1][..],
        &[0x14, 2, 2, 0x49, 0xC1, cpa.len() as u8],
        &cpa,
    ]
    .concat();
    end.takes(&[&[14, accept.len() as u8], &accept[..]].concat());
    assert!(end.side.has_indication(|i| matches!(i, Indication::Opened { .. })));
    let unit = unit(200);
    end.written.clear();
    end.ask(transfer(unit.clone()));
    assert_eq!(end.written[0], [1, 0, 45, 5, 0x29, 3, 2, 1, 1], "ACTIVITY START");
    let (last, data) = end.written[1..].split_last().unwrap();
    assert_eq!(last[2], 41, "ACTIVITY END");
    assert!(data.iter().all(|tsdu| tsdu.len() <= 64 && tsdu[2..6] == [1, 3, 0x19, 1]));
    let sent: Vec<u8> = data.iter().flat_map(|tsdu| tsdu[7..].to_vec()).collect();
    assert_eq!(sent, bytes_of(&unit), "no EXTERNAL, no OCTET STRING");
    let serial = &last[3..];
    end.takes(&[&[1, 0, 42], serial].concat());
    assert!(end.side.has_indication(|i| matches!(i, Indication::TransferConfirmed)));
    end.ask(Request::Release);
    assert_eq!(end.written, [&[9, 3, 0x11, 1, 1][..]], "FINISH without user data");
    end.takes(&[10, 0]);
    assert!(end.side.has_indication(|i| matches!(i, Indication::Released)));
}

/// An abort of the peer with the members of an RTAB, or with something else.
#[test]
fn an_abort_is_read() {
    for (data, expected) in [
        (&[0xC1, 5, 0x31, 3, 0x80, 1, 3][..], Some(AbortReason::TemporaryProblem)),
        (&[], None),
        (&[0xC1, 2, 5, 0], None),
    ] {
        let mut end = End::new(Role::Responder, |_| {});
        end.takes(&call(3, SIZES, &[]));
        let abort = [&[0x11, 1, 3], data].concat();
        end.takes(&[&[25, abort.len() as u8], &abort[..]].concat());
        let aborted = end.side.find(|i| matches!(i, Indication::Aborted { .. }));
        let Some(Indication::Aborted { reason, detail }) = aborted else { panic!() };
        assert_eq!(reason, expected, "{detail}");
        assert!(!matches!(end.side.indicated.last(), Some(Notified::Data { .. })));
    }
}
