//! Errors and warnings: each with its position, the problem and the remedy.

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity,
    SourceCode,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Most lines between the two positions of a problem for which one excerpt shows both.
const NEAR: usize = 4;

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Whether the daemon refuses to start.
    pub fatal: bool,
    /// The fault, as a sentence that names the value found.
    pub message: String,
    /// A label for the position.
    pub label: String,
    /// The operator's remedy, as a sentence.
    pub remedy: String,
    /// Its position: octets of the file.
    pub span: Range<usize>,
    /// A related position, with its label.
    pub other: Option<(Range<usize>, String)>,
    /// The table it is about, as `message` names it: what is equal but for that is shown once.
    #[serde(default)]
    pub about: Option<String>,
}

/// The problems found in one file.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
    secrets: Vec<Range<usize>>,
}

impl Problems {
    /// Adds an error.
    pub fn error(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.found.push(Problem {
            fatal: true,
            message: message.into(),
            label: label.into(),
            remedy: remedy.into(),
            span,
            other: None,
            about: None,
        });
    }

    /// Adds a warning.
    pub fn warning(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.error(span, message, label, remedy);
        if let Some(last) = self.found.last_mut() {
            last.fatal = false;
        }
    }

    /// Adds a related position to the problem added last.
    pub fn see_also(&mut self, span: Range<usize>, label: impl Into<String>) {
        if let Some(last) = self.found.last_mut() {
            last.other = Some((span, label.into()));
        }
    }

    /// The problem added last is about this table, which its message names.
    pub fn about(&mut self, table: &str) {
        if let Some(last) = self.found.last_mut() {
            last.about = Some(table.to_owned());
        }
    }

    /// Removes the problem with this message: another one describes it better.
    pub fn withdraw(&mut self, message: &str) {
        self.found.retain(|problem| problem.message != message);
    }

    /// Masks the text at this position.
    pub fn secret(&mut self, span: Range<usize>) {
        self.secrets.push(span);
    }

    /// The number of problems so far.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// Whether any of them is an error, so that the daemon must not start.
    pub fn any_fatal(&self) -> bool {
        self.found.iter().any(|p| p.fatal)
    }

    /// The problems in the order of the file, with the file's name and text.
    pub fn into_findings(mut self, file: &str, text: &str) -> Findings {
        self.found.sort_by_key(|p| (p.span.start, !p.fatal));
        let mask = |(at, c): (usize, char)| match self.secrets.iter().any(|s| s.contains(&at)) {
            true => "*".repeat(c.len_utf8()),
            false => c.to_string(),
        };
        let text = text.char_indices().map(mask).collect();
        Findings { file: file.to_owned(), text, problems: self.found }
    }
}

/// The errors and warnings of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Its name, as given.
    pub file: String,
    /// Its text, secrets masked.
    pub text: String,
    /// The problems, in the order of the file.
    pub problems: Vec<Problem>,
}

/// One problem in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ProblemJson {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The file, as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The fault, as in [`Problem::message`].
    pub message: String,
    /// A label for the position.
    pub label: String,
    /// The operator's remedy, as in [`Problem::remedy`].
    pub remedy: String,
}

impl Findings {
    /// Whether any of them is an error, so that the daemon must not start.
    pub fn any_fatal(&self) -> bool {
        self.problems.iter().any(|p| p.fatal)
    }

    /// Line and column, both from 1, of an octet offset.
    fn place(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        (before.matches('\n').count() + 1, column)
    }

    /// The line of a problem's related position if it is too far away for one excerpt.
    fn far(&self, problem: &Problem) -> Option<usize> {
        let (other, _) = problem.other.as_ref()?;
        let lines = (self.place(problem.span.start).0, self.place(other.start).0);
        (lines.0.abs_diff(lines.1) > NEAR).then_some(lines.1)
    }

    /// In JSON.
    pub fn to_json(&self) -> Vec<ProblemJson> {
        let one = |p: &Problem| {
            let (line, column) = self.place(p.span.start);
            ProblemJson {
                severity: if p.fatal { "error" } else { "warning" },
                file: self.file.clone(),
                line,
                column,
                message: p.message.clone(),
                label: p.label.clone(),
                remedy: p.remedy.clone(),
            }
        };
        self.problems.iter().map(one).collect()
    }

    /// The problems, those of several tables that are equal as one: at the first place, with the names of all tables and
    /// the lines of the others.
    fn merged(&self) -> Vec<Problem> {
        let mut groups: Vec<Vec<&Problem>> = Vec::new();
        for problem in &self.problems {
            match groups.iter_mut().find(|group| group.iter().all(|p| p.is_like(problem))) {
                Some(group) => group.push(problem),
                None => groups.push(vec![problem]),
            }
        }
        groups.into_iter().filter_map(|group| self.one_of(&group)).collect()
    }

