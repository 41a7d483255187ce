//! Coloured cells in rows and columns, with a number in each.

use crate::Error;
use crate::draw::{at, wrong};
use crate::encode::{self, Drawing};
use crate::style::{FONT, GRID, INK, SHADES, font};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The largest number of rows, and of columns, that are drawn.
pub const MAX_LINES: usize = 100;
/// Pixels of a cell across and down.
const CELL: (u32, u32) = (46, 24);
/// Pixels above the names of columns: the title and what the shades mean.
const HEAD: u32 = 78;
/// Pixels below the cells.
const FOOT: u32 = 40;
/// Pixels of a character, about.
const CHARACTER: u32 = 8;
/// Names of columns of more characters than these stand upright.
const LONG: usize = 5;
/// Most characters of a name that are drawn.
const MAX_NAME: usize = 30;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The number in it.
    pub words: String,
    /// Its place in [`Grid::shades`]; white where absent.
    pub shade: Option<usize>,
}

/// A row of cells.
#[derive(Clone, Debug)]
pub struct GridRow {
    /// Before it.
    pub name: String,
    /// From left to right.
    pub cells: Vec<Cell>,
}

/// A picture of coloured cells.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Above.
    pub title: String,
    /// What the rows are.
    pub down: String,
    /// What the columns are.
    pub across: String,
    /// Above each column.
    pub columns: Vec<String>,
    /// From above to below.
    pub rows: Vec<GridRow>,
    /// What each shade means, the best first; there are three.
    pub shades: Vec<String>,
}

impl Grid {
    /// As an SVG document.
    ///
    /// # Errors
    /// [`Error::Size`]: too many rows or columns.
    pub fn svg(&self) -> Result<String, Error> {
        encode::svg(self)
    }

    /// As the octets of a PNG file, two pixels for one of the SVG document.
    ///
    /// # Errors
    /// [`Error::Size`]: too many rows or columns.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        encode::png(self)
    }

    fn rows(&self) -> impl Iterator<Item = &GridRow> {
        self.rows.iter().take(MAX_LINES)
    }

    fn columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().take(MAX_LINES)
    }

    /// Pixels left of the cells.
    fn left(&self) -> u32 {
        let names = self.rows().map(|row| &row.name).chain([&self.down]);
        CHARACTER * longest(names) + 32
    }

    fn is_upright(&self) -> bool {
        self.columns().any(|name| name.chars().count() > LONG)
    }

    /// Pixels above the cells.
    fn top(&self) -> u32 {
        let names = if self.is_upright() { CHARACTER * longest(self.columns()) + 8 } else { 22 };
        HEAD + 20 + names
    }
}

/// Characters of the longest name.
fn longest<'a>(names: impl Iterator<Item = &'a String>) -> u32 {
    let longest = names.map(|name| name.chars().count().min(MAX_NAME)).max().unwrap_or(0);
    u32::try_from(longest).unwrap_or(0)
}

fn count<T>(of: impl Iterator<Item = T>) -> u32 {
    u32::try_from(of.count()).unwrap_or(u32::MAX)
}

impl Drawing for Grid {
    fn checked(&self) -> Result<(u32, u32), Error> {
        let across = self.left() + CELL.0 * count(self.columns()) + 24;
        let legend = self.shades.iter().map(|name| CHARACTER * longest([name].into_iter()) + 52);
        let legend: u32 = legend.sum();
        // It is bold and larger than names, and never shortened.
        let title = 12 * count(self.title.chars().take(200)) + 40;
        let down = self.top() + CELL.1 * count(self.rows()) + FOOT;
        encode::size(across.max(legend + 32).max(title).max(400), down.max(200))
    }

    fn draw<B: DrawingBackend>(&self, backend: B) -> Result<(), String> {
        if !font() {
            return Err("the font cannot be read".to_owned());
        }
        let width = self.checked().map_err(wrong)?.0;
        let area = backend.into_drawing_area();
        area.fill(&WHITE).map_err(wrong)?;
        let pixel = (area.dim_in_pixel().0 / width.max(1)).max(1);
        let sheet = Sheet { grid: self, area: &area, pixel };
        sheet.head()?;
        sheet.names()?;
        for (row, y) in self.rows().zip((self.top()..).step_by(CELL.1 as usize)) {
            sheet.row(row, y)?;
        }
        area.present().map_err(wrong)
    }
}

/// The picture while it is drawn; places are in pixels before it is made sharp.
struct Sheet<'a, B: DrawingBackend> {
    grid: &'a Grid,
    area: &'a DrawingArea<B, Shift>,
    pixel: u32,
}

