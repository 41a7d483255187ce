//! Access lists.

use super::algebra::{all_without, whole};
use super::work::{TOO_MUCH, WorkBudget};
use crate::ios::Notes;
use crate::ios::lines::ConfigLine;
use dscp::Dscp;
use router::policy::{IpPrefix, IpProtocol, Match, PortRange};
use std::net::{IpAddr, Ipv4Addr};

/// An access list.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessList {
    pub(crate) entries: Vec<AccessEntry>,
}

/// An entry: permit or deny, and the packets that it matches.
#[derive(Clone, Debug)]
pub(crate) struct AccessEntry {
    line: usize,
    permit: bool,
    /// Its matches, or why a policy cannot express them.
    matches: Result<Vec<Match>, String>,
}

/// The kind of an access list, which determines the form of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Standard,
    Extended,
    Six,
}

/// The kind of a numbered list.
pub(crate) fn kind_of(number: &str) -> Option<AccessKind> {
    match number.parse::<u16>().ok()? {
        1..=99 | 1300..=1999 => Some(AccessKind::Standard),
        100..=199 | 2000..=2699 => Some(AccessKind::Extended),
        _ => None,
    }
}

/// Matches that a list permits, at most; the classes that use it may take fewer of them.
const MAX_PERMITTED: usize = 4_096;

impl AccessList {
    /// The permitted packets, and whether something was left out of them.
    pub(crate) fn permitted(
        &self,
        notes: &mut Notes,
        work: &mut WorkBudget,
    ) -> Result<(Vec<Match>, bool), String> {
        let (mut permitted, mut denied, mut partial) = (Vec::new(), Vec::new(), false);
        for entry in &self.entries {
            if work.is_spent() {
                return Err(TOO_MUCH.to_owned());
            }
            match (&entry.matches, entry.permit) {
                (Ok(matches), false) => denied.extend(matches.iter().cloned()),
                (Ok(matches), true) => match all_without(matches, &denied, work) {
                    Ok(rest) if permitted.len() + rest.len() > MAX_PERMITTED => {
                        return Err(format!("it permits more than {MAX_PERMITTED} matches"));
                    }
                    Ok(rest) => permitted.extend(rest),
                    Err(why) => {
                        let reason = format!("left out: without what is denied before, {why}");
                        notes.add(entry.line, reason);
                        partial = true;
                    }
                },
                (Err(why), true) => {
                    notes.add(entry.line, format!("left out: {why}"));
                    partial = true;
                }
                (Err(why), false) => {
                    notes.add(
                        entry.line,
                        format!("it denies packets that a policy cannot express: {why}"),
                    );
                    return Err(format!(
                        "line {} denies packets that a policy cannot express",
                        entry.line
                    ));
                }
            }
        }
        work.makes(permitted.len());
        Ok((permitted, partial))
    }
}

/// An entry from the words after the name of the list: `permit ...`; `None` for a remark.
pub(crate) fn entry(line: &ConfigLine, skip: usize, kind: AccessKind) -> Option<AccessEntry> {
    let words = line.lower();
    let mut words = words.iter().map(String::as_str).skip(skip).peekable();
    // Entries of named lists may have numbers.
    words.next_if(|word| word.parse::<u32>().is_ok());
    if words.peek() == Some(&"sequence") {
        words.next();
        words.next();
    }
    let permit = match words.next() {
        Some("permit") => true,
        Some("deny") => false,
        Some("remark") => return None,
        _ => {
            let matches = Err("neither permit nor deny".to_owned());
            return Some(AccessEntry { line: line.number, permit: true, matches });
        }
    };
    let words: Vec<&str> = words.collect();
    let matches = match kind {
        AccessKind::Standard => standard(&words),
        AccessKind::Extended => extended(&words, true),
        AccessKind::Six => extended(&words, false),
    };
    Some(AccessEntry { line: line.number, permit, matches })
}

