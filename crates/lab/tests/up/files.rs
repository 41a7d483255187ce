//! A wrong file is refused with its place, and nothing is started.

use crate::support::{As, MARKING, PAIR, directory, text, unique};
use std::process::Stdio;

/// Names and texts.
type Files<'a> = &'a [(&'a str, &'a str)];

fn refused(files: Files<'_>, arguments: &[&str]) -> String {
    let directory = directory(files);
    let mut command = As::Own.command();
    let file = directory.path().join("t.toml");
    command.arg("up").arg(file).args(["--name", &unique(), "--for", "1s"]).args(arguments);
    let output = command.current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    text(&output)
}

#[test]
fn a_wrong_file_is_named_with_line_and_key() {
    let wrong_link = PAIR.replace("ends = [\"r.right\"", "ends = [\"r.rigth\"");
    let wrong_mark = MARKING.replace("\"AF41\"", "\"AF44\"");
    let wrong_class = MARKING.replace("class = \"flash\"", "class = \"flesh\"");
    let no_policy = PAIR.replace("policy = \"mark\"", "policy = \"nark\"");
    let cases: [(Files<'_>, &[&str]); 6] = [
        (&[("t.toml", "[hosts.a]\nport = 1\n")], &["t.toml:2:1", "`port`"]),
        (&[("t.toml", &wrong_link), ("mark.toml", MARKING)], &["t.toml:13:9", "rigth"]),
        (&[("t.toml", PAIR), ("mark.toml", &wrong_mark)], &["mark.toml:6:", "AF44"]),
        (&[("t.toml", PAIR), ("mark.toml", &wrong_class)], &["mark.toml:6:", "flesh"]),
        (&[("t.toml", &no_policy)], &["t.toml:7:", "nark.toml", "--policy nark=FILE"]),
        (&[], &["t.toml", "No such file"]),
    ];
    for (files, said) in cases {
        let refusal = refused(files, &[]);
        for part in said {
            assert!(refusal.contains(part), "{part:?} is not in {refusal}");
        }
        assert!(!refusal.contains("is up"), "{refusal}");
    }
}

#[test]
fn arguments_that_fit_nothing_are_refused() {
    let files = [("t.toml", PAIR), ("mark.toml", MARKING)];
    let refusal = refused(&files, &["--policy", "other=mark.toml"]);
    assert!(refusal.contains("no router has the policy other"), "{refusal}");
    let refusal = refused(&files, &["--policy", "mark=missing.toml"]);
    assert!(refusal.contains("missing.toml"), "{refusal}");
    let refusal = refused(&files, &["--policy", "mark"]);
    assert!(refusal.contains("NAME=FILE"), "{refusal}");
}
