//! The fenced blocks of a page.

use std::path::Path;

/// The lines of a block of commands; one that goes on after a backslash is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) lines: Vec<String>,
}

/// The contents of the blocks in this language.
pub(super) fn fenced(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<Vec<&str>> = None;
    for line in text.lines() {
        match inside.as_mut() {
            Some(lines) if line.trim() == "```" => {
                found.push(lines.join("\n") + "\n");
                inside = None;
            }
            Some(lines) => lines.push(line),
            None if line.trim() == format!("```{language}") => inside = Some(Vec::new()),
            None => {}
        }
    }
    found
}

/// The blocks of commands.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let block = |text: String| {
        let mut lines: Vec<String> = Vec::new();
        let mut goes_on = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match lines.last_mut() {
                Some(last) if goes_on => *last = format!("{last}\n{line}"),
                _ => lines.push(line.to_owned()),
            }
            goes_on = line.ends_with('\\');
        }
        Block { lines }
    };
    fenced(text, "sh").into_iter().map(block).collect()
}

/// All pages for readers: their names from the checkout, and their text.
pub(super) fn pages(checkout: &Path) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for directory in ["", "docs", "config"] {
        let files = std::fs::read_dir(checkout.join(directory)).unwrap();
        for file in files.map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "md") {
                let name = file.strip_prefix(checkout).unwrap().display().to_string();
                pages.push((name, std::fs::read_to_string(&file).unwrap()));
            }
        }
    }
    pages.sort();
    pages
}

#[test]
fn blocks_are_found_and_continued_lines_are_one() {
    let text = "a\n```sh\none \\\n  two\n\nthree\n```\n```toml\nx = 1\n```\n```text\nno\n```\n";
    let lines = vec!["one \\\n  two".to_owned(), "three".to_owned()];
    assert_eq!(blocks(text), [Block { lines }]);
    assert_eq!(fenced(text, "toml"), ["x = 1\n"]);
}
