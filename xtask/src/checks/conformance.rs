//! `cargo xtask conformance`: docs/conformance.md from the tables of docs/conformance, and what is wrong with them.
//!
//! A table is a file of elements of service. Each has a state, and a test that is really there where it is done:
//! `cargo xtask tidy` checks both, and that the page is the one made from them.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use xtask::marks::replace;

use crate::Outcome;
use crate::checks::source::{functions, mask};
use crate::workspace::{TextFile, Workspace};

/// The page, and the folder of its tables.
const PAGE: &str = "docs/conformance.md";
const FOLDER: &str = "docs/conformance/";
/// The mark of the generated part on the page.
const MARK: &str = "elements of service";

/// Writes the tables of docs/conformance into docs/conformance.md.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// What is wrong with a table or with the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The file.
    pub(crate) path: String,
    /// The finding.
    pub(crate) text: String,
}

/// One file of docs/conformance.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    title: String,
    /// Stands above the table.
    about: String,
    element: Vec<Element>,
}

/// What the programs do with an element of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// All of it.
    Done,
    /// Not what `missing` names.
    Partly,
    /// Who asks for it gets the error in `refused_with`.
    Refused,
    /// For the reason in `why`.
    NotDone,
}

/// An element of service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Element {
    name: String,
    clause: String,
    state: State,
    /// `path/of/a/file.rs::name_of_the_test`.
    #[serde(default)]
    tests: Vec<String>,
    missing: Option<String>,
    refused_with: Option<String>,
    why: Option<String>,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let files = workspace.files()?;
        let (chapters, faults) = chapters(&files);
        let page = files.iter().find(|f| f.path == PAGE).context("there is no page")?;
        let made = replace(&page.text, MARK, &tables(&chapters))?;
        fs::write(workspace.root().join(PAGE), made).with_context(|| format!("writing {PAGE}"))?;
        println!("wrote {PAGE}");
        for Fault { path, text } in &faults {
            println!("error: {path}: {text}");
        }
        Ok(Outcome::from_passed(faults.is_empty()))
    }
}

/// What is wrong with the tables of these files, and whether the page is another than theirs.
pub(crate) fn faults(files: &[TextFile]) -> Vec<Fault> {
    let (chapters, mut faults) = chapters(files);
    let fault = |text: String| Fault { path: PAGE.to_owned(), text };
    match files.iter().find(|file| file.path == PAGE) {
        None => faults.push(fault("the page is missing".to_owned())),
        Some(page) => match replace(&page.text, MARK, &tables(&chapters)) {
            Err(error) => faults.push(fault(error.to_string())),
            Ok(made) if made != page.text => {
                faults
                    .push(fault("not what its tables make: `cargo xtask conformance`".to_owned()));
            }
            Ok(_) => {}
        },
    }
    faults
}

/// The tables in the order of their files' names, and what is wrong with them.
fn chapters(files: &[TextFile]) -> (Vec<Chapter>, Vec<Fault>) {
    let (mut chapters, mut faults) = (Vec::new(), Vec::new());
    let is_table = |path: &str| path.starts_with(FOLDER) && path.ends_with(".toml");
    for file in files.iter().filter(|file| is_table(&file.path)) {
        let fault = |text: String| Fault { path: file.path.clone(), text };
        match toml::from_str::<Chapter>(&file.text) {
            Ok(chapter) => {
                let mut names = BTreeSet::new();
                for element in &chapter.element {
                    if !names.insert(element.name.as_str()) {
                        faults.push(fault(format!("{}: twice", element.name)));
                    }
                    let wrong = element.wrong(files);
                    faults
                        .extend(wrong.into_iter().map(|w| fault(format!("{}: {w}", element.name))));
                }
                chapters.push(chapter);
            }
            Err(error) => faults.push(fault(error.to_string())),
        }
    }
    if chapters.is_empty() && faults.is_empty() {
        faults.push(Fault { path: FOLDER.to_owned(), text: "no table".to_owned() });
    }
    (chapters, faults)
}

impl Element {
    /// What contradicts the state, and the tests that are not there.
    fn wrong(&self, files: &[TextFile]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut needs = |there: bool, due: bool, what: &str| match (there, due) {
            (false, true) => wrong.push(format!("this state needs `{what}`")),
            (true, false) => wrong.push(format!("`{what}` is of another state")),
            _ => {}
        };
        needs(self.missing.is_some(), self.state == State::Partly, "missing");
        needs(self.refused_with.is_some(), self.state == State::Refused, "refused_with");
        needs(self.why.is_some(), self.state == State::NotDone, "why");
        // A refusal may have a test; what is not done can have none.
        match self.state {
            State::Done | State::Partly => needs(!self.tests.is_empty(), true, "tests"),
            State::NotDone => needs(!self.tests.is_empty(), false, "tests"),
            State::Refused => {}
        }
        for test in &self.tests {
            if !is_there(test, files) {
                wrong.push(format!("there is no test {test}"));
            }
        }
        wrong
    }

    fn row(&self) -> String {
        let state = match self.state {
            State::Done => "done",
            State::Partly => "done in part",
            State::Refused => "refused",
            State::NotDone => "not done",
        };
        let tests = self.tests.iter().map(|test| {
            let name = test.rsplit_once("::").map_or(test.as_str(), |(_, name)| name);
            let path = test.rsplit_once("::").map_or("", |(path, _)| path);
            format!("[{name}](../{path})")
        });
        let prefixed = |word: &str, text: &Option<String>| {
            text.as_ref().map(|text| format!("{word}{}", text.trim()))
        };
        let words = [
            prefixed("missing: ", &self.missing),
            prefixed("", &self.refused_with),
            prefixed("", &self.why),
        ];
        let what: Vec<String> = words.into_iter().flatten().chain(tests).collect();
        format!("| {} | {} | {state} | {} |\n", self.name, self.clause, what.join("; "))
    }
}

