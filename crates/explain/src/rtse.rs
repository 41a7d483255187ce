//! RTSE APDUs (X.228 clause 9), and the binds in them.

use super::fields::named;
use super::{Bind, Cause, Direction, Layer, Line, Out};
use base::ber::{Class, Element, Error, Tag, universal as u};
use bytes::Bytes;

/// refuseReason.
const REFUSALS: [&str; 4] =
    ["rtsBusy", "cannotRecover", "validationFailure", "unacceptableDialogueMode"];

/// abortReason.
const ABORTS: [&str; 8] = [
    "localSystemProblem",
    "invalidParameter",
    "unrecognizedActivity",
    "temporaryProblem",
    "protocolError",
    "permanentProblem",
    "userError",
    "transferCompleted",
];

/// MTABindError (X.411 12.1.1).
const BIND_ERRORS: [&str; 6] = [
    "busy",
    "1",
    "authentication-error",
    "unacceptable-dialogue-mode",
    "unacceptable-security-context",
    "inadequate-association-confidentiality",
];

/// An APDU in a presentation data value.
pub(super) fn data(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    match (e.tag.class, e.tag.number) {
        (Class::Context, 16) => request(e, false, out),
        (Class::Context, 17) => accepted(e, false, out),
        (Class::Context, 18) => refused(e, out),
        (Class::Context, 22) => aborted(e, out),
        _ if e.tag == u::OCTET_STRING => {
            out.line(Layer::Rtse, format!("RTTR, {} octets", e.raw.len()), Vec::new());
            Ok(())
        }
        _ if e.tag == u::INTEGER => {
            out.line(
                Layer::Rtse,
                format!("RTTP: wants the turn, priority {}", e.integer()?),
                Vec::new(),
            );
            Ok(())
        }
        _ => {
            out.line(Layer::Rtse, format!("unknown APDU {}", e.tag), vec![out.masks.hex(e.raw)]);
            Ok(())
        }
    }
}

/// What RTORQ and RTOAC have of both.
fn sizes(checkpoint: i64, window: i64) -> Vec<String> {
    let checkpoint = match checkpoint {
        0 => "checkpoint size 0: none, or as the other end chooses".to_owned(),
        size => format!("checkpoint size {size} (units of 1,024 octets)"),
    };
    vec![checkpoint, format!("window {window}")]
}

/// RTORQ.
pub(super) fn request(e: &Element<'_>, is_x410: bool, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut checkpoint, mut window, mut dialogue) = (0, 3, 0);
    let (mut data, mut protocol) = (None, None);
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            Tag { class: Class::Context, number: 0 } => checkpoint = member.integer()?,
            Tag { class: Class::Context, number: 1 } => window = member.integer()?,
            Tag { class: Class::Context, number: 2 } => dialogue = member.integer()?,
            Tag { class: Class::Context, number: 3 } => data = Some(member),
            Tag { class: Class::Context, number: 4 } => protocol = Some(member.integer()?),
            _ => {}
        }
    }
    let mut details = sizes(checkpoint, window);
    details.push(format!("dialogue mode {}", named(dialogue, &["monologue", "two-way-alternate"])));
    match protocol {
        Some(protocol) => details.push(format!("applicationProtocol {}", application(protocol))),
        None if is_x410 => details.push("applicationProtocol absent: 1, P1 of 1984".to_owned()),
        None => {}
    }
    out.line(Layer::Rtse, "RTORQ: asks for the association", details);
    data.map_or(Ok(()), |data| connection_data(&data, Tag::context(16), is_x410, out))
}

fn application(protocol: i64) -> String {
    match protocol {
        1 => "1, P1 of 1984".to_owned(),
        12 => "12, P1 of 1988".to_owned(),
        256 => "256: 1, P1 of 1984, with its octets swapped".to_owned(),
        3072 => "3072: 12, P1 of 1988, with its octets swapped".to_owned(),
        other => other.to_string(),
    }
}

