//! One machine against literal octets, as peers of the field send them.

use super::*;

/// CR with our selector as called one, from reference 5, no TPDU size.
pub(super) const CR: &[u8] = &[3, 0, 0, 16, 11, 0xE0, 0, 0, 0, 5, 0, 0xC2, 3, b'5', b'9', b'1'];

/// A CN as seen in the field: BER references, TSDU maximum 2041, empty selector, P1's requirements.
#[rustfmt::skip]
pub(super) const CN: &[u8] = &[
    3, 0, 0, 50, 2, 0xF0, 0x80,
    0x0D, 41,
    0x01, 12, 0x0A, 10, 4, 8, b'P', b'e', b'r', b'c', b'i', b'v', b'a', b'l',
    0x05, 15, 0x13, 1, 0, 0x15, 4, 0x07, 0xF9, 0x07, 0xF9, 0x16, 1, 2, 0x1A, 1, 0,
    0x14, 2, 0x02, 0x49,
    0xC1, 4, 0x31, 0x80, 0, 0,
];

/// What a peer of the field sends on one connection: two segments of a stream that TCP may cut
/// anywhere.
#[rustfmt::skip]
pub(super) const TRANSFER: &[u8] = &[
    // GT, AS.
    3, 0, 0, 16, 2, 0xF0, 0x80, 1, 0, 0x2D, 5, 0x29, 3, 2, 1, 1,
    // GT, DT over three DTs.
    3, 0, 0, 13, 2, 0xF0, 0x00, 1, 0, 1, 0, 0x61, 0x04,
    3, 0, 0, 9, 2, 0xF0, 0x00, 0x30, 0x02,
    3, 0, 0, 8, 2, 0xF0, 0x80, 0x05,
    // GT, MIP 1.
    3, 0, 0, 14, 2, 0xF0, 0x80, 1, 0, 0x31, 3, 0x2A, 1, 0x31,
    // GT, AE 2.
    3, 0, 0, 14, 2, 0xF0, 0x80, 1, 0, 0x29, 3, 0x2A, 1, 0x32,
];

pub(super) fn transferred() -> Vec<Indication> {
    vec![
        Indication::ActivityStart { activity: activity() },
        Indication::Data { bytes: bytes(&[0x61, 4, 0x30, 2, 5]), last: true },
        Indication::MinorSync { serial: 1 },
        Indication::ActivityEnd { serial: 2 },
    ]
}

pub(super) fn answering() -> End {
    let mut end = End::new(Role::Responder, None);
    end.receive(CR);
    assert_eq!(end.sent(), [3, 0, 0, 11, 6, 0xD0, 0, 5, 0, 1, 0]);
    end.receive(CN);
    let indicated = end.indicated();
    let [Indication::Connect(connect)] = &indicated[..] else { panic!("{indicated:?}") };
    assert_eq!(connect.reference.user, b"\x04\x08Percival"[..]);
    assert_eq!((connect.requirements, &connect.called_selector), (RTSE, &None));
    end.ask(accept(RTSE));
    end
}

#[test]
fn a_peer_of_the_field_calls() {
    let mut end = answering();
    #[rustfmt::skip]
    assert_eq!(end.sent(), [
        3, 0, 0, 45, 2, 0xF0, 0x80,
        0x0E, 36,
        0x01, 12, 0x09, 10, 4, 8, b'P', b'e', b'r', b'c', b'i', b'v', b'a', b'l',
        0x05, 6, 0x13, 1, 0, 0x16, 1, 2,
        0x14, 2, 0x02, 0x49,
        0xC1, 8, b'a', b'c', b'c', b'e', b'p', b't', b'e', b'd',
    ]);
    end.receive(TRANSFER);
    assert_eq!(end.indicated(), transferred());
    end.ask(Request::MinorSyncResponse { serial: 1 });
    assert_eq!(end.sent(), [3, 0, 0, 14, 2, 0xF0, 0x80, 2, 0, 0x32, 3, 0x2A, 1, 0x31]);
    end.ask(Request::ActivityEndResponse);
    assert_eq!(end.sent(), [3, 0, 0, 14, 2, 0xF0, 0x80, 2, 0, 0x2A, 3, 0x2A, 1, 0x32]);
    // FN; we answer DN; the peer sends DR, then closes.
    end.receive(&[3, 0, 0, 14, 2, 0xF0, 0x80, 0x09, 5, 0x11, 1, 1, 0xC1, 0]);
    assert_eq!(end.indicated(), [Indication::Release { user_data: Bytes::new() }]);
    end.ask(Request::ReleaseResponse { user_data: Bytes::new() });
    assert_eq!(end.sent(), [3, 0, 0, 9, 2, 0xF0, 0x80, 0x0A, 0]);
    assert!(!end.closed && end.lower.deadline() == Some(T0 + SETUP));
    end.receive(&[3, 0, 0, 11, 6, 0x80, 0, 1, 0, 5, 0]);
    assert!(end.closed && end.indicated.is_empty());
}

