//! `cargo xtask tidy`: what a reader would stumble over, found by a machine.

use std::fmt;

use crate::Outcome;
use crate::checks::circles::circles;
use crate::checks::conformance;
use crate::checks::rooms::too_large;
use crate::checks::source::{functions, is_word, line_of, mask, mask_tests, test_files, words};
use crate::checks::wording::wording;
use crate::workspace::{PURE, TextFile, Workspace, crate_of};

/// Longest file without a warning, and longest at all, in lines.
const LONG_FILE: usize = 800;
const MAX_FILE: usize = 1500;
/// Longest function of the pure tier without a warning, in lines.
const LONG_FUNCTION: usize = 100;

/// Files that may use `unsafe`, each with the reason.
const UNSAFE: &[(&str, &str)] = &[
    (
        "lab/testbed/src/net/batch.rs",
        "recvmmsg and sendmmsg of many frames, offloads of an interface",
    ),
    ("lab/testbed/src/net/tun.rs", "the ioctl that makes a TUN device"),
    ("crates/dscp/src/socket/option.rs", "getsockopt and setsockopt of TCP_SAVED_SYN and others"),
    ("crates/scheduler/tests/memory.rs", "an allocator that counts what a queued message takes"),
];

/// Marks of unfinished work. Spelled in halves, so that this file passes its own check.
const UNFINISHED_WORDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNFINISHED_MACROS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// Directories that exist on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/", "work"), concat!("/", "root"), concat!("/tmp", "/t-")];
/// How a tracked file would tie the build to one machine's package registry.
const REGISTRY_MARKS: &[&str] =
    &[concat!("replace", "-with"), concat!("sparse", "+http"), concat!("[source", ".")];
/// The only place packages come from, as Cargo.lock writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Looks for overlong files and functions, unfinished work, machine paths, `unsafe` in a file that is not listed,
/// and elements of service in docs/conformance whose test is gone.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let files = workspace.files()?;
        let tests = test_files(&files);
        let mut complaints = stale_exemptions(&files, UNSAFE);
        for file in &files {
            complaints.extend(length(file));
            complaints.extend(unfinished(file));
            complaints.extend(machine(file));
            complaints.extend(unsafety(file, UNSAFE));
            complaints.extend(words_to_avoid(file));
            if !tests.contains(&file.path) {
                complaints.extend(long_functions(file));
            }
        }
        complaints.extend(
            too_large(&files, |path| tests.contains(path)).into_iter().map(|room| Complaint {
                path: room.folder,
                line: 0,
                text: room.text,
                fails: true,
            }),
        );
        complaints.extend(circles(&files, |path| tests.contains(path)).into_iter().map(|circle| {
            Complaint { path: circle.folder, line: 0, text: circle.text, fails: true }
        }));
        complaints.extend(conformance::faults(&files).into_iter().map(|fault| Complaint {
            path: fault.path,
            line: 0,
            text: fault.text,
            fails: true,
        }));
        for complaint in &complaints {
            println!("{complaint}");
        }
        let errors = complaints.iter().filter(|c| c.fails).count();
        let warnings = complaints.len() - errors;
        println!("{} files read: {errors} errors, {warnings} warnings", files.len());
        Ok(Outcome::from_passed(errors == 0))
    }
}

/// One thing found.
#[derive(Debug, PartialEq, Eq)]
struct Complaint {
    path: String,
    line: usize,
    text: String,
    fails: bool,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.fails { "error" } else { "warning" };
        write!(f, "{level}: {}:{}: {}", self.path, self.line, self.text)
    }
}

fn error(file: &TextFile, line: usize, text: String) -> Complaint {
    Complaint { path: file.path.clone(), line, text, fails: true }
}

fn warning(file: &TextFile, line: usize, text: String) -> Complaint {
    Complaint { path: file.path.clone(), line, text, fails: false }
}

/// Whether people write and read the file, unlike snapshots, vectors and lock files.
fn is_written(file: &TextFile) -> bool {
    let (_, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    [".rs", ".md", ".toml", ".sh", ".conf"].iter().any(|end| name.ends_with(end))
        || !name.contains('.')
        || file.path.starts_with(".ci/")
}

fn length(file: &TextFile) -> Option<Complaint> {
    let lines = file.text.lines().count();
    let text = format!("{lines} lines: divide it ({LONG_FILE} are long, {MAX_FILE} the most)");
    match lines {
        _ if !is_written(file) => None,
        LONG_FILE.. if lines > MAX_FILE => Some(error(file, lines, text)),
        LONG_FILE.. if lines > LONG_FILE => Some(warning(file, lines, text)),
        _ => None,
    }
}

fn long_functions(file: &TextFile) -> Vec<Complaint> {
    if !file.is_rust() || !crate_of(&file.path).is_some_and(|name| PURE.contains(&name)) {
        return Vec::new();
    }
    let code = mask_tests(&mask(&file.text));
    functions(&code)
        .into_iter()
        .filter(|function| function.lines > LONG_FUNCTION)
        .map(|f| warning(file, f.line, format!("fn {} has {} lines: divide it", f.name, f.lines)))
        .collect()
}

fn unfinished(file: &TextFile) -> Vec<Complaint> {
    if !is_written(file) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for word in UNFINISHED_WORDS {
        for at in words(&file.text, word) {
            found.push(error(
                file,
                line_of(&file.text, at),
                format!("{word}: do it, or state why not"),
            ));
        }
    }
    if file.is_rust() {
        let code = mask(&file.text);
        for word in UNFINISHED_MACROS {
            for at in words(&code, word) {
                found.push(error(file, line_of(&code, at), format!("{word} left behind")));
            }
        }
    }
    found
}

/// Words that docs/lexicon.md replaces.
fn words_to_avoid(file: &TextFile) -> Vec<Complaint> {
    wording(file).into_iter().map(|found| error(file, found.line, found.text)).collect()
}

/// What ties the project to the machine it was written on.
fn machine(file: &TextFile) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS {
            if line.match_indices(path).any(|(at, _)| is_absolute(line, at, path)) {
                found.push(error(file, number + 1, format!("a path of one machine: {path}")));
            }
        }
        let foreign = match file.path.as_str() {
            "Cargo.lock" => line.starts_with("source = ") && !line.contains(CRATES_IO),
            path if path.ends_with(".toml") => REGISTRY_MARKS.iter().any(|m| line.contains(m)),
            _ => false,
        };
        if foreign {
            found.push(error(file, number + 1, "packages come from crates.io only".to_owned()));
        }
    }
    found
}

