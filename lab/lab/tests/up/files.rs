//! A wrong file is refused with its place, and nothing is started.

use crate::support::{As, MARKING, PAIR, directory, lacks_htb, skip, skipped, text, unique};
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
    for (files, expected) in cases {
        let refusal = refused(files, &[]);
        for part in expected {
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

#[test]
fn a_data_path_that_is_asked_for_and_not_there_is_refused() {
    let test = "a_data_path_that_is_asked_for_and_not_there_is_refused";
    if skipped(test, As::WithoutTun) {
        return;
    }
    let directory = directory(&[("t.toml", PAIR), ("mark.toml", MARKING)]);
    let mut command = As::WithoutTun.command();
    command.arg("up").arg(directory.path().join("t.toml"));
    command.args(["--name", &unique(), "--for", "1s", "--path", "tun"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let printed = text(&output);
    assert!(printed.contains("this data path does not work here: tun: "), "{printed}");
    assert!(printed.contains("/dev/net/tun") && printed.contains("lab doctor"), "{printed}");
}

const QUEUED: &str = r#"
[queueings.link]
kind = "weighted-fair"
branches = [{ share = { weight = 1 }, queueing = { kind = "fifo", limit = { packets = 20 } } }]
[interfaces.right]
queueing = "link"
"#;

/// A policy's queueing at a port whose link has a rate: each command is done, or there is no network.
#[test]
fn a_command_that_the_kernel_refuses_ends_it() {
    let test = "a_command_that_the_kernel_refuses_ends_it";
    if skipped(test, As::Own) {
        return;
    }
    if let Some(why) = lacks_htb() {
        return skip(test, &why);
    }
    let rated = format!("{PAIR}rate = \"10Mbit\"\n");
    let files = directory(&[("t.toml", &rated), ("mark.toml", QUEUED)]);
    let up = |path: Option<String>| {
        let mut command = As::Own.command();
        command.arg("up").arg(files.path().join("t.toml")).args(["--name", &unique()]);
        command.args(["--path", "tc", "--for", "100ms"]).stdin(Stdio::null());
        command.envs(path.map(|path| ("PATH", path)));
        command.output().unwrap()
    };
    let done = up(None);
    assert!(done.status.success(), "{}", text(&done));

    // A tc that refuses classes, before the machine's one.
    let path = std::env::var("PATH").unwrap_or_default();
    let refusing = format!(
        "#!/bin/sh\ncase \"$*\" in *\"class add\"*) echo no classes here >&2; exit 2;; esac\n\
         PATH='{path}:/usr/sbin:/sbin' exec tc \"$@\"\n"
    );
    let tools = directory(&[("tc", &refusing)]);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tools.path().join("tc"), executable).unwrap();
    let refused = up(Some(format!("{}:{path}", tools.path().display())));
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    let printed = text(&refused);
    assert!(printed.contains("r.right: tc class add dev right"), "{printed}");
    assert!(printed.contains("no classes here") && !printed.contains("is up"), "{printed}");
}
