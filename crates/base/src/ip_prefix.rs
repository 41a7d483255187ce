//! IP addresses as access control and limits use them: the prefixes that a peer may connect from,
//! and the origin against which connections are counted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP prefix; a plain address is the prefix of itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// The text is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no IP address or prefix")]
pub struct NoPrefix;

impl Prefix {
    /// The prefix of these leading bits.
    ///
    /// # Errors
    /// More bits than the address has, or bits set behind them: then it is not clear what is meant.
    pub fn new(address: IpAddr, length: u8) -> Result<Prefix, NoPrefix> {
        let prefix = Prefix { address, length };
        match address {
            IpAddr::V4(v4) if length <= 32 && v4.to_bits() & !mask4(length) == 0 => Ok(prefix),
            IpAddr::V6(v6) if length <= 128 && v6.to_bits() & !mask6(length) == 0 => Ok(prefix),
            _ => Err(NoPrefix),
        }
    }

    /// The number of its leading bits, 0 to 32 or 128.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether an address is in it. Families do not mix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()) & mask4(self.length) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()) & mask6(self.length) == 0
            }
            _ => false,
        }
    }
}

fn mask4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

fn mask6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Prefix {
        Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Prefix, NoPrefix> {
        match text.split_once('/') {
            None => text.parse::<IpAddr>().map(Prefix::from).map_err(|_| NoPrefix),
            Some((address, length)) => {
                let address = address.parse().map_err(|_| NoPrefix)?;
                Prefix::new(address, length.parse().map_err(|_| NoPrefix)?)
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The origin against which a connection is counted: an IPv4 address; the /64 of an IPv6 address,
/// because one host may use any address in it; or a prefix that the configuration names within a /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    V6([u16; 4]),
    /// A prefix that the configuration names.
    Configured(Prefix),
    /// Addresses that are no longer counted apart.
    Others,
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Origin {
        match address.to_canonical() {
            IpAddr::V4(v4) => Origin::V4(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Origin::V6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::V4(address) => address.fmt(f),
            Origin::V6([a, b, c, d]) => {
                write!(f, "{}/64", Ipv6Addr::new(*a, *b, *c, *d, 0, 0, 0, 0))
            }
            Origin::Configured(prefix) if prefix.length == 128 => prefix.address.fmt(f),
            Origin::Configured(prefix) => prefix.fmt(f),
            Origin::Others => f.write_str("several addresses"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(prefix: &str, address: &str) -> bool {
        prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn prefixes() {
        assert!(within("192.0.2.0/24", "192.0.2.255") && !within("192.0.2.0/24", "192.0.3.0"));
        assert!(within("192.0.2.7", "192.0.2.7") && !within("192.0.2.7", "192.0.2.6"));
        assert!(within("0.0.0.0/0", "203.0.113.9") && !within("0.0.0.0/0", "::1"));
        assert!(within("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!within("2001:db8::/33", "2001:db8:8000::1"));
        assert!(within("::/0", "2001:db8::1") && !within("::/0", "192.0.2.1"));
        for bad in ["192.0.2.1/24", "192.0.2.0/33", "::1/64", "::/129", "192.0.2.0/", "host", ""] {
            assert_eq!(bad.parse::<Prefix>(), Err(NoPrefix), "{bad}");
        }
        assert_eq!("10.0.0.0/8".parse::<Prefix>().unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn origins() {
        let of = |text: &str| Origin::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("2001:db8:0:1::1").to_string(), "2001:db8:0:1::/64");
    }
}
