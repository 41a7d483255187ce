//! `lab run`: a study with real MTAs, kept, continued, stopped, and refused if it is invalid.

use super::{SOON, namespace, programs};
use crate::e2e::print_line;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testbed::clock::Deadline;

/// A Routine with a Flash inside it over a slow line, and a load alone.
const STUDY: &str = r#"
title = "A study for a test"
network.topology = "pair"

[parameters.rate]
value = "8Mbit"
why = "slow enough for the one to be inside the other"
sets = ["network.links[bob.eth0].rate"]

[mail]
sites = { alice = "alice", bob = "bob" }
from = "alice"
to = "bob"
[[mail.channels]]
name = "routine"
precedences = ["deferred", "routine", "priority", "immediate"]
dscp = "CS0"
port = 5000
[[mail.channels]]
name = "flash"
precedences = ["flash", "override"]
dscp = "CS3"
port = 5003

[[experiment]]
name = "inside"
title = "A Flash inside a Routine"
shows = "It is delivered first."
[[experiment.run]]
name = "two"
limit = "2min"
messages = [
    { precedence = "routine", size = "2MB", paper = { seconds = 2.0 } },
    { precedence = "flash", size = "10kB", start = { after = "routine", delay = "100ms" } },
]
[[experiment.expect]]
what = "the Flash is faster"
value = "two/flash.seconds"
to = "two/routine.seconds"
at_most = 0.9

[[experiment]]
name = "load"
title = "A load that the line halves"
shows = "What is lost."
[[experiment.run]]
name = "udp"
limit = "1min"
loads = [{ name = "udp", from = "alice", to = "bob", rate = "16Mbit", dscp = "EF", time = "2s" }]
"#;

pub(super) fn lab(directory: &Path, arguments: &[&str]) -> Command {
    let programs = programs();
    let mut command = Command::new(&programs.lab);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.env("MTA_BIN", &programs.mta).env("XUXA_BIN", &programs.xuxa);
    command.env("LAB_BIN", &programs.lab);
    command
}

fn run(directory: &Path, more: &[&str]) -> Output {
    let arguments = ["run", "study.toml", "--out", "out", "--json", "-"];
    lab(directory, &[&arguments[..], more].concat()).output().unwrap()
}

pub(super) fn numbers(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

#[test]
fn a_study_is_measured_kept_and_not_made_twice() {
    if namespace("a_study").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("study.toml"), STUDY).unwrap();
    let output = run(directory.path(), &[]);
    let first = numbers(&output);
    assert_eq!(output.status.code(), Some(0), "{first:#}");
    let rows = first["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{first:#}");
    let [routine, flash, load] = [0, 1, 2].map(|n| &rows[n]);
    assert_eq!((&routine["precedence"], &routine["size"]), (&"routine".into(), &2_000_000.into()));
    assert_eq!((&flash["dscp_name"], &flash["environment"]), (&"CS3".into(), &"testbed".into()));
    assert_eq!(routine["paper_seconds"], 2.0);
    // 2 MB at 8 Mbit/s take 2 s at least, whatever else the machine does.
    assert!(routine["seconds"].as_f64().unwrap() > 2.0, "{routine}");
    assert_eq!(first["verdicts"][0]["holds"], true, "{first:#}");
    // The line lets half of it through; packets of this size have 38 octets more on it.
    let loss = load["loss_percent"].as_f64().unwrap();
    assert!((45.0..60.0).contains(&loss), "{load}");
    // What the queue did was looked at, by code point.
    let series = first["measured"][0]["series"].as_array().unwrap();
    let bob = series.iter().find(|series| series["port"] == "middle.bob").unwrap();
    let sent = |dscp: &str| -> u64 {
        let octets = bob["rows"][dscp]["octets"].as_array().unwrap();
        octets.iter().map(|octets| octets.as_u64().unwrap()).sum()
    };
    assert!(sent("0") > 2_000_000 && sent("24") > 10_000, "{bob}");
    // So was how much of the Routine was confirmed.
    let message = &first["measured"][0]["messages"][0];
    let progress = message["progress"].as_array().unwrap_or_else(|| panic!("{message}"));
    let octets: Vec<u64> = progress.iter().map(|step| step[1].as_u64().unwrap()).collect();
    assert!(octets.is_sorted() && octets.iter().any(|octets| *octets > 0), "{octets:?}");

    // Nothing is made again, unless it is asked for or something has changed.
    let again = numbers(&run(directory.path(), &[]));
    assert_eq!(again["measured"], first["measured"]);
    let changed = STUDY.replace("time = \"2s\"", "time = \"1s\"");
    std::fs::write(directory.path().join("study.toml"), changed).unwrap();
    let changed = numbers(&run(directory.path(), &[]));
    assert_eq!(changed["measured"][0], first["measured"][0]);
    assert_ne!(changed["measured"][1], first["measured"][1]);
}

