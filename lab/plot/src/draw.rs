//! A figure on any of the library's backends.

use crate::axis::{PlacedLevel, levels, range, runs, short, span};
use crate::cover::{self, Cover, covers};
use crate::style::{FONT, GREY, GRID, INK, colour, dark, dashed, font, light};
use crate::{Figure, MAX_MARKS, MAX_SERIES, Mark, Panel, Series, Shape};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels of a bitmap for one of a figure.
pub(crate) const SHARP: u32 = 2;
/// Pixels beside a panel for its legend: at least, and at most.
const LEGEND: (u32, u32) = (170, 330);
/// Most levels that are named above a panel.
const MAX_ABOVE: usize = 3;
/// Characters of a name for which there can be room.
const MAX_NAME: usize = 34;

type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), String>;

pub(crate) fn wrong<E: std::fmt::Debug>(error: E) -> String {
    format!("{error:?}")
}

/// Draws it; the backend's size is the figure's, or [`SHARP`] times as much.
pub(crate) fn figure<B: DrawingBackend>(figure: &Figure, backend: B) -> Drawn {
    if !font() {
        return Err("the font cannot be read".to_owned());
    }
    let area = backend.into_drawing_area();
    let pixel = (area.dim_in_pixel().0 / figure.size.0.max(1)).max(1);
    area.fill(&WHITE).map_err(wrong)?;
    let title = (FONT, 22 * pixel, FontStyle::Bold).into_font().color(&INK);
    let (head, below) = area.split_vertically(44 * pixel);
    head.draw(&Text::new(figure.title.clone(), (20 * at(pixel), 14 * at(pixel)), title))
        .map_err(wrong)?;
    let parts = below.split_evenly((figure.panels.len(), 1));
    let time = span(figure);
    let all: Vec<Vec<Cover>> = figure.panels.iter().map(covers).collect();
    let beside = beside(figure, &all);
    for (place, ((panel, covers), part)) in figure.panels.iter().zip(&all).zip(&parts).enumerate() {
        let last = place + 1 == figure.panels.len();
        let label = if last { figure.time_label.as_str() } else { "" };
        let labels = place == 0;
        let (marks, ticks) = (figure.marks.as_slice(), figure.ticks.as_slice());
        one(&Frame { panel, covers, marks, ticks, labels, time, label, beside, pixel }, part)?;
    }
    area.present().map_err(wrong)
}

/// Pixels as a coordinate.
pub(crate) fn at(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

/// One panel and what it shares with the others.
struct Frame<'a> {
    panel: &'a Panel,
    /// How its series lie on each other.
    covers: &'a [Cover],
    marks: &'a [Mark],
    ticks: &'a [(f64, String)],
    labels: bool,
    time: (f64, f64),
    label: &'a str,
    /// Pixels of its legend.
    beside: u32,
    pixel: u32,
}

/// Pixels for the longest name of a legend, the same for all panels so that they are as wide.
fn beside(figure: &Figure, covers: &[Vec<Cover>]) -> u32 {
    let names = figure.panels.iter().zip(covers).flat_map(|(panel, covers)| {
        let covers = covers.iter().enumerate();
        let series = covers.map(|(place, cover)| cover::name(panel, place, cover));
        let drawn = levels(panel).filter(|level| !level.is_far);
        series.chain(drawn.map(|level| level.name.to_owned())).collect::<Vec<_>>()
    });
    let longest = names.map(|name| name.chars().count().min(MAX_NAME)).max().unwrap_or(0);
    u32::try_from(longest * 8 + 40).unwrap_or(LEGEND.1).clamp(LEGEND.0, LEGEND.1)
}

