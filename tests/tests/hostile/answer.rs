//! Reads what our side answers, without any decoder of ours, and puts it in a few words: which PDU,
//! and the reason it gives.

use std::fmt::Write as _;

/// Octets sent by our side, as words: `CC`, `AC`, `AB(protocol error)`, and what PPDU and APDU they
/// carry.
#[derive(Default)]
pub(crate) struct Answers {
    pending: Vec<u8>,
    tsdu: Vec<u8>,
    pub(crate) words: Vec<String>,
}

impl Answers {
    pub(crate) fn take(&mut self, octets: &[u8]) {
        self.pending.extend_from_slice(octets);
        while let [3, _, high, low, ..] = self.pending[..] {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if self.pending.len() < length {
                break;
            }
            let packet: Vec<u8> = self.pending.drain(..length).skip(4).collect();
            self.tpdu(&packet);
        }
    }

    fn tpdu(&mut self, tpdu: &[u8]) {
        match tpdu {
            [_, 0xe0, ..] => self.words.push("CR".to_owned()),
            [_, 0xd0, ..] => self.words.push("CC".to_owned()),
            [_, 0x80, _, _, _, _, reason, ..] => self.words.push(format!("DR({reason})")),
            [_, 0x70, _, _, cause, ..] => self.words.push(format!("ER({cause})")),
            [2, 0xf0, eot, data @ ..] => {
                self.tsdu.extend_from_slice(data);
                if *eot == 0x80 {
                    let tsdu = std::mem::take(&mut self.tsdu);
                    self.words.push(of_tsdu(&tsdu));
                }
            }
            other => panic!("no TPDU of ours: {other:02X?}"),
        }
    }
}

