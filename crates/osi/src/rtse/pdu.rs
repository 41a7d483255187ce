//! RTSE APDUs (X.228 clause 9) but RTTR, which is streamed.

use crate::api::{AbortReason, Dialogue};
use crate::session::service::ConnectionReference;
use crate::shown;
use base::ber::{Class, Element, Error, Fault, Field, Tag, Writer, universal as u};
use bytes::Bytes;

/// windowSize where it is absent.
const DEFAULT_WINDOW: u32 = 3;
/// Wraps a bind argument, result or error (X.219 9.2, the BIND macro).
const BIND_ARGUMENT: Tag = Tag::context(16);
const BIND_RESULT: Tag = Tag::context(17);
const BIND_ERROR: Tag = Tag::context(18);

/// connectionDataRQ and connectionDataAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionData {
    /// open: the bare bind element.
    Open(Bytes),
    /// recover: the lost association's session connection identifier.
    Recover(ConnectionReference),
}

/// RTORQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rtorq {
    pub(crate) checkpoint_size: u32,
    pub(crate) window: u32,
    pub(crate) dialogue: Dialogue,
    pub(crate) data: ConnectionData,
}

/// RTOAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rtoac {
    pub(crate) checkpoint_size: u32,
    pub(crate) window: u32,
    pub(crate) data: ConnectionData,
}

/// RTORJ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rtorj {
    /// refuseReason: X.410 mode's, read in both.
    pub(crate) reason: Option<i64>,
    /// userDataRJ: the bare bind error.
    pub(crate) bind_error: Option<Bytes>,
    /// What is wrong with a userDataRJ that holds no bind error.
    pub(crate) unread: Option<Error>,
}

/// RTAB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rtab {
    /// abortReason, by number.
    pub(crate) reason: Option<i64>,
    /// reflectedParameter: the BIT STRING's octets.
    pub(crate) reflected: Option<Bytes>,
    /// userdataAB: what is in it.
    pub(crate) user_data: Option<Bytes>,
}

fn context(n: u32) -> Tag {
    Tag::context(n)
}

/// Wraps a bare bind argument, `[16]`.
pub(crate) fn wrap_argument(bind: &[u8]) -> Bytes {
    wrap(BIND_ARGUMENT, bind)
}

/// Wraps a bare bind result, `[17]`.
pub(crate) fn wrap_result(bind: &[u8]) -> Bytes {
    wrap(BIND_RESULT, bind)
}

/// Wraps a bare bind error, `[18]`.
pub(crate) fn wrap_error(bind: &[u8]) -> Bytes {
    wrap(BIND_ERROR, bind)
}

/// The bare bind argument out of its `[16]`.
pub(crate) fn unwrap_argument(octets: &[u8]) -> Result<Bytes, Error> {
    unwrap(BIND_ARGUMENT, octets).field("bind argument [16]")
}

/// The bare bind result out of its `[17]`.
pub(crate) fn unwrap_result(octets: &[u8]) -> Result<Bytes, Error> {
    unwrap(BIND_RESULT, octets).field("bind result [17]")
}

/// The bare bind error out of its `[18]`; also an INTEGER without it, or one that the `[18]` is the
/// IMPLICIT tag of: some peers send these.
pub(crate) fn unwrap_error(octets: &[u8]) -> Result<Bytes, Error> {
    let e = Element::parse(octets).field("bind error [18]")?;
    match (e.tag, e.constructed) {
        (u::INTEGER, false) => Ok(Bytes::copy_from_slice(e.raw)),
        (BIND_ERROR, false) => Ok(integer_element(e.content)),
        _ => unwrap(BIND_ERROR, octets).field("bind error [18]"),
    }
}

fn integer_element(content: &[u8]) -> Bytes {
    let mut w = Writer::new();
    w.primitive(u::INTEGER, content);
    w.into_vec().into()
}

fn wrap(tag: Tag, bind: &[u8]) -> Bytes {
    let mut w = Writer::new();
    w.constructed(tag, |w| w.raw(bind));
    w.into_vec().into()
}