fn one<B: DrawingBackend>(frame: &Frame<'_>, area: &DrawingArea<B, Shift>) -> Drawn {
    let pixel = frame.pixel;
    let (width, _) = area.dim_in_pixel();
    let (area, beside) = area.split_horizontally(width.saturating_sub(frame.beside * pixel));
    legend(frame, &beside)?;
    let (low, high) = range(frame.panel);
    let room = if frame.labels && !frame.marks.is_empty() { 86 } else { 12 };
    let mut chart = ChartBuilder::on(&area)
        .margin_left(14 * pixel)
        .margin_right(6 * pixel)
        .margin_bottom(10 * pixel)
        .margin_top(room * pixel)
        .x_label_area_size(46 * pixel)
        .y_label_area_size(84 * pixel)
        .build_cartesian_2d(frame.time.0..frame.time.1, low..high)
        .map_err(wrong)?;
    let mut mesh = chart.configure_mesh();
    if !frame.ticks.is_empty() {
        mesh.disable_x_mesh();
    }
    mesh.axis_style(INK.stroke_width(pixel))
        .bold_line_style(GRID.stroke_width(pixel))
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .x_labels(if frame.ticks.is_empty() { 12 } else { 0 })
        .y_labels(7)
        .label_style((FONT, 17 * pixel).into_font().color(&INK))
        .axis_desc_style((FONT, 18 * pixel).into_font().color(&INK))
        .x_desc(frame.label)
        .y_desc(frame.panel.label.clone())
        .draw()
        .map_err(wrong)?;
    ticks(frame, &mut chart, &area, (low, high))?;
    marks(frame, &mut chart, (low, high))?;
    for level in levels(frame.panel).filter(|level| !level.is_beside && !level.is_far) {
        across(&level, frame, &mut chart)?;
    }
    for ((place, series), cover) in frame.panel.series.iter().enumerate().zip(frame.covers) {
        let stroke = Stroke::new(series.colour.unwrap_or(place), cover);
        draw(series, &stroke, pixel, &mut chart)?;
    }
    for level in levels(frame.panel).filter(|level| level.is_beside && !level.is_far) {
        across(&level, frame, &mut chart)?;
    }
    above(frame, &chart, &area, high)
}

/// A line across the panel at a level.
fn across<B: DrawingBackend>(
    level: &PlacedLevel<'_>,
    frame: &Frame<'_>,
    chart: &mut Chart<'_, B>,
) -> Drawn {
    let pixel = frame.pixel;
    let line = [(frame.time.0, level.value), (frame.time.1, level.value)];
    let (dash, gap) = if level.is_beside { (3 * pixel, 4 * pixel) } else { (8 * pixel, 5 * pixel) };
    let style = of_level(level).stroke_width(pixel * 2);
    chart.draw_series(DashedLineSeries::new(line, dash, gap, style)).map_err(wrong)?;
    Ok(())
}

fn of_level(level: &PlacedLevel<'_>) -> RGBColor {
    match level.colour {
        Some(place) => dark(colour(place)),
        None if level.is_beside => INK,
        None => GREY,
    }
}

/// The levels that are too far above for a line, by their names.
fn above<B: DrawingBackend>(
    frame: &Frame<'_>,
    chart: &Chart<'_, B>,
    area: &DrawingArea<B, Shift>,
    high: f64,
) -> Drawn {
    let pixel = at(frame.pixel);
    let (left, top) = area.get_base_pixel();
    let (x, y) = chart.backend_coord(&(frame.time.0, high));
    let (mut x, y) = (x - left + 12 * pixel, y - top + 13 * pixel);
    for level in levels(frame.panel).filter(|level| level.is_far).take(MAX_ABOVE) {
        let of = of_level(&level);
        let tip = vec![(x, y - 7 * pixel), (x + 5 * pixel, y), (x - 5 * pixel, y)];
        area.draw(&Polygon::new(tip, of.filled())).map_err(wrong)?;
        let stem = [(x, y), (x, y + 7 * pixel)];
        area.draw(&PathElement::new(stem, of.stroke_width(2 * frame.pixel))).map_err(wrong)?;
        let style = (FONT, 16 * frame.pixel).into_font().color(&of);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        let name = shortened(level.name);
        let long = i32::try_from(name.chars().count()).unwrap_or(i32::MAX);
        area.draw(&Text::new(name, (x + 11 * pixel, y), style)).map_err(wrong)?;
        x = x.saturating_add(long.saturating_mul(9 * pixel)).saturating_add(36 * pixel);
    }
    Ok(())
}