/// Length and contents of an SPDU's or a parameter's rest.
fn length(octets: &[u8]) -> (usize, &[u8]) {
    match octets {
        [0xff, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [one, rest @ ..] => (usize::from(*one), rest),
        [] => (0, octets),
    }
}

fn of_tsdu(tsdu: &[u8]) -> String {
    let concatenated = matches!(tsdu, [1 | 2, 0, _, ..]);
    let spdu = if concatenated { &tsdu[2..] } else { tsdu };
    let (code, (size, rest)) = (spdu[0], length(&spdu[1..]));
    let (parameters, ppdu) = rest.split_at(size);
    let parameters = self::parameters(parameters);
    let find = |wanted: u8| {
        let found = parameters.iter().find(|(code, _)| *code == wanted);
        found.map(|(_, contents)| contents.as_slice())
    };
    let serial = || String::from_utf8_lossy(find(0x2a).unwrap_or_default()).into_owned();
    let carried = find(0xc1).or(find(0xc2)).unwrap_or_default();
    match (concatenated, code) {
        (_, 0x0e) => format!("AC{}", of_ppdu(carried)),
        (_, 0x0c) => {
            let reason = find(0x32).unwrap_or_default();
            let first = reason.first().map_or("none".to_owned(), u8::to_string);
            format!("RF({first}){}", of_ppdu(reason.get(1..).unwrap_or_default()))
        }
        (_, 0x0d) => "CN".to_owned(),
        (_, 0x09) => "FN".to_owned(),
        (_, 0x0a) => format!("DN{}", of_ppdu(carried)),
        (false, 0x19) => {
            let why = match find(0x11) {
                Some([bits]) if bits & 2 != 0 => "user",
                Some([bits]) if bits & 4 != 0 => "protocol error",
                _ => "no reason",
            };
            format!("AB({why}){}", of_ppdu(carried))
        }
        (false, 0x1a) => "AA".to_owned(),
        (true, 0x31) => format!("MIP({})", serial()),
        (true, 0x32) => format!("MIA({})", serial()),
        (true, 0x2d) => "AS".to_owned(),
        (true, 0x29) => format!("AE({})", serial()),
        (true, 0x2a) => format!("AEA({})", serial()),
        (true, 0x19) => "AI".to_owned(),
        (true, 0x1a) => "AIA".to_owned(),
        (true, 0x39) => "AD".to_owned(),
        (true, 0x3a) => "ADA".to_owned(),
        (true, 0x30) => {
            let reason = find(0x32).and_then(|r| r.first().copied());
            format!("ED({})", reason.map_or("none".to_owned(), |r| r.to_string()))
        }
        (true, 0x01) => format!("DT{}", of_ppdu(ppdu)),
        (_, 0x15) => "GTC".to_owned(),
        (_, 0x16) => "GTA".to_owned(),
        (false, 0x01) => "GT".to_owned(),
        (false, 0x02) => "PT".to_owned(),
        (_, other) => format!("SPDU {other:02X}"),
    }
}

/// Parameters of an SPDU, those within groups too.
fn parameters(mut octets: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    while let [code, rest @ ..] = octets {
        let (size, rest) = length(rest);
        let (contents, after) = rest.split_at(size.min(rest.len()));
        match code {
            1 | 5 | 0x21 => all.extend(parameters(contents)),
            _ => all.push((*code, contents.to_vec())),
        }
        octets = after;
    }
    all
}

/// An element: tag octet, contents, and what follows it. Ours have definite lengths and tags of one
/// octet where they are looked at.
fn element(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, first, rest @ ..] = octets else { return None };
    let (size, rest) = match first {
        0x80 => return None,
        short @ 0..0x80 => (usize::from(*short), rest),
        long => {
            let (count, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (count.iter().fold(0, |sum, o| sum << 8 | usize::from(*o)), rest)
        }
    };
    let (contents, after) = rest.split_at_checked(size)?;
    Some((*tag, contents, after))
}

fn children(mut octets: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let Some((tag, contents, after)) = element(octets) {
        all.push((tag, contents));
        octets = after;
    }
    all
}

fn child(octets: &[u8], tag: u8) -> Option<&[u8]> {
    children(octets).into_iter().find(|(t, _)| *t == tag).map(|(_, contents)| contents)
}

fn number(octets: Option<&[u8]>) -> String {
    let Some(octets) = octets else { return "none".to_owned() };
    octets.iter().fold(0u64, |n, o| n << 8 | u64::from(*o)).to_string()
}

/// The value in user data: `61 {30 {02 context, A0 {value}}}`.
fn carried(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let list = child(child(octets, 0x61)?, 0x30)?;
    element(child(list, 0xa0)?)
}

fn of_ppdu(ppdu: &[u8]) -> String {
    let mut text = String::new();
    match element(ppdu) {
        // CPA, an accepting SET.
        Some((0x31, contents, _)) => {
            text.push_str(&of_apdu(child(contents, 0xa2).unwrap_or(contents)));
        }
        // CPR or ARP, both a SEQUENCE.
        Some((0x30, contents, _)) => {
            let tags: Vec<u8> = children(contents).iter().map(|(tag, _)| *tag).collect();
            if tags.iter().all(|tag| [0x80, 0x81].contains(tag)) {
                let (reason, event) = (child(contents, 0x80), child(contents, 0x81));
                let _ = write!(text, " ARP({}, {})", number(reason), number(event));
            } else {
                let _ = write!(text, " CPR");
                if let Some(reason) = child(contents, 0x8a) {
                    let _ = write!(text, "({})", number(Some(reason)));
                }
                text.push_str(&results(contents));
                text.push_str(&of_apdu(contents));
            }
        }
        Some((0xa0, contents, _)) => {
            let _ = write!(text, " ARU{}", of_apdu(contents));
        }
        Some((0x61, ..)) => text.push_str(&of_apdu(ppdu)),
        Some((tag, ..)) => {
            let _ = write!(text, " PPDU {tag:02X}");
        }
        None => {}
    }
    text
}

/// Contexts that were refused: their place and reason.
fn results(contents: &[u8]) -> String {
    let results = child(contents, 0xa5).map(children).unwrap_or_default();
    let mut text = String::new();
    for (n, (_, result)) in (1..).zip(results) {
        if child(result, 0x80) != Some(&[0]) {
            let _ = write!(text, " context {n}({})", number(child(result, 0x82)));
        }
    }
    text
}

fn of_apdu(contents: &[u8]) -> String {
    let Some((tag, apdu, _)) = carried(contents) else { return String::new() };
    // What an ACSE APDU carries: `BE {28 {.., A0 {value}}}`.
    let user = child(apdu, 0xbe).and_then(|b| child(b, 0x28)).and_then(|e| child(e, 0xa0));
    let user = user.map(of_rtse).unwrap_or_default();
    match tag {
        0x61 => {
            let result = child(apdu, 0xa2).and_then(|r| child(r, 2));
            let diagnostic = child(apdu, 0xa3).and_then(element);
            let why = diagnostic.map(|(tag, contents, _)| (tag & 1, number(child(contents, 2))));
            match (number(result).as_str(), why) {
                ("0", _) => format!(" AARE(0){user}"),
                (result, Some((1, why))) => format!(" AARE({result}, user {why}){user}"),
                (result, Some((_, why))) => format!(" AARE({result}, provider {why}){user}"),
                (result, None) => format!(" AARE({result}){user}"),
            }
        }
        0x63 => format!(" RLRE{user}"),
        0x64 => format!(" ABRT({}){user}", number(child(apdu, 0x80))),
        0xa1 => format!(" invoke {}", code(apdu, 1)),
        0xa2 => " result".to_owned(),
        0xa3 => format!(" error {}", code(apdu, 1)),
        0xa4 => {
            let problem = children(apdu).into_iter().find(|(tag, _)| (0x80..0x84).contains(tag));
            let problem = problem.map_or("none".to_owned(), |(tag, value)| {
                format!("{}, {}", tag & 3, number(Some(value)))
            });
            format!(" reject({problem})")
        }
        other => format!(" APDU {other:02X}"),
    }
}

/// The INTEGER number `n`.
fn code(apdu: &[u8], n: usize) -> String {
    let integers: Vec<&[u8]> =
        children(apdu).into_iter().filter(|(tag, _)| *tag == 2).map(|(_, value)| value).collect();
    number(integers.get(n).copied())
}

fn of_rtse(value: &[u8]) -> String {
    match element(value) {
        Some((0xb1, ..)) => " RTOAC".to_owned(),
        Some((0xb2, contents, _)) => {
            let refuse = child(contents, 0x80);
            let bind = child(contents, 0xa1).and_then(|u| child(u, 0xb2)).and_then(|b| child(b, 2));
            match (refuse, bind) {
                (Some(reason), _) => format!(" RTORJ(refuse {})", number(Some(reason))),
                (None, Some(error)) => format!(" RTORJ(bind error {})", number(Some(error))),
                _ => " RTORJ".to_owned(),
            }
        }
        Some((0xb6, contents, _)) => format!(" RTAB({})", number(child(contents, 0x80))),
        Some((tag, ..)) => format!(" {tag:02X}"),
        None => String::new(),
    }
}