fn standard(words: &[&str]) -> Result<Vec<Match>, String> {
    let mut reader = WordReader { words, is_ipv4: true };
    let source = match words {
        // Without a mask, the address is that of a host.
        [address] | [address, "log"] if address.parse::<Ipv4Addr>().is_ok() => {
            reader.words = &[];
            address.parse().ok()
        }
        _ => reader.prefix()?,
    };
    reader.rest()?;
    Ok(vec![Match { source: source.or_else(|| whole(true)), ..Match::default() }])
}

fn extended(words: &[&str], is_ipv4: bool) -> Result<Vec<Match>, String> {
    let mut reader = WordReader { words, is_ipv4 };
    let protocol = protocol(reader.next().unwrap_or_default())?;
    let source = reader.prefix()?;
    let from = reader.ports()?;
    let destination = reader.prefix()?;
    let to = reader.ports()?;
    let (mut source, dscp) = (source, reader.options()?);
    if source.is_none() && destination.is_none() {
        source = whole(is_ipv4);
    }
    let base = Match { dscp, source, destination, protocol, ..Match::default() };
    let each = |ports: Vec<PortRange>| -> Vec<Option<PortRange>> {
        if ports.is_empty() { vec![None] } else { ports.into_iter().map(Some).collect() }
    };
    let (from, to) = (each(from), each(to));
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
    Ok(pairs
        .map(|(source_port, destination_port)| Match {
            source_port,
            destination_port,
            ..base.clone()
        })
        .collect())
}

fn protocol(word: &str) -> Result<Option<IpProtocol>, String> {
    let number = match word {
        "ip" | "ipv6" => return Ok(None),
        "igmp" => 2,
        "ipinip" => 4,
        "eigrp" => 88,
        "ahp" => 51,
        "pim" => 103,
        "icmp" => 1,
        other => {
            let known: Result<IpProtocol, String> = other.parse();
            return known.map(Some).map_err(|_| format!("the protocol {other:?} is not known"));
        }
    };
    Ok(Some(IpProtocol(number)))
}

struct WordReader<'w> {
    words: &'w [&'w str],
    is_ipv4: bool,
}

const PORTS: [(&str, u16); 24] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("telnet", 23),
    ("smtp", 25),
    ("time", 37),
    ("tacacs", 49),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("gopher", 70),
    ("finger", 79),
    ("www", 80),
    ("hostname", 101),
    ("pop2", 109),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("snmp", 161),
    ("snmptrap", 162),
    ("bgp", 179),
    ("isakmp", 500),
];

fn port(word: &str) -> Result<u16, String> {
    let named = PORTS.iter().find(|(name, _)| *name == word).map(|(_, port)| *port);
    named.or_else(|| word.parse().ok()).ok_or_else(|| format!("the port {word:?} is not known"))
}

