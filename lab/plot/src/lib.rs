//! Pictures of what was measured over time, as SVG and PNG.
//!
//! A [`Figure`] is plain data: panels one above the other with one axis of time, each with its
//! series, and marks that label events. Drawing needs nothing of the system: the font (DejaVu Sans,
//! whose terms permit it) is embedded. The colours (Okabe and Ito) are distinct in print, on screen
//! and for most colour-blind readers. Beyond eight series, lines are dashed. A line that others lie on
//! is wide and light, and shows below them.
//!
//! ```
//! use plot::{Figure, Panel, Series, Shape};
//!
//! let throughput = Series::new("CS3 flash", Shape::Line, vec![(0.0, 0.0), (1.0, 1800.0)]);
//! let figure = Figure::new("Throughput").panel(Panel::new("kbit/s").series(throughput));
//! assert!(figure.svg()?.starts_with("<svg"));
//! # Ok::<(), plot::Error>(())
//! ```

mod axis;
mod cover;
mod dots;
mod draw;
mod encode;
mod grid;
mod style;

pub use dots::{Band, Dot, Dots, MAX_ROWS, Reach};
pub use grid::{Cell, Grid, GridRow, MAX_LINES};

use encode::Drawing;

/// Most points of one series that are drawn: beyond, points that lie at the same place of the
/// picture are left out, the highest and lowest kept.
pub const MAX_POINTS: usize = 4_000;
/// The largest number of series of a panel that are drawn; the legend has the number of those left out.
pub const MAX_SERIES: usize = 16;
/// Most marks that are drawn; beyond, every second, third ... one is.
pub const MAX_MARKS: usize = 40;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The picture is narrower or lower than 200 pixels, or beyond 10,000.
    #[error("a picture of {0} by {1} pixels (200 to 10,000 each)")]
    Size(u32, u32),
    /// There is no panel, or more than eight.
    #[error("a figure of {0} panels (1 to 8)")]
    Panels(usize),
    /// The library that draws.
    #[error("drawing: {0}")]
    Drawing(String),
    /// The library that packs.
    #[error("PNG: {0}")]
    Png(#[from] png::EncodingError),
}

/// How points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    Line,
    /// A value holds until the next point: depths of queues, values of counters.
    Step,
    /// Not at all.
    Points,
    /// By straight lines, each point with a dot: few points, all of which count.
    Dotted,
    /// Not at all, but each is a large dot: values of a few kinds.
    Dots,
    /// Not at all, each is an empty ring: values of somebody else's, which may lie on dots.
    Rings,
}

/// Values over time.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The line that joins the points.
    pub shape: Shape,
    /// Seconds and value, by time. A value that is not finite interrupts the line.
    pub points: Vec<(f64, f64)>,
    /// Its place among the colours; by its order in the panel where absent. The same code point has
    /// the same colour in every picture.
    pub colour: Option<usize>,
}

impl Series {
    /// With the colour of its place.
    pub fn new(name: impl Into<String>, shape: Shape, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), shape, points, colour: None }
    }

    /// With a colour of its own: a number, taken modulo what there is.
    #[must_use]
    pub fn colour(self, place: usize) -> Series {
        Series { colour: Some(place), ..self }
    }
}

/// A vertical line where something happened.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Seconds.
    pub at: f64,
    /// What happened; short, it stands along the line.
    pub label: String,
    /// Its place among the colours; grey where absent.
    pub colour: Option<usize>,
}

/// Series with one axis of values.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What the axis shows, with its unit.
    pub label: String,
    /// The series.
    pub series: Vec<Series>,
    /// A line across, such as a link's rate, and its name. Far above all values it is only named.
    pub level: Option<(f64, String)>,
    /// Values that the series are to be seen beside.
    pub levels: Vec<Level>,
}

/// A value that series are to be seen beside, such as one that was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// It.
    pub value: f64,
    /// In the legend.
    pub name: String,
    /// The place among the colours of the series that it belongs to, where it is one.
    pub colour: Option<usize>,
}

impl Panel {
    /// Without any series yet.
    pub fn new(label: impl Into<String>) -> Panel {
        Panel { label: label.into(), series: Vec::new(), level: None, levels: Vec::new() }
    }

    /// With one more series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Panel {
        self.series.push(series);
        self
    }

    /// With a line across.
    #[must_use]
    pub fn level(self, value: f64, name: impl Into<String>) -> Panel {
        Panel { level: Some((value, name.into())), ..self }
    }
}

/// A picture: panels one above the other, over the same time.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Above the first panel.
    pub title: String,
    /// From above to below.
    pub panels: Vec<Panel>,
    /// In every panel; the labels stand in the first.
    pub marks: Vec<Mark>,
    /// Below the last panel.
    pub time_label: String,
    /// From when to when, in seconds; all there is where absent.
    pub span: Option<(f64, f64)>,
    /// Where the axis has labels, and which, in place of round numbers: values of a parameter.
    pub ticks: Vec<(f64, String)>,
    /// Pixels across and down.
    pub size: (u32, u32),
}

impl Figure {
    /// Without any panel yet; 1,200 pixels across, and as high as its panels ask for.
    pub fn new(title: impl Into<String>) -> Figure {
        Figure {
            title: title.into(),
            panels: Vec::new(),
            marks: Vec::new(),
            time_label: "seconds".to_owned(),
            span: None,
            ticks: Vec::new(),
            size: (1_200, 120),
        }
    }

    /// With one more panel, and 380 pixels more for it.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Figure {
        self.panels.push(panel);
        self.size.1 = self.size.1.saturating_add(380);
        self
    }

    /// With these marks.
    #[must_use]
    pub fn marks(self, marks: Vec<Mark>) -> Figure {
        Figure { marks, ..self }
    }

    /// As an SVG document.
    ///
    /// # Errors
    /// [`Error`]: its size or its panels.
    pub fn svg(&self) -> Result<String, Error> {
        encode::svg(self)
    }

    /// As the octets of a PNG file, two pixels for one of [`Figure::size`] so that print is sharp.
    ///
    /// # Errors
    /// [`Error`]: its size or its panels.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        encode::png(self)
    }
}

impl Drawing for Figure {
    fn checked(&self) -> Result<(u32, u32), Error> {
        if self.panels.is_empty() || self.panels.len() > 8 {
            return Err(Error::Panels(self.panels.len()));
        }
        encode::size(self.size.0, self.size.1)
    }

    fn draw<B: plotters::prelude::DrawingBackend>(&self, backend: B) -> Result<(), String> {
        draw::figure(self, backend)
    }
}

#[cfg(test)]
mod tests;
