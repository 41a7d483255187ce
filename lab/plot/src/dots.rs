//! Values of one kind, a row each, on one logarithmic axis: ratios to what was printed.

use crate::Error;
use crate::draw::{at, wrong};
use crate::encode::{self, Drawing};
use crate::style::{BANDS, FONT, GREY, GRID, INK, colour, font};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The largest number of rows that are drawn; the last line has the number of those left out.
pub const MAX_ROWS: usize = 300;
/// Pixels across below which names stand above their dots.
const NARROW: u32 = 640;
/// Pixels above the rows.
const HEAD: u32 = 96;
/// Pixels below them, for the axis.
const FOOT: u32 = 58;
/// Pixels on the right, for values in words.
const WORDS: u32 = 112;
/// Pixels behind these, for what the values are made of.
const PARTS: u32 = 160;
/// As far as the axis goes: what is beyond stands at its end.
const AXIS: (f64, f64) = (0.01, 100.0);
/// Where it may have labels.
const TICKS: [f64; 13] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// It.
    Exactly(f64),
    /// It is more: an arrow to the right.
    MoreThan(f64),
    /// It is less: an arrow to the left.
    LessThan(f64),
}

impl Reach {
    fn value(self) -> f64 {
        match self {
            Reach::Exactly(value) | Reach::MoreThan(value) | Reach::LessThan(value) => value,
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Before it; a heading where there is no value.
    pub name: String,
    /// More than 0; not drawn where it is not.
    pub value: Option<Reach>,
    /// Behind it: the value in words.
    pub words: String,
    /// What the value is made of, such as the two that it is the ratio of.
    pub parts: String,
    /// Its place among the colours.
    pub colour: usize,
}

impl Dot {
    /// Bold words between rows.
    pub fn heading(name: impl Into<String>) -> Dot {
        let (words, parts) = (String::new(), String::new());
        Dot { name: name.into(), value: None, words, parts, colour: 0 }
    }
}

/// From where to where a value is as it should be; the first is shaded darkest.
#[derive(Clone, Debug)]
pub struct Band {
    /// More than 0.
    pub from: f64,
    /// More than that.
    pub to: f64,
    /// In the legend.
    pub name: String,
}

/// A picture of rows with a dot each.
#[derive(Clone, Debug)]
pub struct Dots {
    /// Above.
    pub title: String,
    /// Below the axis.
    pub label: String,
    /// From above to below.
    pub rows: Vec<Dot>,
    /// Above the parts of the values.
    pub parts: String,
    /// Narrowest first; two have a shade.
    pub bands: Vec<Band>,
    /// Pixels across; it is as high as its rows ask for.
    pub width: u32,
}

impl Dots {
    /// As an SVG document.
    ///
    /// # Errors
    /// [`Error::Size`]: it is too narrow or too wide.
    pub fn svg(&self) -> Result<String, Error> {
        encode::svg(self)
    }

    /// As the octets of a PNG file, two pixels for one of [`Dots::width`].
    ///
    /// # Errors
    /// [`Error::Size`]: it is too narrow or too wide.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        encode::png(self)
    }

    fn shown(&self) -> impl Iterator<Item = &Dot> {
        self.rows.iter().take(MAX_ROWS)
    }

    fn row_height(&self) -> u32 {
        if self.width < NARROW { 42 } else { 26 }
    }

    /// From where to where the axis goes.
    fn range(&self) -> (f64, f64) {
        let values = self.shown().filter_map(|dot| dot.value).map(Reach::value);
        let bands = self.bands.iter().flat_map(|band| [band.from, band.to]);
        let all = values.chain(bands).filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = all.fold((0.8_f64, 1.25_f64), |(low, high), v| (low.min(v), high.max(v)));
        ((low / 1.15).max(AXIS.0), (high * 1.15).min(AXIS.1))
    }
}

impl Drawing for Dots {
    fn checked(&self) -> Result<(u32, u32), Error> {
        let rows = u32::try_from(self.shown().count() + 1).unwrap_or(u32::MAX);
        let rows = rows.saturating_mul(self.row_height());
        encode::size(self.width, rows.saturating_add(HEAD + FOOT).max(200))
    }

    fn draw<B: DrawingBackend>(&self, backend: B) -> Result<(), String> {
        if !font() {
            return Err("the font cannot be read".to_owned());
        }
        let area = backend.into_drawing_area();
        area.fill(&WHITE).map_err(wrong)?;
        let sheet = Sheet::new(self, &area);
        sheet.head()?;
        sheet.axis()?;
        for (place, dot) in self.shown().enumerate() {
            sheet.row(place, dot)?;
        }
        let more = self.rows.len().saturating_sub(MAX_ROWS);
        if more > 0 {
            let y = sheet.middle(MAX_ROWS);
            sheet.text(&format!("and {more} more"), (16, y), 16, HPos::Left)?;
        }
        area.present().map_err(wrong)
    }
}

/// Where what stands, in pixels of the picture before it is made sharp.
struct Sheet<'a, B: DrawingBackend> {
    dots: &'a Dots,
    area: &'a DrawingArea<B, Shift>,
    pixel: u32,
    range: (f64, f64),
    left: u32,
    right: u32,
    bottom: u32,
}

