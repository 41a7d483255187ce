//! `cargo xtask purity`: the pure tier's source names no clock, socket, file, thread or dice.
//!
//! The dependency edges cannot see the standard library; this reads the source. Tests are exempt.

use crate::Outcome;
use crate::checks::source::{is_word, line_of, mask, mask_tests, test_files, words};
use crate::workspace::{PURE, TextFile, Workspace, crate_of};

/// Paths that the pure tier does not name, with what stands in for them.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time::Instant", "time is an argument: base::time::Instant"),
    ("std::time::SystemTime", "time is an argument: base::time::Utc"),
    ("std::net::TcpListener", "octets are handed in and out"),
    ("std::net::TcpStream", "octets are handed in and out"),
    ("std::net::UdpSocket", "octets are handed in and out"),
    ("std::os", "system calls belong to the edge"),
    ("std::fs", "the edge owns the disk: ask for a commit"),
    ("std::thread", "a machine runs on its caller's thread"),
    ("std::process", "the edge owns the process"),
    ("std::env", "configuration is an argument"),
    ("std::hash::RandomState", "it is seeded by chance: use BTreeMap"),
    ("std::collections::hash_map::RandomState", "it is seeded by chance: use BTreeMap"),
    ("rand", "seeds are arguments: base::rng"),
    ("getrandom", "seeds are arguments: base::rng"),
];

/// Words that the pure tier does not use.
const FORBIDDEN_WORDS: &[(&str, &str)] = &[
    ("async", "a machine never waits: handle, poll, deadline"),
    ("await", "a machine never waits: handle, poll, deadline"),
];

/// Files of pure crates that belong to the edge: behind a feature that only edge crates turn on, as
/// `cargo xtask edges` proves by resolving each pure crate without it.
const OF_THE_EDGE: &[&str] = &[
    "crates/dscp/src/socket.rs",
    "crates/dscp/src/socket/option.rs",
    "crates/dscp/src/socket/taken.rs",
];

/// Looks for clocks, sockets, files, threads and randomness in the pure tier's source.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let files = workspace.files()?;
        let tests = test_files(&files);
        let pure = files.iter().filter(|file| {
            file.is_rust()
                && crate_of(&file.path).is_some_and(|name| PURE.contains(&name))
                && !tests.contains(&file.path)
                && !OF_THE_EDGE.contains(&file.path.as_str())
        });
        let mut read = 0usize;
        let mut passed = true;
        for file in pure {
            read += 1;
            for complaint in complaints(file) {
                passed = false;
                println!("{complaint}");
            }
        }
        println!("{read} files of the pure tier read");
        Ok(Outcome::from_passed(passed))
    }
}

fn complaints(file: &TextFile) -> Vec<String> {
    let code = mask_tests(&mask(&file.text));
    let mut found = Vec::new();
    for root in ["std", "rand", "getrandom"] {
        for at in words(&code, root) {
            let (before, from) = code.split_at(at);
            // `a::std` or `.rand` is not the crate; neither is a plain name, unless imported.
            let qualified = before.ends_with("::")
                && !before.trim_end_matches("::").is_empty()
                && before.trim_end_matches("::").ends_with(is_word);
            if qualified || before.ends_with('.') || !is_path(before, from, root) {
                continue;
            }
            for path in use_tree(from) {
                if let Some((name, instead)) = FORBIDDEN.iter().find(|(f, _)| gives(&path, f)) {
                    let line = line_of(&code, at);
                    found.push(format!("{}:{line}: {path} gives {name}: {instead}", file.path));
                }
            }
        }
    }
    for (word, instead) in FORBIDDEN_WORDS {
        for at in words(&code, word) {
            found.push(format!("{}:{}: {word}: {instead}", file.path, line_of(&code, at)));
        }
    }
    found
}

/// Whether the word `root` between the two texts is a crate's name.
fn is_path(before: &str, from: &str, root: &str) -> bool {
    let imported =
        before.trim_end().ends_with("use") || before.trim_end().ends_with("extern crate");
    imported || from.strip_prefix(root).is_some_and(|rest| rest.starts_with("::"))
}

/// Whether naming `path` makes `forbidden` reachable: it is that path, or one below or above it
/// (`use std::time;` gives `time::Instant`).
fn gives(path: &str, forbidden: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|r| r.is_empty() || r.starts_with("::"))
    };
    within(path, forbidden) || within(forbidden, path)
}

/// Every path of the use tree or plain path at the start of the text: `a::{b, c::{d, self}}` is
/// `a::b`, `a::c::d` and `a::c`. A glob stands for its module.
fn use_tree(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    expand(text, "", &mut paths);
    paths
}

/// Adds the paths at the start of `text` under `prefix`; returns what follows them.
fn expand<'a>(text: &'a str, prefix: &str, paths: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => {}
            }
            let before = rest.len();
            rest = expand(rest, prefix, paths);
            if rest.len() == before {
                // Not a use tree after all (`<std::fs::File>{...}` in a macro).
                return rest;
            }
        }
    }
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = match name {
        "" | "self" => prefix.to_owned(),
        _ if prefix.is_empty() => name.to_owned(),
        _ => format!("{prefix}::{name}"),
    };
    match rest.strip_prefix("::") {
        Some(inner) => expand(inner, &path, paths),
        None => {
            paths.push(path);
            let rest = rest.strip_prefix('*').unwrap_or(rest);
            let renamed = rest.trim_start().strip_prefix("as ").map(str::trim_start);
            renamed.map_or(rest, |r| r.trim_start_matches(is_word))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let file = TextFile { path: "f".into(), text: text.into() };
        complaints(&file)
            .iter()
            .map(|c| c.rsplit_once(" gives ").map_or(c.as_str(), |p| p.0).into())
            .collect()
    }

    #[test]
    fn every_way_to_name_a_clock_or_a_file_is_seen() {
        assert_eq!(lines("let t = std::time::Instant::now();"), ["f:1: std::time::Instant::now"]);
        assert_eq!(lines("let t = ::std::time::SystemTime::now();").len(), 1);
        assert_eq!(lines("use std::{fmt, time::{Duration, Instant as I}, fs};").len(), 2);
        assert_eq!(lines("\nuse std::time;"), ["f:2: std::time"]);
        assert_eq!(lines("use std::net::*;"), ["f:1: std::net"]);
        assert_eq!(lines("use rand;\nlet x = rand::random();").len(), 2);
        assert_eq!(lines("async fn f() { g().await }").len(), 2);
    }

    #[test]
    fn what_is_pure_passes() {
        let text = "\
use std::{fmt::{self, Write as _}, net::{IpAddr, SocketAddr}, time::Duration};
use base::time::Instant; // not std::time::Instant
let rand = \"std::fs\"; let x = crate::std::fs; let y = self.rand; strand::fs();
#[cfg(test)]
mod tests { use std::fs; }
";
        assert_eq!(lines(text), Vec::<String>::new());
    }
}
