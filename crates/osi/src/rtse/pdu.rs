//! RTSE APDUs (X.228 clause 9) but RTTR, which is streamed.

use crate::api::{AbortReason, Dialogue, Mode};
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
    /// The mode in which it goes: normal mode wraps the bind, X.410 mode has applicationProtocol.
    pub(crate) mode: Mode,
}

/// RTOAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rtoac {
    pub(crate) checkpoint_size: u32,
    pub(crate) window: u32,
    pub(crate) data: ConnectionData,
    pub(crate) mode: Mode,
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
    write_reference_as_is(w, &normalized(reference));
}

/// As [`write_reference`], in the string type that the SS-user reference has.
fn write_reference_as_is(w: &mut Writer, reference: &ConnectionReference) {
    w.raw(&reference.user);
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

/// The data in this mode: normal mode wraps the bind (X.219 9.2), X.410 mode names associations in T61Strings.
fn write_data(w: &mut Writer, data: &ConnectionData, bind: Tag, mode: Mode) {
    match data {
        ConnectionData::Open(bare) if mode.is_x410() => w.constructed(context(0), |w| w.raw(bare)),
        ConnectionData::Open(bare) => {
            w.constructed(context(0), |w| w.constructed(bind, |w| w.raw(bare)));
        }
        ConnectionData::Recover(reference) if mode.is_x410() => {
            let reference = crate::x410::in_teletex(reference);
            w.constructed(context(1), |w| write_reference_as_is(w, &reference));
        }
        ConnectionData::Recover(reference) => {
            w.constructed(context(1), |w| write_reference(w, reference));
        }
    }
}

fn read_data(e: &Element<'_>, bind: Tag, is_x410: bool) -> Result<ConnectionData, Error> {
    let choice = e.only_child()?;
    match choice.tag {
        Tag { class: Class::Context, number: 0 } if is_x410 => {
            let bare = choice.only_child().field("open")?;
            Ok(ConnectionData::Open(Bytes::copy_from_slice(bare.raw)))
        }
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
            w.constructed(context(3), |w| write_data(w, &self.data, BIND_ARGUMENT, self.mode));
            if let Mode::X410 { protocol: Some(protocol) } = self.mode {
                w.integer(context(4), protocol);
            }
        });
        w.into_vec().into()
    }

    pub(crate) fn decode(octets: &[u8], is_x410: bool) -> Result<Rtorq, Error> {
        let e = apdu(octets, context(16)).field("RTORQ")?;
        let (mut checkpoint_size, mut window) = (None, None);
        let (mut dialogue, mut data, mut protocol) = (None, None, None);
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
                (Class::Context, 3) => read_data(&m, BIND_ARGUMENT, is_x410)
                    .and_then(|value| once(&mut data, &m, value))
                    .field("connectionDataRQ")?,
                (Class::Context, 4) if is_x410 => m
                    .integer()
                    .and_then(|value| once(&mut protocol, &m, value))
                    .field("applicationProtocol")?,
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
            mode: if is_x410 { Mode::X410 { protocol } } else { Mode::Normal },
        })
    }
}

impl Rtoac {
    /// `[17]` IMPLICIT SET.
    pub(crate) fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.constructed(context(17), |w| {
            write_sizes(w, self.checkpoint_size, self.window);
            w.constructed(context(2), |w| write_data(w, &self.data, BIND_RESULT, self.mode));
        });
        w.into_vec().into()
    }

    pub(crate) fn decode(octets: &[u8], is_x410: bool) -> Result<Rtoac, Error> {
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
                (Class::Context, 2) => read_data(&m, BIND_RESULT, is_x410)
                    .and_then(|value| once(&mut data, &m, value))
                    .field("connectionDataAC")?,
                _ => {}
            }
        }
        Ok(Rtoac {
            checkpoint_size: checkpoint_size.unwrap_or(0),
            window: window.unwrap_or(DEFAULT_WINDOW),
            data: data.ok_or(Fault::Missing(context(2))).field("connectionDataAC")?,
            mode: if is_x410 { Mode::X410 { protocol: None } } else { Mode::Normal },
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
mod tests;
