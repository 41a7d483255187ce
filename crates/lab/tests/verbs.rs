//! The verbs `import-ios` and `export-tc`, as they are called.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab")).args(arguments).output().unwrap()
}

fn said(of: &[u8]) -> String {
    String::from_utf8_lossy(of).into_owned()
}

#[test]
fn import_ios_ends_with_what_it_could_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/ios");
    let paper = paper.join("isode-nato-2007.ios").display().to_string();
    let to = directory.path().join("policy.toml").display().to_string();

    let whole = lab(&["import-ios", &paper, "-o", &to]);
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole.stderr));
    assert_eq!((said(&whole.stdout).as_str(), said(&whole.stderr).as_str()), ("", ""));
    let written = lab::policy_file::PolicyFile::read(Path::new(&to)).unwrap();
    assert_eq!(written.policy().tables["MARK-BLAST"].flows.len(), 3);

    let part = file("part.ios", "class-map A\n match cos 5\ninterface E0\n");
    let part = lab(&["import-ios", &part, "--json"]);
    assert_eq!(part.status.code(), Some(3));
    assert!(said(&part.stderr).contains("part.ios:2"), "{}", said(&part.stderr));
    let json: serde_json::Value = serde_json::from_slice(&part.stdout).unwrap();
    let first = &json["unmapped"][0];
    assert_eq!((&first["line"], &first["text"]), (&1.into(), &"class-map A".into()));

    for wrong in [file("no.ios", "Dear all,\nno router here.\n"), "/nonexistent".to_owned()] {
        let none = lab(&["import-ios", &wrong]);
        assert_eq!((none.status.code(), said(&none.stdout).as_str()), (Some(2), ""));
        assert!(said(&none.stderr).contains(&wrong), "{}", said(&none.stderr));
    }
}

#[test]
fn export_tc_prints_a_script_or_says_what_is_missing() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    let of = |name: &str| policies.join(name).display().to_string();
    let script = lab(&["export-tc", &of("nato-three-queues.toml"), "--dev", "eth7"]);
    assert_eq!(script.status.code(), Some(0), "{}", said(&script.stderr));
    let text = said(&script.stdout);
    assert!(text.starts_with("#!/bin/sh\n# Not here"), "{text}");
    assert!(text.contains("\ntc qdisc replace dev eth7 root handle 1: htb default 0\n"), "{text}");
    for (arguments, part) in [
        (vec!["plain.toml"], "--dev"),
        (vec!["degeb-edge.toml"], "--interface, of those with a queueing: *, access"),
        (vec!["nato-three-queues.toml", "--dev", "a b"], "no name of a device"),
        (vec!["nothing.toml"], "nothing.toml"),
    ] {
        let file = of(arguments[0]);
        let wrong = lab(&[&["export-tc", &file], &arguments[1..]].concat());
        assert_eq!((wrong.status.code(), said(&wrong.stdout).as_str()), (Some(2), ""));
        assert!(said(&wrong.stderr).contains(part), "{}", said(&wrong.stderr));
    }
}
