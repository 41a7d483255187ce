//! A TOML file read into a serde type, with every mistake at its line and column.
//!
//! serde reads the content of internally tagged enums from a copy, so an error in it has at best the
//! position of the whole table. Therefore the position is narrowed down here, to the key or the value
//! that the message names.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use toml_path::TomlPath;

/// Longest file in octets.
pub const MAX_FILE: u64 = 4 << 20;

/// What was read, with the text it was read from.
#[derive(Clone, Debug)]
pub struct TomlFile<T> {
    /// Its content.
    pub value: T,
    /// Its name, as given.
    pub file: String,
    text: String,
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as given.
    pub file: String,
    /// Line, from 1; 0 where the file could not be read at all, or has no place for it.
    pub line: usize,
    /// Column in characters, from 1; 0 as for the line.
    pub column: usize,
    /// The fault, as a sentence.
    pub message: String,
    span: Range<usize>,
    text: String,
}

/// Reads a regular file of at most `most` octets, without regard to the size that the system reports:
/// a device has no end, and a pipe may never have a writer.
///
/// # Errors
/// It cannot be read, is not a regular file, or is longer; why, without its name.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    // Checked before it is opened: opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(|e| e.to_string())?.is_file() {
        return Err("no regular file: write what it gives into one".to_owned());
    }
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut octets = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut octets).map_err(|e| e.to_string())?;
    if octets.len() as u64 > most {
        return Err(format!("more than {most} octets long"));
    }
    Ok(octets)
}

impl<T: DeserializeOwned> TomlFile<T> {
    /// Reads a file of up to 4 MiB.
    ///
    /// # Errors
    /// It cannot be read, or what [`TomlFile::parse`] finds.
    pub fn read(path: &Path) -> Result<TomlFile<T>, Mistake> {
        let file = path.display().to_string();
        let unreadable = |message: String| without_place(&file, message);
        let octets = read_bounded(path, MAX_FILE).map_err(unreadable)?;
        let text = String::from_utf8(octets).map_err(|e| unreadable(e.utf8_error().to_string()))?;
        TomlFile::parse(&file, &text)
    }

    /// Parses a text; `file` is its name in messages.
    ///
    /// # Errors
    /// The first mistake: not TOML, an unknown key, a value of the wrong type.
    pub fn parse(file: &str, text: &str) -> Result<TomlFile<T>, Mistake> {
        match toml::from_str(text) {
            Ok(value) => Ok(TomlFile { value, file: file.to_owned(), text: text.to_owned() }),
            Err(error) => {
                let known = error.span().unwrap_or(0..text.len());
                let span = narrowed::<T>(text, known, error.message());
                Err(mistake(file, text, span, error.message().to_owned()))
            }
        }
    }
}

impl<T> TomlFile<T> {
    /// The value, and what states places in its file.
    pub fn split(self) -> (T, TomlFile<()>) {
        (self.value, TomlFile { value: (), file: self.file, text: self.text })
    }

    /// A mistake at the keys of this path: `queueings.wan.branches[1].queueing`. As much of the path
    /// as the file has is followed; the value there is shown. Without a line where it has nothing of it.
    pub fn mistake_at(&self, path: &str, what: &str) -> Mistake {
        let message = format!("{path}: {what}");
        match span_of(&self.text, path) {
            Some(span) => mistake(&self.file, &self.text, span, message),
            None => without_place(&self.file, message),
        }
    }
}

fn without_place(file: &str, message: String) -> Mistake {
    let (file, text) = (file.to_owned(), String::new());
    Mistake { file, line: 0, column: 0, message, span: 0..0, text }
}

fn mistake(file: &str, text: &str, span: Range<usize>, message: String) -> Mistake {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Mistake {
        file: file.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        message,
        span,
        text: text.to_owned(),
    }
}

/// One step down the tree.
#[derive(Clone, Debug)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// A key or value that a message may be about.
struct Candidate {
    path: Vec<PathStep>,
    span: Range<usize>,
}

/// The largest number of candidates that are tried.
const MAX_CANDIDATES: usize = 64;

