//! Literal octets as seen in the field, and round trips.

use super::*;
use proptest::prelude::*;

fn alone(octets: &[u8]) -> Spdu {
    let (spdu, rest) = Spdu::decode(octets, Place::Alone).unwrap();
    assert!(rest.is_empty());
    spdu
}

fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"\x04\x08Percival"),
        common: Bytes::from_static(b"\x17\x0D260102030405Z"),
        additional: Bytes::new(),
    }
}

/// The order of parameters seen from two implementations.
#[rustfmt::skip]
const CN: &[u8] = &[
    0x0D, 53,
    0x01, 29,
        0x0A, 10, 4, 8, b'P', b'e', b'r', b'c', b'i', b'v', b'a', b'l',
        0x0B, 15, 0x17, 13, b'2', b'6', b'0', b'1', b'0', b'2', b'0', b'3', b'0', b'4', b'0', b'5', b'Z',
    0x05, 9, 0x13, 1, 0, 0x16, 1, 2, 0x1A, 1, 0,
    0x14, 2, 0x02, 0x49,
    0x34, 0,
    0xC1, 3, 0x31, 0x80, 0,
];

#[test]
fn connect_as_seen() {
    let connect = ConnectSpdu {
        reference: reference(),
        versions: VERSION_2,
        requirements: 0x0249,
        called: Some(Bytes::new()),
        user_data: Bytes::from_static(&[0x31, 0x80, 0]),
        ..ConnectSpdu::default()
    };
    assert_eq!(alone(CN), Spdu::Connect(connect.clone()));
    assert_eq!(Spdu::Connect(connect).encode(), CN);
}

#[test]
fn connect_with_a_tsdu_maximum_and_t61_references() {
    #[rustfmt::skip]
    let octets = [
        0x0D, 35,
        0x01, 6, 0x0A, 4, 0x14, 2, b'a', b'b',
        0x05, 15, 0x13, 1, 0, 0x15, 4, 0x07, 0xF9, 0x07, 0xF9, 0x16, 1, 2, 0x1A, 1, 0,
        0x14, 2, 0x02, 0x49,
        0x33, 0,
        0xC1, 2, 1, 2,
    ];
    let Spdu::Connect(connect) = alone(&octets) else { panic!("not a CN") };
    assert_eq!(connect.tsdu_maximum, Some((2041, 2041)));
    assert_eq!(&connect.reference.user[..], [0x14, 2, b'a', b'b']);
    assert_eq!((connect.calling, connect.called), (Some(Bytes::new()), None));
}

#[test]
fn defaults_of_a_bare_connect() {
    let Spdu::Connect(connect) = alone(&[0x0D, 0]) else { panic!("not a CN") };
    assert_eq!((connect.versions, connect.requirements), (1, DEFAULT_REQUIREMENTS));
}

#[test]
fn accept_echoes_the_called_reference() {
    #[rustfmt::skip]
    let octets = [
        0x0E, 22,
        0x01, 6, 0x09, 4, 0x14, 2, b'a', b'b',
        0x05, 6, 0x13, 1, 0, 0x16, 1, 2,
        0x14, 2, 0x02, 0x49,
        0x34, 0,
    ];
    let accept = AcceptSpdu {
        reference: ConnectionReference {
            user: Bytes::from_static(&[0x14, 2, b'a', b'b']),
            ..ConnectionReference::default()
        },
        version: Some(VERSION_2),
        requirements: 0x0249,
        responding: Some(Bytes::new()),
        ..AcceptSpdu::default()
    };
    let octets = &octets[..];
    assert_eq!(Spdu::Accept(accept.clone()).encode(), octets);
    assert_eq!(alone(octets), Spdu::Accept(accept));
}

#[test]
fn refuse_carries_the_users_reason() {
    let octets = [0x0C, 11, 0x11, 1, 1, 0x14, 2, 0x02, 0x49, 0x32, 2, 2, 0x30];
    let refuse = Spdu::Refuse {
        reference: ConnectionReference::default(),
        requirements: Some(0x0249),
        reason: 2,
        user_data: Bytes::from_static(&[0x30]),
    };
    assert_eq!(alone(&octets), refuse);
    assert_eq!(refuse.encode(), octets);
}

