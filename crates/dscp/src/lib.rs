//! DiffServ code points and plans from precedence to code point.
//!
//! Pure except for `socket`, which marks sockets and reads the marks of peers, behind the feature
//! `socket` that only crates of the edge tier enable. Code points: RFC 2474 (CS), 2597 (AF), 3246
//! (EF), 5865 (VOICE-ADMIT), 8622 (LE); RFC 4594 describes the service of each.

mod plan;
#[cfg(feature = "socket")]
pub mod socket;

pub use plan::{Plan, UnknownPlan};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A code point of the DS field (RFC 2474 section 3): 0 to 63.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

/// Bits of the former TOS octet, or of the IPv6 traffic class, that hold the code point; the other
/// two are ECN's (RFC 3168 section 5).
pub const TOS_MASK: u8 = 0xfc;

/// Every named code point.
const NAMES: [(u8, &str); 23] = [
    (0, "CS0"),
    (1, "LE"),
    (8, "CS1"),
    (10, "AF11"),
    (12, "AF12"),
    (14, "AF13"),
    (16, "CS2"),
    (18, "AF21"),
    (20, "AF22"),
    (22, "AF23"),
    (24, "CS3"),
    (26, "AF31"),
    (28, "AF32"),
    (30, "AF33"),
    (32, "CS4"),
    (34, "AF41"),
    (36, "AF42"),
    (38, "AF43"),
    (40, "CS5"),
    (44, "VA"),
    (46, "EF"),
    (48, "CS6"),
    (56, "CS7"),
];

impl Dscp {
    /// Best effort (RFC 2474 section 4.1); `DF` of RFC 4594.
    pub const CS0: Dscp = Dscp(0);
    /// Lower effort (RFC 8622).
    pub const LE: Dscp = Dscp(1);
    /// Class selector 1. Equipment configured after RFC 4594 serves it *below* best effort.
    pub const CS1: Dscp = Dscp(8);
    /// Class selector 2.
    pub const CS2: Dscp = Dscp(16);
    /// Class selector 3.
    pub const CS3: Dscp = Dscp(24);
    /// Class selector 4.
    pub const CS4: Dscp = Dscp(32);
    /// Class selector 5.
    pub const CS5: Dscp = Dscp(40);
    /// Class selector 6: routing protocols.
    pub const CS6: Dscp = Dscp(48);
    /// Class selector 7.
    pub const CS7: Dscp = Dscp(56);
    /// VOICE-ADMIT (RFC 5865).
    pub const VA: Dscp = Dscp(44);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Dscp = Dscp(46);
    /// Assured forwarding class 1, low drop precedence.
    pub const AF11: Dscp = Dscp(10);
    /// Assured forwarding class 1, medium drop precedence.
    pub const AF12: Dscp = Dscp(12);
    /// Assured forwarding class 1, high drop precedence.
    pub const AF13: Dscp = Dscp(14);
    /// Assured forwarding class 2, low drop precedence.
    pub const AF21: Dscp = Dscp(18);

    /// The code point of this number, or `None` beyond 63.
    pub const fn new(number: u8) -> Option<Dscp> {
        if number < 64 { Some(Dscp(number)) } else { None }
    }

    /// Assured forwarding class 1 to 4, drop precedence 1 to 3 (RFC 2597 section 6).
    pub const fn assured(class: u8, drop: u8) -> Option<Dscp> {
        match (class, drop) {
            (1..=4, 1..=3) => Some(Dscp(class * 8 + drop * 2)),
            _ => None,
        }
    }

    /// 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The name in the registry, or `None` for a code point that has none.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// The TOS octet (IPv4) or traffic class (IPv6) of this code point, ECN bits zero: what
    /// `IP_TOS` and `IPV6_TCLASS` take.
    pub const fn tos(self) -> u8 {
        self.0 << 2
    }

