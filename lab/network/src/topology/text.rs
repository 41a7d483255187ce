//! The text form of a topology: TOML.

use super::{Setting, Topology};
use router::policy::KeyFault;
use serde::{Deserialize, Deserializer};

/// The longest text, in octets.
const MAX_TEXT: usize = 1 << 20;
/// Characters of a line that an error quotes, at most.
const QUOTED: usize = 80;

impl Topology {
    /// Reads a text. [`crate::NetworkPlan::new`] checks the values.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key or a value of the wrong type, with line, column and
    /// that line; a text longer than 1 MiB.
    pub fn read(text: &str) -> Result<Topology, KeyFault> {
        if text.len() > MAX_TEXT {
            let what = format!("{} octets of text, at most {MAX_TEXT} are read", text.len());
            return Err(KeyFault::at("topology", what));
        }
        toml::from_str(text).map_err(|error| {
            let message = error.message().trim();
            match error.span() {
                Some(span) => {
                    let (line, column, quoted) = place(text, span.start);
                    let path = format!("line {line}, column {column}");
                    KeyFault::at(path, format!("{message}\n  {line} | {quoted}"))
                }
                None => KeyFault::at("topology", message),
            }
        })
    }
}

/// Line and column of an octet, both from 1, and the text of the line.
fn place(text: &str, at: usize) -> (usize, usize, String) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let column = before.get(start..).map_or(0, |part| part.chars().count()) + 1;
    let quoted = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    (line, column, quoted.chars().take(QUOTED).collect())
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Setting, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Setting;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a setting as text or an integer")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Setting, E> {
                Ok(Setting(value.to_string()))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Setting, E> {
                Ok(Setting(value.to_string()))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Setting, E> {
                Ok(Setting(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    const PAIR: &str = r#"
about = "two hosts"
[hosts.a]
ports.eth0 = { addresses = ["10.0.1.2/24", "fd00:1::2/64"], queue = 50 }
sysctls = { "net.ipv4.tcp_sack" = 0, "net.ipv4.tcp_rmem" = "4096 131072 6291456" }
[hosts.b.ports.eth0]
addresses = ["10.0.1.3/24"]
[gateways.g]
black.addresses = ["10.9.9.9/32"]
dscp = { fixed = "CS1" }
ecn = "compatibility"
[[links]]
ends = ["a.eth0", "b.eth0"]
rate = "512kbit"
delay = "25ms"
loss = 0.01
duplex = "half"
"#;

    #[test]
    fn a_text_is_read() {
        let read = Topology::read(PAIR).unwrap();
        let a = &read.hosts["a"];
        assert_eq!(a.ports["eth0"].queue, 50);
        assert_eq!(a.ports["eth0"].addresses[1].to_string(), "fd00:1::2/64");
        assert_eq!(a.sysctls["net.ipv4.tcp_sack"].0, "0");
        assert_eq!(read.hosts["b"].ports["eth0"].queue, 1_000);
        let link = &read.links[0];
        assert_eq!((link.rate.unwrap().bits(), link.mtu), (512_000, 1_500));
        assert_eq!(link.duplex, Duplex::Half);
        let gateway = &read.gateways["g"];
        assert_eq!((gateway.dscp, gateway.overhead), (Outward::Fixed(Dscp::CS1), 38));
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let cases = [
            ("delay = \"25ms\"", "delai = \"25ms\"", "line 15, column 1", "unknown field `delai`"),
            ("\"512kbit\"", "\"512\"", "line 14, column 8", "write 512kbit, 2Mbit"),
            ("10.0.1.3/24", "10.0.1.3", "line 7, column 13", "10.1.0.1/24"),
            ("\"half\"", "\"both\"", "line 17, column 10", "`full` or `half`"),
            ("\"CS1\"", "\"CS9\"", "line 10, column 18", "CS9"),
            ("[[links]]", "[[links]", "line 12, column 1", ""),
        ];
        for (from, to, path, what) in cases {
            let wrong = Topology::read(&PAIR.replacen(from, to, 1)).unwrap_err();
            assert!(wrong.what.contains(what), "{to}: {wrong}");
            assert!(wrong.path.starts_with("line") && !path.is_empty(), "{to}: {wrong}");
            if !what.is_empty() {
                assert_eq!(wrong.path, path, "{to}: {wrong}");
            }
        }
        let wrong = Topology::read(&" ".repeat(2 << 20)).unwrap_err();
        assert!(wrong.what.contains("at most"), "{wrong}");
    }
}