#[test]
fn finish_and_disconnect() {
    let finish = Spdu::Finish { keep: false, user_data: Bytes::from_static(&[0x61, 0]) };
    assert_eq!(finish.encode(), [0x09, 7, 0x11, 1, 1, 0xC1, 2, 0x61, 0]);
    assert_eq!(alone(&[0x09, 0]), Spdu::Finish { keep: false, user_data: Bytes::new() });
    assert_eq!(alone(&[0x0A, 0]), Spdu::Disconnect { user_data: Bytes::new() });
}

#[test]
fn activity_and_synchronization_as_seen() {
    let tsdu = |spdu: Spdu| spdu.encode_tsdu();
    assert_eq!(
        tsdu(Spdu::ActivityStart(Bytes::from_static(&[2, 1, 1]))),
        [1, 0, 0x2D, 5, 0x29, 3, 2, 1, 1]
    );
    assert_eq!(tsdu(Spdu::ActivityEnd(1)), [1, 0, 0x29, 3, 0x2A, 1, 0x31]);
    assert_eq!(tsdu(Spdu::ActivityEndAck(1)), [2, 0, 0x2A, 3, 0x2A, 1, 0x31]);
    assert_eq!(
        tsdu(Spdu::MinorSync { serial: 12, explicit: true }),
        [1, 0, 0x31, 4, 0x2A, 2, 0x31, 0x32]
    );
    assert_eq!(tsdu(Spdu::MinorSyncAck(999_999)), [2, 0, 50, 8, 0x2A, 6, 57, 57, 57, 57, 57, 57]);
    assert_eq!(tsdu(Spdu::Data(Enclosure::WHOLE)), [1, 0, 1, 0]);
    assert_eq!(tsdu(Spdu::GiveControl), [21, 0]);
    assert_eq!(tsdu(Spdu::GiveTokens(0x15)), [1, 3, 0x10, 1, 0x15]);
}

#[test]
fn resume_links_to_the_old_connection() {
    #[rustfmt::skip]
    let octets = [
        0x1D, 20,
        0x21, 13, 0x0A, 2, 0x14, 0, 0x29, 3, 2, 1, 7, 0x2A, 2, b'1', b'0',
        0x29, 3, 2, 1, 8,
    ];
    let resume = Resume {
        activity: Bytes::from_static(&[2, 1, 8]),
        old_activity: Bytes::from_static(&[2, 1, 7]),
        serial: 10,
        old_reference: Some(ConnectionReference {
            user: Bytes::from_static(&[0x14, 0]),
            ..ConnectionReference::default()
        }),
    };
    assert_eq!(Spdu::ActivityResume(resume.clone()).encode(), octets);
    assert_eq!(alone(&octets), Spdu::ActivityResume(resume));
}

#[test]
fn a_major_sync_point_is_not_an_activity_end() {
    let octets = [0x29, 6, 0x0F, 1, 2, 0x2A, 1, 0x31];
    assert_eq!(Spdu::decode(&octets, Place::Concatenated), Err(Error::Identifier(41)));
}

#[test]
fn long_forms() {
    for (length, code) in
        [(0usize, None), (512, Some(0xC1)), (513, Some(0xC2)), (10_240, Some(0xC2))]
    {
        let connect = ConnectSpdu {
            versions: VERSION_2,
            user_data: Bytes::from(vec![7; length]),
            ..ConnectSpdu::default()
        };
        let octets = Spdu::Connect(connect.clone()).encode();
        assert_eq!(alone(&octets), Spdu::Connect(connect));
        if let Some(code) = code {
            let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
            let header = [code, 0xFF, high, low];
            assert_eq!(octets[octets.len() - length - 4..][..4], header);
        }
    }
    // 254 is the longest short form.
    let text = |n: usize| Spdu::Disconnect { user_data: Bytes::from(vec![0; n]) }.encode();
    assert_eq!(text(252)[..4], [10, 254, 0xC1, 252]);
    assert_eq!(text(253)[..6], [10, 255, 0, 255, 0xC1, 253]);
}

fn reason() -> impl Strategy<Value = ExceptionReason> {
    proptest::sample::select(vec![
        ExceptionReason::NonSpecific,
        ExceptionReason::ReceivingAbilityJeopardized,
        ExceptionReason::SequenceError,
        ExceptionReason::LocalError,
        ExceptionReason::Unrecoverable,
        ExceptionReason::DemandDataToken,
    ])
}

