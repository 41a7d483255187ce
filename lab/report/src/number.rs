//! Numbers as people read them.

/// The text for a value that is absent.
pub(crate) const NONE: &str = "–";

/// Four digits that count: `0.031`, `15.08`, `213.4`, `2,964`.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.to_owned()
    } else if size >= 999.95 {
        thousands(value)
    } else if size >= 99.995 {
        format!("{value:.1}")
    } else if size >= 0.9995 {
        format!("{value:.2}")
    } else if size >= 0.000_5 || size == 0.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.1e}")
    }
}

/// All its digits: what was printed.
pub(crate) fn exact(value: f64) -> String {
    if !value.is_finite() {
        NONE.to_owned()
    } else if value.abs() >= 1_000.0 && value.fract() == 0.0 {
        thousands(value)
    } else {
        value.to_string()
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Octets, decimal: `10 MB`, `1.5 kB`, `37 B`.
pub(crate) fn size(octets: u64) -> String {
    let units = [(1_000_000_000_u64, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| octets >= *unit) else {
        return format!("{octets} B");
    };
    let text = format!("{:.3}", octets as f64 / unit as f64);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {name}")
}

/// Settings by name: `checkpoint = 1024, window = 2`.
pub(crate) fn settings(with: &std::collections::BTreeMap<String, toml::Value>) -> String {
    let each = with.iter().map(|(name, value)| format!("{name} = {}", setting(value)));
    each.collect::<Vec<_>>().join(", ")
}

/// A ratio: `0.97`, `12.3`, `0.004`.
pub(crate) fn ratio(value: f64) -> String {
    if !value.is_finite() {
        NONE.to_owned()
    } else if value >= 99.95 {
        thousands(value)
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else if value >= 0.0995 || value == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// TOS octets: `0x28, 0x30`.
pub(crate) fn tos(octets: &[u8]) -> String {
    let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:#04x}")).collect();
    if octets.is_empty() { NONE.to_owned() } else { octets.join(", ") }
}

/// A parameter's value, as people write it.
pub(crate) fn setting(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        let values =
            [0.031, 15.078, 213.44, 2_963.6, 0.0, 0.000_04, -1_234_567.0, 999.97, f64::NAN];
        let shown = values.map(short);
        let wanted =
            ["0.031", "15.08", "213.4", "2,964", "0.000", "4.0e-5", "-1,234,567", "1,000", NONE];
        assert_eq!(shown, wanted);
        assert_eq!([212.969, 2_964.0, 0.8].map(exact), ["212.969", "2,964", "0.8"]);
        let ratios = [0.004, 0.97, 1.0, 12.34, 1_000.0, 9.999, f64::INFINITY];
        assert_eq!(ratios.map(ratio), ["0.004", "0.97", "1.00", "12.3", "1,000", "10.0", NONE]);
    }

    #[test]
    fn octets_of_headers_are_hexadecimal() {
        assert_eq!([tos(&[0x28, 0x30]), tos(&[0]), tos(&[])], ["0x28, 0x30", "0x00", NONE]);
    }

    #[test]
    fn sizes_are_decimal() {
        let sizes = [37, 1_000, 1_500, 10_000_000, 2_500_000_000].map(size);
        assert_eq!(sizes, ["37 B", "1 kB", "1.5 kB", "10 MB", "2.5 GB"]);
    }
}