impl<'a, B: DrawingBackend> Sheet<'a, B> {
    fn new(dots: &'a Dots, area: &'a DrawingArea<B, Shift>) -> Sheet<'a, B> {
        let (width, height) = area.dim_in_pixel();
        let pixel = (width / dots.width.max(1)).max(1);
        let longest = dots.shown().filter(|dot| dot.value.is_some());
        let longest = longest.map(|dot| dot.name.chars().count()).max().unwrap_or(0);
        let longest = u32::try_from(longest).unwrap_or(u32::MAX).saturating_mul(9);
        let left = if dots.width < NARROW { 16 } else { longest.clamp(80, dots.width / 2) + 40 };
        let has_parts = dots.width >= NARROW && dots.shown().any(|dot| !dot.parts.is_empty());
        let right = dots.width.saturating_sub(WORDS + if has_parts { PARTS } else { 0 });
        let bottom = height / pixel - FOOT;
        Sheet { dots, area, pixel, range: dots.range(), left, right, bottom }
    }

    /// In pixels of the backend.
    fn point(&self, (x, y): (u32, u32)) -> (i32, i32) {
        (at(x.saturating_mul(self.pixel)), at(y.saturating_mul(self.pixel)))
    }

    fn x(&self, value: f64) -> u32 {
        let (low, high) = self.range;
        let part = (value.clamp(low, high) / low).ln() / (high / low).ln();
        self.left + (part * f64::from(self.right - self.left)).round() as u32
    }

    fn top(&self, place: usize) -> u32 {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        place.saturating_mul(self.dots.row_height()).saturating_add(HEAD)
    }

    /// The height of a row's dot in the picture, in pixels from its top.
    fn middle(&self, place: usize) -> u32 {
        self.top(place).saturating_add(if self.dots.width < NARROW { 29 } else { 13 })
    }

    fn text(&self, text: &str, place: (u32, u32), size: u32, side: HPos) -> Result<(), String> {
        let style = (FONT, size * self.pixel).into_font().color(&INK);
        let style = style.pos(Pos::new(side, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), self.point(place), style)).map_err(wrong)
    }

    fn bold(&self, text: &str, place: (u32, u32), size: u32) -> Result<(), String> {
        let style = (FONT, size * self.pixel, FontStyle::Bold).into_font().color(&INK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), self.point(place), style)).map_err(wrong)
    }

    fn block(&self, from: (u32, u32), to: (u32, u32), of: RGBColor) -> Result<(), String> {
        let corners = [self.point(from), self.point(to)];
        self.area.draw(&Rectangle::new(corners, of.filled())).map_err(wrong)
    }

    fn line(
        &self,
        from: (u32, u32),
        to: (u32, u32),
        of: RGBColor,
        wide: u32,
    ) -> Result<(), String> {
        let style = of.stroke_width(wide * self.pixel);
        let ends = [self.point(from), self.point(to)];
        self.area.draw(&PathElement::new(ends, style)).map_err(wrong)
    }

    /// The title, and what the shades mean.
    fn head(&self) -> Result<(), String> {
        let size = if self.dots.width < NARROW { 18 } else { 22 };
        self.bold(&self.dots.title, (16, 22), size)?;
        let mut x = 16;
        for (band, shade) in self.dots.bands.iter().zip(BANDS) {
            self.block((x, 45), (x + 22, 59), shade)?;
            self.text(&band.name, (x + 29, 52), 16, HPos::Left)?;
            let long = u32::try_from(band.name.chars().count()).unwrap_or(u32::MAX);
            x = x.saturating_add(long.saturating_mul(8)).saturating_add(48);
        }
        Ok(())
    }

    fn axis(&self) -> Result<(), String> {
        let (top, bottom) = (HEAD - 4, self.bottom);
        let bands: Vec<_> = self.dots.bands.iter().zip(BANDS).collect();
        for (band, shade) in bands.into_iter().rev() {
            self.block((self.x(band.from), top), (self.x(band.to), bottom), shade)?;
        }
        let (low, high) = self.range;
        for tick in TICKS.into_iter().filter(|tick| (low..=high).contains(tick)) {
            let x = self.x(tick);
            let (of, wide) = match tick {
                // Names cross it where the picture is narrow.
                1.0 if self.dots.width < NARROW => (GREY, 1),
                1.0 => (INK, 2),
                _ => (GRID, 1),
            };
            self.line((x, top), (x, bottom), of, wide)?;
            for y in [top - 10, bottom + 14] {
                self.text(&tick.to_string(), (x, y), 16, HPos::Center)?;
            }
        }
        if self.dots.width >= NARROW {
            self.text(&self.dots.parts, (self.right + WORDS, top - 10), 16, HPos::Left)?;
        }
        self.line((self.left, bottom), (self.right, bottom), INK, 1)?;
        let middle = u32::midpoint(self.left, self.right);
        self.text(&self.dots.label, (middle, bottom + 40), 16, HPos::Center)
    }

    fn row(&self, place: usize, dot: &Dot) -> Result<(), String> {
        let y = self.middle(place);
        let Some(reach) = dot.value else {
            return self.bold(&Self::fitting(&dot.name, self.dots.width), (16, y), 16);
        };
        if self.dots.width < NARROW {
            // They stand at the end of the name's line.
            let long = u32::try_from(dot.parts.chars().count()).unwrap_or(u32::MAX);
            let room = self.dots.width.saturating_sub(long.saturating_mul(9));
            let y = self.top(place) + 11;
            self.text(&Self::fitting(&dot.name, room), (16, y), 16, HPos::Left)?;
            self.text(&dot.parts, (self.dots.width - 16, y), 16, HPos::Right)?;
        } else {
            self.text(&Self::fitting(&dot.name, self.left), (28, y), 16, HPos::Left)?;
            self.text(&dot.parts, (self.right + WORDS, y), 16, HPos::Left)?;
        }
        self.line((self.left, y), (self.right, y), GRID, 1)?;
        self.text(&dot.words, (self.right + 10, y), 16, HPos::Left)?;
        let value = reach.value();
        if !value.is_finite() || value <= 0.0 {
            return Ok(());
        }
        let (of, x) = (colour(dot.colour), self.x(value));
        self.line((self.x(1.0), y), (x, y), of, 2)?;
        match reach {
            Reach::Exactly(_) => {
                let dot = Circle::new(self.point((x, y)), 5 * self.pixel, of.filled());
                self.area.draw(&dot).map_err(wrong)
            }
            Reach::MoreThan(_) => self.arrow((x, y), 14, of),
            Reach::LessThan(_) => self.arrow((x, y), -14, of),
        }
    }

    fn arrow(&self, (x, y): (u32, u32), long: i32, of: RGBColor) -> Result<(), String> {
        let (x, y) = self.point((x, y));
        let (long, half) = (long * at(self.pixel), 6 * at(self.pixel));
        let corners = vec![(x, y - half), (x + long, y), (x, y + half)];
        self.area.draw(&Polygon::new(corners, of.filled())).map_err(wrong)
    }

    /// As much of a name as there is room for, in pixels across.
    fn fitting(name: &str, room: u32) -> String {
        let room = (room.saturating_sub(36) / 9).max(8) as usize;
        if name.chars().count() <= room {
            return name.to_owned();
        }
        name.chars().take(room - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(width: u32) -> Dots {
        let dot = |name: &str, value, words: &str| Dot {
            name: name.to_owned(),
            value: Some(value),
            words: words.to_owned(),
            parts: format!("9.7 (10) {words}"),
            colour: 0,
        };
        Dots {
            parts: "ours (theirs)".to_owned(),
            title: "Time beside the paper's".to_owned(),
            label: "ours divided by theirs".to_owned(),
            rows: vec![
                Dot::heading("round 1"),
                dot("1 MB", Reach::Exactly(0.97), "0.97"),
                dot("10 MB <script>", Reach::MoreThan(3.2), "> 3.2"),
                dot("given up", Reach::LessThan(0.4), "< 0.4"),
                dot("nothing at all", Reach::Exactly(0.0), "-"),
            ],
            bands: vec![
                Band { from: 0.85, to: 1.15, name: "within 15 %".to_owned() },
                Band { from: 0.5, to: 2.0, name: "within a factor of 2".to_owned() },
            ],
            width,
        }
    }

    #[test]
    fn every_row_has_its_name_and_its_value_at_either_width() {
        for width in [1_000, 400] {
            let svg = sample(width).svg().unwrap();
            let words = ["round 1", "&gt; 3.2", "within 15 %", "divided", "9.7 (10) 0.97"];
            for word in words {
                assert!(svg.contains(word), "{width}: {word}");
            }
            assert!(svg.contains("10 MB &lt;script&gt;"));
            assert_eq!(svg.matches("<circle").count(), 1, "only one value is known exactly");
            assert_eq!(svg.matches("<polygon").count(), 2, "two are bounds");
            assert!(sample(width).png().unwrap().starts_with(b"\x89PNG"));
        }
    }

    #[test]
    fn the_axis_takes_in_values_and_bands_but_has_an_end() {
        let mut dots = sample(1_000);
        let (low, high) = dots.range();
        assert!(low < 0.4 && low > 0.3 && high > 3.2 && high < 4.0, "{low} {high}");
        dots.rows.push(Dot { value: Some(Reach::Exactly(1e9)), ..Dot::heading("far") });
        assert_eq!(dots.range().1, 100.0);
        dots.rows.clear();
        assert!(dots.svg().is_ok());
    }

    #[test]
    fn the_number_of_rows_left_out_is_shown() {
        let mut dots = sample(1_000);
        dots.rows = vec![Dot { value: Some(Reach::Exactly(1.0)), ..Dot::heading("x") }; 310];
        assert!(dots.svg().unwrap().contains("and 10 more"));
        dots.width = 100;
        assert!(matches!(dots.svg(), Err(Error::Size(100, _))));
    }
}
