//! Pictures: throughput and round-trip time by code point, delay between points, messages.

use super::Rows;
use super::json::ms;
use ::analyse::{Aggregate, Analysis, Message, Time};
use anyhow::{Context as _, Result};
use dscp::Dscp;
use plot::{Figure, Mark, Panel, Series, Shape};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most panels of a picture: points, or pairs of points.
const MAX_PANELS: usize = 6;
/// Most messages with a line of their own.
const MAX_MESSAGES: usize = 16;

/// Draws all there is to be drawn into a directory, each as SVG and as PNG; gives the files.
///
/// # Errors
/// The directory cannot be made or written to.
pub(crate) fn pictures(analysis: &Analysis, rows: &Rows, directory: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let view = View::new(analysis);
    let marks = view.marks(rows.messages());
    let figures = [
        ("throughput", view.throughput(analysis).map(|figure| figure.marks(marks.clone()))),
        ("round-trip", view.round_trip(analysis).map(|figure| figure.marks(marks))),
        ("delay", view.delay(analysis)),
        ("messages", view.messages(rows.messages())),
    ];
    let mut written = Vec::new();
    for (name, figure) in figures {
        let Some(figure) = figure else { continue };
        let files = [("svg", figure.svg()?.into_bytes()), ("png", figure.png()?)];
        for (kind, octets) in files {
            let path = directory.join(format!("{name}.{kind}"));
            std::fs::write(&path, octets).with_context(|| path.display().to_string())?;
            written.push(path);
        }
    }
    Ok(written)
}

/// What all pictures have in common: the begin of time, and a colour for each code point.
struct View {
    origin: Time,
    end: Time,
    colours: Vec<Dscp>,
    points: Vec<String>,
}

impl View {
    fn new(analysis: &Analysis) -> View {
        let spans = analysis.points().iter().filter_map(|point| point.span);
        let origin = spans.clone().map(|span| span.0).min().unwrap_or_default();
        let end = spans.map(|span| span.1).max().unwrap_or_default();
        let seen: BTreeSet<Dscp> = analysis.aggregates().map(|(_, of)| of.dscp).collect();
        let points = analysis.points().iter().map(|point| point.name.clone()).collect();
        View { origin, end, colours: seen.into_iter().collect(), points }
    }

    fn seconds(&self, at: Time) -> f64 {
        at.signed_since(self.origin) as f64 / 1e9
    }

    fn colour(&self, dscp: Dscp) -> usize {
        self.colours.iter().position(|of| *of == dscp).unwrap_or_default()
    }

    fn figure(&self, title: &str, panels: Vec<Panel>) -> Option<Figure> {
        let mut figure = Figure::new(title);
        for panel in panels.into_iter().filter(|of| !of.series.is_empty()).take(MAX_PANELS) {
            figure = figure.panel(panel);
        }
        figure.span = Some((0.0, self.seconds(self.end).max(0.001)));
        figure.time_label = "seconds since the first packet".to_owned();
        (!figure.panels.is_empty()).then_some(figure)
    }

    /// A panel for each point, a line for each code point; those with most octets first.
    fn by_point(
        &self,
        analysis: &Analysis,
        label: &str,
        points: impl Fn(&Aggregate) -> Vec<(f64, f64)>,
    ) -> Vec<Panel> {
        let panel = |(place, name): (usize, &String)| {
            let label = match self.points.len() {
                1 => label.to_owned(),
                _ => format!("{name}: {label}"),
            };
            let mut panel = Panel::new(label);
            let mut lines: Vec<&Aggregate> =
                analysis.aggregates().filter(|(at, _)| *at == place).map(|(_, of)| of).collect();
            lines.sort_by_key(|of| std::cmp::Reverse(of.volume.octets));
            lines.truncate(plot::MAX_SERIES);
            lines.sort_by_key(|of| of.dscp);
            for of in lines {
                let points = points(of);
                if !points.is_empty() {
                    let line = Series::new(of.dscp.to_string(), Shape::Line, points);
                    panel = panel.series(line.colour(self.colour(of.dscp)));
                }
            }
            panel
        };
        self.points.iter().enumerate().map(panel).collect()
    }

