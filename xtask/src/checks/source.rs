//! Just enough of Rust's grammar to look at source without being misled by its comments, strings
//! and tests.

use std::collections::BTreeSet;

use crate::workspace::TextFile;

/// The source with comments and the insides of string and character literals blanked. Lines and
/// columns stay where they were.
pub(crate) fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word_before = out.chars().next_back().is_some_and(is_word);
        let (length, blank) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => (block_comment(rest), true),
            '"' => (string(rest), true),
            '\'' => match character(rest) {
                Some(length) => (length, true),
                None => (1, false), // a lifetime
            },
            'r' | 'b' | 'c' if !word_before => match raw_string(rest) {
                Some(length) => (length, true),
                None => (1, false),
            },
            _ => (first.len_utf8(), false),
        };
        let (token, tail) = rest.split_at(length);
        if blank {
            out.extend(token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(token);
        }
        rest = tail;
    }
    out
}

/// Whether a character can stand inside an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of a block comment, which may nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of a string literal that begins with a quotation mark.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal, or `None` where the apostrophe begins a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let mut chars = chars.skip(1);
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
}

/// Length of a raw string literal (`r"`, `r#"`, `br#"`, `cr"`), if one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let tail = text.trim_start_matches(['b', 'c']);
    let hashes = tail.strip_prefix('r')?;
    let body = hashes.trim_start_matches('#');
    let count = hashes.len() - body.len();
    let inner = body.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(count));
    let start = text.len() - inner.len();
    Some(inner.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Masked source with what stands under `#[cfg(test)]` blanked too.
pub(crate) fn mask_tests(masked: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(masked.len());
    let mut rest = masked;
    while let Some(at) = rest.find(MARK) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (item, tail) = from.split_at(item_length(from));
        out.extend(item.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Length of an item in masked source, its attributes included: up to its closing brace, or to the
/// semicolon of an item without one.
fn item_length(text: &str) -> usize {
    let (mut braces, mut brackets) = (0usize, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return at + 1;
                }
            }
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Byte offsets at which `word` stands as a whole word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let (before, from) = text.split_at(*at);
        let after = from.strip_prefix(word).unwrap_or(from);
        !before.chars().next_back().is_some_and(is_word) && !after.starts_with(is_word)
    })
}

/// The line, counted from 1, on which a byte offset lies.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The line of its `fn`.
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace.
    pub(crate) lines: usize,
}

/// The functions in masked source.
pub(crate) fn functions(masked: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for at in words(masked, "fn") {
        let from = masked.split_at(at).1;
        let after = from.strip_prefix("fn").unwrap_or(from).trim_start();
        let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
        let name = after.split_at(end).0;
        let item = from.split_at(item_length(from)).0;
        if !name.is_empty() && item.ends_with('}') {
            let lines = item.lines().count();
            found.push(Function { name, line: line_of(masked, at), lines });
        }
    }
    found
}

/// Paths of the files that are compiled into tests only: those declared by `#[cfg(test)] mod x;`
/// with all below them, and integration tests.
pub(crate) fn test_files(files: &[TextFile]) -> BTreeSet<String> {
    let mut declared = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for name in declared_test_modules(&mask(&file.text)) {
            declared.push(format!("{}/{name}", module_directory(&file.path)));
        }
    }
    files
        .iter()
        .filter(|file| {
            let module = file.path.strip_suffix(".rs").unwrap_or(&file.path);
            file.path.starts_with("tests/")
                || file.path.split_once("/tests/").is_some_and(|(p, _)| !p.contains("/src"))
                || declared.iter().any(|d| {
                    module
                        .strip_prefix(d.as_str())
                        .is_some_and(|r| r.is_empty() || r.starts_with('/'))
                })
        })
        .map(|file| file.path.clone())
        .collect()
}

/// Names of the modules that a file declares, without a body, for tests only.
fn declared_test_modules(masked: &str) -> Vec<&str> {
    let after_mark = masked.split("#[cfg(test)]").skip(1);
    after_mark
        .filter_map(|tail| {
            let item = tail.split_at(item_length(tail)).0.trim().strip_suffix(';')?;
            let (before, name) = item.rsplit_once(' ')?;
            before.trim_end().ends_with("mod").then_some(name)
        })
        .collect()
}

/// The directory in which the modules that a file declares live.
fn module_directory(path: &str) -> String {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.strip_suffix(".rs") {
        None | Some("mod" | "lib" | "main") => directory.to_owned(),
        Some(stem) => format!("{directory}/{stem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_nothing_moves() {
        let text = "let a = \"// no \\\" fs\"; // std::fs\nlet c = '\"'; /* a /* b */ c */ let l: &'static str = r#\"x\"y\"#;\n";
        let masked = mask(text);
        assert_eq!(masked.len(), text.len());
        assert_eq!(masked.lines().count(), text.lines().count());
        assert!(!masked.contains("fs") && !masked.contains('"') && !masked.contains("c */"));
        assert!(masked.contains("let c =") && masked.contains("&'static str ="));
        assert_eq!(mask("b'\\'' x b\"x\\\"\" for"), "b     x b      for");
    }

    #[test]
    fn tests_are_blanked_and_the_code_after_them_stays() {
        let text = "fn a() {}\n#[cfg(test)]\n#[path = \"x\"]\nmod tests {\n fn b() { c[0]; }\n}\nfn d() {}\n#[cfg(test)]\nmod e;\nfn f() {}\n";
        let masked = mask_tests(&mask(text));
        let names: Vec<_> = functions(&masked).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "d", "f"]);
        assert_eq!(masked.lines().count(), text.lines().count());
    }

    #[test]
    fn a_function_is_measured_to_its_closing_brace() {
        let text = "trait T { fn none(&self); }\nfn two(x: [u8; 2]) ->\n u8 {\n  0\n}\n";
        assert_eq!(functions(text), [Function { name: "two", line: 2, lines: 4 }]);
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_found() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let files = [
            file("crates/osi/src/session/mod.rs", "mod pdu;\n#[cfg(test)]\nmod tests;\n"),
            file("crates/osi/src/session/tests.rs", ""),
            file("crates/osi/src/session/tests/table.rs", ""),
            file("crates/osi/src/session/pdu.rs", "#[cfg(test)]\npub(crate) mod vectors;\n"),
            file("crates/osi/src/session/pdu/vectors.rs", ""),
            file("crates/osi/src/session/tests_of_life.rs", ""),
            file("crates/osi/tests/stack.rs", ""),
            file("tests/src/lib.rs", ""),
        ];
        let found: Vec<String> = test_files(&files).into_iter().collect();
        assert_eq!(
            found,
            [
                "crates/osi/src/session/pdu/vectors.rs",
                "crates/osi/src/session/tests.rs",
                "crates/osi/src/session/tests/table.rs",
                "crates/osi/tests/stack.rs",
                "tests/src/lib.rs",
            ]
        );
    }
}
