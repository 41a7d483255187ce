//! The vectors: files of annotated octets, and what is known of each.

use std::path::{Path, PathBuf};

/// What a vector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    BindArgument,
    BindResult,
    BindError,
    /// Of the operation with this code.
    Argument(i64),
    /// Of the operation with this code.
    Result(i64),
    /// The parameter of the error with this code.
    Error(i64),
}

/// A file of `tests/vectors/p7`.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    /// The name of its file without `.hex`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// 1988 or 1994.
    pub(crate) edition: u16,
    /// Why no independent bytes or reader prove it.
    pub(crate) unproven: Option<String>,
    /// Fields of tshark, and the values that it has to show, joined with commas.
    pub(crate) shown: Vec<(String, String)>,
    /// Fields with which tshark marks what it does not understand; none but these may be there.
    pub(crate) marks: Vec<String>,
    pub(crate) octets: Vec<u8>,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/p7")
}

/// All of them, by name.
pub(crate) fn all() -> Vec<Vector> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "hex")).collect();
    files.sort();
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vector {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = |key: &str| -> Vec<String> {
        let key = format!("# {key}: ");
        text.lines().filter_map(|line| Some(line.strip_prefix(&key)?.to_owned())).collect()
    };
    let one = |key: &str| {
        let [value] = lines(key).try_into().unwrap_or_else(|_| panic!("{key}: {path:?}"));
        value
    };
    let kind = one("kind");
    let pair = |line: String| {
        let (field, value) = line.split_once(" = ").unwrap();
        (field.to_owned(), value.to_owned())
    };
    Vector {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        kind: match kind.split_once(' ').unwrap() {
            ("bind", "argument") => Kind::BindArgument,
            ("bind", "result") => Kind::BindResult,
            ("bind", "error") => Kind::BindError,
            ("argument", code) => Kind::Argument(code.parse().unwrap()),
            ("result", code) => Kind::Result(code.parse().unwrap()),
            ("error", code) => Kind::Error(code.parse().unwrap()),
            _ => panic!("{path:?}: kind {kind}"),
        },
        edition: one("edition").parse().unwrap(),
        unproven: lines("unproven").into_iter().next(),
        shown: lines("tshark").into_iter().map(pair).collect(),
        marks: lines("tshark marks"),
        octets: octets(&text),
    }
}

/// Digits and quoted text; `#` begins a comment.
fn octets(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.lines() {
        let code = line.split('#').next().unwrap();
        for (n, part) in code.split('"').enumerate() {
            if n % 2 == 1 {
                out.extend_from_slice(part.as_bytes());
            } else {
                let pairs = part.split_whitespace();
                out.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
            }
        }
    }
    out
}
