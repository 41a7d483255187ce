//! From where to where the axes go, and what is left of a series that has more points than a picture.

use crate::{Figure, Level, MAX_POINTS, Panel, Series};

/// A level across a panel, such as a link's rate, that is so many times the highest value stretches no
/// axis: it is named at the panel's top.
pub(crate) const FAR: f64 = 1.5;
/// The same of a value beside which others are drawn: how far they are from it is what a reader looks
/// for, until nothing else would be seen.
pub(crate) const FAR_BESIDE: f64 = 8.0;
/// Room above the highest value, as a part of all: as it is, and where something is named there.
const ROOM: (f64, f64) = (0.06, 0.17);

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
    let levels = levels(panel).filter(|level| !level.is_far).map(|level| level.value);
    let (low, high) = bounds(values.chain(levels)).unwrap_or((0.0, 1.0));
    let (low, high) = (low.min(0.0), high.max(0.0));
    let is_named = self::levels(panel).any(|level| level.is_far);
    let above = (high - low) * if is_named { ROOM.1 } else { ROOM.0 };
    let below = (high - low) * ROOM.0;
    if above > 0.0 { (if low < 0.0 { low - below } else { 0.0 }, high + above) } else { (0.0, 1.0) }
}

/// A level and where it is drawn.
pub(crate) struct PlacedLevel<'a> {
    pub(crate) value: f64,
    pub(crate) name: &'a str,
    pub(crate) colour: Option<usize>,
    /// One that others are drawn beside.
    pub(crate) is_beside: bool,
    /// Named at the panel's top, and not drawn.
    pub(crate) is_far: bool,
}

/// The levels of a panel that are numbers: the one across, then those beside its series.
pub(crate) fn levels(panel: &Panel) -> impl Iterator<Item = PlacedLevel<'_>> {
    let values = panel.series.iter().flat_map(finite).map(|(_, y)| y);
    let highest = bounds(values).map(|(_, high)| high.max(0.0));
    let is_far = move |value: f64, far: f64| highest.is_some_and(|high| value > high * far);
    let across = panel.level.iter().map(move |(value, name)| PlacedLevel {
        value: *value,
        name,
        colour: None,
        is_beside: false,
        is_far: is_far(*value, FAR),
    });
    let beside = panel.levels.iter().map(move |Level { value, name, colour }| PlacedLevel {
        value: *value,
        name,
        colour: *colour,
        is_beside: true,
        is_far: is_far(*value, FAR_BESIDE),
    });
    across.chain(beside).filter(|level| level.value.is_finite())
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