/// Lines and labels at the places that were asked for.
fn ticks<B: DrawingBackend>(
    frame: &Frame<'_>,
    chart: &mut Chart<'_, B>,
    area: &DrawingArea<B, Shift>,
    (low, high): (f64, f64),
) -> Drawn {
    let pixel = frame.pixel;
    let style =
        (FONT, 15 * pixel).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Center));
    let (from, to) = frame.time;
    let within = frame.ticks.iter().filter(|(x, _)| (from..=to).contains(x));
    for (value, label) in within {
        let line = PathElement::new([(*value, low), (*value, high)], GRID.stroke_width(pixel));
        chart.draw_series(std::iter::once(line)).map_err(wrong)?;
        let (x, y) = chart.backend_coord(&(*value, low));
        let (left, top) = area.get_base_pixel();
        let place = (x - left, y - top + 17 * at(pixel));
        area.draw(&Text::new(shortened(label), place, style.clone())).map_err(wrong)?;
    }
    Ok(())
}

/// How a line is drawn.
struct Stroke {
    of: RGBColor,
    wide: u32,
    dashed: bool,
}

impl Stroke {
    fn new(place: usize, cover: &Cover) -> Stroke {
        let of = colour(place);
        let of = if cover.below > 0 { light(of) } else { of };
        Stroke { of, wide: 2 + 3 * cover.below, dashed: dashed(place) }
    }
}

/// What each line is, beside the panel where it covers none.
fn legend<B: DrawingBackend>(frame: &Frame<'_>, area: &DrawingArea<B, Shift>) -> Drawn {
    let room = if frame.labels && !frame.marks.is_empty() { 86 } else { 12 };
    let mut lines = LegendLines { pixel: frame.pixel, area, y: (room + 10) * at(frame.pixel) };
    for ((place, series), cover) in frame.panel.series.iter().enumerate().zip(frame.covers) {
        let stroke = Stroke::new(series.colour.unwrap_or(place), cover);
        let parts: &[(i32, i32)] = match (series.shape, stroke.dashed) {
            (Shape::Rings, _) => &[],
            (Shape::Points, _) => &[(11, 15)],
            (Shape::Dots, _) => &[(8, 18)],
            (_, true) => &[(0, 11), (15, 26)],
            (_, false) => &[(0, 26)],
        };
        let style = stroke.of.stroke_width((stroke.wide + 1) * frame.pixel);
        if series.shape == Shape::Rings {
            lines.ring(stroke.of)?;
        }
        lines.add(&cover::name(frame.panel, place, cover), parts, style)?;
    }
    let left_out = frame.panel.series.len().saturating_sub(MAX_SERIES);
    if left_out > 0 {
        lines.add(&format!("and {left_out} more"), &[], GREY.stroke_width(1))?;
    }
    for level in levels(frame.panel).filter(|level| !level.is_far) {
        let parts: &[(i32, i32)] = match level.is_beside {
            true => &[(0, 4), (7, 11), (14, 18), (21, 25)],
            false => &[(0, 11), (15, 26)],
        };
        lines.add(level.name, parts, of_level(&level).stroke_width(2 * frame.pixel))?;
    }
    Ok(())
}

/// Lines of a legend, from above to below.
struct LegendLines<'a, B: DrawingBackend> {
    pixel: u32,
    area: &'a DrawingArea<B, Shift>,
    y: i32,
}

impl<B: DrawingBackend> LegendLines<'_, B> {
    /// The strokes, and the name behind them.
    fn add(&mut self, name: &str, parts: &[(i32, i32)], style: ShapeStyle) -> Drawn {
        let pixel = at(self.pixel);
        for (from, to) in parts {
            let ends = [(from * pixel, self.y), (to * pixel, self.y)];
            self.area.draw(&PathElement::new(ends, style)).map_err(wrong)?;
        }
        let text = (FONT, 16 * self.pixel).into_font().color(&INK);
        let text = text.pos(Pos::new(HPos::Left, VPos::Center));
        let place = (34 * pixel, self.y);
        self.area.draw(&Text::new(shortened(name), place, text)).map_err(wrong)?;
        self.y += 20 * pixel;
        Ok(())
    }

    fn ring(&self, of: RGBColor) -> Drawn {
        let pixel = at(self.pixel);
        let style = of.stroke_width(2 * self.pixel);
        self.area.draw(&Circle::new((13 * pixel, self.y), 6 * pixel, style)).map_err(wrong)
    }
}

