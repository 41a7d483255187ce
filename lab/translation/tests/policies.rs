//! The shipped policies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use router::policy::RouterPolicy;
use router::{condition, queueing};
use std::path::{Path, PathBuf};
use translation::policy_file::PolicyFile;

fn shipped() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    let entries = std::fs::read_dir(&directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Builds all parts of a policy, as a router would.
fn build(file: &PolicyFile) {
    let policy: &RouterPolicy = file.policy();
    let interfaces: Vec<String> = policy.interfaces.keys().cloned().collect();
    for (name, steps) in &policy.chains {
        let built = condition::build(policy, &interfaces, steps, &format!("chains.{name}"));
        assert_eq!(built.unwrap_or_else(|e| panic!("{}", file.mistake(&e))).len(), steps.len());
    }
    for (name, of) in &policy.queueings {
        let built = queueing::build(policy, &interfaces, of, &format!("queueings.{name}"), 1);
        let mut built = built.unwrap_or_else(|e| panic!("{}", file.mistake(&e)));
        assert!(built.pop(router::Time(0)).is_none(), "{name} is empty at first");
    }
    for attachment in policy.interfaces.values() {
        let chains = attachment.input.iter().chain(&attachment.output);
        assert!(chains.clone().all(|name| policy.chains.contains_key(name)));
        assert!(attachment.queueing.iter().all(|name| policy.queueings.contains_key(name)));
    }
}

#[test]
fn the_imported_configuration_of_the_paper_is_built() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../config/lab/ios/isode-nato-2007.ios");
    let text = std::fs::read_to_string(path).unwrap();
    let imported = translation::ios::import("isode-nato-2007.ios", &text).unwrap();
    let written = translation::ios::to_toml(&imported.policy, &["a comment".into()]).unwrap();
    build(&PolicyFile::parse("imported.toml", &written).unwrap());
}

#[test]
fn every_shipped_policy_is_read_and_written_again() {
    let paths = shipped();
    let names: Vec<_> = paths.iter().map(|p| p.file_stem().unwrap().to_string_lossy()).collect();
    let expected = [
        "bern-ef-af",
        "bern-interior",
        "degeb-core",
        "degeb-edge",
        "nato-flow-limit",
        "nato-router-limit",
        "nato-single-queue-ordered",
        "nato-single-queue-wred",
        "nato-three-queues",
        "plain",
    ];
    assert_eq!(names, expected);
    for path in &paths {
        let policy = PolicyFile::read(path).unwrap_or_else(|e| panic!("{}", e.render(false)));
        build(&policy);
        let policy = policy.into_policy();
        assert!(!policy.about.is_empty() && !policy.interfaces.is_empty(), "{}", path.display());
        let written = toml::to_string(&policy).unwrap();
        let again = PolicyFile::parse("again.toml", &written).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again.policy(), &policy, "{}", path.display());
    }
}

/// Each misspelt key of each file is refused at its place.
#[test]
fn a_misspelt_key_of_a_shipped_policy_is_refused_with_its_line_and_column() {
    let mut tried = 0;
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some((key, _)) = line.split_once(" = ") else { continue };
            // Names in the file may have any text.
            let mut known = ["about", "kind", "rate", "burst", "match", "mark", "share", "limit"]
                .iter()
                .chain(&["input", "queueing", "dropper", "interval", "class", "weight_exponent"]);
            if !known.any(|known| *known == key) {
                continue;
            }
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[number] = format!("{key}x{}", &line[key.len()..]);
            let file = path.display().to_string();
            let mistake = PolicyFile::parse(&file, &lines.join("\n")).unwrap_err();
            tried += 1;
            // Without its kind, the table as a whole is refused.
            if key != "kind" && !mistake.message.starts_with("missing field") {
                assert_eq!((mistake.line, mistake.column), (number + 1, 1), "{mistake}");
            } else {
                assert!(mistake.line > 0 && mistake.line <= number + 2, "{mistake}");
            }
        }
    }
    assert!(tried > 100, "{tried}");
}
