//! SPDUs (X.225 clause 8).

use super::{Cause, Layer, Out, presentation};
use osi::session::pdu::{header_length, si};
use osi::session::service::requirements;

/// Bits of session user requirements (X.225 8.3.1.16).
const UNITS: [(u16, &str); 11] = [
    (0x0001, "half-duplex"),
    (0x0002, "duplex"),
    (0x0004, "expedited data"),
    (0x0008, "minor sync"),
    (0x0010, "major sync"),
    (0x0020, "resynchronize"),
    (0x0040, "activities"),
    (0x0080, "negotiated release"),
    (0x0100, "capability data"),
    (0x0200, "exceptions"),
    (0x0400, "typed data"),
];

/// What [`si::name`] gives for an identifier that it does not know.
const UNKNOWN: &str = "an unknown SPDU";

/// Most SPDUs of a TSDU that are read.
const MAX_SPDUS: usize = 8;

/// The functional units in words.
fn units(bits: u16) -> String {
    let all = UNITS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name);
    let all: Vec<&str> = all.collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// The parameters of an SPDU, groups opened.
#[derive(Default)]
struct Spdu<'a> {
    parameters: Vec<(u8, &'a [u8])>,
    /// A parameter that is longer than what holds it.
    truncated: bool,
}

impl<'a> Spdu<'a> {
    fn read(mut octets: &'a [u8]) -> Spdu<'a> {
        let mut spdu = Spdu::default();
        while !octets.is_empty() {
            let Some((identifier, value, rest)) = take(octets) else {
                spdu.truncated = true;
                break;
            };
            match identifier {
                1 | 5 | 33 => {
                    let inner = Spdu::read_flat(value, &mut spdu.truncated);
                    spdu.parameters.extend(inner);
                }
                _ => spdu.parameters.push((identifier, value)),
            }
            octets = rest;
        }
        spdu
    }

    fn read_flat(mut octets: &'a [u8], truncated: &mut bool) -> Vec<(u8, &'a [u8])> {
        let mut all = Vec::new();
        while !octets.is_empty() {
            let Some((identifier, value, rest)) = take(octets) else {
                *truncated = true;
                break;
            };
            all.push((identifier, value));
            octets = rest;
        }
        all
    }

    fn find(&self, identifier: u8) -> Option<&'a [u8]> {
        self.parameters.iter().find(|(found, _)| *found == identifier).map(|(_, value)| *value)
    }

