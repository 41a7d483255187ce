//! Case files: annotated octets to send or to expect.
//!
//! A file is text. `#` begins a comment. Two hexadecimal digits are an octet, `??` is any octet and
//! `..` any number of them, in expectations only. `{name:2}` takes so many octets and gives them a
//! name, `{name}` stands for the octets of that name.
//!
//! A file of a conversation (`tests/foreign`) belongs to one side of it. Behind a line `ours` stands what is expected of us
//! in that place, where our form is another.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What has a name: times and references, which differ from run to run.
pub(crate) type Names = BTreeMap<String, Vec<u8>>;

/// One item of a case file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Octet(u8),
    AnyOctet,
    AnyOctets,
    Take(String, usize),
    Name(String),
}

/// The side that sends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Send,
    Expect,
}

/// One case file.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) path: PathBuf,
    pub(crate) direction: Direction,
    /// Each item with its line, counted from 0.
    items: Vec<(Item, usize)>,
    lines: Vec<String>,
}

/// The steps of a case, in order.
pub(crate) fn load(case: &str) -> Vec<Step> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(case);
    let entries =
        std::fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    paths.into_iter().map(Step::load).collect()
}

/// A side of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Initiator,
    Responder,
}

/// The steps of a conversation of `tests/foreign`, in order, with the peer as this side.
pub(crate) fn conversation(name: &str, peer: Side) -> Vec<Step> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign").join(name);
    let entries =
        std::fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    paths.into_iter().map(|path| Step::of_conversation(path, peer)).collect()
}

impl Step {
    fn of_conversation(path: PathBuf, peer: Side) -> Step {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let side = match stem.split_once('-').map(|(_, side)| side) {
            Some("initiator") => Side::Initiator,
            Some("responder") => Side::Responder,
            _ => panic!("{}: neither initiator nor responder", path.display()),
        };
        let direction = if side == peer { Direction::Send } else { Direction::Expect };
        let text = std::fs::read_to_string(&path).unwrap();
        // Lines keep their numbers: what is left out becomes empty.
        let mut in_ours = false;
        let has_ours = text.lines().any(|line| line == "ours");
        let lines = text.lines().map(|line| {
            in_ours |= line == "ours";
            let counts = has_ours && direction == Direction::Expect;
            if line == "ours" || counts != in_ours { "" } else { line }
        });
        let chosen = lines.collect::<Vec<_>>().join("\n");
        Step::parse_as(path, direction, &chosen)
    }

    fn load(path: PathBuf) -> Step {
        let text = std::fs::read_to_string(&path).unwrap();
        Step::parse(path, &text)
    }

    fn parse(path: PathBuf, text: &str) -> Step {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let direction = match stem.split_once('-').map(|(_, kind)| kind) {
            Some("send") => Direction::Send,
            Some("expect") => Direction::Expect,
            _ => panic!("{}: neither send nor expect", path.display()),
        };
        Step::parse_as(path, direction, text)
    }

    fn parse_as(path: PathBuf, direction: Direction, text: &str) -> Step {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut items = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split('#').next().unwrap();
            for word in code.split_whitespace() {
                let item = Item::parse(word)
                    .unwrap_or_else(|| panic!("{}:{}: {word}", path.display(), number + 1));
                assert!(
                    direction == Direction::Expect
                        || matches!(item, Item::Octet(_) | Item::Name(_)),
                    "{}:{}: {word} cannot be sent",
                    path.display(),
                    number + 1
                );
                items.push((item, number));
            }
        }
        Step { path, direction, items, lines }
    }

    /// What is sent.
    pub(crate) fn octets(&self, names: &Names) -> Vec<u8> {
        let mut octets = Vec::new();
        for (item, line) in &self.items {
            match item {
                Item::Octet(octet) => octets.push(*octet),
                Item::Name(name) => octets.extend(self.named(names, name, *line)),
                _ => unreachable!("refused when the file was read"),
            }
        }
        octets
    }

    fn named<'a>(&self, names: &'a Names, name: &str, line: usize) -> &'a [u8] {
        names.get(name).unwrap_or_else(|| {
            panic!("{}:{}: nothing is named {name} yet", self.path.display(), line + 1)
        })
    }

    /// Compares; takes names from the octets where they are as expected.
    pub(crate) fn compare(&self, octets: &[u8], names: &mut Names) -> Result<(), String> {
        let pattern = self.pattern(names);
        let (mut at, mut item) = (0, 0);
        // Where the last `..` stands and how far it reached: the place to try again from.
        let mut gap: Option<(usize, usize)> = None;
        let mut furthest = (0, 0);
        loop {
            if (at, item) > furthest {
                furthest = (at, item);
            }
            match pattern.get(item) {
                None if at == octets.len() => break,
                Some((Cell::Gap, _)) => {
                    gap = Some((item, at));
                    item += 1;
                    continue;
                }
                Some((cell, _)) if octets.get(at).is_some_and(|o| cell.takes(*o)) => {
                    at += 1;
                    item += 1;
                    continue;
                }
                _ => {}
            }
            match gap {
                Some((from, reached)) if reached < octets.len() => {
                    gap = Some((from, reached + 1));
                    (at, item) = (reached + 1, from + 1);
                }
                _ => return Err(self.difference(octets, &pattern, furthest)),
            }
        }
        self.take_names(octets, names);
        Ok(())
    }

    /// The expectation octet by octet.
    fn pattern(&self, names: &Names) -> Vec<(Cell, usize)> {
        let mut cells = Vec::new();
        for (item, line) in &self.items {
            match item {
                Item::Octet(octet) => cells.push((Cell::Octet(*octet), *line)),
                Item::AnyOctet => cells.push((Cell::Any, *line)),
                Item::AnyOctets => cells.push((Cell::Gap, *line)),
                Item::Take(_, count) => cells.extend((0..*count).map(|_| (Cell::Any, *line))),
                Item::Name(name) => {
                    let octets = self.named(names, name, *line);
                    cells.extend(octets.iter().map(|octet| (Cell::Octet(*octet), *line)));
                }
            }
        }
        cells
    }

    /// Names are taken only before the first `..`, where their place is certain.
    fn take_names(&self, octets: &[u8], names: &mut Names) {
        let mut at = 0;
        for (item, _) in &self.items {
            match item {
                Item::AnyOctets => return,
                Item::Octet(_) | Item::AnyOctet => at += 1,
                Item::Name(name) => at += names[name].len(),
                Item::Take(name, count) => {
                    names.insert(name.clone(), octets[at..at + count].to_vec());
                    at += count;
                }
            }
        }
    }

    fn difference(&self, octets: &[u8], pattern: &[(Cell, usize)], at: (usize, usize)) -> String {
        let (offset, item) = at;
        let mut text = format!("{}: ", self.path.display());
        match pattern.get(item) {
            Some((cell, line)) => {
                let _ = writeln!(
                    text,
                    "line {}: at octet {offset} {cell} is expected\n  {}",
                    line + 1,
                    self.lines[*line].trim_end()
                );
            }
            None => {
                let _ = writeln!(text, "at octet {offset} the end is expected");
            }
        }
        let _ = writeln!(text, "it is, with >< around that octet:\n{}", dump(octets, offset));
        text
    }
}

