//! A figure on any of the library's backends.

use crate::axis::{range, runs, short, span};
use crate::style::{FONT, GREY, GRID, INK, colour, dashed, font};
use crate::{Figure, MAX_MARKS, MAX_SERIES, Mark, Panel, Series, Shape};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels of a bitmap for one of a figure.
pub(crate) const SHARP: u32 = 2;
/// Pixels beside a panel for its legend: at least, and at most.
const LEGEND: (u32, u32) = (170, 330);
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
    let beside = beside(figure);
    for (place, (panel, part)) in figure.panels.iter().zip(&parts).enumerate() {
        let last = place + 1 == figure.panels.len();
        let label = if last { figure.time_label.as_str() } else { "" };
        let labels = place == 0;
        let (marks, ticks) = (figure.marks.as_slice(), figure.ticks.as_slice());
        one(&Frame { panel, marks, ticks, labels, time, label, beside, pixel }, part)?;
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
fn beside(figure: &Figure) -> u32 {
    let series = figure.panels.iter().flat_map(|panel| panel.series.iter().take(MAX_SERIES));
    let levels = figure.panels.iter().filter_map(|panel| panel.level.as_ref());
    let names = series.map(|series| &series.name).chain(levels.map(|(_, name)| name));
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
    if let Some((value, _)) = &frame.panel.level {
        let line = [(frame.time.0, *value), (frame.time.1, *value)];
        let style = GREY.stroke_width(pixel * 2);
        let (dash, gap) = (8 * pixel, 5 * pixel);
        chart.draw_series(DashedLineSeries::new(line, dash, gap, style)).map_err(wrong)?;
    }
    for (place, series) in frame.panel.series.iter().take(MAX_SERIES).enumerate() {
        draw(series, series.colour.unwrap_or(place), pixel, &mut chart)?;
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

/// What each line is, beside the panel where it covers none.
fn legend<B: DrawingBackend>(frame: &Frame<'_>, area: &DrawingArea<B, Shift>) -> Drawn {
    let pixel = at(frame.pixel);
    let text = (FONT, 16 * frame.pixel).into_font().color(&INK);
    let room = if frame.labels && !frame.marks.is_empty() { 86 } else { 12 };
    let (long, mut y) = (26 * pixel, (room + 10) * pixel);
    let mut line = |name: &str, stroke: Option<(ShapeStyle, bool, Shape)>| -> Drawn {
        if let Some((style, dashed, shape)) = stroke {
            let parts: &[(i32, i32)] = match (shape, dashed) {
                (Shape::Points, _) => &[(11, 15)],
                (Shape::Dots, _) => &[(8, 18)],
                (_, true) => &[(0, 11), (15, 26)],
                (_, false) => &[(0, 26)],
            };
            for (from, to) in parts {
                let ends = [(from * pixel, y), (to * pixel, y)];
                area.draw(&PathElement::new(ends, style)).map_err(wrong)?;
            }
        }
        let style = text.clone().pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(shortened(name), (long + 8 * pixel, y), style)).map_err(wrong)?;
        y += 20 * pixel;
        Ok(())
    };
    for (place, series) in frame.panel.series.iter().take(MAX_SERIES).enumerate() {
        let place = series.colour.unwrap_or(place);
        let style = colour(place).stroke_width(3 * frame.pixel);
        line(&series.name, Some((style, dashed(place), series.shape)))?;
    }
    let left_out = frame.panel.series.len().saturating_sub(MAX_SERIES);
    if left_out > 0 {
        line(&format!("and {left_out} more"), None)?;
    }
    if let Some((_, name)) = &frame.panel.level {
        line(name, Some((GREY.stroke_width(2 * frame.pixel), true, Shape::Line)))?;
    }
    Ok(())
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
    place: usize,
    pixel: u32,
    chart: &mut Chart<'_, B>,
) -> Drawn {
    let of = colour(place);
    let style = ShapeStyle { color: of.to_rgba(), filled: false, stroke_width: 2 * pixel };
    let (dash, gap) = if dashed(place) { (9 * pixel, 5 * pixel) } else { (0, 0) };
    for run in runs(series) {
        match series.shape {
            Shape::Points => {
                let dots = run.iter().map(|point| Circle::new(*point, 2 * pixel, of.filled()));
                chart.draw_series(dots).map_err(wrong)?;
            }
            Shape::Dots => large(&run, of, pixel, chart)?,
            shape => {
                if shape == Shape::Dotted {
                    large(&run, of, pixel, chart)?;
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

/// A dot for each point, large enough to be seen alone.
fn large<B: DrawingBackend>(
    run: &[(f64, f64)],
    of: RGBColor,
    pixel: u32,
    chart: &mut Chart<'_, B>,
) -> Drawn {
    let dots = run.iter().map(|point| Circle::new(*point, 5 * pixel, of.filled()));
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