    fn number(&self, identifier: u8) -> Option<u16> {
        match self.find(identifier)? {
            [one] => Some(u16::from(*one)),
            [high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }

    fn user_data(&self) -> &'a [u8] {
        self.find(193).or_else(|| self.find(194)).unwrap_or_default()
    }
}

/// Identifier, value, rest.
fn take(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let whole = header_length(octets)?;
    let (all, rest) = octets.split_at_checked(whole)?;
    let start = if all.get(1) == Some(&u8::MAX) { 4 } else { 2 };
    Some((*all.first()?, all.get(start..)?, rest))
}

/// Explains a TSDU, of which this many octets are not here.
pub(super) fn explain(tsdu: &[u8], beyond: usize, out: &mut Out<'_>) {
    let mut octets = tsdu;
    for number in 0..MAX_SPDUS {
        if octets.is_empty() {
            return;
        }
        let Some((identifier, parameters, rest)) = take(octets) else {
            let why = "its length is beyond the TSDU";
            return out.malformed(Layer::Session, "an SPDU", &why, "X.225 8.2", octets);
        };
        // A GIVE or PLEASE TOKENS without parameters only comes before another SPDU (X.225 6.3.7).
        if number == 0 && matches!(identifier, si::GT | si::PT) && !rest.is_empty() {
            if !parameters.is_empty() {
                tokens(identifier, &Spdu::read(parameters), out);
            }
            octets = rest;
            continue;
        }
        if number > 0 && identifier == si::DT {
            return data(parameters, rest, beyond, out);
        }
        spdu(identifier, number > 0, parameters, octets, out);
        octets = rest;
    }
}

fn data(parameters: &[u8], user_data: &[u8], beyond: usize, out: &mut Out<'_>) {
    let is_whole = beyond == 0 && parameters.is_empty();
    let octets = user_data.len() + beyond;
    out.line(Layer::Session, format!("DATA TRANSFER, {octets} octets"), Vec::new());
    presentation::data(user_data, octets, is_whole, out);
}

fn tokens(identifier: u8, spdu: &Spdu<'_>, out: &mut Out<'_>) {
    let what = if identifier == si::GT { "GIVE TOKENS" } else { "PLEASE TOKENS" };
    let bits = spdu.number(16).unwrap_or_default();
    let names = [(1, "data"), (4, "minor sync"), (16, "activity")];
    let names: Vec<&str> =
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    out.line(Layer::Session, format!("{what}: {}", names.join(", ")), Vec::new());
}

fn spdu(identifier: u8, is_second: bool, parameters: &[u8], octets: &[u8], out: &mut Out<'_>) {
    let read = Spdu::read(parameters);
    if read.truncated && si::name(identifier) != UNKNOWN {
        let why = "a parameter is longer than what holds it";
        return out.malformed(Layer::Session, si::name(identifier), &why, "X.225 8.2", octets);
    }
    match identifier {
        si::CN => connect("CONNECT", (51, 52), &read, out),
        si::AC => accept(&read, octets, out),
        si::RF => refuse(&read, octets, out),
        si::FN => {
            out.known.releasing = true;
            out.line(Layer::Session, "FINISH: asks for the release", Vec::new());
            presentation::explain(presentation::Carrier::Release, read.user_data(), out);
        }
        si::DN => {
            out.line(Layer::Session, "DISCONNECT: agrees to the release", Vec::new());
            presentation::explain(presentation::Carrier::Release, read.user_data(), out);
        }
        si::AB if !is_second => abort(&read, octets, out),
        si::GT | si::PT => tokens(identifier, &read, out),
        _ => other(identifier, is_second, &read, octets, out),
    }
}

/// An SPDU of the phase in which data passes.
fn other(identifier: u8, is_second: bool, spdu: &Spdu<'_>, octets: &[u8], out: &mut Out<'_>) {
    let name = match (identifier, is_second) {
        (si::AI, true) => "ACTIVITY INTERRUPT",
        (si::AA, false) => "ABORT ACCEPT",
        (si::AIA, true) => "ACTIVITY INTERRUPT ACK",
        _ => si::name(identifier),
    };
    let mut details = Vec::new();
    if let Some(serial) = spdu.find(42) {
        details.push(format!("serial number {}", out.masks.quoted(serial)));
    }
    if let Some([reason, ..]) = spdu.find(50) {
        details.push(format!("reason {reason}"));
    }
    if name == UNKNOWN {
        details.push(out.masks.hex(octets));
        return out.line(Layer::Session, format!("unknown SPDU {identifier}"), details);
    }
    out.line(Layer::Session, name, details);
}

/// CONNECT or ACCEPT: their parameters are the same, selectors apart.
fn connect(what: &str, selectors: (u8, u8), spdu: &Spdu<'_>, out: &mut Out<'_>) {
    let (calling, called) = selectors;
    let mut details = Vec::new();
    if calling != 0 {
        details.push(format!("called SSEL {}", out.masks.selector(spdu.find(called))));
        details.push(format!("calling SSEL {}", out.masks.selector(spdu.find(calling))));
    } else {
        details.push(format!("responding SSEL {}", out.masks.selector(spdu.find(called))));
    }
    let versions = match spdu.number(22) {
        Some(bits) if bits & 3 == 3 => "versions 1 and 2".to_owned(),
        Some(bits) if bits & 3 == 2 => "version 2".to_owned(),
        Some(bits) if bits & 3 == 1 => "version 1".to_owned(),
        Some(bits) => format!("version bits {bits:#04x}"),
        None => "version not stated: 1".to_owned(),
    };
    details.push(versions);
    details.push(match spdu.number(20) {
        Some(bits) => format!("functional units {bits:04X}: {}", units(bits)),
        None => format!("functional units not stated: {}", units(0x0349)),
    });
    details.push(match spdu.find(21) {
        Some([a, b, c, d]) => {
            let sizes = [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])];
            format!("TSDU size {} from, {} to the initiator (0: no limit)", sizes[0], sizes[1])
        }
        Some(other) => format!("TSDU size in a form that is unknown: {}", out.masks.hex(other)),
        None => "TSDU size not stated: no limit".to_owned(),
    });
    let known = [10, 9, 11, 12, 19, 20, 21, 22, 23, 26, 51, 52, 55, 60, 193, 194, 16];
    for (identifier, value) in &spdu.parameters {
        if !known.contains(identifier) {
            details.push(format!("parameter {identifier}: {}", out.masks.hex(value)));
        }
    }
    out.line(Layer::Session, what, details);
    if what == "CONNECT" {
        presentation::explain(presentation::Carrier::Connect, spdu.user_data(), out);
    }
}