#[test]
fn every_cut_gives_the_same_indications() {
    let stream = [&CN[..0], TRANSFER].concat();
    for cut in 0..=stream.len() {
        let mut end = answering();
        end.receive(&stream[..cut]);
        end.receive(&stream[cut..]);
        assert_eq!(end.indicated(), transferred(), "cut at {cut}");
    }
    let opening = [CR, CN].concat();
    for cut in 0..=opening.len() {
        let mut end = End::new(Role::Responder, None);
        end.receive(&opening[..cut]);
        end.receive(&opening[cut..]);
        assert!(matches!(&end.indicated()[..], [Indication::Connect(_)]), "cut at {cut}");
    }
}

#[test]
fn a_peer_of_the_field_answers() {
    let mut end = End::new(Role::Initiator, Some(2048));
    end.ask(connect(RTSE, b"CP"));
    #[rustfmt::skip]
    assert_eq!(end.sent(), [
        3, 0, 0, 24, 19, 0xE0, 0, 0, 0, 1, 0, 0xC0, 1, 0x0B,
        0xC1, 3, b'5', b'9', b'1', 0xC2, 3, b'5', b'9', b'1',
    ]);
    // A CC with nothing but references.
    end.receive(&[3, 0, 0, 11, 6, 0xD0, 0, 1, 0x12, 0x34, 0]);
    #[rustfmt::skip]
    assert_eq!(end.sent(), [
        3, 0, 0, 58, 2, 0xF0, 0x80,
        0x0D, 49,
        0x01, 22, 0x0A, 3, 4, 1, b'a',
            0x0B, 15, 0x17, 13, b'2', b'6', b'0', b'1', b'0', b'2', b'0', b'3', b'0', b'4', b'0', b'5', b'Z',
        0x05, 9, 0x13, 1, 0, 0x16, 1, 2, 0x1A, 1, 0,
        0x14, 2, 0x02, 0x49,
        0x33, 1, b'S', 0x34, 1, b'S',
        0xC1, 2, b'C', b'P',
    ].to_vec());
    // An AC with an empty selector.
    #[rustfmt::skip]
    end.receive(&[
        3, 0, 0, 27, 2, 0xF0, 0x80,
        0x0E, 18, 0x05, 6, 0x13, 1, 0, 0x16, 1, 2, 0x14, 2, 0x02, 0x49, 0x34, 0, 0xC1, 2, b'O', b'K',
    ]);
    let accepted = Accept {
        responding_selector: Some(Bytes::new()),
        requirements: RTSE,
        user_data: bytes(b"OK"),
    };
    assert_eq!(end.indicated(), [Indication::Accepted(accepted)]);
    end.ask(Request::Release { user_data: bytes(b"R") });
    assert_eq!(end.sent(), [3, 0, 0, 15, 2, 0xF0, 0x80, 9, 6, 0x11, 1, 1, 0xC1, 1, b'R']);
    end.receive(&[3, 0, 0, 12, 2, 0xF0, 0x80, 0x0A, 3, 0xC1, 1, b'D']);
    assert_eq!(end.indicated(), [Indication::Released { user_data: bytes(b"D") }]);
    assert!(end.closed, "the end that sent the FN closes");
}

/// An AC with TSDU sizes that nobody proposed changes nothing: no SSDU is cut.
#[test]
fn sizes_that_were_not_proposed_are_not_taken() {
    let mut end = End::new(Role::Initiator, None);
    end.ask(connect(RTSE, b"CP"));
    end.receive(&[3, 0, 0, 11, 6, 0xD0, 0, 1, 0x12, 0x34, 0]);
    #[rustfmt::skip]
    end.receive(&[
        3, 0, 0, 27, 2, 0xF0, 0x80,
        0x0E, 18, 0x05, 12, 0x13, 1, 0, 0x15, 4, 0, 32, 0, 32, 0x16, 1, 2, 0x14, 2, 0x02, 0x49,
    ]);
    assert!(matches!(end.indicated()[..], [Indication::Accepted(_)]));
    end.ask(Request::ActivityStart { activity: activity() });
    end.sent();
    end.ask(Request::Data { bytes: bytes(&[7; 100]), last: false });
    end.ask(Request::Data { bytes: bytes(&[7; 100]), last: true });
    let sent = end.sent();
    assert_eq!(sent[7..11], [1, 0, 1, 0], "a DT without an enclosure item");
}

