use super::*;
use proptest::prelude::*;

fn name_and_password(name: u8, password: u8) -> Vec<u8> {
    let mut bind = vec![0xa1, name + password + 6, 0x80, name];
    bind.extend(std::iter::repeat_n(b'n', usize::from(name)));
    bind.extend([0xa1, password + 2, 0x16, password]);
    bind.extend(std::iter::repeat_n(b'p', usize::from(password)));
    bind
}

#[test]
fn bind_argument_as_captured() {
    let bind = name_and_password(0x13, 9);
    let mut wire = vec![0xb0, 0x2a, 0xa3, 0x28, 0xa0, 0x26, 0xb0, 0x24];
    wire.extend(&bind);
    let rtorq = Rtorq {
        mode: Mode::Normal,
        checkpoint_size: 0,
        window: 3,
        dialogue: Dialogue::Monologue,
        data: ConnectionData::Open(bind.into()),
    };
    assert_eq!(rtorq.encode(), wire);
    assert_eq!(Rtorq::decode(&wire, false), Ok(rtorq));
}

#[test]
fn bind_result_as_captured() {
    let bind = name_and_password(0x14, 6);
    let mut wire = vec![0xb1, 0x2b, 0x80, 0x01, 0x3f, 0xa2, 0x26, 0xa0, 0x24, 0xb1, 0x22];
    wire.extend(&bind);
    let rtoac = Rtoac {
        checkpoint_size: 63,
        window: 3,
        mode: Mode::Normal,
        data: ConnectionData::Open(bind.into()),
    };
    assert_eq!(rtoac.encode(), wire);
    assert_eq!(Rtoac::decode(&wire, false), Ok(rtoac));
}

#[test]
fn bind_error_as_captured() {
    let wire = [0xb2, 0x07, 0xa1, 0x05, 0xb2, 0x03, 0x02, 0x01, 0x02];
    let bind_error = Some(Bytes::from_static(&[2, 1, 2]));
    let rtorj = Rtorj { bind_error, ..Rtorj::default() };
    assert_eq!(rtorj.encode(), wire[..]);
    assert_eq!(Rtorj::decode(&wire), Ok(rtorj));
    let x410 = Rtorj::decode(&[0xb2, 0x03, 0x80, 0x01, 0x00]);
    assert_eq!(x410, Ok(Rtorj { reason: Some(0), ..Rtorj::default() }));
}

#[test]
fn a_bind_error_is_an_integer_with_or_without_its_tags() {
    let error = |wire: &[u8]| Rtorj::decode(wire).map(|r| (r.reason, r.bind_error, r.unread));
    for n in 0..9 {
        let bare = Some(Bytes::copy_from_slice(&[2, 1, n]));
        for wire in [
            &[0xb2, 7, 0xa1, 5, 0xb2, 3, 2, 1, n][..],
            &[0xb2, 5, 0xa1, 3, 2, 1, n],
            &[0xb2, 5, 0xa1, 3, 0x92, 1, n],
            &[0xb2, 3, 0x81, 1, n],
            &[0xb2, 3, 2, 1, n],
        ] {
            assert_eq!(error(wire), Ok((None, bare.clone(), None)), "{wire:02X?}");
        }
        assert_eq!(error(&[0xb2, 8, 0x80, 1, 3, 0xa1, 3, 2, 1, n]), Ok((Some(3), bare, None)));
    }
    // An invalid bind error does not hide the reason.
    let (reason, bind_error, unread) =
        error(&[0xb2, 8, 0x80, 1, 0, 0xa1, 3, 0x16, 1, b'x']).unwrap();
    assert_eq!((reason, bind_error), (Some(0), None));
    assert_eq!(unread.unwrap().to_string(), "bind error [18]: unexpected [UNIVERSAL 22]");
    // A BOOLEAN has the number of userDataRJ in another class.
    assert_eq!(error(&[0xb2, 3, 1, 1, 0xff]), Ok((None, None, None)));
}

#[test]
fn an_abort_shows_all_its_fields() {
    let text = |wire: &[u8]| Rtab::decode(wire).map(|rtab| rtab.to_string());
    let whole =
        [&[0xb6, 20, 0x80, 1, 1, 0x81, 2, 0, 0x40, 0xa2, 11, 0x1a, 9][..], b"body part"].concat();
    assert_eq!(
        text(&whole),
        Ok("InvalidParameter, reflectedParameter octets 40, text \"body part\"".to_owned())
    );
    assert_eq!(text(&[0xb6, 3, 0x80, 1, 99]), Ok("abortReason 99".to_owned()));
    assert_eq!(text(&[0xb6, 5, 0xa2, 3, 2, 1, 7]), Ok("no abortReason, octets 02 01 07".into()));
    assert_eq!(text(&[0xb6, 0]), Ok("no abortReason".to_owned()));
}

#[test]
fn recover_is_read_with_either_string_and_written_as_octets() {
    let reference = ConnectionReference {
        user: Bytes::from_static(&[4, 1, b'x']),
        common: Bytes::from_static(b"\x17\x0d260102030405Z"),
        additional: Bytes::from_static(&[0x14, 1, b'1']),
    };
    let rtorq = Rtorq {
        mode: Mode::Normal,
        checkpoint_size: 63,
        window: 16,
        dialogue: Dialogue::TwoWayAlternate,
        data: ConnectionData::Recover(reference.clone()),
    };
    let wire = rtorq.encode();
    assert_eq!(Rtorq::decode(&wire, false), Ok(rtorq.clone()));
    let at = wire.windows(3).position(|w| w == [4, 1, b'x']).unwrap();
    let mut teletex = wire.to_vec();
    teletex[at] = 0x14;
    assert_eq!(Rtorq::decode(&teletex, false), Ok(rtorq));
    let bare = ConnectionReference { user: Bytes::from_static(b"x"), ..reference.clone() };
    assert_eq!(normalized(&bare), reference);
}

#[test]
fn abort_reasons_round_trip() {
    for value in 0..8 {
        let reason = abort_reason(value).unwrap();
        let rtab = Rtab::decode(&encode_rtab(reason)).unwrap();
        assert_eq!((rtab.known_reason(), rtab.to_string()), (Some(reason), format!("{reason:?}")));
    }
    let unknown = |wire: &[u8]| Rtab::decode(wire).map(|rtab| rtab.known_reason());
    assert_eq!(unknown(&[0xb6, 3, 0x80, 1, 99]), Ok(None));
    assert_eq!(unknown(&[0xb6, 0]), Ok(None));
}

proptest! {
    #[test]
    fn any_octets_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (Rtorq::decode(&bytes, false), Rtoac::decode(&bytes, false), Rtorj::decode(&bytes));
        let _ = (Rtab::decode(&bytes).map(|r| r.to_string()), decode_rttp(&bytes), decode_activity(&bytes));
    }
}
