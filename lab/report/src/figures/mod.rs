//! The pictures of a report.

mod beside;
mod flows;
pub(crate) mod grid;
pub(crate) mod loads;
pub(crate) mod over_time;
pub(crate) mod ratios;
pub(crate) mod sweep;
mod units;
pub(crate) mod varied;

use crate::view::{Experiment, View};
use crate::{MAX_RUN_FIGURES, StudyReport};
use std::collections::BTreeSet;

/// Most pictures of sweeps.
const MAX_SWEEP_FIGURES: usize = 100;

/// The data that a picture is drawn from.
#[derive(Clone, Debug)]
pub enum Drawn {
    /// Series.
    Figure(plot::Figure),
    /// A row each.
    Dots(plot::Dots),
    /// Cells.
    Grid(plot::Grid),
}

/// A picture and the name of its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Letters, digits, `-`, `_` and `.` only; unlike any other of the report; without an ending.
    pub name: String,
    /// The data of the picture.
    pub drawn: Drawn,
}

impl Picture {
    /// As an SVG document.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn svg(&self) -> Result<String, plot::Error> {
        match &self.drawn {
            Drawn::Figure(figure) => figure.svg(),
            Drawn::Dots(dots) => dots.svg(),
            Drawn::Grid(grid) => grid.svg(),
        }
    }

    /// As the octets of a PNG file.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn png(&self) -> Result<Vec<u8>, plot::Error> {
        match &self.drawn {
            Drawn::Figure(figure) => figure.png(),
            Drawn::Dots(dots) => dots.png(),
            Drawn::Grid(grid) => grid.png(),
        }
    }
}

/// Colours of a code point, the same in all pictures: those of the class selectors are plain, others
/// are dashed.
fn colour(dscp: u8) -> usize {
    if dscp.is_multiple_of(8) { usize::from(dscp / 8) } else { 8 + usize::from(dscp) }
}

/// Every picture of a report, within its bounds.
pub(crate) fn all(report: &StudyReport<'_>) -> Vec<Picture> {
    let view = View::new(report);
    let mut names = BTreeSet::new();
    let mut pictures = Vec::new();
    let mut add = |name: String, drawn: Drawn| {
        let name = unlike(&file_name(&name), &mut names);
        pictures.push(Picture { name, drawn });
    };
    if let Some(dots) = ratios::figure(&view, ratios::WIDE) {
        add("ratios".to_owned(), Drawn::Dots(dots));
    }
    for (number, figure) in loads::figures(report) {
        add(format!("figure-{number:02}"), Drawn::Figure(figure));
    }
    for asked in &report.study.figures {
        if let Some(figure) = varied::figure(&view, asked) {
            add(asked.name.clone(), Drawn::Figure(figure));
        }
    }
    for asked in &report.study.grids {
        if let Some(grid) = grid::figure(&view, asked) {
            add(asked.name.clone(), Drawn::Grid(grid));
        }
    }
    let sweeps = view.experiments.iter().flat_map(|experiment| {
        let numbered = sweep::sweeps(experiment).into_iter().zip(1..);
        numbered.map(|(of, number)| (format!("{}-sweep-{number}", experiment.file.name), of.figure))
    });
    for (name, figure) in sweeps.take(MAX_SWEEP_FIGURES) {
        add(name, Drawn::Figure(figure));
    }
    for (id, figure) in runs(&view.experiments) {
        add(id, Drawn::Figure(figure));
    }
    pictures
}

/// The runs over time: those that vary nothing first.
fn runs(experiments: &[Experiment<'_>]) -> Vec<(String, plot::Figure)> {
    let all = || experiments.iter().flat_map(|experiment| &experiment.runs);
    let plain = all().filter(|run| !run.varied);
    let varied = all().filter(|run| run.varied);
    let figures = plain.chain(varied).filter_map(|run| {
        let measured = run.measured?;
        Some((run.planned.id.clone(), over_time::over_time(run.planned, measured)?.figure))
    });
    figures.take(MAX_RUN_FIGURES).collect()
}

/// A name that any file system takes.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(100).collect();
    match name.trim_matches(['.', '-']) {
        "" => "picture".to_owned(),
        name => name.to_owned(),
    }
}

fn unlike(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut unlike = name.to_owned();
    let mut number = 1;
    while !taken.insert(unlike.to_ascii_lowercase()) {
        number += 1;
        unlike = format!("{name}-{number}");
    }
    unlike
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_lead_nowhere_else_and_are_unlike() {
        assert_eq!(file_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(file_name("a/b[window=1,x=\"é\"]"), "a-b-window-1-x");
        assert_eq!(file_name("<script>"), "script");
        assert_eq!(file_name("..."), "picture");
        assert_eq!(file_name(&"x".repeat(500)).len(), 100);
        let mut taken = BTreeSet::new();
        let names = ["a", "A", "a"].map(|name| unlike(name, &mut taken));
        assert_eq!(names, ["a", "A-2", "a-3"]);
    }
}
