//! The lines of a configuration, without comments and banners.

use super::{MAX_LINE, MAX_LINES};

/// A line of the configuration.
#[derive(Clone, Debug)]
pub(super) struct ConfigLine {
    /// The line number, from 1.
    pub(super) number: usize,
    /// The words; at least one.
    pub(super) words: Vec<String>,
}

impl ConfigLine {
    /// The words in lower case: IOS ignores case in commands and keywords.
    pub(super) fn lower(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_ascii_lowercase()).collect()
    }
}

pub(super) fn read(text: &str) -> Result<Vec<ConfigLine>, String> {
    let mut lines = Vec::new();
    let mut banner: Option<String> = None;
    for (number, raw) in text.lines().enumerate() {
        let number = number + 1;
        if number > MAX_LINES {
            return Err(format!("more than {MAX_LINES} lines"));
        }
        if raw.len() > MAX_LINE {
            return Err(format!("line {number} has more than {MAX_LINE} octets"));
        }
        if raw.chars().any(|c| base::shown::is_obeyed(c) && !matches!(c, '\t' | '\r' | '\u{3}')) {
            return Err(format!("line {number} has control characters: not a text file"));
        }
        if let Some(end) = &banner {
            if raw.contains(end.as_str()) {
                banner = None;
            }
            continue;
        }
        let words: Vec<String> = raw.split_whitespace().map(str::to_owned).collect();
        let Some(first) = words.first() else { continue };
        if first.starts_with('!') {
            continue;
        }
        if first.eq_ignore_ascii_case("banner") {
            banner = unfinished(raw);
            continue;
        }
        lines.push(ConfigLine { number, words });
    }
    Ok(lines)
}

/// The delimiter of a banner that continues after its first line: the character before its text.
fn unfinished(raw: &str) -> Option<String> {
    let text = raw.split_whitespace().nth(2)?;
    let mark: String = match text.strip_prefix('^') {
        Some(after) => "^".chars().chain(after.chars().next()).collect(),
        None => text.chars().take(1).collect(),
    };
    (raw.matches(mark.as_str()).count() < 2).then_some(mark)
}
