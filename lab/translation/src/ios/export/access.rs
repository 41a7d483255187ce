//! Classes as class maps and access lists.
//!
//! Code points and interfaces are lines of the class map. Addresses, protocols and ports are
//! entries of an access list, one for each family and code point.

use super::{Exporter, fresh, key, normal, refused_name};
use crate::ios::map::DEFAULT;
use crate::ios::matching::access::printed_dscp;
use crate::ios::matching::algebra::MAX_MATCHES;
use dscp::Dscp;
use router::policy::{IpPrefix, IpProtocol, Match, PacketClass, PortRange};
use std::net::{IpAddr, Ipv4Addr};

/// Code points in one line of a class map, at most.
const CODES: usize = 8;
const SCTP: u8 = 132;

/// What a class map has for the matches of a class.
#[derive(Default)]
struct ClassParts {
    /// `match` lines.
    lines: Vec<String>,
    /// Entries of the access lists for IPv4 and for IPv6.
    four: Vec<String>,
    six: Vec<String>,
}

impl ClassParts {
    /// The number of `match` lines.
    fn count(&self) -> usize {
        self.lines.len() + usize::from(!self.four.is_empty()) + usize::from(!self.six.is_empty())
    }
}

impl Exporter<'_> {
    /// The class map of a class, with its access lists.
    pub(super) fn class(&mut self, name: &str, class: &PacketClass) {
        let path = key("classes", name);
        let words = ["type", "match-any", "match-all", DEFAULT];
        if let Some(what) = refused_name(name, &words) {
            self.fault(&path, what);
        }
        let mut parts = ClassParts::default();
        let (mut kind, mut first) = ("match-any", None);
        for (place, of) in class.matches.iter().enumerate() {
            let path = format!("{path}.match[{place}]");
            if of.table.is_some() {
                self.fault(
                    format!("{path}.table"),
                    "IOS has no tables of flows: write their matches here",
                );
            }
            let line = of.interface.as_ref().map(|port| {
                let name = self.names.name_in_ios(port);
                format!(" match input-interface {name}")
            });
            let before = parts.count();
            let other = Match { interface: None, table: None, ..of.clone() };
            let (is_plain, has_interface) = (other == Match::default(), line.is_some());
            if !(is_plain && has_interface) {
                self.parts(&other, &path, &mut parts);
            }
            match line {
                Some(line) if is_plain => parts.lines.push(line),
                // Both are needed: a class map of its own, or one line and no second family.
                Some(line) if class.matches.len() == 1 && parts.count() == before + 1 => {
                    (kind, first) = ("match-all", Some(line));
                }
                Some(_) => {
                    let what = "IOS has the input interface with other conditions only in a \
                        class of one match, with up to 8 code points or with addresses of one \
                        family";
                    self.fault(format!("{path}.interface"), what);
                }
                None => {}
            }
        }
        let entries = parts.lines.len() + parts.four.len() + parts.six.len();
        if entries > MAX_MATCHES {
            self.fault(
                &path,
                format!(
                    "{entries} lines and entries of lists: {MAX_MATCHES} at most are read back"
                ),
            );
        }
        let mut text = format!("class-map {kind} {name}\n");
        for line in first.into_iter().chain(parts.lines) {
            text.push_str(&line);
            text.push('\n');
        }
        for (entries, command, ending) in
            [(parts.four, "ip access-list extended", ""), (parts.six, "ipv6 access-list", "-v6")]
        {
            if !entries.is_empty() {
                let list = fresh(&format!("{name}{ending}"), &mut self.lists);
                text.push_str(&format!(" match access-group name {list}\n"));
                self.access.push(format!("{command} {list}\n{}", entries.concat()));
            }
        }
        self.classes.push(text);
    }

    /// Adds what a match without interface takes.
    fn parts(&mut self, of: &Match, path: &str, parts: &mut ClassParts) {
        let dscp = normal::code_points(of);
        let alone = of.destination.is_none() && of.protocol.is_none() && ports_of(of).is_empty();
        let of_four = of.source.is_some_and(|of| of.length() == 0 && of.address().is_ipv4());
        if alone && dscp.is_empty() && of.source.is_none() {
            parts.lines.push(" match any".to_owned());
        } else if alone && !dscp.is_empty() && (of_four || of.source.is_none()) {
            let word = if of_four { "ip dscp" } else { "dscp" };
            for codes in dscp.chunks(CODES) {
                let codes: Vec<String> = codes.iter().map(|dscp| printed_dscp(*dscp)).collect();
                parts.lines.push(format!(" match {word} {}", codes.join(" ")));
            }
        } else {
            self.entries(of, &dscp, path, parts);
        }
    }

    /// Adds the entries of access lists for a match.
    fn entries(&mut self, of: &Match, dscp: &[Dscp], path: &str, parts: &mut ClassParts) {
        let with_ports = of.protocol.is_some_and(|protocol| [6, 17, SCTP].contains(&protocol.0));
        for key in ports_of(of) {
            if !with_ports {
                let what =
                    "IOS has ports for tcp, udp and sctp only: state one of them as the protocol";
                self.fault(format!("{path}.{key}"), what);
            }
        }
        let named = of.source.or(of.destination).map(|prefix| prefix.address().is_ipv4());
        let codes: Vec<Option<Dscp>> =
            if dscp.is_empty() { vec![None] } else { dscp.iter().copied().map(Some).collect() };
        for (is_ipv4, entries) in [(true, &mut parts.four), (false, &mut parts.six)] {
            if named.is_none_or(|named| named == is_ipv4) {
                entries.extend(codes.iter().map(|code| entry(of, *code, is_ipv4)));
            }
        }
    }
}