/// Parts of the published study, in simulation: what its authors saw holds, and rows of its one setting
/// come near what is printed.
#[test]
fn the_isode_and_nato_study_holds_in_simulation() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["run", "isode-nato-2007", "--simulation", "--out", "out", "--json", "-"];
    let experiments = ["round1-single", "round2-baseline", "round2-overlap", "load-alone"];
    let all = [&arguments[..], &experiments].concat();
    let output = lab(directory.path(), &all).output().unwrap();
    let results = numbers(&output);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for verdict in results["verdicts"].as_array().unwrap() {
        assert_eq!(verdict["holds"], true, "{verdict}");
    }
    let ratio = |item: &str| -> f64 {
        let rows = results["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["item"] == item).unwrap();
        row["ratio"].as_f64().unwrap_or_else(|| panic!("{row}"))
    };
    // What the one window decides. All rows, and how many of them are near, are asked for by the
    // headline of the study's file, in `cargo xtask studies`.
    for item in [
        // Its channel is open when it is submitted.
        "round1-single/1kB/flash",
        "round1-single/100kB/flash",
        "round1-single/10MB/flash",
    ] {
        let ratio = ratio(item);
        assert!((0.85..=1.16).contains(&ratio), "{item}: {ratio}");
    }
    // Each message of a run has its own line over time.
    let measured = results["measured"].as_array().unwrap();
    let overlap = measured.iter().find(|run| run["id"] == "round2-overlap/overlap").unwrap();
    for message in overlap["messages"].as_array().unwrap() {
        assert!(message["progress"].as_array().is_some_and(|steps| steps.len() > 10), "{message}");
    }
    for file in ["report.html", "results.json"] {
        assert!(directory.path().join("out").join(file).metadata().unwrap().len() > 10_000);
    }
    assert_score_agrees(&directory.path().join("out/results.json"));
}

/// Another program counts the same score from the rows alone.
fn assert_score_agrees(numbers: &Path) {
    let score = Path::new(env!("CARGO_MANIFEST_DIR")).join("score/score.py");
    match Command::new("python3").arg(score).arg(numbers).output() {
        Ok(counted) => {
            let complaints = String::from_utf8_lossy(&counted.stderr);
            assert!(counted.status.success(), "{complaints}");
        }
        Err(error) if error.kind() == ErrorKind::NotFound => print_line("    SKIPPED: no python3"),
        Err(error) => panic!("python3: {error}"),
    }
}

#[test]
fn what_is_stopped_leaves_nothing_and_is_gone_on_with() {
    if namespace("what_is_stopped").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // At 100 kbit/s the Routine takes minutes.
    let slow = STUDY.replace("8Mbit", "100kbit");
    std::fs::write(directory.path().join("study.toml"), slow).unwrap();
    let arguments = ["run", "study.toml", "--out", "out", "--parallel", "2"];
    let start = || {
        let mut command = lab(directory.path(), &arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut child = start();
    let networks = format!("run-{}-", child.id());
    let up = |networks: &str| {
        let output = lab(directory.path(), &["list", "--json"]).output().unwrap();
        numbers(&output)["networks"].to_string().contains(networks)
    };
    let kept = directory.path().join("out/runs");
    // The load ends and is kept; the messages are in transit.
    let wait = Deadline::after(SOON);
    wait.wait_for("a run", || {
        let files = std::fs::read_dir(&kept).map_or(0, Iterator::count);
        Ok((files == 1 && up(&networks)).then_some(()))
    })
    .unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let status = Deadline::after(SOON).wait_for("its end", || Ok(child.try_wait()?)).unwrap();
    assert_eq!(status.code(), Some(3), "done in part");
    assert!(!up(&networks), "a network is left");
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
    let output = run(directory.path(), &["load"]);
    assert_eq!(output.status.code(), Some(0), "what is kept is not made again");

    // Killed, it cannot take anything down: its networks see that it is gone, and what runs in them
    // ends with them.
    let mut child = start();
    let networks = format!("run-{}-", child.id());
    Deadline::after(SOON).wait_for("a network", || Ok(up(&networks).then_some(()))).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    Deadline::after(SOON).wait_for("its end", || Ok((!up(&networks)).then_some(()))).unwrap();
}

#[test]
fn a_wrong_study_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        ("precedence = \"routine\", size", "precedense = \"routine\", size", "study.toml:33:7"),
        ("value = \"two/flash.seconds\"", "value = \"two/none.seconds\"", "two/none.seconds"),
        ("links[bob.eth0]", "links[bob.eth9]", "links[bob.eth9]"),
        ("topology = \"pair\"", "topology = \"none\"", "none.toml"),
        ("seconds = 2.0", "secs = 2.0", "paper.secs"),
        ("after = \"routine\"", "after = \"priority\"", "priority"),
    ];
    for (from, to, results) in cases {
        assert!(STUDY.contains(from), "{from}");
        std::fs::write(directory.path().join("study.toml"), STUDY.replace(from, to)).unwrap();
        let output = run(directory.path(), &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {text}");
        assert!(text.contains(results), "{to}: {text}");
    }
    std::fs::write(directory.path().join("study.toml"), STUDY).unwrap();
    for arguments in [vec!["no-such-experiment"], vec!["--scale", "0"], vec!["--scale", "2000"]] {
        assert_eq!(run(directory.path(), &arguments).status.code(), Some(2), "{arguments:?}");
    }
}
