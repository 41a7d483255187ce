//! A report as files.

use crate::StudyReport;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub html: PathBuf,
    /// All numbers.
    pub json: PathBuf,
    /// Every printed value beside ours, as Markdown.
    pub markdown: PathBuf,
    /// The directory of the pictures.
    pub pictures: PathBuf,
    /// How many there are, each as SVG and as PNG.
    pub count: usize,
    /// Pictures that could not be drawn: which, and why.
    pub missing: Vec<String>,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or directory.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file or directory that could not be written.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A number or text that JSON has not.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl StudyReport<'_> {
    /// Writes `report.html`, `results.json`, `printed.md` and `pictures/` into a directory, and makes the
    /// directory if it is missing. Files of an earlier report are replaced; its other pictures stay.
    ///
    /// # Errors
    /// [`WriteError`]. A picture that cannot be drawn is not an error, see [`Written::missing`].
    pub fn write(&self, directory: &Path) -> Result<Written, WriteError> {
        let mut written = Written {
            html: directory.join("report.html"),
            json: directory.join("results.json"),
            markdown: directory.join("printed.md"),
            pictures: directory.join("pictures"),
            ..Written::default()
        };
        fs::create_dir_all(&written.pictures).map_err(at(&written.pictures))?;
        put(&written.html, self.html().as_bytes())?;
        put(&written.json, self.json()?.as_bytes())?;
        put(&written.markdown, self.markdown().as_bytes())?;
        for picture in self.pictures() {
            match (picture.svg(), picture.png()) {
                (Ok(svg), Ok(png)) => {
                    put(&written.pictures.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
                    put(&written.pictures.join(format!("{}.png", picture.name)), &png)?;
                    written.count += 1;
                }
                (Err(error), _) | (_, Err(error)) => {
                    written.missing.push(format!("{}: {error}", picture.name));
                }
            }
        }
        Ok(written)
    }
}

/// Writes a file whole or not at all: on a full disk the one from before stays.
#[expect(
    clippy::disallowed_methods,
    reason = "a report may be lost with the power, and made again"
)]
pub(crate) fn put(path: &Path, octets: &[u8]) -> Result<(), WriteError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let written = fs::write(&part, octets).and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        at(path)(error)
    })
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    move |error| WriteError::File { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        put(&path, b"whole").unwrap();
        // Nothing can be written in the place of the part.
        fs::create_dir(directory.path().join("report.html.part")).unwrap();
        let error = put(&path, b"other").unwrap_err().to_string();
        assert!(error.contains("report.html: "), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
