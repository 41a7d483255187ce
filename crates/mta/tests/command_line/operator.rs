//! Orders for channels, a reload that is only planned, and tables that fit a terminal.

use super::{Daemon, mta, result_of, run, site};
use serde_json::Value;
use std::path::Path;

fn channel(config: &str, rest: &[&str]) -> (Option<i32>, String, String) {
    run(&[&["channel"], rest, &["--config", config]].concat())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Why the channel `routine` is closed, in the status.
fn closed(config: &str) -> Option<String> {
    let status = json(&run(&["status", "--config", config, "--json"]).1);
    let channels = status.pointer("/peers/0/channels").and_then(Value::as_array).unwrap();
    let named = |channel: &&Value| channel.get("name") == Some(&"routine".into());
    let routine = channels.iter().find(named).unwrap();
    routine.get("closed").and_then(Value::as_str).map(str::to_owned)
}

#[test]
fn a_disabled_channel_is_disabled_after_a_kill_too() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let config = config.to_str().unwrap();
    let (mut killed, _) = Daemon::start(config);
    let (code, out, _) = channel(config, &["disable", "act/routine", "--dry-run"]);
    assert_eq!((code, out.lines().next()), (Some(0), Some("act/routine would be disabled")));
    assert_eq!(closed(config), None, "nothing is done");
    let (code, out, _) = channel(config, &["disable", "act/routine", "--json"]);
    let outcome = json(&out);
    assert_eq!(
        (code, &outcome["changed"], &outcome["order"]),
        (Some(0), &true.into(), &"disable".into())
    );
    let by = outcome["disabled"]["by"].as_str().unwrap();
    assert!(by.contains("uid "), "{by}");
    let since = outcome["disabled"]["since"].as_str().unwrap();
    assert!(since.starts_with('2') && since.ends_with('Z'), "as other times: {since}");
    let shown = closed(config).unwrap();
    assert!(shown.starts_with(&format!("disabled by {by} since 2")), "{shown}");

    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let (_again, _) = Daemon::start(config);
    assert_eq!(closed(config), Some(shown.clone()));
    assert_eq!(run(&["reload", "--config", config]).0, Some(0));
    assert_eq!(closed(config), Some(shown.clone()));
    let (code, out, _) = channel(config, &["connect", "act/routine"]);
    assert!(code == Some(1) && out.contains("disabled by"), "{out}");
    let (code, out, _) = channel(config, &["connect", "act/routine", "--dry-run"]);
    assert_eq!((code, out), (Some(0), format!("act/routine is closed: {shown}\n")));
    let (_, out, _) = channel(config, &["disable", "act/routine", "--now"]);
    assert_eq!(out, "act/routine was disabled already\n");
    let (code, out, _) = channel(config, &["enable", "act/routine"]);
    assert_eq!((code, out.lines().next()), (Some(0), Some("act/routine is enabled")));
    assert_eq!(closed(config), None);
    let (code, out, _) = channel(config, &["disconnect", "act/routine", "--json"]);
    assert_eq!((code, &json(&out)["order"]), (Some(0), &"disconnect".into()));
    let (code, _, err) = channel(config, &["disable", "act/bulk"]);
    assert!(code == Some(1) && err.contains("there is no channel \"act/bulk\""), "{err}");
}

#[test]
fn a_planned_reload_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let text = std::fs::read_to_string(&config).unwrap();
    let file = config.to_str().unwrap();
    let (_daemon, _) = Daemon::start(file);
    let plan = |text: &str| {
        std::fs::write(&config, text).unwrap();
        run(&["reload", "--dry-run", "--config", file])
    };
    assert_eq!(plan(&text).1, "nothing has changed\n");
    let (code, out, _) = plan(&text.replace("\"CS3\"", "\"EF\""));
    assert!(code == Some(0) && out.contains("act/flash") && out.contains("dscp"), "{out}");
    assert_eq!(plan(&text).1, "nothing has changed\n", "it was only planned");
    let (code, _, err) = plan(&text.replace("[mta]", "[mat]"));
    assert!(code == Some(2) && err.contains("the file has errors"), "{err}");
    let (code, _, err) = plan(&text.replace("\"MTA-NAPLES\"", "\"MTA-ROME\""));
    assert!(code == Some(2) && err.contains("only a restart changes mta.name"), "{err}");
}

/// The lines of a command with a terminal of 80 columns.
fn in_80_columns(arguments: &[&str]) -> String {
    let (_, out, _) = result_of(&mta(arguments).env("COLUMNS", "80").output().unwrap());
    let longest = out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(longest <= 80, "{arguments:?}: {longest}\n{out}");
    out
}

fn add_user(config: &str, address: &str, directory: &Path) {
    let mut add = mta(&["user", "add", "--config", config, address, "--delivery", "p3"]);
    let output = add.env("XUXA_PASSWORD", "salina").current_dir(directory).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn tables_fit_80_columns() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let text = std::fs::read_to_string(&config).unwrap();
    // As long as names sensibly are.
    let text = text.replace("\"act\"", "\"northern-command-rear\"");
    std::fs::write(&config, text).unwrap();
    let file = config.to_str().unwrap();
    let long =
        "/C=IT/ADMD=NET/PRMD=NAPLES/O=HEADQUARTERS/OU1=COMMUNICATIONS/S=WATCHKEEPER/G=GIOVANNA";
    add_user(file, long, directory.path());
    let (_daemon, _) = Daemon::start(file);
    let order =
        ["minimize", "flash", "--channel", "northern-command-rear/routine", "--config", file];
    assert_eq!(run(&order).0, Some(0));
    for verb in [
        &["status"][..],
        &["queue"],
        &["queue", "list"],
        &["minimize"],
        &["clock"],
        &["store", "check"],
        &["channel", "disable", "northern-command-rear/routine"],
        &["status"],
        &["reload", "--dry-run"],
        &["check"],
    ] {
        in_80_columns(&[verb, &["--config", file]].concat());
    }
    // Addresses of users are listed whole, one a line: for programs.
    let head = "HELD  LINE  LAST ERROR\n";
    let narrow = in_80_columns(&["status", "--config", file]);
    assert!(!narrow.contains(head) && narrow.contains("\n  LAST ERROR: "), "{narrow}");
    let wide = mta(&["status", "--wide", "--config", file]).env("COLUMNS", "80").output();
    assert!(result_of(&wide.unwrap()).1.contains(head));
}