/// Whether `path::name` is a function that is compiled as a test.
fn is_there(test: &str, files: &[TextFile]) -> bool {
    let Some((path, name)) = test.rsplit_once("::") else { return false };
    let Some(file) = files.iter().find(|file| file.path == path && file.is_rust()) else {
        return false;
    };
    let code = mask(&file.text);
    let lines: Vec<&str> = code.lines().collect();
    functions(&code).iter().filter(|function| function.name == name).any(|function| {
        // Upward over the attributes, which end where another item or a blank line is.
        let above = lines.iter().take(function.line.saturating_sub(1)).rev().map(|l| l.trim());
        let mut attributes =
            above.take_while(|line| !line.is_empty() && !line.ends_with(['}', '{', ';']));
        attributes.any(|line| line == "#[test]" || line.contains("::test"))
    })
}

/// The generated part of the page.
fn tables(chapters: &[Chapter]) -> String {
    let mut page = String::new();
    let all = || chapters.iter().flat_map(|chapter| &chapter.element);
    let count = |state| all().filter(|element| element.state == state).count();
    page += &format!(
        "{} elements: {} done, {} done in part, {} refused, {} not done.\n",
        all().count(),
        count(State::Done),
        count(State::Partly),
        count(State::Refused),
        count(State::NotDone),
    );
    for chapter in chapters {
        page += &format!("\n### {}\n\n{}\n\n", chapter.title, chapter.about.trim());
        page += "| Element | Clause | State | Test, refusal or reason |\n|---|---|---|---|\n";
        chapter.element.iter().for_each(|element| page += &element.row());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEMENT: &str =
        "title = \"T\"\nabout = \"A.\"\n[[element]]\nname = \"Probe\"\nclause = \"B.63\"\n";

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// The faults of one table with these further lines, beside a file with the test `works`.
    fn found(lines: &str) -> Vec<String> {
        let code = "/// Works.\n#[test]\nfn works() {}\n\n#[test]\n// fn dead() {}\nfn helped() {}\n\nfn helper() {}\n";
        let table = format!("{ELEMENT}{lines}");
        let mut files = vec![
            file("crates/a/tests/a.rs", code),
            file("docs/conformance/a.toml", &table),
            file(PAGE, "# P\n<!-- figures: elements of service -->\n<!-- end -->\n"),
        ];
        let (chapters, _) = chapters(&files);
        let page = files.pop().unwrap();
        let made = replace(&page.text, MARK, &tables(&chapters)).unwrap();
        files.push(file(PAGE, &made));
        faults(&files).into_iter().map(|fault| fault.text).collect()
    }

    #[test]
    fn a_done_element_has_a_test_that_is_there() {
        assert_eq!(found("state = \"done\"\ntests = [\"crates/a/tests/a.rs::works\"]\n"), [""; 0]);
        for gone in ["a.rs::dead", "a.rs::helper", "b.rs::works", "a.rs"] {
            let test = format!("crates/a/tests/{gone}");
            let faults = found(&format!("state = \"done\"\ntests = [\"{test}\"]\n"));
            assert_eq!(faults, [format!("Probe: there is no test {test}")]);
        }
        assert_eq!(found("state = \"done\"\n"), ["Probe: this state needs `tests`"]);
    }

    #[test]
    fn every_element_has_a_state_and_what_belongs_to_it() {
        assert!(found("")[0].contains("missing field `state`"), "{:?}", found(""));
        assert!(found("state = \"planned\"\n")[0].contains("planned"));
        assert_eq!(found("state = \"refused\"\n"), ["Probe: this state needs `refused_with`"]);
        assert_eq!(found("state = \"not-done\"\n"), ["Probe: this state needs `why`"]);
        let partly = "state = \"partly\"\ntests = [\"crates/a/tests/a.rs::works\"]\n";
        assert_eq!(found(partly), ["Probe: this state needs `missing`"]);
        let both = "state = \"not-done\"\nwhy = \"w\"\nrefused_with = \"r\"\n";
        assert_eq!(found(both), ["Probe: `refused_with` is of another state"]);
        let again = "state = \"refused\"\nrefused_with = \"r\"\n[[element]]\nname = \"Probe\"\n\
            clause = \"c\"\nstate = \"refused\"\nrefused_with = \"r\"\n";
        assert_eq!(found(again), ["Probe: twice"]);
    }

    #[test]
    fn another_page_than_the_tables_make_is_found() {
        let table = format!("{ELEMENT}state = \"refused\"\nrefused_with = \"error 3\"\n");
        let page = |inside: &str| {
            let page = format!("<!-- figures: {MARK} -->\n{inside}<!-- end -->\n");
            let files = [file("docs/conformance/a.toml", &table), file(PAGE, &page)];
            faults(&files).len()
        };
        let made = "\n1 elements: 0 done, 0 done in part, 1 refused, 0 not done.\n\n### T\n\nA.\n\n\
            | Element | Clause | State | Test, refusal or reason |\n|---|---|---|---|\n\
            | Probe | B.63 | refused | error 3 |\n\n";
        assert_eq!(page(made), 0);
        assert_eq!(page(""), 1);
        assert_eq!(page(&made.replace("error 3", "error 4")), 1);
        assert_eq!(faults(&[])[0].text, "no table");
    }
}
