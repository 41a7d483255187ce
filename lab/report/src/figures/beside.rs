//! Values that were printed, in the panel of those that were measured.

use crate::number;
use plot::{Level, Panel, Series, Shape};
use router::policy::Name;
use std::collections::BTreeMap;
use study::row::Measure;

/// What was printed by the names of values.
type Paper = BTreeMap<Name, f64>;

/// Behind the name of a value, before it in a legend, and what a ring of it is.
const KINDS: [(&str, &str, &str); 3] =
    [("", "", ""), ("_more_than", "> ", ", at least"), ("_less_than", "< ", ", at most")];

/// What was printed of the lines of a panel.
pub(crate) struct Beside {
    measure: Measure,
    lines: usize,
    levels: Vec<PrintedLevel>,
    rings: Vec<Series>,
}

/// A value that was printed of one line or several.
struct PrintedLevel {
    sign: &'static str,
    value: f64,
    of: Vec<(String, usize)>,
}

impl Beside {
    /// Of this value of them.
    pub(crate) fn new(measure: Measure) -> Beside {
        Beside { measure, lines: 0, levels: Vec::new(), rings: Vec::new() }
    }

    /// A line, and what was printed at its places: a level where that is the same at each of them,
    /// otherwise a ring at each.
    pub(crate) fn line(&mut self, name: &str, colour: usize, places: &[(f64, &Paper)]) {
        self.lines += 1;
        for (suffix, sign, kind) in KINDS {
            let key = format!("{}{suffix}", self.measure.name());
            let all = places.iter().filter_map(|(x, paper)| Some((*x, *paper.get(&key)?)));
            let all: Vec<(f64, f64)> = all.filter(|(_, value)| value.is_finite()).collect();
            let Some((_, first)) = all.first().copied() else { continue };
            if all.len() == places.len() && all.iter().all(|(_, value)| *value == first) {
                self.level(name, colour, sign, first);
            } else {
                let name = format!("{name}, paper{kind}");
                self.rings.push(Series::new(name, Shape::Rings, all).colour(colour));
            }
        }
    }

    fn level(&mut self, name: &str, colour: usize, sign: &'static str, value: f64) {
        let of = (name.to_owned(), colour);
        let same = |level: &&mut PrintedLevel| level.sign == sign && level.value == value;
        match self.levels.iter_mut().find(same) {
            Some(level) => level.of.push(of),
            None => self.levels.push(PrintedLevel { sign, value, of: vec![of] }),
        }
    }

    /// The panel with them.
    pub(crate) fn onto(self, panel: Panel) -> Panel {
        let Beside { lines, levels, rings, .. } = self;
        let level = |level: PrintedLevel| {
            let value = format!("{}{}", level.sign, number::exact(level.value));
            let names: Vec<&str> = level.of.iter().map(|(name, _)| name.as_str()).collect();
            let name = match (names.as_slice(), level.of.len() == lines) {
                (_, true) => format!("paper: {value}"),
                ([one], _) => format!("paper, {one}: {value}"),
                ([one, other], _) => format!("paper, {one}, {other}: {value}"),
                (several, _) => format!("paper, {} of them: {value}", several.len()),
            };
            let colour = match level.of.as_slice() {
                [(_, colour)] => Some(*colour),
                _ => None,
            };
            Level { value: level.value, name, colour }
        };
        let levels = levels.into_iter().map(level).collect();
        rings.into_iter().fold(Panel { levels, ..panel }, Panel::series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(values: &[(&str, f64)]) -> Paper {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn lines_of_which_the_same_was_printed_share_a_level() {
        let (low, high) = (paper(&[("delay_ms_less_than", 5.0)]), paper(&[("delay_ms", 28.2)]));
        let mut beside = Beside::new(Measure::DelayMs);
        beside.line("2 Mbit/s", 0, &[(0.0, &low)]);
        beside.line("4 Mbit/s", 1, &[(0.0, &low)]);
        beside.line("5 Mbit/s", 2, &[(0.0, &high)]);
        beside.line("10 Mbit/s", 3, &[(0.0, &paper(&[("kbit_s", 9.0), ("delay_ms", f64::NAN)]))]);
        let panel = beside.onto(Panel::new(""));
        let shown: Vec<_> =
            panel.levels.iter().map(|of| (of.value, of.name.as_str(), of.colour)).collect();
        let expected = [
            (5.0, "paper, 2 Mbit/s, 4 Mbit/s: < 5", None),
            (28.2, "paper, 5 Mbit/s: 28.2", Some(2)),
        ];
        assert_eq!(shown, expected);
        let mut alone = Beside::new(Measure::DelayMs);
        alone.line("flow", 0, &[(0.0, &high)]);
        assert_eq!(alone.onto(Panel::new("")).levels[0].name, "paper: 28.2");
    }

    #[test]
    fn what_differs_along_a_line_is_a_ring_at_each_place() {
        let printed = [1.0, 2.0].map(|value| paper(&[("kbit_s", value)]));
        let (bound, none) = (paper(&[("kbit_s_more_than", 7.0)]), paper(&[]));
        let [one, two] = &printed;
        let mut beside = Beside::new(Measure::KbitS);
        beside.line("x", 4, &[(0.0, one), (1.0, two), (2.0, &bound), (3.0, &none)]);
        beside.line("y", 5, &[(0.0, one), (1.0, one)]);
        let panel = beside.onto(Panel::new(""));
        let rings: Vec<_> =
            panel.series.iter().map(|of| (of.name.as_str(), of.points.clone())).collect();
        let expected =
            [("x, paper", vec![(0.0, 1.0), (1.0, 2.0)]), ("x, paper, at least", vec![(2.0, 7.0)])];
        assert_eq!(rings, expected);
        assert_eq!((panel.series[0].shape, panel.series[0].colour), (Shape::Rings, Some(4)));
        assert_eq!((panel.levels.len(), panel.levels[0].value), (1, 1.0));
    }
}
