//! Values: text with its bounds, durations, sizes, code points, addresses.

use super::tree::{Bad, kind};
use base::{Precedence, Window, quantity};
use bytes::Bytes;
use dscp::Dscp;
use node::config::Prefix;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use toml::de::DeValue;

/// Any text.
pub fn text(value: &DeValue<'_>) -> Result<String, Bad> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Bad::new(format!("{} is not text", kind(value)), "write text in quotes"))
}

/// Text that is not empty and has no control characters, so that a log or a table can show it.
pub fn name(value: &DeValue<'_>) -> Result<String, Bad> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err(Bad::new("the text is empty", "write a name"));
    }
    if text.contains(base::shown::is_obeyed) {
        let shown = base::shown::line(&text);
        return Err(Bad::new(
            format!("\"{shown}\" holds a control character"),
            "write a name of visible characters",
        ));
    }
    Ok(text)
}

/// An MTA name: IA5, 1 to 32 characters (X.411, ub-mta-name-length).
pub fn mta_name(value: &DeValue<'_>) -> Result<String, Bad> {
    let text = text(value)?;
    if text.is_empty() || text.len() > 32 || !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(Bad::new(
            format!("invalid MTA name {text:?}"),
            "an MTA name has 1 to 32 printable ASCII characters",
        ));
    }
    Ok(text)
}

/// A whole number within a range.
pub fn integer(value: &DeValue<'_>, least: u64, most: u64) -> Result<u64, Bad> {
    let remedy = || format!("write a whole number from {least} to {most}");
    let Some(number) = value.as_integer() else {
        return Err(Bad::new(format!("{} is not a number", kind(value)), remedy()));
    };
    match u64::from_str_radix(number.as_str(), number.radix()) {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(Bad::new(format!("{number} is out of range"), remedy())),
    }
}

/// `true` or `false`.
pub fn boolean(value: &DeValue<'_>) -> Result<bool, Bad> {
    value.as_bool().ok_or_else(|| {
        Bad::new(format!("{} is neither true nor false", kind(value)), "write true or false")
    })
}

/// One of several keywords.
pub fn word<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, Bad> {
    let text = text(value)?;
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        Bad::new(format!("unknown word {text:?}"), format!("write {}", list.join(" or ")))
    })
}

const DURATION_REMEDY: &str = "write a number and its unit: \"500ms\", \"30s\", \"5min\" or \"4h\"";

/// A duration of at least a millisecond: see [`quantity::duration`].
pub fn duration(value: &DeValue<'_>) -> Result<Duration, Bad> {
    let text = value
        .as_str()
        .ok_or_else(|| Bad::new(format!("{} is not a duration", kind(value)), DURATION_REMEDY))?;
    duration_of(text)
}

