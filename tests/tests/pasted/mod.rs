//! The command blocks of README and docs, pasted: each runs as it stands there, in a copy of the
//! checkout, in namespaces of its own.
//!
//! A line must end with exit code 0. [`LINES`] lists those that are run in another way, each with its
//! reason; an entry that fits no line any more fails the test, so no exemption outlives its line.

mod console;
mod normal;
mod page;
mod session;

use page::{Block, blocks, fenced, pages};
use session::Session;
use std::path::PathBuf;

/// How a line is run that does not simply end with exit code 0.
#[derive(Clone, Copy, Debug)]
enum How {
    /// It goes on until Ctrl-C: interrupted after a second.
    Interrupted,
    /// It goes on until Ctrl-C in a terminal of its own, while the next blocks are pasted.
    OwnTerminal,
    /// It reports a mismatch with the reader's own names: this exit code.
    Ends(u8),
    /// It takes long: only its options are read (`--help` is added).
    Read,
    /// It needs what this machine may lack.
    Not,
}

/// Lines by their beginning.
const LINES: &[(&str, &str, How)] = &[
    ("README.md", "cargo xtask", How::Read),
    ("CONTRIBUTING.md", "cargo xtask", How::Read),
    ("CONTRIBUTING.md", "git diff", How::Not), // shows the checkout's own changes
    ("docs/performance.md", "cargo xtask", How::Read),
    ("docs/hunt.md", "cargo xtask", How::Read),
    ("docs/capacity.md", "cargo xtask", How::Read),
    ("docs/fuzzing.md", "cargo xtask guided", How::Read),
    ("docs/fuzzing.md", "apt-get", How::Not), // changes the machine
    ("docs/recorder.md", "mta", How::Read),
    ("docs/cluster-trial.md", "cargo xtask", How::Read),
    ("docs/operating.md", "mta status --config naples.toml --watch  ", How::Interrupted),
    ("docs/xuxa.md", "xuxa --profile act receive --wait", How::Interrupted),
    // The shipped sites have no [events]: the burst reports that no transfer was observed.
    ("docs/xuxa.md", "xuxa burst $PLAN", How::Ends(3)),
    ("docs/xuxa.md", "xuxa --json burst $PLAN", How::Ends(3)),
    ("docs/lab.md", "lab up nato ", How::OwnTerminal),
    ("docs/lab.md", "lab run voice.toml --repeat", How::Read),
    ("docs/analyse.md", "tcpdump", How::Not), // is not installed everywhere
    ("docs/analyse.md", "lab analyse --live", How::Read),
    ("docs/analyse.md", "lab exec naples lab analyse --live", How::Interrupted),
    ("docs/studies.md", "lab run", How::Read),
    ("docs/studies.md", "python3 tests/score", How::Not), // writes into the checkout
];

/// What was done before a block is pasted, by the page and a line of the block.
const BEFORE: &[(&str, &str, &str)] = &[
    (
        "docs/lab.md",
        "lab exec naples ping",
        "for i in $(seq 150); do lab status >/dev/null 2>&1 && break; sleep 0.2; done",
    ),
    (
        "docs/analyse.md",
        "lab analyse wan.pcapng",
        "lab down; lab up config/lab/topologies/nato.toml --quiet & \
         for i in $(seq 150); do lab status >/dev/null 2>&1 && break; sleep 0.2; done; \
         lab capture naples-sar.wan wan.pcapng --for 2s & capture=$!; \
         lab exec naples ping -q -c 5 -i 0.2 10.10.65.10; wait $capture; \
         for copy in sender.pcapng router.pcap receiver.pcapng; do cp wan.pcapng $copy; done",
    ),
];

/// The session of pages that go on from one another; the later ones in the directory of the first.
const SESSIONS: &[&[&str]] = &[
    &["README.md"],
    &[
        "CONTRIBUTING.md",
        "docs/performance.md",
        "docs/fuzzing.md",
        "docs/hunt.md",
        "docs/capacity.md",
        "docs/pairs.md",
        "docs/cluster-trial.md",
    ],
    &["docs/operating.md", "docs/recorder.md"],
    &["docs/xuxa.md"],
    &["docs/lab.md", "docs/analyse.md"],
    &["docs/studies.md"],
];

fn checkout() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn how(page: &str, line: &str) -> Option<How> {
    let fits = |(of, start, _): &&(&str, &str, How)| *of == page && line.starts_with(start);
    LINES.iter().find(fits).map(|(_, _, how)| *how)
}

fn before(page: &str, block: &Block) -> Option<&'static str> {
    let fits = |(of, start, _): &&(&str, &str, &str)| {
        *of == page && block.lines.iter().any(|line| line.starts_with(start))
    };
    BEFORE.iter().find(fits).map(|(_, _, script)| *script)
}

/// Pastes the blocks of these pages, one after the other.
fn paste(pages: &[&str]) {
    let Some(mut session) = Session::new(&checkout(), pages[0]) else { return };
    for page in pages {
        let text = std::fs::read_to_string(checkout().join(page)).unwrap();
        if *page == "docs/xuxa.md" {
            session.two_sites();
        }
        if *page == "docs/lab.md" {
            for (name, of) in
                [("voice.toml", "[[experiment]]"), ("voice-first.toml", "[queueings.link]")]
            {
                if let Some(example) = fenced(&text, "toml").into_iter().find(|b| b.contains(of)) {
                    session.file(name, &example);
                }
            }
        }
        for block in blocks(&text) {
            if let Some(script) = before(page, &block) {
                session.quietly(script);
            }
            for line in &block.lines {
                // Ten seconds of load show no more than two.
                let line = line.replace("--for 10s", "--for 2s");
                session.line(page, &line, how(page, &line));
            }
        }
    }
    session.run();
}

#[test]
fn readme() {
    paste(SESSIONS[0]);
}

#[test]
fn contributing() {
    paste(SESSIONS[1]);
}

#[test]
fn operating() {
    paste(SESSIONS[2]);
}

#[test]
fn the_client() {
    paste(SESSIONS[3]);
}

#[test]
fn the_lab() {
    paste(SESSIONS[4]);
}

#[test]
fn studies() {
    paste(SESSIONS[5]);
}

/// Every page with a block is pasted, and every exemption is of a line that is there.
#[test]
fn none_is_left_out_and_no_exemption_is_stale() {
    let all = pages(&checkout());
    let pasted: Vec<&str> = SESSIONS.iter().flat_map(|pages| pages.iter().copied()).collect();
    for (page, text) in &all {
        let has = !blocks(text).is_empty();
        assert!(!has || pasted.contains(&page.as_str()), "{page} has blocks that nobody pastes");
    }
    let there = |page: &str, start: &str| {
        let of_page = all.iter().filter(|(name, _)| name == page);
        of_page
            .flat_map(|(_, text)| blocks(text))
            .any(|b| b.lines.iter().any(|l| l.starts_with(start)))
    };
    let exempt = LINES.iter().map(|(page, start, _)| (page, start));
    let prepared = BEFORE.iter().map(|(page, start, _)| (page, start));
    for (page, start) in exempt.chain(prepared) {
        assert!(there(page, start), "{page} has no line that begins with {start:?}");
    }
}