impl Item {
    fn parse(word: &str) -> Option<Item> {
        match word {
            "??" => return Some(Item::AnyOctet),
            ".." => return Some(Item::AnyOctets),
            _ => {}
        }
        if let Some(name) = word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            return Some(match name.split_once(':') {
                Some((name, count)) => Item::Take(name.to_owned(), count.parse().ok()?),
                None => Item::Name(name.to_owned()),
            });
        }
        if word.len() != 2 {
            return None;
        }
        u8::from_str_radix(word, 16).ok().map(Item::Octet)
    }
}

/// One octet of an expectation.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Octet(u8),
    Any,
    Gap,
}

impl Cell {
    fn takes(self, octet: u8) -> bool {
        match self {
            Cell::Octet(expected) => expected == octet,
            Cell::Any => true,
            Cell::Gap => false,
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Octet(octet) => write!(f, "{octet:02X}"),
            Cell::Any => f.write_str("an octet"),
            Cell::Gap => f.write_str("anything"),
        }
    }
}

/// Octets in hexadecimal, one of them marked.
pub(crate) fn dump(octets: &[u8], mark: usize) -> String {
    let mut text = String::new();
    for (row, chunk) in octets.chunks(16).enumerate() {
        let _ = write!(text, "  {:04X} ", row * 16);
        for (column, octet) in chunk.iter().enumerate() {
            if row * 16 + column == mark {
                let _ = write!(text, ">{octet:02X}<");
            } else {
                let _ = write!(text, " {octet:02X}");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(text: &str) -> Step {
        Step::parse(PathBuf::from("01-expect.hex"), text)
    }

    #[test]
    fn a_difference_is_shown_with_its_line_and_octet() {
        let step = expectation("03 00 # TPKT\n.. {ref:2}\n AA ?? # end\n");
        let mut names = Names::new();
        let error = step.compare(&[3, 0, 9, 9, 1, 2, 0xab, 7], &mut names).unwrap_err();
        assert!(error.contains("AA is expected") && error.contains("# end"), "{error}");
        assert!(step.compare(&[3, 0, 9, 9, 1, 2, 0xaa, 7], &mut names).is_ok());
        assert!(step.compare(&[3, 0, 0xaa, 0xaa, 0xaa, 1, 2, 0xaa, 7], &mut names).is_ok());
        assert!(step.compare(&[3, 0, 1, 2, 0xaa], &mut names).is_err(), "one octet is missing");
    }

    #[test]
    fn names_are_taken_and_given_back() {
        let mut names = Names::new();
        expectation("06 {ref:2} 00 ..").compare(&[6, 1, 2, 0, 9], &mut names).unwrap();
        let send = Step::parse(PathBuf::from("02-send.hex"), "D0 {ref} # back");
        assert_eq!(send.octets(&names), [0xd0, 1, 2]);
        assert!(expectation("{ref}").compare(&[1, 2], &mut names).is_ok());
        assert!(expectation("{ref}").compare(&[1, 3], &mut names).is_err());
    }
}