    /// The code point in a TOS octet or traffic class, whatever its ECN bits are.
    pub const fn from_tos(octet: u8) -> Dscp {
        Dscp((octet & TOS_MASK) >> 2)
    }
}

/// The name if there is one, else the number.
impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl fmt::Debug for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is neither a name nor a number from 0 to 63.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown code point {0:?}: use CS0 to CS7, AF11 to AF43, EF, VA, LE or a number from 0 to 63"
)]
pub struct UnknownDscp(pub String);

/// A name in either case, `BE` and `DF` for CS0, or a decimal number.
impl FromStr for Dscp {
    type Err = UnknownDscp;

    fn from_str(text: &str) -> Result<Dscp, UnknownDscp> {
        let unknown = || UnknownDscp(text.to_owned());
        if text.eq_ignore_ascii_case("BE") || text.eq_ignore_ascii_case("DF") {
            return Ok(Dscp::CS0);
        }
        if let Some((number, _)) = NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            return Ok(Dscp(*number));
        }
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown());
        }
        text.parse().ok().and_then(Dscp::new).ok_or_else(unknown)
    }
}

/// The number.
impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(self.0)
    }
}

/// A number or a name; formats that are not self-describing hold the number.
impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Dscp, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a code point: a name such as CS3 or a number from 0 to 63")
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Dscp, E> {
                u8::try_from(number)
                    .ok()
                    .and_then(Dscp::new)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Dscp, E> {
                u64::try_from(number)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
                    .and_then(|n| self.visit_u64(n))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }
        }
        if d.is_human_readable() { d.deserialize_any(Visitor) } else { d.deserialize_u8(Visitor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_the_registry_s() {
        for class in 0..8u8 {
            let cs: Dscp = format!("cs{class}").parse().unwrap();
            assert_eq!(cs.number(), class * 8);
        }
        for class in 1..=4u8 {
            for drop in 1..=3u8 {
                let af: Dscp = format!("AF{class}{drop}").parse().unwrap();
                assert_eq!(Some(af), Dscp::assured(class, drop));
            }
        }
        assert_eq!("ef".parse(), Ok(Dscp::EF));
        assert_eq!("VA".parse::<Dscp>().unwrap().number(), 0b10_1100);
        assert_eq!("LE".parse::<Dscp>().unwrap().number(), 0b00_0001);
        assert_eq!("be".parse(), Ok(Dscp::CS0));
        for bad in ["", "64", "+1", "-1", "CS8", "AF14", "AF51", "0x10"] {
            assert_eq!(bad.parse::<Dscp>(), Err(UnknownDscp(bad.to_owned())));
        }
    }

    #[test]
    fn the_paper_s_octets() {
        // CS3 is the octet 0x60 on the wire; ECN bits are ignored.
        assert_eq!(Dscp::CS3.tos(), 0x60);
        assert_eq!(Dscp::from_tos(0x63), Dscp::CS3);
    }

    #[test]
    fn json_takes_names_and_gives_numbers() {
        assert_eq!(serde_json::from_str::<Dscp>("\"CS3\"").unwrap(), Dscp::CS3);
        assert_eq!(serde_json::from_str::<Dscp>("24").unwrap(), Dscp::CS3);
        assert_eq!(serde_json::to_string(&Dscp::CS3).unwrap(), "24");
        for bad in ["64", "-1", "\"CS9\"", "1.5"] {
            assert!(serde_json::from_str::<Dscp>(bad).is_err());
        }
    }

    proptest! {
        #[test]
        fn text_and_octet_round_trip(number in 0u8..64, ecn in 0u8..4) {
            let d = Dscp::new(number).unwrap();
            prop_assert_eq!(d.to_string().parse(), Ok(d));
            prop_assert_eq!(number.to_string().parse(), Ok(d));
            prop_assert_eq!(Dscp::from_tos(d.tos() | ecn), d);
            prop_assert_eq!(d.tos() & !TOS_MASK, 0);
        }
    }
}