impl<B: DrawingBackend> Sheet<'_, B> {
    fn point(&self, (x, y): (u32, u32)) -> (i32, i32) {
        (at(x.saturating_mul(self.pixel)), at(y.saturating_mul(self.pixel)))
    }

    fn text(&self, text: &str, place: (u32, u32), size: u32, side: HPos) -> Result<(), String> {
        let style = (FONT, size * self.pixel).into_font().color(&INK);
        let style = style.pos(Pos::new(side, VPos::Center));
        self.area.draw(&Text::new(shortened(text), self.point(place), style)).map_err(wrong)
    }

    fn block(&self, from: (u32, u32), to: (u32, u32), shade: Option<usize>) -> Result<(), String> {
        let of = shade.and_then(|place| SHADES.get(place)).copied().unwrap_or(WHITE);
        let corners = [self.point(from), self.point(to)];
        self.area.draw(&Rectangle::new(corners, of.filled())).map_err(wrong)?;
        let edge = GRID.stroke_width(self.pixel);
        self.area.draw(&Rectangle::new(corners, edge)).map_err(wrong)
    }

    /// The title, and what the shades mean.
    fn head(&self) -> Result<(), String> {
        let style = (FONT, 20 * self.pixel, FontStyle::Bold).into_font().color(&INK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        let title = Text::new(self.grid.title.clone(), self.point((16, 22)), style);
        self.area.draw(&title).map_err(wrong)?;
        let mut x = 16;
        for (place, name) in self.grid.shades.iter().enumerate() {
            self.block((x, 45), (x + 22, 61), Some(place))?;
            self.text(name, (x + 29, 53), 15, HPos::Left)?;
            x += CHARACTER * longest([name].into_iter()) + 52;
        }
        Ok(())
    }

    /// What rows and columns are.
    fn names(&self) -> Result<(), String> {
        let (left, top) = (self.grid.left(), self.grid.top());
        self.text(&self.grid.across, (left, HEAD + 10), 14, HPos::Left)?;
        self.text(&self.grid.down, (left - 10, top - 12), 14, HPos::Right)?;
        let upright = self.grid.is_upright();
        for (name, x) in self.grid.columns().zip((left + CELL.0 / 2..).step_by(CELL.0 as usize)) {
            if !upright {
                self.text(name, (x, top - 12), 15, HPos::Center)?;
                continue;
            }
            let font = (FONT, 14 * self.pixel).into_font().transform(FontTransform::Rotate270);
            let style = font.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            let name = Text::new(shortened(name), self.point((x, top - 6)), style);
            self.area.draw(&name).map_err(wrong)?;
        }
        Ok(())
    }

    fn row(&self, row: &GridRow, y: u32) -> Result<(), String> {
        let left = self.grid.left();
        self.text(&row.name, (left - 10, y + CELL.1 / 2), 15, HPos::Right)?;
        let places = (left..).step_by(CELL.0 as usize);
        for (cell, x) in row.cells.iter().take(self.grid.columns().count()).zip(places) {
            self.block((x, y), (x + CELL.0, y + CELL.1), cell.shade)?;
            let middle = (x + CELL.0 / 2, y + CELL.1 / 2);
            self.text(&cell.words, middle, 14, HPos::Center)?;
        }
        Ok(())
    }
}

/// As much of a name as there is room for.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(columns: usize) -> Grid {
        let cell = |number: usize| Cell {
            words: if number == 2 { String::new() } else { (90 + number).to_string() },
            shade: (number != 2).then_some(number % 3),
        };
        let row =
            |name: &str| GridRow { name: name.to_owned(), cells: (0..columns).map(cell).collect() };
        Grid {
            title: "Percent of the bound".to_owned(),
            down: "window, size".to_owned(),
            across: "mark <of> the flood".to_owned(),
            columns: (0..columns).map(|number| format!("CS{number}")).collect(),
            rows: vec![row("ours, 1 kB"), row("2 x 1 KiB, 10 kB")],
            shades: vec!["95 and more".to_owned(), "85".to_owned(), "less".to_owned()],
        }
    }

    #[test]
    fn every_cell_has_its_number_and_its_shade() {
        let svg = sample(5).svg().unwrap();
        for word in ["90", "94", "CS4", "2 x 1 KiB, 10 kB", "mark &lt;of&gt; the flood", "85"] {
            assert!(svg.contains(word), "{word}");
        }
        // Fill and edge of each: ten cells and three of the legend, and the paper.
        assert_eq!(svg.matches("<rect").count(), 27, "{svg}");
        assert!(!svg.contains("rotate("));
        assert!(sample(5).png().unwrap().starts_with(b"\x89PNG"));
        if let Ok(directory) = std::env::var("PLOT_SAMPLES") {
            std::fs::write(format!("{directory}/grid.png"), sample(5).png().unwrap()).unwrap();
        }
    }

    #[test]
    fn long_names_of_columns_stand_upright() {
        let mut grid = sample(3);
        grid.columns[1] = "UDP 1,500, beside a Routine".to_owned();
        assert!(grid.svg().unwrap().contains("rotate(270"));
    }

    #[test]
    fn what_is_too_much_is_not_drawn() {
        let mut grid = sample(150);
        assert!(grid.svg().unwrap().contains("CS99"));
        assert!(!grid.svg().unwrap().contains("CS100"));
        grid.rows.clear();
        grid.columns.clear();
        assert!(grid.svg().is_ok());
    }
}
