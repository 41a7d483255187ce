//! Sizes of rooms: source files in a folder, and lines of a crate. A part of `cargo xtask tidy`.

use std::collections::BTreeMap;

use crate::checks::source::{mask, mask_tests};
use crate::workspace::{TextFile, crate_of};

/// Most source files in one folder; what is more is divided into sub-folders by subject.
const MAX_FILES: usize = 15;
/// Most lines of code of a crate, tests excepted.
const MAX_LINES: usize = 12_000;

/// A folder or crate that is too large, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// The folder, or the crate's source folder.
    pub(crate) folder: String,
    /// The finding, with its number and its limit.
    pub(crate) text: String,
}

/// Folders with more than [`MAX_FILES`] source files, and crates of more than [`MAX_LINES`] lines.
/// `tests` are the paths of test files, which no crate's lines count.
pub(crate) fn too_large(files: &[TextFile], is_test: impl Fn(&str) -> bool) -> Vec<TooLarge> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
        if let Some(name) = crate_of(&file.path).filter(|_| !is_test(&file.path)) {
            let root = file.path.split_once("/src/").map_or(folder, |(root, _)| root);
            lines.entry(name).or_insert((root, 0)).1 += lines_of_code(&file.text);
        }
    }
    let folders = folders.into_iter().filter(|(_, count)| *count > MAX_FILES).map(|(at, count)| {
        let text = format!("{count} source files in one folder: divide it ({MAX_FILES} the most)");
        TooLarge { folder: at.to_owned(), text }
    });
    let crates = lines.into_values().filter(|(_, lines)| *lines > MAX_LINES).map(|(at, lines)| {
        let text = format!("{lines} lines of code in one crate: divide it ({MAX_LINES} the most)");
        TooLarge { folder: at.to_owned(), text }
    });
    folders.chain(crates).collect()
}

/// Lines that hold more than blanks and comments, outside `#[cfg(test)]`.
pub(crate) fn lines_of_code(text: &str) -> usize {
    mask_tests(&mask(text)).lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: String, lines: usize) -> TextFile {
        TextFile { path, text: "fn f() {}\n".repeat(lines) + "\n// a comment\n" }
    }

    #[test]
    fn a_full_folder_and_a_long_crate_are_found() {
        let mut files: Vec<TextFile> =
            (0..=MAX_FILES).map(|n| file(format!("lab/x/src/f{n}.rs"), 1)).collect();
        files.push(file("crates/y/src/lib.rs".to_owned(), MAX_LINES));
        let is_test = |path: &str| path.ends_with("tests.rs");
        let full = TooLarge {
            folder: "lab/x/src".to_owned(),
            text: "16 source files in one folder: divide it (15 the most)".to_owned(),
        };
        assert_eq!(too_large(&files, is_test), [full]);
        files.remove(0);
        files.push(file("crates/y/src/tests.rs".to_owned(), 9));
        assert_eq!(too_large(&files, is_test), []);
        files.push(file("crates/y/src/more.rs".to_owned(), 1));
        let long = TooLarge {
            folder: "crates/y".to_owned(),
            text: "12001 lines of code in one crate: divide it (12000 the most)".to_owned(),
        };
        assert_eq!(too_large(&files, is_test), [long]);
    }
}