/// The same from a command's argument.
pub fn duration_of(text: &str) -> Result<Duration, Bad> {
    let bad = |message: String| Bad::new(message, DURATION_REMEDY);
    match quantity::duration(text) {
        Ok(Duration::ZERO) => Err(bad("a duration of zero".to_owned())),
        Ok(time) if time < Duration::from_millis(1) => {
            Err(bad(format!("{text:?} is less than 1ms")))
        }
        Ok(time) => Ok(time),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// A size in octets: a number, or text with a unit: see [`quantity::octets`].
pub fn size(value: &DeValue<'_>) -> Result<u64, Bad> {
    const REMEDY: &str = "write octets as a number, or text with a unit: \"64KiB\", \"10MB\"";
    if let Some(number) = value.as_integer() {
        return u64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| Bad::new(format!("{number} is not a size"), REMEDY));
    }
    let text =
        value.as_str().ok_or_else(|| Bad::new(format!("{} is not a size", kind(value)), REMEDY))?;
    quantity::octets(text).map_err(|error| Bad::new(error.to_string(), REMEDY))
}

/// A checkpoint size in RTSE's unit of 1,024 octets (X.228 7.1.1); 0 for no checkpoints.
pub fn checkpoint(value: &DeValue<'_>) -> Result<Option<u32>, Bad> {
    if value.as_str() == Some("auto") {
        return Ok(None);
    }
    let octets = size(value)?;
    let units = u32::try_from(octets / 1_024).unwrap_or(u32::MAX);
    if !octets.is_multiple_of(1_024) || units > 1 << 20 {
        let nearest = octets.div_ceil(1_024).clamp(1, 1 << 20);
        return Err(Bad::new(
            format!("a checkpoint size of {octets} octets"),
            format!(
                "RTSE counts checkpoints in units of 1,024 octets, up to 1 GiB: \
                 write \"{nearest}KiB\", 0 for none, or \"auto\""
            ),
        ));
    }
    Ok(Some(units))
}

/// A DSCP name or number.
pub fn dscp(value: &DeValue<'_>) -> Result<Dscp, Bad> {
    const REMEDY: &str = "write a name (CS0 to CS7, AF11 to AF43, EF, VA, LE) or 0 to 63";
    if value.is_integer() {
        let number = integer(value, 0, 63).map_err(|bad| Bad::new(bad.message, REMEDY))?;
        return u8::try_from(number)
            .ok()
            .and_then(Dscp::new)
            .ok_or_else(|| Bad::new(format!("invalid code point {number}"), REMEDY));
    }
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    text.parse().map_err(|_| Bad::new(format!("invalid DSCP {text:?}"), REMEDY))
}

/// One of the six precedences.
pub fn precedence(value: &DeValue<'_>) -> Result<Precedence, Bad> {
    let remedy = "the six are deferred, routine, priority, immediate, flash and override";
    let text = text(value).map_err(|bad| Bad::new(bad.message, remedy))?;
    text.parse().map_err(|_| Bad::new(format!("invalid precedence {text:?}"), remedy))
}

/// A weekly time window in UTC.
pub fn window(value: &DeValue<'_>) -> Result<Window, Bad> {
    const REMEDY: &str = "write days and times in UTC: \"mon-fri 06:00-18:00\", \"sat,sun 00:00-24:00\", or \
         \"22:00-02:00\" for every day, over midnight";
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    text.parse().map_err(|wrong: base::window::WindowError| Bad::new(wrong.to_string(), REMEDY))
}

/// An IP address and port to listen on.
pub fn socket(value: &DeValue<'_>) -> Result<SocketAddr, Bad> {
    const REMEDY: &str = "write an IP address and a port: \"10.0.0.1:5000\" or \"[::1]:5000\"";
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        _ => Err(Bad::new(format!("{text:?} is nothing to listen on"), REMEDY)),
    }
}

/// An IP address or prefix.
pub fn prefix(value: &DeValue<'_>) -> Result<Prefix, Bad> {
    const REMEDY: &str =
        "write an address or a prefix, no bits set behind it: \"192.0.2.0/24\", \"2001:db8::1\"";
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    text.parse().map_err(|_| Bad::new(format!("invalid IP address or prefix {text:?}"), REMEDY))
}

/// A remote host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remote {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A host and a port to connect to.
pub fn remote(value: &DeValue<'_>) -> Result<Remote, Bad> {
    const REMEDY: &str = "write a host and a port: \"mta.example.org:5003\" or \"[::1]:5003\"";
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.port() != 0 {
            return Ok(Remote { host: address.ip().to_string(), port: address.port() });
        }
    } else if let Some((host, port)) = text.rsplit_once(':') {
        let host_fits = !host.is_empty()
            && host.len() <= 253
            && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        if let (true, Ok(port @ 1..)) = (host_fits, port.parse::<u16>()) {
            return Ok(Remote { host: host.to_owned(), port });
        }
    }
    Err(Bad::new(format!("{text:?} is nowhere to connect to"), REMEDY))
}

/// A selector: text, or `{ hex = "…" }` for other octets.
pub fn selector(value: &DeValue<'_>, most: usize) -> Result<Bytes, Bad> {
    let octets = if let Some(text) = value.as_str() {
        Bytes::copy_from_slice(text.as_bytes())
    } else {
        let remedy = "write text, or octets as { hex = \"0001ff\" }";
        let table = value.as_table().filter(|t| t.len() == 1);
        let hex = table.and_then(|t| t.get("hex")).and_then(|v| v.get_ref().as_str());
        hex.and_then(unhex).ok_or_else(|| Bad::new("invalid selector", remedy))?
    };
    if octets.len() > most {
        let remedy = format!("a selector of this layer has at most {most} octets");
        return Err(Bad::new(format!("a selector of {} octets", octets.len()), remedy));
    }
    Ok(octets)
}