impl<'w> WordReader<'w> {
    fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn peek(&self) -> Option<&'w str> {
        self.words.first().copied()
    }

    /// An address in the form of IOS; `None` for `any`.
    fn prefix(&mut self) -> Result<Option<IpPrefix>, String> {
        let word = self.next().ok_or("an address is missing")?;
        match word {
            "any" => Ok(None),
            "host" => {
                let address = self.next().unwrap_or_default();
                let address: IpAddr =
                    address.parse().map_err(|_| format!("invalid address {address:?}"))?;
                let length = if address.is_ipv4() { 32 } else { 128 };
                Ok(IpPrefix::new(address, length))
            }
            "object-group" => Err("object groups are not mapped".to_owned()),
            _ if !self.is_ipv4 => {
                let prefix: IpPrefix = word.parse()?;
                Ok(Some(prefix))
            }
            _ => {
                let address: Ipv4Addr =
                    word.parse().map_err(|_| format!("invalid address {word:?}"))?;
                let mask = self.next().ok_or("the wildcard mask is missing")?;
                let wild: Ipv4Addr =
                    mask.parse().map_err(|_| format!("invalid wildcard mask {mask:?}"))?;
                let length = u32::from(wild).leading_zeros();
                let ones = u32::MAX.checked_shr(length).unwrap_or(0);
                if ones != u32::from(wild) {
                    return Err(format!("the wildcard mask {mask} is not a prefix"));
                }
                let length = u8::try_from(length).unwrap_or(32);
                Ok(IpPrefix::new(address.into(), length))
            }
        }
    }

    /// Ranges of ports; none if the entry has no condition on ports.
    fn ports(&mut self) -> Result<Vec<PortRange>, String> {
        let ports = |first, last| PortRange { first, last };
        let Some(operator @ ("eq" | "neq" | "lt" | "gt" | "range")) = self.peek() else {
            return Ok(Vec::new());
        };
        self.next();
        let first = port(self.next().unwrap_or_default())?;
        let mut found = match operator {
            "eq" => vec![ports(first, first)],
            "lt" => vec![ports(0, first.checked_sub(1).ok_or("no port is less than 0")?)],
            "gt" => vec![ports(first.checked_add(1).ok_or("no port is above 65535")?, u16::MAX)],
            "neq" => {
                let below = first.checked_sub(1).map(|last| ports(0, last));
                let above = first.checked_add(1).map(|first| ports(first, u16::MAX));
                below.into_iter().chain(above).collect()
            }
            _ => {
                let last = port(self.next().unwrap_or_default())?;
                vec![ports(first.min(last), first.max(last))]
            }
        };
        // `eq` takes several ports.
        while let Some(more) = self.peek().filter(|_| operator == "eq") {
            let Ok(more) = port(more) else { break };
            self.next();
            found.push(ports(more, more));
        }
        Ok(found)
    }

    fn options(&mut self) -> Result<Vec<Dscp>, String> {
        let mut dscps = Vec::new();
        while let Some(word) = self.next() {
            match word {
                "log" | "log-input" => {}
                "dscp" => dscps.push(dscp(self.next().unwrap_or_default())?),
                "precedence" => dscps.extend(precedence(self.next().unwrap_or_default())?),
                other => return Err(format!("{other:?} is not mapped")),
            }
        }
        Ok(dscps)
    }

    fn rest(&mut self) -> Result<(), String> {
        match self.next() {
            None | Some("log") => Ok(()),
            Some(other) => Err(format!("{other:?} is not mapped")),
        }
    }
}

/// A code point, by its name or number in IOS.
pub(crate) fn dscp(word: &str) -> Result<Dscp, String> {
    let word = if word == "default" { "0" } else { word };
    word.parse().map_err(|error: dscp::UnknownDscp| error.to_string())
}

/// A code point as IOS prints it: by number where it has no name there.
pub(crate) fn printed_dscp(dscp: Dscp) -> String {
    let name = dscp.to_string().to_ascii_lowercase();
    match dscp.number() {
        0 => "default".to_owned(),
        _ if ["cs", "af", "ef"].iter().any(|kind| name.starts_with(kind)) => name,
        number => number.to_string(),
    }
}

const PRECEDENCES: [&str; 8] = [
    "routine",
    "priority",
    "immediate",
    "flash",
    "flash-override",
    "critical",
    "internet",
    "network",
];

/// The number of an IP precedence.
pub(crate) fn precedence_number(word: &str) -> Result<u8, String> {
    let named = PRECEDENCES.iter().position(|name| *name == word);
    let number = named.and_then(|n| u8::try_from(n).ok()).or_else(|| word.parse().ok());
    number.filter(|n| *n < 8).ok_or_else(|| format!("invalid IP precedence {word:?}"))
}

/// The eight code points of an IP precedence.
pub(crate) fn precedence(word: &str) -> Result<Vec<Dscp>, String> {
    let number = precedence_number(word)?;
    Ok((number * 8..number * 8 + 8).filter_map(Dscp::new).collect())
}