fn unwrap(tag: Tag, octets: &[u8]) -> Result<Bytes, Error> {
    let e = Element::parse(octets)?;
    if e.tag != tag {
        return Err(Fault::Unexpected(e.tag).into());
    }
    Ok(Bytes::copy_from_slice(e.only_child()?.raw))
}

fn string_element(tag: Tag, octets: &[u8]) -> Bytes {
    let mut w = Writer::new();
    w.string(tag, octets);
    w.into_vec().into()
}

/// The SS-user reference in the form in which references are compared and kept: an OCTET STRING
/// whatever string type (or none) the peer made it of.
pub(crate) fn normalized(reference: &ConnectionReference) -> ConnectionReference {
    let user = match Element::parse(&reference.user) {
        Ok(e) if e.tag == u::OCTET_STRING || e.tag == u::TELETEX_STRING => e.octets().ok(),
        _ => None,
    };
    let user = user.as_deref().unwrap_or(&reference.user);
    ConnectionReference { user: string_element(u::OCTET_STRING, user), ..reference.clone() }
}

fn write_sizes(w: &mut Writer, checkpoint_size: u32, window: u32) {
    if checkpoint_size != 0 {
        w.integer(context(0), i64::from(checkpoint_size));
    }
    if window != DEFAULT_WINDOW {
        w.integer(context(1), i64::from(window));
    }
}

/// SessionConnectionIdentifier's members.
fn write_reference(w: &mut Writer, reference: &ConnectionReference) {
    w.raw(&normalized(reference).user);
    if Element::parse(&reference.common).is_ok_and(|e| e.tag == u::UTC_TIME) {
        w.raw(&reference.common);
    } else {
        w.string(u::UTC_TIME, &reference.common);
    }
    if !reference.additional.is_empty() {
        let octets = Element::parse(&reference.additional).and_then(|e| e.octets());
        w.string(context(0), octets.as_deref().unwrap_or(&reference.additional));
    }
}

fn read_reference(e: &Element<'_>) -> Result<ConnectionReference, Error> {
    let mut members = e.children()?;
    let user = members.next()?.ok_or(Fault::Truncated).field("callingSSuserReference")?;
    if user.tag != u::OCTET_STRING && user.tag != u::TELETEX_STRING {
        return Err(Fault::Unexpected(user.tag)).field("callingSSuserReference");
    }
    let common = members.require(u::UTC_TIME).field("commonReference")?;
    let additional = match members.optional(context(0))? {
        Some(e) => string_element(u::TELETEX_STRING, &e.octets()?),
        None => Bytes::new(),
    };
    Ok(ConnectionReference {
        user: string_element(u::OCTET_STRING, &user.octets()?),
        common: string_element(u::UTC_TIME, &common.octets()?),
        additional,
    })
}

fn write_data(w: &mut Writer, data: &ConnectionData, bind: Tag) {
    match data {
        ConnectionData::Open(bare) => {
            w.constructed(context(0), |w| w.constructed(bind, |w| w.raw(bare)));
        }
        ConnectionData::Recover(reference) => {
            w.constructed(context(1), |w| write_reference(w, reference));
        }
    }
}

fn read_data(e: &Element<'_>, bind: Tag) -> Result<ConnectionData, Error> {
    let choice = e.only_child()?;
    match choice.tag {
        Tag { class: Class::Context, number: 0 } => {
            Ok(ConnectionData::Open(unwrap(bind, choice.only_child()?.raw).field("open")?))
        }
        Tag { class: Class::Context, number: 1 } => {
            Ok(ConnectionData::Recover(read_reference(&choice).field("recover")?))
        }
        other => Err(Fault::Unexpected(other).into()),
    }
}

/// Fills a member's place, once (X.690 8.11: a SET has each of its members once).
fn once<T>(place: &mut Option<T>, e: &Element<'_>, value: T) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::Unexpected(e.tag).into()),
    }
}

fn read_checkpoint_size(e: &Element<'_>) -> Result<u32, Error> {
    Ok(u32::try_from(e.integer()?).map_err(|_| Fault::Value("a size"))?)
}

