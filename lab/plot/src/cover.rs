//! Which lines of a panel lie on which: one that is covered is drawn wide and light, so that it shows
//! below the others.

use crate::axis::range;
use crate::{MAX_SERIES, Panel, Series, Shape};

/// Two values are at one place when they are as near as this part of the axis.
const NEAR: f64 = 0.012;
/// What is below this part of the axis lies along it, where lines wait for their turn, and where wide ones
/// would cover its labels.
const LOW: f64 = 0.02;
/// A line is covered when so much of it is.
const MUCH: f64 = 0.25;
/// Most lines on a line that make it wider.
const MOST: u32 = 4;
/// Most points of a line that are looked at.
const MAX_LOOKED_AT: usize = 60;

/// How the series of a panel lie on each other, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// How many later ones lie on it.
    pub(crate) below: u32,
    /// An earlier one with the same points.
    pub(crate) same_as: Option<usize>,
}

/// That of each series that is drawn.
pub(crate) fn covers(panel: &Panel) -> Vec<Cover> {
    let (low, high) = range(panel);
    let height = high - low;
    let all: Vec<Line> = panel.series.iter().take(MAX_SERIES).map(Line::new).collect();
    let cover = |(place, line): (usize, &Line)| {
        let later = all.iter().skip(place + 1);
        let below = later.filter(|other| line.is_covered(other, height)).count();
        let below = u32::try_from(below).unwrap_or(MOST).min(MOST);
        let mut earlier = all.iter().take(place);
        let ringed = |one: &Line| one.shape == Shape::Rings;
        let same = |other: &Line| {
            let is_any = !line.points.is_empty() && ringed(line) == ringed(other);
            is_any && other.points == line.points
        };
        Cover { below, same_as: earlier.position(same) }
    };
    all.iter().enumerate().map(cover).collect()
}

/// The name of a series in the legend: one with the same points as an earlier one names it.
pub(crate) fn name(panel: &Panel, place: usize, cover: &Cover) -> String {
    let of = |place: usize| panel.series.get(place).map_or("", |series| series.name.as_str());
    match cover.same_as {
        Some(other) => format!("{} = {}", of(place), of(other)),
        None => of(place).to_owned(),
    }
}

struct Line {
    shape: Shape,
    /// The finite ones.
    points: Vec<(f64, f64)>,
}

impl Line {
    fn new(series: &Series) -> Line {
        let points = series.points.iter().copied();
        let points = points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        Line { shape: series.shape, points }
    }

    /// Whether most of what stands out of it lies below the other.
    fn is_covered(&self, other: &Line, height: f64) -> bool {
        if self.shape == Shape::Rings || other.shape == Shape::Rings {
            return false;
        }
        let every = self.points.len().div_ceil(MAX_LOOKED_AT).max(1);
        let low = height * LOW;
        let stands = |(_, y): &&(f64, f64)| y.abs() > low;
        let looked_at: Vec<_> = self.points.iter().step_by(every).filter(stands).collect();
        let covered = looked_at.iter().filter(|(x, y)| {
            other.value(*x).is_some_and(|value| (value - y).abs() <= height * NEAR)
        });
        !looked_at.is_empty() && covered.count() as f64 >= looked_at.len() as f64 * MUCH
    }

    /// The value that is drawn at a time.
    fn value(&self, x: f64) -> Option<f64> {
        let next = self.points.partition_point(|point| point.0 < x);
        let after = self.points.get(next);
        if let Some((_, y)) = after.filter(|(at, _)| *at <= x) {
            return Some(*y);
        }
        let before = self.points.get(next.checked_sub(1)?)?;
        match self.shape {
            Shape::Points | Shape::Dots | Shape::Rings => None,
            Shape::Step => after.map(|_| before.1),
            Shape::Line | Shape::Dotted => {
                let after = after?;
                let part = (x - before.0) / (after.0 - before.0);
                Some(before.1 + (after.1 - before.1) * part)
            }
        }
    }
}