fn accept(spdu: &Spdu<'_>, octets: &[u8], out: &mut Out<'_>) {
    connect("ACCEPT", (0, 52), spdu, out);
    let lacking = requirements::RTSE & !spdu.number(20).unwrap_or(0x0349);
    if lacking != 0 {
        if let Some(line) = out.lines.last_mut() {
            line.details.push(format!("RTSE needs also: {}", units(lacking)));
        }
        out.trouble(Cause::FunctionalUnits(lacking), "X.228 7.1.1.7, X.225 8.3.1.16", octets);
    }
    presentation::explain(presentation::Carrier::Accept, spdu.user_data(), out);
}

/// Reason codes of a REFUSE (X.225 8.3.5.10).
fn refusal(reason: u8) -> &'static str {
    match reason {
        0 => "reason not specified",
        1 => "temporary congestion",
        2 => "by the called SS-user",
        129 => "called session selector unknown",
        130 => "no SS-user at this selector",
        131 => "congestion",
        132 => "protocol versions not supported",
        133 => "by the provider, without a reason",
        134 => "by the provider, a restriction of its implementation",
        _ => "a reserved number",
    }
}

fn refuse(spdu: &Spdu<'_>, octets: &[u8], out: &mut Out<'_>) {
    let (reason, user_data) = match spdu.find(50) {
        Some([reason, user_data @ ..]) => (*reason, user_data),
        _ => (0, Default::default()),
    };
    let mut details = Vec::new();
    if let Some(bits) = spdu.number(20) {
        details.push(format!("functional units it has: {}", units(bits)));
    }
    let text = format!("REFUSE, reason {reason}: {}", refusal(reason));
    out.line(Layer::Session, text, details);
    out.known.refused = true;
    let cause = match reason {
        0 | 2 => Cause::SessionUser,
        1 | 131 => Cause::Congestion,
        129 | 130 => Cause::SessionAddress,
        132 => Cause::SessionVersion,
        other => Cause::SessionOther(other),
    };
    out.trouble(cause, "X.225 8.3.5", octets);
    presentation::explain(presentation::Carrier::Refuse, user_data, out);
}

fn abort(spdu: &Spdu<'_>, octets: &[u8], out: &mut Out<'_>) {
    let bits = spdu.number(17).unwrap_or_default();
    let by_user = bits & 2 != 0;
    let why = match bits {
        bits if bits & 4 != 0 => "protocol error",
        _ if by_user => "by a layer above",
        _ => "no reason",
    };
    let mut details = Vec::new();
    if let Some(reflected) = spdu.find(49) {
        details.push(format!("reflects {}", out.masks.hex(reflected)));
    }
    out.line(Layer::Session, format!("ABORT: {why}"), details);
    out.known.refused = true;
    let cause = if by_user { Cause::UserAbort } else { Cause::SessionAbort };
    out.trouble(cause, "X.225 8.3.9", octets);
    presentation::explain(presentation::Carrier::Abort, spdu.user_data(), out);
}
