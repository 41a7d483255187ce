//! TPDUs of class 0 (X.224 clause 13).

use super::fields::grouped;
use super::{Cause, Layer, Out};
use osi::cotp::pdu::reason;

/// A parameter's code and value.
type Parameter<'a> = (u8, &'a [u8]);

/// Explains a TPDU; of a DT gives the data, and whether it ends the TSDU.
pub(super) fn explain<'a>(tpdu: &'a [u8], out: &mut Out<'_>) -> Option<(&'a [u8], bool)> {
    let header = tpdu.split_first().and_then(|(length, rest)| {
        let (header, data) = rest.split_at_checked(usize::from(*length))?;
        Some((*header.first()?, header.get(1..)?, data))
    });
    let Some((code, rest, data)) = header else {
        out.malformed(Layer::Transport, "a TPDU", &"its lengths do not fit", "X.224 13.2", tpdu);
        return None;
    };
    match (code & 0xF0, rest) {
        (0xF0, [number, ..]) => return Some((data, number & 0x80 != 0)),
        (0xE0, [_, _, _, _, class, parameters @ ..]) => {
            connect("connect request (CR)", *class, parameters, out);
        }
        (0xD0, [_, _, _, _, class, parameters @ ..]) => {
            connect("connect confirm (CC)", *class, parameters, out);
        }
        (0x80, [_, _, _, _, why, parameters @ ..]) => disconnect(*why, parameters, tpdu, out),
        (0x70, [_, _, cause, ..]) => {
            out.line(Layer::Transport, format!("error (ER), reject cause {cause}"), Vec::new());
            out.trouble(Cause::TransportOther(*cause), "X.224 13.12", tpdu);
        }
        _ => {
            out.line(
                Layer::Transport,
                format!("unknown TPDU {code:02X}"),
                vec![out.masks.hex(tpdu)],
            );
        }
    }
    None
}

/// The parameters of a header, and what follows the last that fits.
fn parameters(mut octets: &[u8]) -> (Vec<Parameter<'_>>, &[u8]) {
    let mut all = Vec::new();
    while let [code, length, rest @ ..] = octets {
        let Some((value, rest)) = rest.split_at_checked(usize::from(*length)) else { break };
        all.push((*code, value));
        octets = rest;
    }
    (all, octets)
}

fn connect(what: &str, class: u8, octets: &[u8], out: &mut Out<'_>) {
    let (all, beyond) = parameters(octets);
    let find = |code| all.iter().find(|(found, _)| *found == code).map(|(_, value)| *value);
    let mut details = vec![
        format!("called TSEL {}", out.masks.selector(find(0xC2))),
        format!("calling TSEL {}", out.masks.selector(find(0xC1))),
    ];
    details.push(match find(0xC0) {
        Some([exponent]) => {
            let size = 1usize.checked_shl(u32::from(*exponent)).filter(|_| *exponent < 32);
            format!("TPDU size {} octets", grouped(size.unwrap_or_default()))
        }
        Some(other) => format!("TPDU size in a form that is unknown: {}", out.masks.hex(other)),
        None => "TPDU size not stated: 65,531 octets (RFC 1006)".to_owned(),
    });
    for (code, value) in &all {
        if !matches!(code, 0xC0..=0xC2) {
            details.push(format!("parameter {code:02X}: {}", out.masks.hex(value)));
        }
    }
    if !beyond.is_empty() {
        details.push(format!("no parameter: {}", out.masks.hex(beyond)));
    }
    out.line(Layer::Transport, format!("{what}, class {}", class >> 4), details);
}

fn disconnect(why: u8, octets: &[u8], tpdu: &[u8], out: &mut Out<'_>) {
    let texts = parameters(octets).0.into_iter().filter(|(code, _)| *code == 0xE0);
    let details = texts.map(|(_, text)| format!("text {}", out.masks.quoted(text))).collect();
    let name = reason::name(why);
    out.line(Layer::Transport, format!("disconnect request (DR), reason {why}: {name}"), details);
    if out.known.releasing || out.known.refused {
        return;
    }
    out.known.refused = true;
    let cause = match why {
        reason::NOT_ATTACHED | reason::ADDRESS_UNKNOWN => Cause::TransportAddress,
        reason::CONGESTION | 129 => Cause::Congestion,
        reason::NEGOTIATION_FAILED => Cause::TransportClass,
        other => Cause::TransportOther(other),
    };
    out.trouble(cause, "X.224 13.5", tpdu);
}
