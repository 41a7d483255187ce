//! PPDUs (X.226 clause 8), and what stands in their place in X.410 mode.

use super::fields::{named, oid, oid_name, read_encoding};
use super::{Cause, Direction, Layer, Out, ShownMode, acse, rtse};
use base::ber::{Class, Element, Error, Tag, universal as u};
use bytes::Bytes;

/// Most contexts and values that are read.
const MAX_ITEMS: usize = 16;

/// Provider reasons of a context that is refused (X.226 8.2).
const CONTEXT_REASONS: [&str; 4] = [
    "reason-not-specified",
    "abstract-syntax-not-supported",
    "proposed-transfer-syntaxes-not-supported",
    "local-limit-on-DCS-exceeded",
];

/// Provider-reason of a CPR (X.226 8.2).
const PROVIDER_REASONS: [&str; 8] = [
    "reason-not-specified",
    "temporary-congestion",
    "local-limit-exceeded",
    "called-presentation-address-unknown",
    "protocol-version-not-supported",
    "default-context-not-supported",
    "user-data-not-readable",
    "no-PSAP-available",
];

/// The tags of two APDUs of RTSE in normal mode. Some peers have them in X.410 mode too, in place of the SET.
const RTORJ: Tag = Tag::context(18);
const RTAB: Tag = Tag::context(22);

/// The SPDU in whose user data a PPDU is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// CONNECT: CP.
    Connect,
    /// ACCEPT: CPA.
    Accept,
    /// REFUSE: CPR.
    Refuse,
    /// FINISH, DISCONNECT: User-data.
    Release,
    /// ABORT: ARU or ARP.
    Abort,
}

impl Carrier {
    fn name(self) -> &'static str {
        match self {
            Carrier::Connect => "CP",
            Carrier::Accept => "CPA",
            Carrier::Refuse => "CPR",
            Carrier::Release => "User-data",
            Carrier::Abort => "ARU or ARP",
        }
    }
}

/// Explains the user data of an SPDU.
pub(super) fn explain(carrier: Carrier, octets: &[u8], out: &mut Out<'_>) {
    if octets.is_empty() {
        if matches!(carrier, Carrier::Connect | Carrier::Accept) {
            out.malformed(Layer::Presentation, carrier.name(), &"it is missing", "X.226 8.2", &[]);
        }
        return;
    }
    let read = Element::parse(octets).and_then(|e| match (carrier, e.tag) {
        (Carrier::Connect | Carrier::Accept, _) => connect(carrier, &e, out),
        (Carrier::Refuse, u::SET | RTORJ) => {
            let form = (e.tag == RTORJ).then(|| format!("tagged {RTORJ}; X.228 9 has a SET"));
            mode(carrier, ShownMode::X410, form.into_iter().collect(), octets, out);
            rtse::refused(&e, out)
        }
        (Carrier::Refuse, _) => refuse(&e, out),
        (Carrier::Abort, u::SET | RTAB) => rtse::aborted(&e, out),
        (Carrier::Abort, Tag { class: Class::Context, number: 0 }) => values(&e, out),
        (Carrier::Abort, _) => provider_abort(&e, octets, out),
        (Carrier::Release, _) => user_data(&e, out),
    });
    if let Err(error) = read {
        out.malformed(Layer::Presentation, carrier.name(), &error, "X.226 8.2", octets);
    }
}

/// Explains the user data of a DATA TRANSFER: in normal mode User-data, in X.410 mode RTSE's octets.
pub(super) fn data(octets: &[u8], length: usize, is_whole: bool, out: &mut Out<'_>) {
    if out.known.mode == Some(ShownMode::X410) {
        return out.line(Layer::Rtse, format!("{length} octets of a transfer"), Vec::new());
    }
    let whole = Element::parse(octets).ok().filter(|_| is_whole);
    match whole.map(|e| user_data(&e, out)) {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            out.malformed(Layer::Presentation, "User-data", &error, "X.226 8.4", octets);
        }
        None => {
            let text = format!("User-data, {length} octets, not read as a whole");
            out.line(Layer::Presentation, text, Vec::new());
        }
    }
}

