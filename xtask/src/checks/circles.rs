//! Imports in a circle, between the files of a crate or between its folders. A part of
//! `cargo xtask tidy`.

use std::collections::{BTreeMap, BTreeSet};

use crate::checks::source::{is_word, mask, mask_tests, words};
use crate::workspace::TextFile;

/// Source folders without a circle.
const CHECKED: &[&str] = &["crates/node/src"];

/// What imports what, each by its path below the source folder.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// A circle of imports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    /// The source folder.
    pub(crate) folder: String,
    /// The files or folders of the circle.
    pub(crate) text: String,
}

/// Circles in the source folders that must have none. `tests` are the paths of test files.
pub(crate) fn circles(files: &[TextFile], is_test: impl Fn(&str) -> bool) -> Vec<Circle> {
    let files: Vec<&TextFile> =
        files.iter().filter(|file| file.is_rust() && !is_test(&file.path)).collect();
    CHECKED.iter().flat_map(|folder| circles_of(folder, &files)).collect()
}

fn circles_of(folder: &str, files: &[&TextFile]) -> Vec<Circle> {
    let inside = |file: &&TextFile| {
        let path = file.path.strip_prefix(folder)?.strip_prefix('/')?.to_owned();
        Some((path, mask_tests(&mask(&file.text))))
    };
    let sources: BTreeMap<String, String> = files.iter().filter_map(inside).collect();
    let mut between_files = Imports::new();
    let mut between_folders = Imports::new();
    for (path, code) in &sources {
        for import in imports(code) {
            let Some(target) = file_of(&import, &sources).filter(|target| target != path) else {
                continue;
            };
            if room(path) != room(&target) {
                between_folders
                    .entry(room(path).to_owned())
                    .or_default()
                    .insert(room(&target).to_owned());
            }
            between_files.entry(path.clone()).or_default().insert(target);
        }
    }
    let found = [("files", between_files), ("folders", between_folders)];
    let circles = found.into_iter().filter_map(|(what, imports)| Some((what, circle(imports)?)));
    circles
        .map(|(what, circle)| Circle {
            folder: folder.to_owned(),
            text: format!("{what} import in a circle: {}", circle.join(" -> ")),
        })
        .collect()
}

/// The folder directly below the source folder, or the file there.
fn room(path: &str) -> &str {
    path.split_once('/').map_or(path, |(folder, _)| folder)
}

/// The paths after `crate::` in masked source, a path for each name in braces.
fn imports(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for at in words(code, "crate") {
        if let Some(rest) = code.split_at(at).1.strip_prefix("crate::") {
            paths(rest, &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads a path that may end in braces. Gives what follows it.
fn paths<'a>(text: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().is_empty() {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let after = paths(rest, &mut before.clone(), found);
            let next = after.find([',', '}']).unwrap_or(after.len());
            rest = after.split_at(next).1.trim_start_matches(',');
        }
        return rest;
    }
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    before.push(name.to_owned());
    match rest.strip_prefix("::") {
        Some(rest) => paths(rest, before, found),
        None => {
            found.push(before.clone());
            rest
        }
    }
}

/// The file of the innermost module that a path names.
fn file_of(path: &[String], files: &BTreeMap<String, String>) -> Option<String> {
    (1..=path.len()).rev().find_map(|length| {
        let module = path.get(..length)?.join("/");
        [format!("{module}.rs"), format!("{module}/mod.rs")]
            .into_iter()
            .find(|file| files.contains_key(file))
    })
}

/// One circle, its first member again at the end.
fn circle(mut imports: Imports) -> Option<Vec<String>> {
    // What imports nothing that is left is in no circle.
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        for targets in imports.values_mut() {
            targets.retain(|target| left.contains(target));
        }
        imports.retain(|_, targets| !targets.is_empty());
        if imports.len() == left.len() {
            break;
        }
    }
    let mut walk: Vec<String> = vec![imports.keys().next()?.clone()];
    loop {
        let next = imports.get(walk.last()?)?.first()?.clone();
        if let Some(begin) = walk.iter().position(|passed| *passed == next) {
            let mut circle = walk.split_off(begin);
            circle.push(next);
            return Some(circle);
        }
        walk.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = CHECKED[0];

    fn found(sources: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: format!("{FOLDER}/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<TextFile> = sources.iter().map(file).collect();
        let circles = circles(&files, |path| path.ends_with("tests.rs"));
        circles.into_iter().map(|circle| circle.text).collect()
    }

    #[test]
    fn a_circle_of_files_is_found_in_imports_and_in_code() {
        let sources = [
            ("a/mod.rs", "mod x;\nuse crate::{ids, b::c::{self, C}};\n"),
            ("b/c.rs", "use crate::d::D;\n"),
            ("d.rs", "fn f() { crate::a::g(); }\n"),
            ("ids.rs", ""),
        ];
        assert_eq!(
            found(&sources),
            [
                "files import in a circle: a/mod.rs -> b/c.rs -> d.rs -> a/mod.rs",
                "folders import in a circle: a -> b -> d.rs -> a",
            ]
        );
    }

    #[test]
    fn a_circle_of_folders_alone_is_found() {
        let sources = [
            ("a/x.rs", "use crate::b::X;\n"),
            ("b/mod.rs", "use crate::c::C;\n"),
            ("b/y.rs", "use crate::a::x::{Y, Z};\n"),
            ("c.rs", ""),
        ];
        assert_eq!(found(&sources), ["folders import in a circle: a -> b -> a"]);
    }

    #[test]
    fn comments_tests_and_what_is_outside_count_for_nothing() {
        let sources = [
            ("lib.rs", "pub use crate::a::A;\n"),
            ("a/mod.rs", "use crate::b::B; // crate::Node\n"),
            ("b.rs", "//! [`crate::a`]\n#[cfg(test)]\nmod tests { use crate::a::A; }\n"),
            ("b/tests.rs", "use crate::a::A;\n"),
            ("a/x.rs", "use crate::a::A; use crate::Node; pub(crate) fn f() {}\n"),
        ];
        assert_eq!(found(&sources), [""; 0]);
        let elsewhere = TextFile { path: "crates/x/src/a.rs".into(), text: "crate::b".into() };
        assert_eq!(circles(&[elsewhere], |_| false), []);
    }
}