/// The keys of the port conditions of a match.
fn ports_of(of: &Match) -> Vec<&'static str> {
    let source = of.source_port.map(|_| "source_port");
    source.into_iter().chain(of.destination_port.map(|_| "destination_port")).collect()
}

fn entry(of: &Match, code: Option<Dscp>, is_ipv4: bool) -> String {
    let mut words = vec![" permit".to_owned(), protocol(of.protocol, is_ipv4)];
    words.push(address(of.source));
    words.extend(of.source_port.map(ports));
    words.push(address(of.destination));
    words.extend(of.destination_port.map(ports));
    words.extend(code.map(|dscp| format!("dscp {}", printed_dscp(dscp))));
    words.join(" ") + "\n"
}

fn protocol(protocol: Option<IpProtocol>, is_ipv4: bool) -> String {
    let Some(IpProtocol(number)) = protocol else {
        return if is_ipv4 { "ip" } else { "ipv6" }.to_owned();
    };
    let name = match number {
        6 => "tcp",
        17 => "udp",
        SCTP => "sctp",
        // The lists of IPv6 have another meaning of `icmp`, and not all names.
        1 if is_ipv4 => "icmp",
        4 if is_ipv4 => "ipinip",
        47 if is_ipv4 => "gre",
        50 if is_ipv4 => "esp",
        89 if is_ipv4 => "ospf",
        _ => return number.to_string(),
    };
    name.to_owned()
}

fn address(prefix: Option<IpPrefix>) -> String {
    let Some(prefix) = prefix.filter(|prefix| prefix.length() > 0) else {
        return "any".to_owned();
    };
    match (prefix.address(), prefix.length()) {
        (address, 128) | (address @ IpAddr::V4(_), 32) => format!("host {address}"),
        (IpAddr::V4(address), length) => {
            let wild = u32::MAX.checked_shr(u32::from(length)).unwrap_or(0);
            format!("{address} {}", Ipv4Addr::from(wild))
        }
        (IpAddr::V6(_), _) => prefix.to_string(),
    }
}

fn ports(range: PortRange) -> String {
    match range.first == range.last {
        true => format!("eq {}", range.first),
        false => format!("range {} {}", range.first, range.last),
    }
}
