//! The fields that a classifier tests (RFC 2475 2.3.1): the DS field alone (behaviour aggregate
//! classifier), or any fields of the header (multi-field classifier).

use super::{Name, OctetSize};
use crate::time::Rate;
use dscp::Dscp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A class: the packets that match at least one of its entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a class")]
pub struct PacketClass {
    /// The entries. A packet that meets all conditions of one entry is in the class.
    #[serde(rename = "match")]
    pub matches: Vec<Match>,
}

/// Conditions that a packet must meet. An absent key sets no condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of what a class matches")]
pub struct Match {
    /// One of these code points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Dscp>,
    /// The name of the input interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Name>,
    /// The prefix of the source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpPrefix>,
    /// The prefix of the destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpPrefix>,
    /// The transport protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IpProtocol>,
    /// The range of the source port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<PortRange>,
    /// The range of the destination port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<PortRange>,
    /// A table of flows: one of them must match the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Name>,
}

/// A table of flows. The first flow that matches a packet applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of flows")]
pub struct FlowTable {
    /// The flows at the start, in order.
    pub flows: Vec<TableFlow>,
}

/// A flow and its agreed profile: a row of the Bern study's `dstable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a flow")]
pub struct TableFlow {
    /// Its name, unique in the table.
    pub name: Name,
    /// The packets of the flow; `table` is not allowed here.
    #[serde(rename = "match")]
    pub matches: Match,
    /// The DSCP that a `mark-flows` step sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Dscp>,
    /// The rate, in bits a second of IP packets, for steps that meter or shape flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The burst in octets; if absent, a tenth of a second at the rate, at least 1,500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<OctetSize>,
}

/// An address prefix: `10.1.0.0/16`, `fd00::/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpPrefix {
    address: IpAddr,
    length: u8,
}

impl IpPrefix {
    /// The prefix of this length (0 to 32 or 128) of this address. Bits beyond the length are
    /// cleared.
    pub fn new(address: IpAddr, length: u8) -> Option<IpPrefix> {
        let address = match address {
            IpAddr::V4(v4) if length <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) if length <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
            _ => return None,
        };
        Some(IpPrefix { address, length })
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Its length in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether this address is in the prefix.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                IpPrefix::new(address, self.length).is_some_and(|of| of.address == self.address)
            }
            _ => false,
        }
    }
}

impl FromStr for IpPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<IpPrefix, String> {
        let wrong = || format!("{text:?} is not a prefix, as in 10.1.0.0/16 or fd00::/8");
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(whole), str::parse).map_err(|_| wrong())?;
        IpPrefix::new(address, length).ok_or_else(wrong)
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A transport protocol: `tcp`, `udp`, `icmp`, `icmpv6`, `esp`, or its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpProtocol(pub u8);

const PROTOCOLS: [(&str, u8); 9] = [
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("icmpv6", 58),
    ("ipip", 4),
    ("gre", 47),
    ("esp", 50),
    ("ospf", 89),
    ("sctp", 132),
];

impl FromStr for IpProtocol {
    type Err = String;

    fn from_str(text: &str) -> Result<IpProtocol, String> {
        let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        named.or_else(|| text.parse().ok()).map(IpProtocol).ok_or_else(|| {
            format!("{text:?} is not a protocol: write tcp, udp, icmp, ... or a number up to 255")
        })
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A range of ports, both ends included: `5000-5004`, or a single port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port, not below the lowest.
    pub last: u16,
}

impl PortRange {
    /// Whether this port is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<PortRange, String> {
        let wrong = || format!("{text:?} is not a range of ports, as in 5000-5004 or 5000");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first = first.trim().parse().map_err(|_| wrong())?;
        let last = last.trim().parse().map_err(|_| wrong())?;
        if first > last { Err(wrong()) } else { Ok(PortRange { first, last }) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

macro_rules! as_text {
    ($($kind:ty),+) => {$(
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                /// Text, or a bare number for types that allow one.
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum Written {
                    Number(u16),
                    Text(String),
                }
                let text = match Written::deserialize(deserializer)? {
                    Written::Number(number) => number.to_string(),
                    Written::Text(text) => text,
                };
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
as_text!(IpPrefix, IpProtocol, PortRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_their_own() {
        let prefix: IpPrefix = "10.10.64.7/24".parse().unwrap();
        assert_eq!(prefix.to_string(), "10.10.64.0/24");
        for (address, inside) in
            [("10.10.64.255", true), ("10.10.65.0", false), ("::ffff:10.10.64.1", false)]
        {
            assert_eq!(prefix.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!("0.0.0.0/0".parse::<IpPrefix>().unwrap().contains([1, 2, 3, 4].into()));
        assert!("::/0".parse::<IpPrefix>().unwrap().contains(Ipv6Addr::LOCALHOST.into()));
        for wrong in ["10.0.0.0/33", "x", "::/129", "1.2.3.4/", "1.2.3.4/-1"] {
            assert!(wrong.parse::<IpPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_and_protocols_are_text_or_numbers() {
        let text = "protocol = 'udp'\nsource_port = '5000-5004'\ndestination_port = 7";
        let read: Match = toml::from_str(text).unwrap();
        assert_eq!(read.protocol, Some(IpProtocol(17)));
        assert_eq!(read.source_port, Some(PortRange { first: 5000, last: 5004 }));
        assert_eq!(read.destination_port, Some(PortRange { first: 7, last: 7 }));
        assert!("9-8".parse::<PortRange>().is_err());
        assert!("256".parse::<IpProtocol>().is_err());
        assert!(toml::from_str::<Match>("port = 5").is_err(), "an unknown key");
    }
}