/// RTOAC.
pub(super) fn accepted(e: &Element<'_>, is_x410: bool, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut checkpoint, mut window, mut data) = (0, 3, None);
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            Tag { class: Class::Context, number: 0 } => checkpoint = member.integer()?,
            Tag { class: Class::Context, number: 1 } => window = member.integer()?,
            Tag { class: Class::Context, number: 2 } => data = Some(member),
            _ => {}
        }
    }
    out.line(Layer::Rtse, "RTOAC: accepts", sizes(checkpoint, window));
    data.map_or(Ok(()), |data| connection_data(&data, Tag::context(17), is_x410, out))
}

/// connectionDataRQ or connectionDataAC: open with a bind, or recover.
fn connection_data(
    e: &Element<'_>,
    wrapped: Tag,
    is_x410: bool,
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let choice = e.only_child()?;
    if choice.tag != Tag::context(0) {
        out.line(Layer::Rtse, "recover: takes up a lost association (X.228 7.8)", Vec::new());
        return Ok(());
    }
    let inner = choice.only_child()?;
    let bare = match inner.tag == wrapped && !is_x410 {
        true => inner.only_child()?,
        false => inner,
    };
    let octets = Bytes::copy_from_slice(bare.raw);
    let (text, bind) = match wrapped == Tag::context(16) {
        true => ("MTABindArgument", Bind::Argument(octets)),
        false => ("MTABindResult", Bind::Result(octets)),
    };
    let (direction, text) = (out.direction, text.to_owned());
    let details = match inner.tag == wrapped || is_x410 {
        true => Vec::new(),
        false => vec![format!("without its tag {wrapped} (X.219)")],
    };
    let bind = Some(bind);
    out.lines.push(Line { direction, layer: Layer::Bind, text, details, trouble: None, bind });
    Ok(())
}

/// RTORJ, or the CPR of X.410 mode.
pub(super) fn refused(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut reason, mut error) = (None, None);
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match (member.tag.class, member.tag.number) {
            (Class::Context, 0) => reason = Some(member.integer()?),
            (Class::Context, 1) if !member.constructed => error = Some(member.integer()?),
            (Class::Context, 1) => error = Some(bind_error(member.only_child()?.raw)?),
            (Class::Universal, 2) => error = Some(member.integer()?),
            _ => {}
        }
    }
    let text = match reason {
        Some(reason) => format!("RTORJ: refuses, {}", named(reason, &REFUSALS)),
        None => "RTORJ: refuses".to_owned(),
    };
    out.line(Layer::Rtse, text, Vec::new());
    out.known.refused = true;
    if let Some(reason) = reason {
        let cause = match reason {
            0 => Cause::Congestion,
            3 => Cause::DialogueMode,
            other => Cause::RtseRefused(other),
        };
        out.trouble(cause, "X.228 9", e.raw);
    }
    if let Some(error) = error {
        let text = format!("MTABindError: {}", named(error, &BIND_ERRORS));
        out.line(Layer::Bind, text, Vec::new());
        let cause = match error {
            0 => Cause::Congestion,
            3 => Cause::DialogueMode,
            other => Cause::BindError(other),
        };
        out.trouble(cause, "X.411 12.1.1", e.raw);
    }
    Ok(())
}

fn bind_error(octets: &[u8]) -> Result<i64, Error> {
    let e = Element::parse(octets)?;
    // Under [18], under it as an IMPLICIT tag, or bare: peers send all three.
    if e.constructed { e.only_child()?.integer() } else { e.integer() }
}

/// RTAB, or the ABORT's user data of X.410 mode.
pub(super) fn aborted(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut reason, mut details) = (None, Vec::new());
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            Tag { class: Class::Context, number: 0 } => reason = Some(member.integer()?),
            Tag { class: Class::Context, number: 1 } => {
                details.push(format!("reflects {}", out.masks.hex(member.content)));
            }
            Tag { class: Class::Context, number: 2 } => {
                details.push(format!("user data {}", out.masks.hex(member.content)));
            }
            _ => {}
        }
    }
    let text = match reason {
        Some(reason) => format!("RTAB: aborts, {}", named(reason, &ABORTS)),
        None => "RTAB: aborts".to_owned(),
    };
    out.line(Layer::Rtse, text, details);
    let ours = out.direction == Direction::Sent && out.known.releasing;
    if !ours {
        out.trouble(Cause::RtseAbort(reason.unwrap_or(-1)), "X.228 9", e.raw);
    }
    Ok(())
}