fn octets(length: std::ops::Range<usize>) -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), length).prop_map(Bytes::from)
}

fn references() -> impl Strategy<Value = ConnectionReference> {
    (octets(0..65), octets(0..65), octets(0..5))
        .prop_map(|(user, common, additional)| ConnectionReference { user, common, additional })
}

fn connect() -> impl Strategy<Value = ConnectSpdu> {
    let selector = || proptest::option::of(octets(0..17));
    (
        references(),
        any::<(u8, u8, u16)>(),
        proptest::option::of(any::<(u16, u16)>()),
        selector(),
        selector(),
        octets(0..700),
    )
        .prop_map(|(reference, numbers, tsdu_maximum, calling, called, user_data)| {
            ConnectSpdu {
                reference,
                versions: numbers.0,
                // 11 is reserved.
                token_setting: numbers.1 & !((numbers.1 & 0b0101_0101) << 1),
                requirements: numbers.2,
                tsdu_maximum,
                calling,
                called,
                overflow: false,
                user_data,
            }
        })
}

fn spdus() -> impl Strategy<Value = Spdu> {
    let serial = || 0u32..=MAX_SERIAL;
    let resume = (octets(0..7), octets(0..7), serial(), proptest::option::of(references()));
    prop_oneof![
        connect().prop_map(Spdu::Connect),
        connect().prop_map(|c| Spdu::Accept(AcceptSpdu {
            reference: c.reference,
            version: Some(c.versions),
            tsdu_maximum: c.tsdu_maximum,
            token_setting: Some(c.token_setting & 0b0101_0101),
            please: c.token_setting,
            requirements: c.requirements,
            responding: c.called,
            user_data: c.user_data,
        })),
        (references(), proptest::option::of(any::<u16>()), any::<u8>(), octets(0..600)).prop_map(
            |(reference, requirements, reason, user_data)| Spdu::Refuse {
                reference,
                requirements,
                reason,
                user_data
            }
        ),
        (any::<bool>(), octets(0..300))
            .prop_map(|(keep, user_data)| Spdu::Finish { keep, user_data }),
        octets(0..300).prop_map(|user_data| Spdu::Disconnect { user_data }),
        (any::<u8>(), octets(0..10), octets(0..300)).prop_map(
            |(disconnect, reflect, user_data)| Spdu::Abort { disconnect, reflect, user_data }
        ),
        Just(Spdu::AbortAccept),
        any::<u8>().prop_map(Spdu::GiveTokens),
        (any::<u8>(), octets(0..300))
            .prop_map(|(tokens, user_data)| Spdu::PleaseTokens { tokens, user_data }),
        Just(Spdu::GiveControl),
        Just(Spdu::GiveControlAck),
        (serial(), any::<bool>())
            .prop_map(|(serial, explicit)| Spdu::MinorSync { serial, explicit }),
        serial().prop_map(Spdu::MinorSyncAck),
        octets(0..7).prop_map(Spdu::ActivityStart),
        resume.prop_map(|(activity, old_activity, serial, reference)| {
            let old_reference = reference.filter(|r| *r != ConnectionReference::default());
            Spdu::ActivityResume(Resume { activity, old_activity, serial, old_reference })
        }),
        reason().prop_map(Spdu::ActivityInterrupt),
        Just(Spdu::ActivityInterruptAck),
        reason().prop_map(Spdu::ActivityDiscard),
        Just(Spdu::ActivityDiscardAck),
        serial().prop_map(Spdu::ActivityEnd),
        serial().prop_map(Spdu::ActivityEndAck),
        reason().prop_map(Spdu::ExceptionData),
        Just(Spdu::ExceptionReport),
    ]
}

proptest! {
    #[test]
    fn round_trip(spdu in spdus()) {
        let tsdu = spdu.encode_tsdu();
        let (place, octets) = match tsdu.get(..2) {
            Some([si::GT | si::PT, 0]) => (Place::Concatenated, &tsdu[2..]),
            _ => (Place::Alone, &tsdu[..]),
        };
        prop_assert_eq!(Spdu::decode(octets, place), Ok((spdu, &[][..])));
    }

    #[test]
    fn garbage_never_panics(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Spdu::decode(&octets, Place::Alone);
        let _ = Spdu::decode(&octets, Place::Concatenated);
    }
}
