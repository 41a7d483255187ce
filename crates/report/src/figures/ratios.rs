//! Every row with a printed figure, beside it.

use crate::closeness::{Closeness, Comparison, FACTOR, NEAR};
use crate::number;
use crate::view::View;
use plot::{Band, Dot, Dots, Reach};
use study::Row;

/// Pixels across, for screens and print.
pub(crate) const WIDE: u32 = 1_000;
/// Pixels across, for phones.
pub(crate) const NARROW: u32 = 400;

/// The picture; nothing where nothing was printed or measured.
pub(crate) fn of(view: &View<'_>, width: u32) -> Option<Dots> {
    let mut rows = Vec::new();
    for experiment in &view.experiments {
        let dots = experiment.rows.iter().filter_map(|row| Some(dot(row, Comparison::of(row)?)));
        let dots: Vec<Dot> = dots.collect();
        if !dots.is_empty() {
            rows.push(Dot::heading(&experiment.file.title));
            rows.extend(dots);
        }
    }
    let band = |(from, to): (f64, f64), of: Closeness| Band { from, to, name: of.words().into() };
    (!rows.is_empty()).then(|| Dots {
        title: "Beside the figures of the paper".to_owned(),
        label: "ours divided by the paper's".to_owned(),
        rows,
        bands: vec![band(NEAR, Closeness::Near), band(FACTOR, Closeness::Factor)],
        width,
    })
}

fn dot(row: &Row, comparison: Comparison) -> Dot {
    let mut name = row.row.clone();
    if let Some(size) = row.size {
        name.push_str(&format!(", {}", number::size(size)));
    }
    if Comparison::is_of_rates(row) {
        name.push_str(" (rate)");
    }
    let value = match comparison {
        Comparison::Exactly(ratio) => Reach::Exactly(ratio),
        Comparison::MoreThan(ratio) => Reach::MoreThan(ratio),
        Comparison::LessThan(ratio) => Reach::LessThan(ratio),
        // It has its line, and no dot.
        Comparison::Neither => Reach::Exactly(0.0),
    };
    let closeness = comparison.closeness();
    let words = match comparison {
        Comparison::Neither => comparison.words(),
        _ => format!("{} {}", closeness.sign(), comparison.words()),
    };
    Dot { name, value: Some(value), words, colour: colour(closeness) }
}

fn colour(closeness: Closeness) -> usize {
    match closeness {
        Closeness::Near => 2,
        Closeness::Factor => 5,
        Closeness::Far => 1,
        Closeness::Unknown => 6,
    }
}