    /// Equal problems as one.
    fn one_of(&self, group: &[&Problem]) -> Option<Problem> {
        let (first, rest) = group.split_first()?;
        let mut one = (*first).clone();
        if let Some(table) = first.about.as_ref().filter(|_| !rest.is_empty()) {
            let tables: Vec<&str> = group.iter().filter_map(|p| p.about.as_deref()).collect();
            one.message = first.message.replacen(table.as_str(), &together(&tables), 1);
            let mut lines: Vec<usize> = group.iter().map(|p| self.place(p.span.start).0).collect();
            lines.dedup();
            let others: Vec<String> = lines.iter().skip(1).map(ToString::to_string).collect();
            if !others.is_empty() {
                one.label = format!("{} (also in lines {})", one.label, others.join(", "));
            }
        }
        Some(one)
    }

    /// As text for a terminal: each problem with the lines it refers to.
    pub fn render(&self, color: bool) -> String {
        let theme =
            if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        let source = NamedSource::new(&self.file, self.text.clone()).with_language("toml");
        let mut out = String::new();
        for problem in &self.merged() {
            let shown = Shown { problem, source: &source, far: self.far(problem) };
            if handler.render_report(&mut out, &shown).is_err() {
                out.push_str(&problem.message);
            }
            out.push('\n');
        }
        out
    }
}

impl Problem {
    /// Whether it differs from another one only in its table and, if it is a warning, its position.
    fn is_like(&self, other: &Problem) -> bool {
        let (Some(table), Some(its)) = (&self.about, &other.about) else { return false };
        let without = |problem: &Problem, table: &str| problem.message.replacen(table, "", 1);
        without(self, table) == without(other, its)
            && (self.fatal, &self.label, &self.remedy) == (other.fatal, &other.label, &other.remedy)
            && (!self.fatal || self.span == other.span)
            && self.other.is_none()
            && other.other.is_none()
    }
}

/// Names of several tables, with what they have in common once: `channels "a", "b" of peer "act"`.
fn together(tables: &[&str]) -> String {
    let split: Vec<Vec<&str>> = tables.iter().map(|table| table.split(' ').collect()).collect();
    let shortest = split.iter().map(Vec::len).min().unwrap_or(0);
    let same = |at: &dyn Fn(&[&str]) -> Option<String>| {
        let mut words = split.iter().map(|words| at(words));
        let first = words.next().flatten();
        first.is_some() && words.all(|word| word == first)
    };
    let word = |words: &[&str], at: usize| words.get(at).map(|word| (*word).to_owned());
    let ahead = (0..shortest).take_while(|n| same(&|words| word(words, *n))).count();
    let behind = (0..shortest.saturating_sub(ahead))
        .take_while(|n| same(&|words| word(words, words.len() - 1 - n)))
        .count();
    let part =
        |words: &[&str]| words.get(ahead..words.len() - behind).unwrap_or_default().join(" ");
    let parts: Vec<String> = split.iter().map(|words| part(words)).collect();
    let common = split.first().map(Vec::as_slice).unwrap_or_default();
    let mut all: Vec<String> = common.iter().take(ahead).map(|word| (*word).to_owned()).collect();
    if let Some(last) = all.last_mut().filter(|last| ["channel", "peer"].contains(&last.as_str())) {
        last.push('s');
    }
    all.push(parts.join(", "));
    all.extend(common.iter().skip(common.len() - behind).map(|word| (*word).to_owned()));
    all.join(" ")
}

/// A problem with its source text, for miette.
struct Shown<'a> {
    problem: &'a Problem,
    source: &'a NamedSource<String>,
    far: Option<usize>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.problem, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(if self.problem.fatal { Severity::Error } else { Severity::Warning })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.problem.remedy))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = match (&self.problem.other, self.far) {
            (Some((_, other)), Some(line)) => {
                format!("{} ({other}: line {line})", self.problem.label)
            }
            _ => self.problem.label.clone(),
        };
        let first = LabeledSpan::new_primary_with_span(Some(label), self.problem.span.clone());
        let near = self.problem.other.iter().filter(|_| self.far.is_none());
        let other =
            near.map(|(span, label)| LabeledSpan::new_with_span(Some(label.clone()), span.clone()));
        Some(Box::new(std::iter::once(first).chain(other)))
    }
}