#[test]
fn a_peer_of_the_field_refuses() {
    let mut end = End::new(Role::Initiator, None);
    end.ask(connect(RTSE, b"CP"));
    end.receive(&[3, 0, 0, 11, 6, 0xD0, 0, 1, 0x12, 0x34, 0]);
    #[rustfmt::skip]
    end.receive(&[
        3, 0, 0, 22, 2, 0xF0, 0x80,
        0x0C, 13, 0x11, 1, 1, 0x14, 2, 0x02, 0x49, 0x32, 4, 2, b'C', b'P', b'R',
    ]);
    let refuse = Refuse { reason: 2, user_data: bytes(b"CPR") };
    assert_eq!(end.indicated(), [Indication::Refused(refuse)]);
    assert!(end.closed);
}

#[test]
fn version_1_alone_is_refused() {
    let mut end = End::new(Role::Responder, None);
    end.receive(CR);
    end.sent();
    end.receive(&[3, 0, 0, 18, 2, 0xF0, 0x80, 0x0D, 9, 0x05, 3, 0x16, 1, 1, 0x14, 2, 0x02, 0x49]);
    #[rustfmt::skip]
    assert_eq!(end.sent(), [
        3, 0, 0, 19, 2, 0xF0, 0x80,
        0x0C, 10, 0x11, 1, 1, 0x14, 2, 0x02, 0x49, 0x32, 1, 132,
    ]);
    assert!(end.indicated.is_empty() && !end.closed);
    end.lower.eof(T0);
    end.drain();
    assert!(end.closed);
}

#[test]
fn class_4_alone_is_refused_with_a_dr() {
    let mut end = End::new(Role::Responder, None);
    end.receive(&[3, 0, 0, 11, 6, 0xE0, 0, 0, 0, 5, 0x40]);
    let sent = end.sent();
    assert_eq!(sent[5..11], [0x80, 0, 5, 0, 0, 130]);
    assert!(!end.closed && end.indicated.is_empty());
    end.lower.tick(T0 + SETUP);
    end.drain();
    assert!(end.closed);
}

#[test]
fn protocol_errors_abort_and_name_the_clause() {
    // AEA although no activity ended.
    let mut end = answering();
    end.sent();
    end.receive(&[3, 0, 0, 14, 2, 0xF0, 0x80, 2, 0, 0x2A, 3, 0x2A, 1, 0x31]);
    #[rustfmt::skip]
    assert_eq!(end.sent(), [
        3, 0, 0, 19, 2, 0xF0, 0x80,
        0x19, 10, 0x11, 1, 5, 0x31, 5, 0x2A, 3, 0x2A, 1, 0x31,
    ]);
    let indicated = end.indicated();
    let [Indication::ProviderAbort { reason }] = &indicated[..] else { panic!("{indicated:?}") };
    assert_eq!(reason, "session: protocol error: unexpected Aea in Sta713 (X.225 A.4.1.2)");

    // A serial number out of turn.
    let mut end = answering();
    end.receive(&TRANSFER[..16]);
    end.receive(&[3, 0, 0, 14, 2, 0xF0, 0x80, 1, 0, 0x31, 3, 0x2A, 1, 0x32]);
    assert!(matches!(&end.indicated()[..], [_, Indication::ProviderAbort { .. }]));

    // Not an SPDU; the octets after it are ignored.
    let mut end = answering();
    end.receive(&[3, 0, 0, 9, 2, 0xF0, 0x80, 0x63, 0]);
    end.receive(TRANSFER);
    let indicated = end.indicated();
    let [Indication::ProviderAbort { reason }] = &indicated[..] else { panic!("{indicated:?}") };
    assert!(reason.contains("X.225 6.3.7"), "{reason}");

    // A TPDU beyond the size negotiated.
    let mut end = End::new(Role::Responder, Some(128));
    end.receive(CR);
    assert_eq!(end.sent(), [3, 0, 0, 14, 9, 0xD0, 0, 5, 0, 1, 0, 0xC0, 1, 7]);
    end.receive(&[&[3, 0, 0, 133, 2, 0xF0, 0x80][..], &[0x0D; 126]].concat());
    assert_eq!(end.sent()[5], 0x70, "ER");
    assert!(end.indicated.is_empty());
}

#[test]
fn the_peers_provider_aborts() {
    let mut end = answering();
    end.receive(&[3, 0, 0, 14, 2, 0xF0, 0x80, 0x19, 5, 0x11, 1, 5, 0x31, 0]);
    let indicated = end.indicated();
    let [Indication::ProviderAbort { reason }] = &indicated[..] else { panic!("{indicated:?}") };
    assert!(reason.contains("protocol error"), "{reason}");
    assert!(end.closed);
}

#[test]
fn a_responder_may_begin_with_the_tokens() {
    let mut end = End::new(Role::Responder, None);
    end.receive(CR);
    let mut cn = CN.to_vec();
    let setting = cn.windows(3).position(|w| w == [0x1A, 1, 0]).unwrap() + 2;
    cn[setting] = 0b01_01_01;
    end.receive(&cn);
    end.ask(accept(RTSE));
    assert!(end.lower.owns_tokens());
    end.indicated();
    end.ask(Request::ActivityStart { activity: activity() });
}