/// As much of a name as there is room for.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME - 1).chain(['…']).collect()
}

/// Vertical lines; their labels stand slanted above the panel, where they cross no series.
fn marks<B: DrawingBackend>(
    frame: &Frame<'_>,
    chart: &mut Chart<'_, B>,
    (low, high): (f64, f64),
) -> Drawn {
    let pixel = frame.pixel;
    let every = frame.marks.len().div_ceil(MAX_MARKS).max(1);
    let (from, to) = frame.time;
    let within = |mark: &&Mark| mark.at.is_finite() && (from..=to).contains(&mark.at);
    let shown = frame.marks.iter().filter(within).step_by(every);
    // Labels closer than this would cover each other.
    let apart = (to - from) * 0.013;
    let mut before = f64::NEG_INFINITY;
    for mark in shown {
        let of = mark.colour.map_or(GREY, colour);
        let line = [(mark.at, low), (mark.at, high)];
        let dashes = DashedLineSeries::new(line, 3 * pixel, 3 * pixel, of.stroke_width(pixel));
        chart.draw_series(dashes).map_err(wrong)?;
        if !frame.labels || mark.at - before < apart {
            continue;
        }
        before = mark.at;
        let style = (FONT, 14 * pixel)
            .into_font()
            .transform(FontTransform::Rotate270)
            .color(&of)
            .pos(Pos::new(HPos::Left, VPos::Center));
        let label: String = mark.label.chars().take(14).collect();
        let (x, y) = chart.backend_coord(&(mark.at, high));
        let area = chart.plotting_area().strip_coord_spec();
        let (left, top) = area.get_base_pixel();
        area.draw(&Text::new(label, (x - left, y - top - 7 * at(pixel)), style)).map_err(wrong)?;
    }
    Ok(())
}

fn draw<B: DrawingBackend>(
    series: &Series,
    stroke: &Stroke,
    pixel: u32,
    chart: &mut Chart<'_, B>,
) -> Drawn {
    let of = stroke.of;
    let style = of.stroke_width(stroke.wide * pixel);
    let (dash, gap) = if stroke.dashed { (9 * pixel, 5 * pixel) } else { (0, 0) };
    // A dot of a line that others lie on is larger than theirs.
    let dot = (4 + stroke.wide / 2) * pixel;
    for run in runs(series) {
        match series.shape {
            Shape::Points => {
                let dots = run.iter().map(|point| Circle::new(*point, 2 * pixel, of.filled()));
                chart.draw_series(dots).map_err(wrong)?;
            }
            Shape::Dots => circles(&run, dot, of.filled(), chart)?,
            Shape::Rings => circles(&run, 7 * pixel, style, chart)?,
            shape => {
                if shape == Shape::Dotted {
                    circles(&run, dot, of.filled(), chart)?;
                }
                let points = if shape == Shape::Step { steps(&run) } else { run };
                if let [(x, y)] = points.as_slice() {
                    let dot = Circle::new((*x, *y), 2 * pixel, of.filled());
                    chart.draw_series(std::iter::once(dot)).map_err(wrong)?;
                } else if dash > 0 {
                    let line = DashedLineSeries::new(points, dash, gap, style);
                    chart.draw_series(line).map_err(wrong)?;
                } else {
                    chart.draw_series(LineSeries::new(points, style)).map_err(wrong)?;
                }
            }
        }
    }
    Ok(())
}

/// A circle at each point, large enough to be seen alone.
fn circles<B: DrawingBackend>(
    run: &[(f64, f64)],
    size: u32,
    style: ShapeStyle,
    chart: &mut Chart<'_, B>,
) -> Drawn {
    let dots = run.iter().map(|point| Circle::new(*point, size, style));
    chart.draw_series(dots).map(|_| ()).map_err(wrong)
}

/// A value holds until the next point.
fn steps(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(run.len() * 2);
    let mut before: Option<f64> = None;
    for (x, y) in run.iter().copied() {
        points.extend(before.map(|value| (x, value)));
        points.push((x, y));
        before = Some(y);
    }
    points
}