/// The key or value that serde's message is about. Of the candidates it is the one without which the
/// message changes, otherwise the first one from `known` on.
fn narrowed<T: DeserializeOwned>(text: &str, known: Range<usize>, message: &str) -> Range<usize> {
    let Ok(root) = DeTable::parse(text) else { return known };
    let quoted = |mark: char| message.split(mark).nth(1).filter(|name| !name.is_empty());
    let is_key = ["unknown field", "duplicate field"].iter().any(|what| message.starts_with(what));
    // A variant is a string, or the one key of a table.
    let is_variant = message.starts_with("unknown variant");
    let wanted = if is_key || is_variant { quoted('`') } else { quoted('"') };
    let Some(wanted) = wanted else { return known };
    let mut found: Vec<Candidate> = Vec::new();
    let mut look =
        |path: &[PathStep], key: Option<&str>, value: Option<&str>, span: Range<usize>| {
            let hit = match (key, value) {
                (Some(key), _) => (is_key || is_variant) && key == wanted,
                (_, Some(value)) => !is_key && value == wanted,
                _ => false,
            };
            if hit && found.len() < MAX_CANDIDATES {
                found.push(Candidate { path: path.to_vec(), span });
            }
        };
    walk(root.get_ref(), &mut Vec::new(), &mut look);
    let decides = |candidate: &&Candidate| {
        let Ok(tree) = text.parse::<toml::Table>() else { return false };
        let mut tree = toml::Value::Table(tree);
        remove(&mut tree, &candidate.path);
        T::deserialize(tree).err().is_none_or(|error| error.message() != message)
    };
    let alone = match &found[..] {
        [one] => Some(one),
        several => several.iter().find(decides),
    };
    let first = found.iter().filter(|c| c.span.start >= known.start).min_by_key(|c| c.span.start);
    alone.or(first).map_or(known, |candidate| candidate.span.clone())
}

fn remove(tree: &mut toml::Value, path: &[PathStep]) {
    match (path, tree) {
        ([PathStep::Key(key)], toml::Value::Table(table)) => drop(table.remove(key)),
        ([PathStep::Index(at)], toml::Value::Array(array)) if *at < array.len() => {
            drop(array.remove(*at));
        }
        ([PathStep::Key(key), rest @ ..], toml::Value::Table(table)) => {
            if let Some(next) = table.get_mut(key) {
                remove(next, rest);
            }
        }
        ([PathStep::Index(at), rest @ ..], toml::Value::Array(array)) => {
            if let Some(next) = array.get_mut(*at) {
                remove(next, rest);
            }
        }
        _ => {}
    }
}

type Look<'l> = &'l mut dyn FnMut(&[PathStep], Option<&str>, Option<&str>, Range<usize>);

fn walk(table: &DeTable<'_>, path: &mut Vec<PathStep>, look: Look<'_>) {
    for (key, value) in table.iter() {
        path.push(PathStep::Key(key.get_ref().to_string()));
        look(path, Some(key.get_ref()), None, key.span());
        walk_value(value, path, look);
        path.pop();
    }
}

fn walk_value(value: &Spanned<DeValue<'_>>, path: &mut Vec<PathStep>, look: Look<'_>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, path, look),
        DeValue::Array(array) => {
            for (at, value) in array.iter().enumerate() {
                path.push(PathStep::Index(at));
                walk_value(value, path, look);
                path.pop();
            }
        }
        DeValue::String(text) => look(path, None, Some(text), value.span()),
        _ => {}
    }
}

/// The place of the last key or element of the path that the file has.
fn span_of(text: &str, path: &str) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let path: TomlPath = path.parse().ok()?;
    let mut table = Some(root.get_ref());
    let mut array: Option<&DeArray<'_>> = None;
    let mut found = None;
    for step in path.steps() {
        let (toml_path::PathStep::Key(name) | toml_path::PathStep::Bracketed(name)) = step;
        let (span, value) = match (table, array) {
            (Some(table), _) => {
                let entry = table.iter().find(|(key, _)| key.get_ref().as_ref() == name);
                let Some((key, value)) = entry else { break };
                (key.span(), value)
            }
            (None, Some(array)) => {
                let element = name.parse().ok().and_then(|index: usize| array.get(index));
                let Some(element) = element else { break };
                (element.span(), element)
            }
            (None, None) => break,
        };
        found = Some(span);
        (table, array) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(array) => (None, Some(array)),
            _ => (None, None),
        };
    }
    found
}

impl Mistake {
    /// As shown in a terminal, with the line it is about.
    pub fn render(&self, color: bool) -> String {
        let theme =
            if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut out = String::new();
        let source = NamedSource::new(&self.file, self.text.clone()).with_language("toml");
        let shown = Shown { mistake: self, source: &source };
        if self.line == 0 || handler.render_report(&mut out, &shown).is_err() {
            return self.to_string();
        }
        out
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.message),
        }
    }
}

impl std::error::Error for Mistake {}

struct Shown<'a> {
    mistake: &'a Mistake,
    source: &'a NamedSource<String>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.mistake, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistake.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.mistake.span.clone();
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, span))))
    }
}