/// CP or CPA.
fn connect(carrier: Carrier, set: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut selector, mut parameters) = (None, None);
    let mut members = set.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            Tag { class: Class::Context, number: 0 } => {
                selector = Some(member.only_child()?.integer()?);
            }
            Tag { class: Class::Context, number: 1 | 2 } => parameters = Some(member),
            _ => {}
        }
    }
    let called = out.known.mode.filter(|_| carrier == Carrier::Accept);
    let mut details = Vec::new();
    let shown = match (selector, called) {
        (Some(0), _) => ShownMode::X410,
        (Some(1), _) => ShownMode::Normal,
        // The stack reads it too: the parameters are those of the mode that was asked for.
        (None, Some(ShownMode::X410)) => {
            details.push("mode-selector absent: the mode is that of the call".to_owned());
            ShownMode::X410
        }
        (other, _) => {
            let why = other.map_or("no mode-selector".to_owned(), |n| format!("mode-selector {n}"));
            out.malformed(Layer::Presentation, carrier.name(), &why, "X.226 8.2", set.raw);
            return Ok(());
        }
    };
    let Some(parameters) = parameters else {
        details.push("without parameters".to_owned());
        mode(carrier, shown, details, set.raw, out);
        return Ok(());
    };
    if shown == ShownMode::X410 {
        mode(carrier, shown, details, set.raw, out);
        return match carrier {
            Carrier::Connect => rtse::request(&parameters, true, out),
            _ => rtse::accepted(&parameters, true, out),
        };
    }
    normal(carrier, &parameters, set.raw, out)
}

/// A line with the mode, and what is wrong with it.
fn mode(
    carrier: Carrier,
    shown: ShownMode,
    details: Vec<String>,
    octets: &[u8],
    out: &mut Out<'_>,
) {
    let words = match shown {
        ShownMode::Normal => "normal mode",
        ShownMode::X410 => "X.410 (1984) mode",
    };
    out.line(Layer::Presentation, format!("{}: {words}", carrier.name()), details);
    match (out.known.mode, carrier, shown) {
        (_, Carrier::Connect, _) => out.known.mode = Some(shown),
        (Some(ShownMode::Normal), _, ShownMode::X410) => {
            out.trouble(Cause::AnswersInX410, "X.226 6.2.5", octets);
        }
        (Some(ShownMode::X410), _, ShownMode::Normal) => {
            out.trouble(Cause::AnswersInNormal, "X.226 6.2.5", octets);
        }
        _ => {}
    }
}

/// The normal-mode parameters of CP and CPA.
fn normal(
    carrier: Carrier,
    parameters: &Element<'_>,
    whole: &[u8],
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let (mut details, mut refused, mut value) = (Vec::new(), None, None);
    let (mut called, mut calling, mut responding) = (None, None, None);
    let mut members = parameters.children()?;
    while let Some(member) = members.next()? {
        match (member.tag.class, member.tag.number) {
            (Class::Context, 1) => calling = Some(member.octets()?),
            (Class::Context, 2) => called = Some(member.octets()?),
            (Class::Context, 3) => responding = Some(member.octets()?),
            (Class::Context, 4) => proposals(&member, &mut details, out)?,
            (Class::Context, 5) => refused = results(&member, &mut details, out)?,
            (Class::Context, 0 | 6 | 8 | 9) => {}
            (Class::Application, _) => value = Some(member),
            _ => details.push(format!("parameter {}: {}", member.tag, out.masks.hex(member.raw))),
        }
    }
    let selectors = match carrier {
        Carrier::Connect => vec![
            format!("called PSEL {}", out.masks.selector(called.as_deref())),
            format!("calling PSEL {}", out.masks.selector(calling.as_deref())),
        ],
        _ => vec![format!("responding PSEL {}", out.masks.selector(responding.as_deref()))],
    };
    mode(carrier, ShownMode::Normal, [selectors, details].concat(), whole, out);
    if let Some(reason) = refused {
        out.trouble(Cause::ContextRefused(reason), "X.226 8.2", whole);
    }
    value.map_or(Ok(()), |value| user_data(&value, out))
}

/// The presentation-context-definition-list.
fn proposals(
    list: &Element<'_>,
    details: &mut Vec<String>,
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let mut items = list.children()?;
    out.known.contexts.clear();
    while let Some(item) = items.next()? {
        let mut members = item.children()?;
        let id = members.require(u::INTEGER)?.integer()?;
        let syntax = members.require(u::OID)?.oid()?;
        let mut names = members.require(u::SEQUENCE)?.children()?;
        let mut transfers = Vec::new();
        while let Some(name) = names.next()?.filter(|_| transfers.len() < MAX_ITEMS) {
            transfers.push(name.oid().map_or_else(|error| error.to_string(), |name| oid(&name)));
        }
        if details.len() < MAX_ITEMS {
            let name = oid_name(&syntax).map_or_else(|| syntax.to_string(), str::to_owned);
            details.push(format!("context {id}: {}, in {}", oid(&syntax), transfers.join(" or ")));
            out.known.contexts.push((id, name));
        }
    }
    Ok(())
}