    fn throughput(&self, analysis: &Analysis) -> Option<Figure> {
        let rates = |of: &Aggregate| -> Vec<(f64, f64)> {
            let width = of.series.width() as f64;
            // In the middle of its interval; from nothing and to nothing.
            let points = of.series.iter().map(|(begin, bin)| {
                (self.seconds(begin) + width / 2e9, bin.octets as f64 * 8e6 / width)
            });
            let points: Vec<(f64, f64)> = points.collect();
            let step = width / 1e9;
            let before = points.first().map(|(x, _)| (x - step, 0.0));
            let after = points.last().map(|(x, _)| (x + step, 0.0));
            before.into_iter().chain(points.iter().copied()).chain(after).collect()
        };
        self.figure("Throughput by code point", self.by_point(analysis, "kbit/s (IP)", rates))
    }

    fn round_trip(&self, analysis: &Analysis) -> Option<Figure> {
        let trips = |of: &Aggregate| -> Vec<(f64, f64)> {
            let means = of.series.iter();
            let means = means.filter_map(|(at, bin)| Some((at, bin.round_trip.mean()?)));
            means.map(|(at, mean)| (self.seconds(at), ms(mean))).collect()
        };
        let title =
            "Round-trip time of TCP by code point, from each point to the receiver and back";
        self.figure(title, self.by_point(analysis, "ms", trips))
    }

    fn delay(&self, analysis: &Analysis) -> Option<Figure> {
        let mut panels: Vec<((usize, usize), Panel)> = Vec::new();
        for of in analysis.hops() {
            let ends = (of.from, of.to);
            let name = |place: usize| self.points.get(place).map_or("?", String::as_str);
            if panels.last().is_none_or(|(last, _)| *last != ends) {
                let label = format!("{} to {}: ms", name(of.from), name(of.to));
                panels.push((ends, Panel::new(label)));
            }
            let means = of.series.iter().filter_map(|(at, mean)| Some((at, mean.mean()?)));
            let points: Vec<(f64, f64)> =
                means.map(|(at, mean)| (self.seconds(at), ms(mean))).collect();
            let line = Series::new(of.dscp.to_string(), Shape::Line, points);
            if let Some((_, panel)) = panels.last_mut() {
                panel.series.push(line.colour(self.colour(of.dscp)));
            }
        }
        let panels = panels.into_iter().map(|(_, panel)| panel).collect();
        self.figure("One-way delay by code point", panels)
    }

    /// The messages with most octets.
    fn messages(&self, messages: &[Message]) -> Option<Figure> {
        let mut largest: Vec<&Message> = messages.iter().collect();
        largest.sort_by_key(|of| (std::cmp::Reverse(of.octets), of.span.0));
        largest.truncate(MAX_MESSAGES);
        largest.sort_by_key(|of| of.span.0);
        let mut panel = Panel::new("kbit/s (envelope and content)");
        for of in largest {
            let width = of.series.width() as f64;
            let rates = of
                .series
                .iter()
                .map(|(at, octets)| (self.seconds(at) + width / 2e9, *octets as f64 * 8e6 / width));
            // From nothing at its begin to nothing at its end.
            let (begin, end) = (self.seconds(of.span.0), self.seconds(of.span.1));
            let within = rates.map(|(at, rate)| (at.max(begin).min(end), rate));
            let points = [(begin, 0.0)].into_iter().chain(within).chain([(end, 0.0)]).collect();
            panel = panel.series(Series::new(label(of), Shape::Line, points));
        }
        self.figure("Messages", vec![panel])
    }

    /// Where messages begin and end: of many, those with most octets.
    fn marks(&self, messages: &[Message]) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut largest: Vec<&Message> = messages.iter().collect();
        largest.sort_by_key(|of| (std::cmp::Reverse(of.octets), of.span.0));
        largest.truncate(plot::MAX_MARKS / 2);
        for of in largest {
            let colour = of.marks.first().map(|dscp| self.colour(*dscp));
            for (at, what) in [(of.span.0, "begin"), (of.span.1, "end")] {
                let label = format!("{what} {}", label(of));
                marks.push(Mark { at: self.seconds(at), label, colour });
            }
        }
        marks.sort_by(|a, b| a.at.total_cmp(&b.at));
        marks
    }
}

/// Short: the precedence or code point, and the local identifier's end.
fn label(of: &Message) -> String {
    let precedence = of.envelope.as_ref().and_then(|of| of.precedence).map(|of| of.name());
    let mark = of.marks.first().map(ToString::to_string);
    let what = precedence.map(str::to_owned).or(mark).unwrap_or_default();
    let identifier = of.envelope.as_ref().map(|of| of.identifier.as_str()).unwrap_or_default();
    let tail = identifier.trim_end_matches(']').rsplit(['.', ';', '-']).next().unwrap_or_default();
    let tail: String = tail.chars().take(8).collect();
    format!("{what} {tail}").trim().to_owned()
}