fn unhex(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// A duration within these bounds.
pub(super) fn within(v: &DeValue<'_>, least: Duration, most: Duration) -> Result<Duration, Bad> {
    let duration = duration(v)?;
    if (least..=most).contains(&duration) {
        return Ok(duration);
    }
    let message = format!("a duration of {} s", duration.as_secs_f64());
    let (least, most) = (least.as_secs(), most.as_secs() / 3_600);
    Err(Bad::new(message, format!("write a duration from {least} s to {most} h")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(toml: &str, f: impl Fn(&DeValue<'_>) -> Result<T, Bad>) -> Option<T> {
        let value = DeValue::parse(toml).unwrap();
        f(value.get_ref()).ok()
    }

    #[test]
    fn durations_need_their_unit() {
        assert_eq!(with("'500ms'", duration), Some(Duration::from_millis(500)));
        assert_eq!(with("'5min'", duration), Some(Duration::from_secs(300)));
        assert_eq!(with("'1.5s'", duration), Some(Duration::from_millis(1_500)));
        assert_eq!(with("'4 h'", duration), Some(Duration::from_secs(14_400)));
        for bad in
            ["'0s'", "'5'", "5", "'s'", "''", "'0.5ms'", "'5m'", "'-1s'", "'99999999999999999999s'"]
        {
            assert_eq!(with(bad, duration), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_decimal_or_binary() {
        assert_eq!(with("'10kB'", size), Some(10_000));
        assert_eq!(with("'64KiB'", size), Some(65_536));
        assert_eq!(with("0x400", size), Some(1_024));
        assert_eq!(with("'64k'", size), None);
        assert_eq!(with("-1", size), None);
        assert_eq!(with("'64KiB'", checkpoint), Some(Some(64)));
        assert_eq!(with("0", checkpoint), Some(Some(0)));
        assert_eq!(with("'auto'", checkpoint), Some(None));
        assert_eq!(with("'64kB'", checkpoint), None);
        assert_eq!(with("'2GiB'", checkpoint), None);
    }

    #[test]
    fn errors_of_windows_name_the_invalid_part() {
        let shown = with("'fri-mon 22:00-02:00'", window).map(|w| w.to_string());
        assert_eq!(shown.as_deref(), Some("mon,fri-sun 22:00-02:00"));
        let wrong = |toml: &str| window(DeValue::parse(toml).unwrap().get_ref()).unwrap_err();
        assert!(wrong("'fri 22:00-25:00'").message.contains("\"25:00\" is not a time of the day"));
        assert!(wrong("5").remedy.contains("mon-fri 06:00-18:00"));
    }

    #[test]
    fn places_of_both_families() {
        let shown = |toml| with(toml, remote).map(|r| r.to_string());
        assert_eq!(shown("'[::1]:5000'").as_deref(), Some("[::1]:5000"));
        assert_eq!(shown("'act.example.org:102'").as_deref(), Some("act.example.org:102"));
        for bad in ["'::1:5000x'", "'act'", "'act:0'", "'127.0.0.1:0'", "':5'", "'a b:5'", "5"] {
            assert_eq!(shown(bad), None, "{bad}");
        }
        assert_eq!(with("'localhost:5000'", socket), None, "listen addresses are literal");
    }

    #[test]
    fn selectors_are_octets() {
        assert_eq!(with("'591'", |v| selector(v, 32)).as_deref(), Some(&b"591"[..]));
        assert_eq!(with("''", |v| selector(v, 32)).as_deref(), Some(&b""[..]));
        let hex = with("{ hex = '00fF' }", |v| selector(v, 32));
        assert_eq!(hex.as_deref(), Some(&[0x00, 0xff][..]));
        for bad in ["{ hex = '0' }", "{ hex = 'zz' }", "{ hax = '00' }", "5", "'12345'"] {
            assert_eq!(with(bad, |v| selector(v, 4)), None, "{bad}");
        }
    }
}
