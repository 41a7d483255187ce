//! From a drawing to the text or the octets of a file.

use crate::Error;
use crate::draw::SHARP;
use plotters::prelude::{BitMapBackend, DrawingBackend, SVGBackend};
use std::io::Write as _;

/// What can be drawn on any of the library's backends.
pub(crate) trait Drawing {
    /// Pixels across and down, once it is known that it can be drawn.
    fn checked(&self) -> Result<(u32, u32), Error>;

    /// Draws it; the backend's size is the drawing's, or [`SHARP`] times as much.
    fn draw<B: DrawingBackend>(&self, backend: B) -> Result<(), String>;
}

/// A width and a height that make sense.
pub(crate) fn size(width: u32, height: u32) -> Result<(u32, u32), Error> {
    let sane = 200..=10_000;
    if sane.contains(&width) && sane.contains(&height) {
        Ok((width, height))
    } else {
        Err(Error::Size(width, height))
    }
}

/// As an SVG document.
pub(crate) fn svg(drawing: &impl Drawing) -> Result<String, Error> {
    let size = drawing.checked()?;
    let mut text = String::new();
    drawing.draw(SVGBackend::with_string(&mut text, size)).map_err(Error::Drawing)?;
    Ok(joined(text.trim_start()))
}

/// With strokes that follow each other and look the same as one path: of a dashed line the library
/// makes an element of each dash, which would be most of the document.
fn joined(svg: &str) -> String {
    let mut text = String::with_capacity(svg.len());
    let mut path: Option<(&str, String)> = None;
    let end = |path: Option<(&str, String)>| match path {
        Some((look, drawn)) => format!("<path {look}d=\"{drawn}\"/>\n"),
        None => String::new(),
    };
    for line in svg.lines() {
        let Some((look, from, to)) = stroke(line) else {
            text.push_str(&end(path.take()));
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let drawn = format!("M{from}L{to}");
        match &mut path {
            Some((same, all)) if *same == look => all.push_str(&drawn),
            _ => text.push_str(&end(path.replace((look, drawn)))),
        }
    }
    text.push_str(&end(path));
    text
}

/// A line of the document that is a stroke from one point to another: how it looks, from and to.
fn stroke(line: &str) -> Option<(&str, &str, &str)> {
    let (look, points) = line.strip_prefix("<polyline ")?.split_once("points=\"")?;
    let mut points = points.strip_suffix("\"/>")?.split_whitespace();
    let (from, to) = (points.next()?, points.next()?);
    points.next().is_none().then_some((look, from, to))
}

/// As the octets of a PNG file.
pub(crate) fn png(drawing: &impl Drawing) -> Result<Vec<u8>, Error> {
    let (width, height) = drawing.checked()?;
    let (across, down) = (width * SHARP, height * SHARP);
    let mut pixels = vec![0; across as usize * down as usize * 3];
    let bitmap = BitMapBackend::with_buffer(&mut pixels, (across, down));
    drawing.draw(bitmap).map_err(Error::Drawing)?;
    let mut octets = Vec::new();
    let mut encoder = png::Encoder::new(&mut octets, across, down);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    octets.flush().map_err(png::EncodingError::IoError)?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_that_look_the_same_are_one_path() {
        let svg = "<svg>\n<polyline stroke=\"#1\" points=\"1,2 3,4 \"/>\n\
                   <polyline stroke=\"#1\" points=\"5,6 7,8 \"/>\n\
                   <polyline stroke=\"#2\" points=\"1,1 2,2 \"/>\n\
                   <polyline stroke=\"#2\" points=\"1,1 2,2 3,3 \"/>\n\
                   <text>\n<polyline\n</text>\n</svg>";
        let wanted = "<svg>\n<path stroke=\"#1\" d=\"M1,2L3,4M5,6L7,8\"/>\n\
                      <path stroke=\"#2\" d=\"M1,1L2,2\"/>\n\
                      <polyline stroke=\"#2\" points=\"1,1 2,2 3,3 \"/>\n\
                      <text>\n<polyline\n</text>\n</svg>\n";
        assert_eq!(joined(svg), wanted);
    }
}