fn read_window(e: &Element<'_>) -> Result<u32, Error> {
    Ok(u32::try_from(e.integer()?).map_err(|_| Fault::Value("a window"))?)
}

fn read_dialogue(e: &Element<'_>) -> Result<Dialogue, Error> {
    match e.integer()? {
        0 => Ok(Dialogue::Monologue),
        1 => Ok(Dialogue::TwoWayAlternate),
        _ => Err(Fault::Value("monologue(0) or twa(1)").into()),
    }
}

/// The element of an APDU, which must have this tag.
fn apdu(octets: &[u8], tag: Tag) -> Result<Element<'_>, Error> {
    let e = Element::parse(octets)?;
    if e.tag == tag { Ok(e) } else { Err(Fault::Unexpected(e.tag).into()) }
}

impl Rtorq {
    /// `[16]` IMPLICIT SET.
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.constructed(context(16), |w| {
            write_sizes(w, self.checkpoint_size, self.window);
            if self.dialogue == Dialogue::TwoWayAlternate {
                w.integer(context(2), 1);
            }
            w.constructed(context(3), |w| write_data(w, &self.data, BIND_ARGUMENT));
        });
        w.into_vec().into()
    }

    pub(crate) fn decode(octets: &[u8]) -> Result<Rtorq, Error> {
        let e = apdu(octets, context(16)).field("RTORQ")?;
        let (mut checkpoint_size, mut window) = (None, None);
        let (mut dialogue, mut data) = (None, None);
        let mut members = e.children().field("RTORQ")?;
        while let Some(m) = members.next().field("RTORQ")? {
            match (m.tag.class, m.tag.number) {
                (Class::Context, 0) => read_checkpoint_size(&m)
                    .and_then(|value| once(&mut checkpoint_size, &m, value))
                    .field("checkpointSize")?,
                (Class::Context, 1) => read_window(&m)
                    .and_then(|value| once(&mut window, &m, value))
                    .field("windowSize")?,
                (Class::Context, 2) => read_dialogue(&m)
                    .and_then(|value| once(&mut dialogue, &m, value))
                    .field("dialogueMode")?,
                (Class::Context, 3) => read_data(&m, BIND_ARGUMENT)
                    .and_then(|value| once(&mut data, &m, value))
                    .field("connectionDataRQ")?,
                _ => {}
            }
        }
        // With none allowed to be outstanding no checkpoint could be set; a checkpointSize
        // of 0 states that none is wanted.
        if window == Some(0) {
            return Err(Fault::Value("a window of 1 or more")).field("windowSize");
        }
        Ok(Rtorq {
            checkpoint_size: checkpoint_size.unwrap_or(0),
            window: window.unwrap_or(DEFAULT_WINDOW),
            dialogue: dialogue.unwrap_or(Dialogue::Monologue),
            data: data.ok_or(Fault::Missing(context(3))).field("connectionDataRQ")?,
        })
    }
}

impl Rtoac {
    /// `[17]` IMPLICIT SET.
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.constructed(context(17), |w| {
            write_sizes(w, self.checkpoint_size, self.window);
            w.constructed(context(2), |w| write_data(w, &self.data, BIND_RESULT));
        });
        w.into_vec().into()
    }

    pub(crate) fn decode(octets: &[u8]) -> Result<Rtoac, Error> {
        let e = apdu(octets, context(17)).field("RTOAC")?;
        let (mut checkpoint_size, mut window, mut data) = (None, None, None);
        let mut members = e.children().field("RTOAC")?;
        while let Some(m) = members.next().field("RTOAC")? {
            match (m.tag.class, m.tag.number) {
                (Class::Context, 0) => read_checkpoint_size(&m)
                    .and_then(|value| once(&mut checkpoint_size, &m, value))
                    .field("checkpointSize")?,
                (Class::Context, 1) => read_window(&m)
                    .and_then(|value| once(&mut window, &m, value))
                    .field("windowSize")?,
                (Class::Context, 2) => read_data(&m, BIND_RESULT)
                    .and_then(|value| once(&mut data, &m, value))
                    .field("connectionDataAC")?,
                _ => {}
            }
        }
        Ok(Rtoac {
            checkpoint_size: checkpoint_size.unwrap_or(0),
            window: window.unwrap_or(DEFAULT_WINDOW),
            data: data.ok_or(Fault::Missing(context(2))).field("connectionDataAC")?,
        })
    }
}