#[test]
fn the_configuration_may_be_named_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let file = config.to_str().unwrap();
    let (_daemon, _) = Daemon::start(file);
    let with = |arguments: &[&str], config: &str| {
        result_of(&mta(arguments).env("MTA_CONFIG", config).output().unwrap())
    };
    let verbs = [&["queue"][..], &["clock"], &["reload"], &["user", "list"], &["check"]];
    for verb in verbs {
        let (code, _, err) = with(verb, file);
        assert_eq!(code, Some(0), "{verb:?}: {err}");
    }
    let (_, _, err) = with(&["report", "--since", "1h"], file);
    assert!(!err.contains("--config"), "{err}");
    let (code, _, err) = with(&["queue", "--config", file], "/nowhere.toml");
    assert_eq!((code, err.as_str()), (Some(0), ""), "--config goes before the variable");
    let (code, _, err) = with(&["queue", "--socket", "/nowhere"], file);
    assert!(code == Some(1) && err.contains("no daemon answers on /nowhere"), "{err}");
    for verb in [&["queue"][..], &["report", "--since", "1h"]] {
        let (code, _, err) = with(verb, "");
        assert!(code == Some(2) && err.contains("MTA_CONFIG"), "{verb:?}: {err}");
    }
}

#[test]
fn a_condition_without_text_and_a_text_that_is_no_address_are_wrong_usage() {
    let address = "C=IT;ADMD=NET;PRMD=NAPLES;S=OPS";
    let queue = ["list", "hold", "release", "retry", "reroute", "expire", "delete"];
    for (name, value) in [
        ("--identifier", ""),
        ("--identifier", " "),
        ("--originator", ""),
        ("--originator", "S="),
        ("--originator", "@@"),
        ("--recipient", ""),
        ("--recipient", "/"),
        ("--recipient", "FOO=bar"),
        ("--mailbox", ""),
        ("--mailbox", "ops"),
        ("--peer", ""),
        ("--channel", ""),
    ] {
        for verb in queue {
            let (code, out, err) =
                run(&["queue", verb, name, value, "--socket", "/nonexistent/socket"]);
            assert_eq!((code, &*out), (Some(2), ""), "{verb} {name} {value:?}: {err}");
            assert!(err.contains(name), "{verb} {name} {value:?}: {err}");
        }
    }
    for wrong in [
        &["queue", "--recipient", "", "--socket", "/nonexistent/socket"][..],
        &["mailbox", "purge", "", "--yes", "--socket", "/nonexistent/socket"],
        &["mailbox", "purge", "ops", "--yes", "--socket", "/nonexistent/socket"],
        &["mailbox", "unregister", "S=", "--socket", "/nonexistent/socket"],
        &["list", "show", "staff", "--socket", "/nonexistent/socket"],
        &["list", "add", "", "--socket", "/nonexistent/socket"],
        &["list", "add", address, "--member", "ops", "--socket", "/nonexistent/socket"],
        &["list", "change", address, "--submit", "me", "--socket", "/nonexistent/socket"],
        &["list", "remove", "staff", "--socket", "/nonexistent/socket"],
        &["trace", "", "--dir", "."],
        &["trace", "--originator", "", "--dir", "."],
        &["trace", "--recipient", "ops", "--dir", "."],
        &["trace", "--since", "1h", "--until", "2h", "--dir", "."],
        &["report", "--since", "1h", "--until", "2h", "--dir", "."],
    ] {
        let (code, out, err) = run(wrong);
        assert_eq!((code, &*out), (Some(2), ""), "{wrong:?}: {err}");
    }
    // What can be meant asks the daemon.
    for meant in ["ops", "s=ops", "S=OPS;PRMD=ACT", address] {
        let asked = ["queue", "--recipient", meant, "--socket", "/nonexistent/socket"];
        let (code, _, err) = run(&asked);
        assert!(code == Some(1) && err.contains("no daemon answers"), "{meant}: {err}");
    }
}

#[test]
fn a_line_break_in_a_directory_makes_no_line_in_the_log_or_on_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let config = config.to_str().unwrap();
    let forged = "/nonexistent/x\n2026 ERROR forged\u{1b}[2J";
    let (mut daemon, lines) = Daemon::start(config);
    let there = run(&["backup", forged, "--config", config]);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    let here = run(&["backup", forged, "--config", config]);
    for (code, out, err) in [here, there] {
        assert_eq!((code, &*out, err.lines().count()), (Some(1), "", 1), "{err}");
        assert!(err.contains("\\n2026 ERROR forged\\u{1b}[2J"), "{err}");
    }
    let log: Vec<String> = lines.collect();
    assert!(log.iter().any(|line| line.contains("no backup was made")), "{log:#?}");
    let forged = |line: &&String| line.starts_with("2026 ERROR") || line.contains('\u{1b}');
    assert_eq!(log.iter().find(forged), None);
}
