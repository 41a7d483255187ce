//! Colours, dashes and the font.

use plotters::style::{FontStyle, RGBColor, register_font};
use std::sync::LazyLock;

/// The name under which the font is known to the library, and stands in SVG.
pub(crate) const FONT: &str = "sans-serif";

/// Okabe and Ito's palette without its yellow, which is lost on white paper; grey in its place.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(140, 86, 75),
];

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(34, 34, 34);
/// Lines of the grid.
pub(crate) const GRID: RGBColor = RGBColor(225, 225, 225);
/// Marks without a colour, and lines across.
pub(crate) const GREY: RGBColor = RGBColor(120, 120, 120);

/// The colour of a place.
pub(crate) fn colour(place: usize) -> RGBColor {
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or(INK)
}

/// So much of the first colour in a mixture.
fn mixed(one: RGBColor, other: RGBColor, share: f64) -> RGBColor {
    let part = |one: u8, other: u8| {
        (f64::from(one) * share + f64::from(other) * (1.0 - share)).round() as u8
    };
    RGBColor(part(one.0, other.0), part(one.1, other.1), part(one.2, other.2))
}

/// The colour of a line that others lie on.
pub(crate) fn light(of: RGBColor) -> RGBColor {
    mixed(of, RGBColor(255, 255, 255), 0.5)
}

/// The colour of what belongs to a line and may lie on it.
pub(crate) fn dark(of: RGBColor) -> RGBColor {
    mixed(of, RGBColor(0, 0, 0), 0.62)
}

/// Whether the line of a place is dashed: its colour was used before.
pub(crate) fn dashed(place: usize) -> bool {
    place >= COLOURS.len()
}

/// Makes the font known to the library, once; whether it is.
pub(crate) fn font() -> bool {
    static KNOWN: LazyLock<bool> = LazyLock::new(|| {
        register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok()
            && register_font(FONT, FontStyle::Bold, dejavu::sans::bold()).is_ok()
    });
    *KNOWN
}

/// Behind values that are as they should be, and behind those that nearly are.
pub(crate) const BANDS: [RGBColor; 2] = [RGBColor(198, 226, 205), RGBColor(238, 240, 226)];

/// Behind numbers of cells: as they should be, nearly, and not. Distinct in grey too.
pub(crate) const SHADES: [RGBColor; 3] =
    [RGBColor(198, 226, 205), RGBColor(250, 222, 150), RGBColor(226, 140, 110)];