impl Rtorj {
    /// `[18]` IMPLICIT SET.
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.constructed(context(18), |w| {
            if let Some(reason) = self.reason {
                w.integer(context(0), reason);
            }
            if let Some(bare) = &self.bind_error {
                w.constructed(context(1), |w| w.constructed(BIND_ERROR, |w| w.raw(bare)));
            }
        });
        w.into_vec().into()
    }

    pub(crate) fn decode(octets: &[u8]) -> Result<Rtorj, Error> {
        let e = apdu(octets, context(18)).field("RTORJ")?;
        let mut rtorj = Rtorj::default();
        let mut members = e.children().field("RTORJ")?;
        while let Some(member) = members.next().field("RTORJ")? {
            let bind_error = match (member.tag.class, member.tag.number) {
                (Class::Context, 0) => {
                    rtorj.reason = Some(member.integer().field("refuseReason")?);
                    continue;
                }
                // The INTEGER with `[1]` as its IMPLICIT tag, and without any.
                (Class::Context, 1) if !member.constructed => Ok(integer_element(member.content)),
                (Class::Context, 1) => member.only_child().and_then(|e| unwrap_error(e.raw)),
                (Class::Universal, 2) => unwrap_error(member.raw),
                _ => continue,
            };
            match bind_error {
                Ok(error) => rtorj.bind_error = Some(error),
                Err(e) => rtorj.unread = Some(e),
            }
        }
        Ok(rtorj)
    }
}

/// RTAB, `[22]` IMPLICIT SET.
pub(crate) fn encode_rtab(reason: AbortReason) -> Bytes {
    let mut w = Writer::new();
    w.constructed(context(22), |w| w.integer(context(0), i64::from(reason as u8)));
    w.into_vec().into()
}

impl Rtab {
    pub(crate) fn decode(octets: &[u8]) -> Result<Rtab, Error> {
        let e = apdu(octets, context(22)).field("RTAB")?;
        let mut rtab = Rtab::default();
        let mut members = e.children().field("RTAB")?;
        while let Some(member) = members.next().field("RTAB")? {
            match (member.tag.class, member.tag.number) {
                (Class::Context, 0) => {
                    rtab.reason = Some(member.integer().field("abortReason")?);
                }
                (Class::Context, 1) => {
                    let bits = member.bits().field("reflectedParameter")?;
                    rtab.reflected = Some(Bytes::copy_from_slice(&bits.octets));
                }
                (Class::Context, 2) => {
                    rtab.user_data = Some(Bytes::copy_from_slice(member.content));
                }
                _ => {}
            }
        }
        Ok(rtab)
    }

    /// The abortReason where it is one we know.
    pub(crate) fn known_reason(&self) -> Option<AbortReason> {
        self.reason.and_then(abort_reason)
    }
}

/// All fields of an RTAB, for the log.
impl std::fmt::Display for Rtab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.known_reason(), self.reason) {
            (Some(reason), _) => write!(f, "{reason:?}")?,
            (None, Some(number)) => write!(f, "abortReason {number}")?,
            (None, None) => f.write_str("no abortReason")?,
        }
        if let Some(reflected) = &self.reflected {
            write!(f, ", reflectedParameter {}", shown::octets(reflected))?;
        }
        if let Some(data) = &self.user_data {
            write!(f, ", {}", shown::value(data))?;
        }
        Ok(())
    }
}

fn abort_reason(value: i64) -> Option<AbortReason> {
    Some(match value {
        0 => AbortReason::LocalSystemProblem,
        1 => AbortReason::InvalidParameter,
        2 => AbortReason::UnrecognizedActivity,
        3 => AbortReason::TemporaryProblem,
        4 => AbortReason::ProtocolError,
        5 => AbortReason::PermanentProblem,
        6 => AbortReason::UserError,
        7 => AbortReason::TransferCompleted,
        _ => return None,
    })
}

