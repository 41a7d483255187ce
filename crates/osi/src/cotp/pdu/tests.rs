use super::*;
use proptest::prelude::*;

fn items(stream: &[u8], cuts: &[usize]) -> Result<Vec<Item>, Rejected> {
    let (mut packets, mut decoder) = (tpkt::Decoder::default(), Decoder::default());
    let mut out: Vec<Item> = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([stream.len()]) {
        let mut input = Bytes::copy_from_slice(&stream[from..to]);
        from = to;
        while let Some(piece) = packets.next(&mut input).expect("TPKT") {
            for item in decoder.push(piece)? {
                // Data compares modulo its division.
                if let (Some(Item::Data { bytes: a, last: l }), Item::Data { bytes, last }) =
                    (out.last_mut(), &item)
                    && !*l
                {
                    *a = [a.as_ref(), bytes.as_ref()].concat().into();
                    *l = *last;
                    continue;
                }
                out.push(item);
            }
        }
    }
    Ok(out)
}

/// A captured shape: CR with both selectors and 2,048 octets, then a TSDU in two DTs.
const STREAM: &[u8] = &[
    3, 0, 0, 22, 17, 0xE0, 0, 0, 0, 5, 0, 0xC0, 1, 0x0B, 0xC1, 2, b'a', b'b', 0xC2, 2, b'c',
    b'd', //
    3, 0, 0, 9, 2, 0xF0, 0x00, 1, 2, //
    3, 0, 0, 8, 2, 0xF0, 0x80, 3,
];

#[test]
fn of_a_reserved_length_indicator_no_more_is_held() {
    let push = |octets: &'static [u8], last| {
        let bytes = Bytes::from_static(octets);
        Decoder::default().push(Piece { bytes, length: 300, first: true, last })
    };
    let rejected = Rejected { error: Error::Malformed, header: vec![255] };
    assert_eq!(push(&[255], false), Err(rejected.clone()));
    assert_eq!(push(&[255; 300], true), Err(rejected));
}

#[test]
fn literal_octets() {
    let out = items(STREAM, &[]).unwrap();
    let connect = Connect {
        source: 5,
        size: Some(11),
        calling: Some(Bytes::from_static(b"ab")),
        called: Some(Bytes::from_static(b"cd")),
        ..Connect::default()
    };
    assert_eq!(
        out,
        [
            Item::Tpdu { tpdu: Tpdu::Cr(connect.clone()), length: 18 },
            Item::Tpdu { tpdu: Tpdu::Dt { end: false }, length: 5 },
            Item::Data { bytes: Bytes::from_static(&[1, 2]), last: false },
            Item::Tpdu { tpdu: Tpdu::Dt { end: true }, length: 4 },
            Item::Data { bytes: Bytes::from_static(&[3]), last: true },
        ]
    );
    assert_eq!(Tpdu::Cr(connect).encode(), &STREAM[4..22]);
}

#[test]
fn every_cut_gives_the_same_items() {
    let whole = items(STREAM, &[]).unwrap();
    for a in 0..=STREAM.len() {
        for b in a..=STREAM.len() {
            assert_eq!(items(STREAM, &[a, b]).unwrap(), whole, "cuts {a} {b}");
        }
    }
}

#[test]
fn a_confirm_may_carry_references_only() {
    let out = items(&[3, 0, 0, 11, 6, 0xD0, 0, 1, 0, 2, 0], &[]).unwrap();
    let connect = Connect { destination: 1, source: 2, ..Connect::default() };
    assert_eq!(out, [Item::Tpdu { tpdu: Tpdu::Cc(connect), length: 7 }]);
}

#[test]
fn an_empty_dt_ends_a_tsdu() {
    let out = items(&[3, 0, 0, 7, 2, 0xF0, 0x80], &[]).unwrap();
    assert_eq!(out.last(), Some(&Item::Data { bytes: Bytes::new(), last: true }));
}

#[test]
fn unknown_parameters_are_ignored_and_an_empty_selector_is_not_absent() {
    let header = [0xE0, 0, 0, 0, 1, 0, 0xF0, 1, 9, 0xC1, 0, 0x85, 2, 1, 1];
    let Ok(Tpdu::Cr(connect)) = Tpdu::decode(&header) else { panic!("not a CR") };
    assert_eq!((connect.calling, connect.called), (Some(Bytes::new()), None));
}

#[test]
fn what_is_wrong_is_named() {
    assert_eq!(items(&[3, 0, 0, 7, 9, 0xF0, 0x80], &[]).unwrap_err().error, Error::Malformed);
    assert_eq!(items(&[3, 0, 0, 7, 255, 0xF0, 0], &[]).unwrap_err().error, Error::Malformed);
    assert_eq!(items(&[3, 0, 0, 7, 2, 0x10, 0], &[]).unwrap_err().error, Error::Type);
    assert_eq!(Tpdu::decode(&[0xE0, 0, 0, 0, 1, 0, 0xC0, 1, 6]), Err(Error::Value("TPDU size")));
    assert_eq!(Tpdu::decode(&[0xE0, 0, 0, 0, 1, 0, 0xC0, 9, 6]), Err(Error::Malformed));
    assert_eq!(
        encode_error(0x0102, Error::Type, &[2, 0x10, 0]),
        [9, 0x70, 1, 2, 2, 0xC1, 3, 2, 0x10, 0]
    );
}

#[test]
fn classes_that_lead_to_class_0() {
    let class = |class, alternatives| Connect { class, alternatives, ..Connect::default() };
    assert!(class(0, 0).allows_class_0());
    assert!(class(1, 0).allows_class_0());
    assert!(class(4, 0b101).allows_class_0());
    assert!(!class(4, 0b100).allows_class_0());
    assert!(!class(2, 0).allows_class_0());
}

proptest! {
    #[test]
    fn connects_round_trip(
        references in any::<(u16, u16)>(),
        class in 0u8..=4,
        alternatives in 0u8..32,
        size in proptest::option::of(7u8..=13),
        calling in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..32)),
        called in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..32)),
    ) {
        let connect = Connect {
            destination: references.0,
            source: references.1,
            class,
            alternatives,
            size,
            calling: calling.map(Bytes::from),
            called: called.map(Bytes::from),
        };
        for tpdu in [Tpdu::Cr(connect.clone()), Tpdu::Cc(connect)] {
            prop_assert_eq!(Tpdu::decode(&tpdu.encode()[1..]), Ok(tpdu));
        }
    }

    #[test]
    fn garbage_never_panics(octets in proptest::collection::vec(any::<u8>(), 3..200), cut in 0usize..200) {
        let mut stream = tpkt::header(octets.len()).to_vec();
        stream.extend_from_slice(&octets);
        let _ = items(&stream, &[cut.min(stream.len())]);
    }
}