/// Whether the path at this offset begins there and names the whole directory.
fn is_absolute(line: &str, at: usize, path: &str) -> bool {
    let (before, from) = line.split_at(at);
    let inside = |c: char| is_word(c) || matches!(c, '/' | '.' | '-' | '*' | '}' | '>' | ']' | '$');
    let begins = !before.ends_with(inside);
    let after = from.strip_prefix(path).unwrap_or(from);
    begins && (path.ends_with('-') || !after.starts_with(|c| is_word(c) || c == '-'))
}

fn unsafety(file: &TextFile, allowed: &[(&str, &str)]) -> Vec<Complaint> {
    if !file.is_rust() || allowed.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let code = mask(&file.text);
    let text = "unsafe outside the files listed for it in xtask/src/checks/tidy.rs";
    words(&code, "unsafe").map(|at| error(file, line_of(&code, at), text.to_owned())).collect()
}

/// Exemptions that nothing needs any more.
fn stale_exemptions(files: &[TextFile], allowed: &[(&str, &str)]) -> Vec<Complaint> {
    let uses = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.is_some_and(|file| words(&mask(&file.text), "unsafe").next().is_some())
    };
    let stale = allowed.iter().filter(|(path, _)| !uses(path));
    stale
        .map(|(path, _)| Complaint {
            path: (*path).to_owned(),
            line: 1,
            text: "is allowed unsafe and has none: take it off the list".to_owned(),
            fails: true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn files_are_measured_and_snapshots_are_not() {
        let of =
            |path: &str, lines: usize| length(&file(path, &"x\n".repeat(lines))).map(|c| c.fails);
        assert_eq!(of("a.rs", 800), None);
        assert_eq!(of("a.rs", 801), Some(false));
        assert_eq!(of("a.rs", 1500), Some(false));
        assert_eq!(of("a.rs", 1501), Some(true));
        assert_eq!(of("a/snapshots/table.snap", 5000), None);
        assert_eq!(of("Cargo.lock", 5000), None);
    }

    #[test]
    fn only_long_functions_of_the_pure_tier_are_named() {
        let body = "    g();\n".repeat(98);
        let text = format!("fn short() {{\n{body}}}\nfn long() {{\n{body}    g();\n}}\n");
        assert_eq!(long_functions(&file("crates/mta/src/lib.rs", &text)), []);
        let found = long_functions(&file("crates/osi/src/lib.rs", &text));
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("fn long has 101 lines"));
    }

    #[test]
    fn unfinished_work_is_found_in_comments_and_code() {
        let text = format!(
            "// {}: later\nfn f() {{ {}(x); \"{}\" }}\n",
            UNFINISHED_WORDS[0], "dbg!", "todo!"
        );
        let lines: Vec<_> = unfinished(&file("a.rs", &text)).iter().map(|c| c.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn machine_paths_are_whole_directories() {
        let hit = |text: &str| !machine(&file("README.md", text)).is_empty();
        for path in MACHINE_PATHS {
            assert!(hit(&format!("see `{path}/x`")) || path.ends_with('-'));
        }
        assert!(hit(&format!("cd {}", MACHINE_PATHS[0])));
        assert!(hit(&format!("{}x/debug", MACHINE_PATHS[2])));
        assert!(!hit("frame/work, network/root, /workspace, /rootless, https://x.org/work"));
    }

    #[test]
    fn packages_from_elsewhere_are_found() {
        let lock = |source: &str| machine(&file("Cargo.lock", &format!("source = \"{source}\"\n")));
        assert_eq!(lock(CRATES_IO), []);
        assert_eq!(lock("git+https://example.org/x").len(), 1);
        let config = format!("{} = \"mirror\"\n", REGISTRY_MARKS[0]);
        assert_eq!(machine(&file(".cargo/config.toml", &config)).len(), 1);
    }

    #[test]
    fn unsafe_stands_only_where_it_is_listed_and_the_list_is_needed() {
        let code = file("crates/mta/src/sock.rs", "// unsafe\nfn f() { unsafe { g() } }\n");
        let list = [("crates/mta/src/sock.rs", "setsockopt")];
        assert_eq!(unsafety(&code, &[]).len(), 1);
        assert_eq!(unsafety(&code, &list), []);
        assert_eq!(stale_exemptions(&[code], &list), []);
        assert_eq!(stale_exemptions(&[file(list[0].0, "// unsafe\n")], &list).len(), 1);
    }
}
