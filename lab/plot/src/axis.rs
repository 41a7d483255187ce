//! From where to where the axes go, and what is left of a series that has more points than a picture.

use crate::{Figure, MAX_POINTS, Panel, Series};

/// All points that count: finite ones.
fn finite(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// The figure's time, in seconds; never empty.
pub(crate) fn span(figure: &Figure) -> (f64, f64) {
    let times = figure.panels.iter().flat_map(|panel| &panel.series).flat_map(finite);
    let times = times.map(|(x, _)| x).chain(figure.marks.iter().map(|mark| mark.at));
    let all = bounds(times.filter(|x| x.is_finite()));
    let (from, to) = figure.span.or(all).unwrap_or((0.0, 1.0));
    if to > from { (from, to) } else { (from, from + 1.0) }
}

/// A panel's values: from zero (below it where values are), with room above the highest.
pub(crate) fn range(panel: &Panel) -> (f64, f64) {
    let values = panel.series.iter().flat_map(finite).map(|(_, y)| y);
    let values = values.chain(panel.level.iter().map(|(value, _)| *value));
    let (low, high) = bounds(values.filter(|y| y.is_finite())).unwrap_or((0.0, 1.0));
    let (low, high) = (low.min(0.0), high.max(0.0));
    let room = (high - low) * 0.06;
    if room > 0.0 { (if low < 0.0 { low - room } else { 0.0 }, high + room) } else { (0.0, 1.0) }
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |so_far, value| match so_far {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// The runs of finite points; of more than [`MAX_POINTS`] the lowest and highest of each slice.
pub(crate) fn runs(series: &Series) -> Vec<Vec<(f64, f64)>> {
    let mut runs = Vec::new();
    for run in series.points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
        if !run.is_empty() {
            runs.push(thinned(run));
        }
    }
    runs
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let slice = points.len().div_ceil(MAX_POINTS / 2);
    let mut kept = Vec::with_capacity(MAX_POINTS);
    for part in points.chunks(slice) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (part.iter().min_by(by_value), part.iter().max_by(by_value))
        else {
            continue;
        };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        kept.push(*first);
        if first != second {
            kept.push(*second);
        }
    }
    kept
}

/// A number of an axis, short: `1500`, `12k`, `2.5M`, `0.25`.
pub(crate) fn short(value: &f64) -> String {
    let size = value.abs();
    let (scaled, unit) = if size >= 1e9 {
        (value / 1e9, "G")
    } else if size >= 1e6 {
        (value / 1e6, "M")
    } else if size >= 10_000.0 {
        (value / 1e3, "k")
    } else {
        (*value, "")
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}
