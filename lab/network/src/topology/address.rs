//! An interface address with its prefix length.

use router::policy::IpPrefix;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address of a port with its prefix length: `10.10.64.1/24`, `fd00:64::1/64`. Unlike a
/// [`IpPrefix`], it keeps the bits beyond the prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    ip: IpAddr,
    prefix: IpPrefix,
}

impl Address {
    /// This address with this prefix length, 0 to 32 or 128. `None` above that, and for addresses
    /// that no interface can have (unspecified, loopback, multicast, broadcast).
    pub fn new(ip: IpAddr, length: u8) -> Option<Address> {
        let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || broadcast {
            return None;
        }
        Some(Address { ip, prefix: IpPrefix::new(ip, length)? })
    }

    /// The address.
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// The prefix length in bits.
    pub fn length(self) -> u8 {
        self.prefix.length()
    }

    /// The prefix of the address.
    pub fn prefix(self) -> IpPrefix {
        self.prefix
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = || {
            let text: String = text.chars().take(60).collect();
            format!("{text:?} is not an address of an interface, as in 10.1.0.1/24 or fd00::1/64")
        };
        let (ip, length) = text.split_once('/').ok_or_else(wrong)?;
        let ip = ip.parse().map_err(|_| wrong())?;
        let length = length.parse().map_err(|_| wrong())?;
        Address::new(ip, length).ok_or_else(wrong)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.length())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_behind_the_prefix_are_kept() {
        let address: Address = "10.10.64.7/24".parse().unwrap();
        assert_eq!(address.to_string(), "10.10.64.7/24");
        assert_eq!(address.prefix().to_string(), "10.10.64.0/24");
        let wrong = [
            "10.0.0.1",
            "10.0.0.1/33",
            "::/64",
            "127.0.0.1/8",
            "224.0.0.1/4",
            "x/8",
            "fd00::1/129",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