/// RTTP: an INTEGER. Also the form of activity identifiers (7.3.2.1).
pub(crate) fn encode_integer(value: i64) -> Bytes {
    let mut w = Writer::new();
    w.integer(u::INTEGER, value);
    w.into_vec().into()
}

/// Decodes an RTTP.
pub(crate) fn decode_rttp(octets: &[u8]) -> Result<i64, Error> {
    apdu(octets, u::INTEGER).and_then(|e| e.integer()).field("RTTP")
}

/// An activity identifier; one that is not an INTEGER counts as the number its octets make.
pub(crate) fn decode_activity(octets: &[u8]) -> i64 {
    match apdu(octets, u::INTEGER).and_then(|e| e.integer()) {
        Ok(value) => value,
        Err(_) => octets.iter().take(7).fold(0, |n, b| n << 8 | i64::from(*b)),
    }
}

#[cfg(test)]
mod tests {
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
            checkpoint_size: 0,
            window: 3,
            dialogue: Dialogue::Monologue,
            data: ConnectionData::Open(bind.into()),
        };
        assert_eq!(rtorq.encode(), wire);
        assert_eq!(Rtorq::decode(&wire), Ok(rtorq));
    }

    #[test]
    fn bind_result_as_captured() {
        let bind = name_and_password(0x14, 6);
        let mut wire = vec![0xb1, 0x2b, 0x80, 0x01, 0x3f, 0xa2, 0x26, 0xa0, 0x24, 0xb1, 0x22];
        wire.extend(&bind);
        let rtoac =
            Rtoac { checkpoint_size: 63, window: 3, data: ConnectionData::Open(bind.into()) };
        assert_eq!(rtoac.encode(), wire);
        assert_eq!(Rtoac::decode(&wire), Ok(rtoac));
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
            [&[0xb6, 20, 0x80, 1, 1, 0x81, 2, 0, 0x40, 0xa2, 11, 0x1a, 9][..], b"body part"]
                .concat();
        assert_eq!(
            text(&whole),
            Ok("InvalidParameter, reflectedParameter octets 40, text \"body part\"".to_owned())
        );
        assert_eq!(text(&[0xb6, 3, 0x80, 1, 99]), Ok("abortReason 99".to_owned()));
        assert_eq!(
            text(&[0xb6, 5, 0xa2, 3, 2, 1, 7]),
            Ok("no abortReason, octets 02 01 07".into())
        );
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
            checkpoint_size: 63,
            window: 16,
            dialogue: Dialogue::TwoWayAlternate,
            data: ConnectionData::Recover(reference.clone()),
        };
        let wire = rtorq.encode();
        assert_eq!(Rtorq::decode(&wire), Ok(rtorq.clone()));
        let at = wire.windows(3).position(|w| w == [4, 1, b'x']).unwrap();
        let mut teletex = wire.to_vec();
        teletex[at] = 0x14;
        assert_eq!(Rtorq::decode(&teletex), Ok(rtorq));
        let bare = ConnectionReference { user: Bytes::from_static(b"x"), ..reference.clone() };
        assert_eq!(normalized(&bare), reference);
    }

    #[test]
    fn abort_reasons_round_trip() {
        for value in 0..8 {
            let reason = abort_reason(value).unwrap();
            let rtab = Rtab::decode(&encode_rtab(reason)).unwrap();
            assert_eq!(
                (rtab.known_reason(), rtab.to_string()),
                (Some(reason), format!("{reason:?}"))
            );
        }
        let unknown = |wire: &[u8]| Rtab::decode(wire).map(|rtab| rtab.known_reason());
        assert_eq!(unknown(&[0xb6, 3, 0x80, 1, 99]), Ok(None));
        assert_eq!(unknown(&[0xb6, 0]), Ok(None));
    }

    proptest! {
        #[test]
        fn any_octets_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Rtorq::decode(&bytes), Rtoac::decode(&bytes), Rtorj::decode(&bytes));
            let _ = (Rtab::decode(&bytes).map(|r| r.to_string()), decode_rttp(&bytes), decode_activity(&bytes));
        }
    }
}
