//! Reads a TOML tree key by key, so that one pass finds every error: a wrong type or an unknown
//! key is recorded with its position, and reading continues.

use super::problem::Problems;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a value cannot be used, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl Bad {
    /// An error with its remedy.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Bad {
        Bad { message: message.into(), remedy: remedy.into() }
    }
}

/// Converts a value of the tree.
pub type Convert<'c, T> = &'c dyn Fn(&DeValue<'_>) -> Result<T, Bad>;

/// A table being read: keys that were never requested are unknown.
pub struct Section<'a> {
    name: String,
    span: Range<usize>,
    rest: BTreeMap<&'a str, (Range<usize>, &'a Spanned<DeValue<'a>>)>,
    known: Vec<&'static str>,
    /// Required keys that are absent.
    missing: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The table `name` (as shown in messages) at `span`.
    pub fn new(name: impl Into<String>, span: Range<usize>, table: &'a DeTable<'a>) -> Section<'a> {
        let rest = table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), (key.span(), value)))
            .collect();
        Section { name: name.into(), span, rest, known: Vec::new(), missing: Vec::new() }
    }

    /// Its position, for errors about the table as a whole.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// As shown in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names this table more precisely, once its name is read.
    pub fn rename(&mut self, name: String) {
        self.name = name;
    }

    /// The position of a value that is text, and so may be a secret in clear.
    pub fn literal(&self, key: &str) -> Option<Range<usize>> {
        let (_, value) = self.rest.get(key)?;
        value.get_ref().is_str().then(|| value.span())
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.rest.contains_key(key)
    }

    /// Where a key is that is there and was not read yet.
    pub fn place(&self, key: &str) -> Option<Range<usize>> {
        self.rest.get(key).map(|(_, value)| value.span())
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key);
        self.rest.remove(key).map(|(_, value)| value)
    }

    /// An optional value.
    pub fn optional<T>(
        &mut self,
        problems: &mut Problems,
        key: &'static str,
        convert: Convert<'_, T>,
    ) -> Option<Spanned<T>> {
        let value = self.take(key)?;
        match convert(value.get_ref()) {
            Ok(converted) => Some(Spanned::new(value.span(), converted)),
            Err(bad) => {
                let message = format!("{} of {}: {}", key, self.name, bad.message);
                problems.error(value.span(), message, "here", bad.remedy);
                problems.about(&self.name);
                None
            }
        }
    }

    /// A required value; `None` after adding an error if it is absent or not usable.
    pub fn required<T>(
        &mut self,
        problems: &mut Problems,
        key: &'static str,
        remedy: &str,
        convert: Convert<'_, T>,
    ) -> Option<Spanned<T>> {
        if !self.rest.contains_key(key) {
            self.known.push(key);
            self.missing.push(key);
            let message = self.lacks(key);
            problems.error(self.span(), message, format!("{key} is missing here"), remedy);
            return None;
        }
        self.optional(problems, key, convert)
    }

    fn lacks(&self, key: &str) -> String {
        format!("{} lacks {key}", self.name)
    }

    /// A value or a list of values; `None` if the key is absent, or after adding an error.
    pub fn list<T>(
        &mut self,
        problems: &mut Problems,
        key: &'static str,
        convert: Convert<'_, T>,
    ) -> Option<Spanned<Vec<Spanned<T>>>> {
        let value = self.take(key)?;
        let single = [value];
        let several: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => single.to_vec(),
        };
        let count = several.len();
        let mut list = Vec::with_capacity(count);
        for item in several {
            match convert(item.get_ref()) {
                Ok(converted) => list.push(Spanned::new(item.span(), converted)),
                Err(bad) => {
                    let message = format!("{} of {}: {}", key, self.name, bad.message);
                    problems.error(item.span(), message, "here", bad.remedy);
                    problems.about(&self.name);
                }
            }
        }
        (list.len() == count).then(|| Spanned::new(value.span(), list))
    }

    /// A table under a key.
    pub fn table(&mut self, problems: &mut Problems, key: &'static str) -> Option<Section<'a>> {
        let value = self.take(key)?;
        let name = format!("{key} of {}", self.name);
        let name = if self.name == TOP { format!("[{key}]") } else { name };
        as_section(problems, name, value)
    }

    /// The tables of an array of tables.
    pub fn tables(&mut self, problems: &mut Problems, key: &'static str) -> Vec<Section<'a>> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!("{key} of {} is {}", self.name, kind(value.get_ref()));
            problems.error(value.span(), message, "here", format!("write [[{key}]] sections"));
            return Vec::new();
        };
        let name = |n: usize| format!("[[{key}]] number {}", n + 1);
        items.iter().enumerate().filter_map(|(n, i)| as_section(problems, name(n), i)).collect()
    }

    /// Adds an error for each unknown or missing key.
    pub fn finish(self, problems: &mut Problems) {
        for (key, (span, _)) in &self.rest {
            // A misspelled required key is one error, not a missing key and an unknown one.
            let misspelled = nearest(key, &self.missing);
            if let Some(missing) = misspelled {
                problems.withdraw(&self.lacks(missing));
            }
            let remedy = match misspelled.or_else(|| nearest(key, &self.known)) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known here: {}", self.known.join(", ")),
            };
            let message = format!("{} has no key {key:?}", self.name);
            problems.error(span.clone(), message, "unknown key", remedy);
            problems.about(&self.name);
        }
    }
}

/// Name of the file's outermost table.
pub const TOP: &str = "the file";

fn as_section<'a>(
    problems: &mut Problems,
    name: String,
    value: &'a Spanned<DeValue<'a>>,
) -> Option<Section<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(Section::new(name, value.span(), table)),
        other => {
            let message = format!("{name} is {}", kind(other));
            problems.error(value.span(), message, "here", "write a table");
            None
        }
    }
}

/// A value's type, with its article.
pub fn kind(value: &DeValue<'_>) -> Cow<'static, str> {
    match value {
        DeValue::Array(_) => "an array".into(),
        DeValue::Integer(_) => "an integer".into(),
        other => format!("a {}", other.type_str()).into(),
    }
}

/// The known word within an edit distance of two.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let limit = if word.len() < 5 { 1 } else { 2 };
    let scored = known.iter().map(|k| (distance(word, k), *k));
    scored.filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

/// Levenshtein distance, with two rows.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (y, pair) in b.iter().zip(row.windows(2)) {
            let &[diagonal, above] = pair else { continue };
            let left = next.last().copied().unwrap_or(i + 1);
            next.push((diagonal + usize::from(x != *y)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(nearest("precedence", &["precedences", "dscp"]), Some("precedences"));
        assert_eq!(nearest("tls", &["precedences", "dscp"]), None);
    }
}