/// The result list; gives the reason of one that is refused.
fn results(
    list: &Element<'_>,
    details: &mut Vec<String>,
    out: &Out<'_>,
) -> Result<Option<i64>, Error> {
    let (mut refused, mut place) = (None, 0);
    let mut items = list.children()?;
    while let Some(item) = items.next()? {
        let (mut result, mut reason, mut transfer) = (0, 0, None);
        let mut members = item.children()?;
        while let Some(member) = members.next()? {
            match member.tag {
                Tag { class: Class::Context, number: 0 } => result = member.integer()?,
                Tag { class: Class::Context, number: 1 } => transfer = member.oid().ok(),
                Tag { class: Class::Context, number: 2 } => reason = member.integer()?,
                _ => {}
            }
        }
        let which = match out.known.contexts.get(place) {
            Some((id, name)) => format!("context {id} ({name})"),
            None => format!("result {} of a context that was not proposed", place + 1),
        };
        place += 1;
        let verdict = match result {
            0 => format!("accepted, in {}", transfer.map_or("?".to_owned(), |name| oid(&name))),
            1 => "refused by the user (1)".to_owned(),
            2 => format!("refused: {}", named(reason, &CONTEXT_REASONS)),
            other => format!("result {other}"),
        };
        if result != 0 && refused.is_none() {
            refused = Some(reason);
        }
        if details.len() < MAX_ITEMS {
            details.push(format!("{which}: {verdict}"));
        }
    }
    Ok(refused)
}

/// CPR of normal mode.
fn refuse(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let (mut details, mut reason, mut refused, mut value) = (Vec::new(), None, None, None);
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        match (member.tag.class, member.tag.number) {
            (Class::Context, 5) => refused = results(&member, &mut details, out)?,
            (Class::Context, 10) => reason = Some(member.integer()?),
            (Class::Application, _) => value = Some(member),
            _ => {}
        }
    }
    let text = match reason {
        Some(reason) => format!("CPR: {}", named(reason, &PROVIDER_REASONS)),
        None => "CPR: refused by a layer above".to_owned(),
    };
    out.line(Layer::Presentation, text, details);
    if out.known.mode == Some(ShownMode::X410) {
        out.trouble(Cause::AnswersInNormal, "X.226 6.2.5", e.raw);
    } else {
        let cause = match (reason, refused) {
            (_, Some(reason)) => Some(Cause::ContextRefused(reason)),
            (Some(3), _) => Some(Cause::PresentationAddress),
            (Some(1), _) => Some(Cause::Congestion),
            (Some(reason), _) => Some(Cause::PresentationOther(reason)),
            (None, None) => None,
        };
        if let Some(cause) = cause {
            out.trouble(cause, "X.226 8.2", e.raw);
        }
    }
    value.map_or(Ok(()), |value| user_data(&value, out))
}

/// ARP.
fn provider_abort(e: &Element<'_>, octets: &[u8], out: &mut Out<'_>) -> Result<(), Error> {
    let mut reason = 0;
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        if member.tag == Tag::context(0) {
            reason = member.integer()?;
        }
    }
    let names = [
        "reason-not-specified",
        "unrecognized-ppdu",
        "unexpected-ppdu",
        "unexpected-session-service-primitive",
        "unrecognized-ppdu-parameter",
        "unexpected-ppdu-parameter",
        "invalid-ppdu-parameter-value",
    ];
    out.line(Layer::Presentation, format!("ARP: {}", named(reason, &names)), Vec::new());
    out.trouble(Cause::PresentationOther(reason), "X.226 8.3", octets);
    Ok(())
}

/// The values among the members of an ARU.
fn values(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        if member.tag.class == Class::Application {
            user_data(&member, out)?;
        }
    }
    Ok(())
}

/// User-data: each value by its context.
fn user_data(e: &Element<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    if e.tag == Tag::application(0) {
        return value(1, &Bytes::from(e.octets()?.into_owned()), out);
    }
    let mut lists = e.children()?;
    for _ in 0..MAX_ITEMS {
        let Some(list) = lists.next()? else { break };
        let mut members = list.children()?;
        members.optional(u::OID)?;
        let context = members.require(u::INTEGER)?.integer()?;
        if let Some(encoding) = members.next()? {
            value(context, &read_encoding(&encoding)?, out)?;
        }
    }
    Ok(())
}

fn value(context: i64, octets: &Bytes, out: &mut Out<'_>) -> Result<(), Error> {
    let e = Element::parse(octets)?;
    if e.tag.class == Class::Application && e.tag.number <= 4 {
        return acse::explain(&e, out);
    }
    if out.known.contexts.iter().all(|(id, _)| *id != context) {
        let whose = if out.direction == Direction::Sent { "our" } else { "their" };
        let text = format!("{whose} data is in context {context}, which was not proposed");
        out.line(Layer::Presentation, text, vec![out.masks.hex(octets)]);
        return Ok(());
    }
    rtse::data(&e, out)
}
