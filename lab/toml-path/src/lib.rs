//! Paths into a TOML document: `network.links[naples-uar.wan].delay`. [`set`] sets the value at a path.
//!
//! Dots separate keys. Brackets after the key of a list contain the number of an element, or a text
//! that one element has under `name` or `class`, or among its `ends`. Brackets after the key of a table
//! contain another key, which may have dots.
//!
//! Studies set parameters, and sites set configuration keys, with the same paths.

use std::fmt;
use std::str::FromStr;
use toml::map::Entry;
use toml::{Table, Value};

/// A step from a table or list to what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A key of a table.
    Key(String),
    /// An element of a list, or a key of a table: text in brackets.
    Bracketed(String),
}

/// A path from the root of a document. It begins with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlPath {
    steps: Vec<PathStep>,
}

/// Why no value can be set at a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is not a path.
    #[error("{0:?}: invalid path of keys")]
    Invalid(String),
    /// The list has no such element.
    #[error("{0}: no such element")]
    NoElement(TomlPath),
    /// The path has a key where the document has a list.
    #[error("{0}: a list; name the element in brackets, as in [0]")]
    KeyOfList(TomlPath),
    /// The path continues after a value that is neither a table nor a list.
    #[error("{0}: neither a table nor a list contains it")]
    InsideValue(TomlPath),
}

impl FromStr for TomlPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<TomlPath, PathError> {
        let steps = steps(text).ok_or_else(|| PathError::Invalid(text.to_owned()))?;
        Ok(TomlPath { steps })
    }
}

impl fmt::Display for TomlPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                PathStep::Key(key) if number == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Bracketed(text) => write!(f, "[{text}]")?,
            }
        }
        Ok(())
    }
}

impl TomlPath {
    /// The steps, from the root.
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// The path up to this step and with it.
    fn up_to(&self, step: usize) -> TomlPath {
        TomlPath { steps: self.steps.get(..=step).unwrap_or_default().to_vec() }
    }

    /// The first key.
    pub fn root(&self) -> &str {
        match self.steps.first() {
            Some(PathStep::Key(key) | PathStep::Bracketed(key)) => key,
            None => "",
        }
    }
}

/// Sets the value at `path`. Missing tables are made; missing elements of lists are not.
///
/// # Errors
/// `path` is not a path. Or it names an element that does not exist, gives no element of a list, or
/// continues after a value that is neither a table nor a list. The error has the path up to there, and
/// the document is unchanged.
pub fn set(document: &mut Table, path: &str, value: impl Into<Value>) -> Result<(), PathError> {
    let path: TomlPath = path.parse()?;
    let value = value.into();
    let Some((PathStep::Key(first) | PathStep::Bracketed(first), rest)) = path.steps.split_first()
    else {
        return Ok(());
    };
    let mut at = entry(document, first, rest.is_empty());
    for (number, step) in (1..).zip(rest) {
        at = match (at, step) {
            (Value::Table(table), PathStep::Key(key) | PathStep::Bracketed(key)) => {
                entry(table, key, number == rest.len())
            }
            (Value::Array(list), PathStep::Bracketed(text)) => position(list, text)
                .and_then(|position| list.get_mut(position))
                .ok_or_else(|| PathError::NoElement(path.up_to(number)))?,
            (Value::Array(_), PathStep::Key(_)) => {
                return Err(PathError::KeyOfList(path.up_to(number)));
            }
            _ => return Err(PathError::InsideValue(path.up_to(number))),
        };
    }
    *at = value;
    Ok(())
}

/// The value of a key. A missing one is made: a table, or `false` where the value is set next.
fn entry<'a>(table: &'a mut Table, key: &str, is_last: bool) -> &'a mut Value {
    match table.entry(key.to_owned()) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) if is_last => entry.insert(Value::Boolean(false)),
        Entry::Vacant(entry) => entry.insert(Value::Table(Table::new())),
    }
}

/// The position of the element that a text in brackets names.
fn position(list: &[Value], text: &str) -> Option<usize> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    list.iter().position(|element| {
        let has = |key: &str| element.get(key).and_then(Value::as_str) == Some(text);
        let ends = element.get("ends").and_then(Value::as_array);
        let has_end = ends.is_some_and(|ends| ends.iter().any(|end| end.as_str() == Some(text)));
        has("name") || has("class") || has_end
    })
}

fn steps(text: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end)?;
        if key.is_empty() {
            return None;
        }
        steps.push(PathStep::Key(key.to_owned()));
        rest = after;
        while let Some(inside) = rest.strip_prefix('[') {
            let (bracketed, after) = inside.split_once(']')?;
            steps.push(PathStep::Bracketed(bracketed.to_owned()));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(steps),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    fn document() -> Table {
        let text = r#"
            [network.hosts.a]
            [[network.links]]
            ends = ["a.lan", "r.lan"]
            [[network.links]]
            ends = ["r.wan", "b.lan"]
            delay = "5ms"
            [[branches]]
            class = "cs1"
        "#;
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_set_by_its_path() {
        let mut document = document();
        for path in [
            "network.links[b.lan].delay",
            "network.links[0].delay",
            "network.hosts.a.sysctls[net.ipv4.tcp_sack]",
            "branches[cs1].queueing.limit.packets",
            "mta.precedence.preempt",
            "title",
        ] {
            set(&mut document, path, 7).unwrap();
        }
        let links = document["network"]["links"].as_array().unwrap();
        assert_eq!((&links[0]["delay"], &links[1]["delay"]), (&7.into(), &7.into()));
        let sysctls = &document["network"]["hosts"]["a"]["sysctls"];
        assert_eq!(sysctls["net.ipv4.tcp_sack"], 7.into());
        assert_eq!(document["branches"][0]["queueing"]["limit"]["packets"], 7.into());
        assert_eq!(document["mta"]["precedence"]["preempt"], 7.into());
        assert_eq!(document["title"], 7.into());
    }

    #[test]
    fn a_value_that_exists_is_replaced_whatever_its_type_is() {
        let mut document = document();
        set(&mut document, "network.links", "none").unwrap();
        set(&mut document, "branches[0]", true).unwrap();
        assert_eq!(document["network"]["links"], "none".into());
        assert_eq!(document["branches"][0], true.into());
    }

    #[test]
    fn an_invalid_path_is_refused_with_its_invalid_part_and_changes_nothing() {
        let cases = [
            ("network.links[c.lan].delay", "network.links[c.lan]: no such element"),
            ("network.links.delay", "network.links.delay: a list"),
            ("network.links[1].delay.x.y", "network.links[1].delay.x: neither"),
            ("network.links[9].delay", "network.links[9]: no such element"),
            ("new.links[1", "\"new.links[1\": invalid path"),
            ("network..links", "invalid path"),
            (".network", "invalid path"),
            ("network.", "invalid path"),
            ("network.links[1]x", "invalid path"),
            ("[network]", "invalid path"),
            ("", "invalid path"),
        ];
        for (path, what) in cases {
            let mut document = document();
            let before = document.clone();
            let error = set(&mut document, path, true).unwrap_err().to_string();
            assert!(error.contains(what), "{path}: {error}");
            assert_eq!(document, before, "{path}");
        }
    }

    #[test]
    fn a_path_is_written_as_it_is_read() {
        for text in ["a", "a.b", "a[0].b[c.d][e]", "a[]"] {
            let path: TomlPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(path.root(), "a");
        }
    }
}
