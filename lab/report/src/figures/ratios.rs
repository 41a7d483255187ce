//! Every row with a printed figure, beside it.

use crate::closeness::{Closeness, Comparison, FACTOR, NEAR};
use crate::number;
use crate::score;
use crate::text::{kbit_s, ours, printed, seconds};
use crate::view::View;
use plot::{Band, Dot, Dots, Reach};
use study::StudyRow;
use study::row::Measure;

/// Pixels across, for screens and print.
pub(crate) const WIDE: u32 = 1_000;
/// Pixels across, for phones.
pub(crate) const NARROW: u32 = 400;

/// The picture; nothing where nothing was printed or measured.
pub(crate) fn figure(view: &View<'_>, width: u32) -> Option<Dots> {
    let mut rows = Vec::new();
    for experiment in &view.experiments {
        let dots: Vec<Dot> = experiment.rows.iter().flat_map(|row| dots(row)).collect();
        if !dots.is_empty() {
            rows.push(Dot::heading(&experiment.file.title));
            rows.extend(dots);
        }
    }
    let band = |(from, to): (f64, f64), of: Closeness| Band { from, to, name: of.words().into() };
    (!rows.is_empty()).then(|| Dots {
        title: "Beside the figures of the paper".to_owned(),
        label: "ours divided by the paper's".to_owned(),
        parts: "ours (the paper's)".to_owned(),
        rows,
        bands: vec![band(NEAR, Closeness::Near), band(FACTOR, Closeness::Factor)],
        width,
    })
}

/// One for each printed value.
fn dots(row: &StudyRow) -> Vec<Dot> {
    let mut printed = score::measures(&row.paper);
    printed.extend(row.paper_seconds.map(|_| Measure::Seconds));
    let values = printed.into_iter();
    values.filter_map(|measure| dot(row, measure, Comparison::of_value(row, measure)?)).collect()
}

fn dot(row: &StudyRow, measure: Measure, comparison: Comparison) -> Option<Dot> {
    let mut name = row.row.clone();
    if let Some(size) = row.size {
        name.push_str(&format!(", {}", number::size(size)));
    }
    match measure {
        Measure::Seconds => {}
        Measure::KbitS => name.push_str(" (rate)"),
        other => name.push_str(&format!(" ({})", other.name().replace('_', " "))),
    }
    if score::has_own_settings(row) {
        name.push_str(" *");
    }
    let value = match comparison {
        Comparison::Exactly(ratio) | Comparison::Outside(ratio) => Reach::Exactly(ratio),
        Comparison::MoreThan(ratio) => Reach::MoreThan(ratio),
        Comparison::LessThan(ratio) => Reach::LessThan(ratio),
        // It is as printed, a bound.
        Comparison::Within => Reach::Exactly(1.0),
        // No ratio expresses it; the table shows it.
        Comparison::NotZero => return None,
        // It has its line, and no dot.
        Comparison::Neither => Reach::Exactly(0.0),
    };
    let closeness = comparison.closeness();
    let words = match comparison {
        Comparison::Neither => comparison.words(),
        _ => format!("{} {}", closeness.sign(), comparison.words()),
    };
    let parts = parts(row, measure);
    Some(Dot { name, value: Some(value), words, parts, colour: colour(closeness) })
}

/// Our value and the paper's.
fn parts(row: &StudyRow, measure: Measure) -> String {
    let ours = match measure {
        Measure::Seconds => seconds(row),
        Measure::KbitS => kbit_s(row),
        other => ours(row, other),
    };
    // There is no room for what it ranged over.
    let ours = ours.split(" (").next().unwrap_or_default();
    format!("{ours} ({})", printed(row, measure))
}

fn colour(closeness: Closeness) -> usize {
    match closeness {
        Closeness::Near => 2,
        Closeness::Factor => 5,
        Closeness::Far => 1,
        Closeness::Unknown => 6,
    }
}
