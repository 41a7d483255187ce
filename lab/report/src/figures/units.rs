//! Values of a parameter that is varied, as places on an axis.

use crate::number;
use toml::Value;

/// Units by kind: only values of one kind are on one axis.
const UNITS: [(&str, &str, f64); 16] = [
    ("packets", "packets", 1.0),
    ("time", "ns", 1e-9),
    ("time", "us", 1e-6),
    ("time", "ms", 1e-3),
    ("time", "min", 60.0),
    ("time", "s", 1.0),
    ("octets", "KiB", 1_024.0),
    ("octets", "MiB", 1_048_576.0),
    ("octets", "kB", 1e3),
    ("octets", "MB", 1e6),
    ("octets", "B", 1.0),
    ("rate", "kbit", 1e3),
    ("rate", "Mbit", 1e6),
    ("rate", "Gbit", 1e9),
    ("rate", "bit", 1.0),
    ("share", "%", 1.0),
];
/// A logarithmic axis is for values that differ by this factor.
const FAR: f64 = 8.0;
/// Labels of values that are nearer than this part of the axis overlap.
const CROWDED: f64 = 0.045;

/// An axis with a place for each value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The place of each value, in the order of the values.
    pub(crate) places: Vec<f64>,
    /// From where to where.
    pub(crate) span: (f64, f64),
    /// Whether the values have an order, so that points may be joined.
    pub(crate) ordered: bool,
    /// How its places follow from the values.
    pub(crate) how: &'static str,
}

/// The axis of the values of a parameter.
pub(crate) fn axis(values: &[Value]) -> Axis {
    let numbers: Option<Vec<(&str, f64)>> = values.iter().map(measure).collect();
    let numbers = numbers.filter(|numbers| {
        numbers.windows(2).all(|pair| matches!(pair, [one, other] if one.0 == other.0))
    });
    let even = || (0..values.len()).map(|place| place as f64).collect();
    let (places, how) = match &numbers {
        None => (even(), "kinds"),
        Some(numbers) => {
            let plain: Vec<f64> = numbers.iter().map(|(_, number)| *number).collect();
            let (low, high) = bounds(&plain);
            if low > 0.0 && high / low >= FAR {
                (plain.iter().map(|number| number.log2()).collect(), "logarithmic")
            } else if !crowded(&plain) {
                (plain, "linear")
            } else {
                (ranks(&plain), "evenly spaced")
            }
        }
    };
    let places = if crowded(&places) && numbers.is_some() { ranks(&places) } else { places };
    let (low, high) = bounds(&places);
    let room = ((high - low) * 0.05).max(0.1);
    Axis { span: (low - room, high + room), places, ordered: numbers.is_some(), how }
}

/// The kind of a value and its number.
fn measure(value: &Value) -> Option<(&'static str, f64)> {
    match value {
        Value::Integer(number) => Some(("", *number as f64)),
        Value::Float(number) => number.is_finite().then_some(("", *number)),
        Value::String(text) => {
            let (kind, unit, factor) = UNITS.iter().find(|(_, unit, _)| text.ends_with(unit))?;
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            number.is_finite().then_some((*kind, number * factor))
        }
        _ => None,
    }
}

fn bounds(numbers: &[f64]) -> (f64, f64) {
    let low = numbers.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let high = numbers.iter().copied().reduce(f64::max).unwrap_or(0.0);
    (low, high)
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    sorted
}

fn crowded(numbers: &[f64]) -> bool {
    let (low, high) = bounds(numbers);
    let near = (high - low) * CROWDED;
    sorted(numbers).windows(2).any(|pair| matches!(pair, [one, other] if other - one < near))
}

fn ranks(numbers: &[f64]) -> Vec<f64> {
    let sorted = sorted(numbers);
    let rank = |number: &f64| sorted.iter().position(|other| other == number).unwrap_or(0) as f64;
    numbers.iter().map(rank).collect()
}

/// Each place with its value in words.
pub(crate) fn ticks(axis: &Axis, values: &[Value]) -> Vec<(f64, String)> {
    axis.places.iter().copied().zip(values.iter().map(number::setting)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<Value> {
        values.iter().map(|value| Value::String((*value).to_owned())).collect()
    }

    #[test]
    fn values_of_one_kind_are_placed_by_what_they_are() {
        let windows: Vec<Value> = [1, 2, 4, 16].map(Value::Integer).to_vec();
        let windows = axis(&windows);
        assert_eq!((windows.places, windows.how), (vec![0.0, 1.0, 2.0, 4.0], "logarithmic"));
        let sizes = axis(&texts(&["1KiB", "2KiB", "64KiB"]));
        assert_eq!(sizes.places, [10.0, 11.0, 16.0]);
        let delays = axis(&texts(&["0ms", "20ms", "0.05s"]));
        assert_eq!((delays.places, delays.how), (vec![0.0, 0.02, 0.05], "linear"));
        let crowd = axis(&texts(&["0ms", "1ms", "500ms"]));
        assert_eq!((crowd.places, crowd.ordered), (vec![0.0, 1.0, 2.0], true));
    }

    #[test]
    fn values_of_no_kind_or_of_several_stand_beside_each_other() {
        for values in [texts(&["reno", "cubic", "bbr"]), texts(&["1ms", "2kB", "3%"])] {
            let axis = axis(&values);
            assert_eq!((axis.places, axis.ordered), (vec![0.0, 1.0, 2.0], false));
        }
        let one = axis(&[Value::Boolean(true)]);
        assert!(one.span.0 < 0.0 && one.span.1 > 0.0);
        assert!(axis(&[]).places.is_empty());
    }
}
