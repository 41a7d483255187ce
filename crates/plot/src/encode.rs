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
    Ok(text.trim_start().to_owned())
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
