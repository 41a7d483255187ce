//! What an operator meets: exit codes, refusals, and passwords that are never shown.

mod lists;
mod orders;
mod registers;
mod tracking;

use super::SOON;
use std::fs;
use std::path::Path;
use testbed::{Pair, PeerSettings, Site};

#[test]
fn exit_codes_distinguish_failure_from_wrong_use() {
    let site = Site::builder("naples").build().unwrap();
    let status = site.mta(&["status", "--json"]).unwrap();
    assert_eq!((status.code, status.stdout.as_str()), (1, ""), "no daemon: {}", status.stderr);
    let check = site.mta(&["check"]).unwrap();
    assert_eq!(check.code, 0, "{}", check.stderr);

    let text = fs::read_to_string(site.config()).unwrap();
    for (mistake, named) in [
        (text.replace("country", "contry"), "contry"),
        (text.replace("[mta]", "[mta"), "TOML"),
        (text.replace("127.", "327."), "listen"),
    ] {
        assert_ne!(mistake, text);
        fs::write(site.config(), mistake).unwrap();
        for verb in ["check", "run"] {
            let run = site.mta(&[verb]).unwrap();
            assert_eq!(run.code, 2, "mta {verb}, {named}: {}", run.stderr);
            assert!(run.stderr.contains(named), "mta {verb}: {}", run.stderr);
            assert!(run.stderr.contains("mta.toml:"), "file, line and column: {}", run.stderr);
        }
    }
    fs::remove_file(site.config()).unwrap();
    assert_eq!(site.mta(&["run"]).unwrap().code, 2, "no file");
    assert_eq!(site.mta(&["run", "--frobnicate"]).unwrap().code, 2, "no such option");
}

#[test]
fn the_exit_code_of_the_client_shows_what_failed() {
    let mut site = Site::builder("naples").build().unwrap();
    let to = site.address("OPS");
    let send = ["send", "--to", &to, "--size", "1kB"];
    let run = site.xuxa("OPS", &send).unwrap();
    assert_eq!(run.code, 1, "no daemon: {}", run.stderr);
    site.start().unwrap();
    assert_eq!(site.xuxa("OPS", &send).unwrap().code, 0);
    assert_eq!(site.xuxa("NOBODY", &send).unwrap().code, 2, "no such profile");
    assert_eq!(site.xuxa("OPS", &["send", "--to", "OPS", "--size", "1kB"]).unwrap().code, 2);
    fs::write(site.path().join("secrets/user-OPS"), "wrong\n").unwrap();
    let run = site.xuxa("OPS", &send).unwrap();
    assert_eq!(run.code, 1, "a wrong password: {}", run.stderr);
    assert!(run.stderr.contains("authentication"), "{}", run.stderr);
}

#[test]
fn a_second_daemon_on_the_same_data_is_refused() {
    let mut site = Site::builder("naples").build().unwrap();
    site.start().unwrap();
    let second = site.mta(&["run"]).unwrap();
    assert_eq!(second.code, 1, "{}", second.stderr);
    assert!(site.is_running().unwrap());
    site.status().expect("the first one still answers");
}

#[test]
fn passwords_are_nowhere_to_be_seen() {
    let pair = Pair::builder(PeerSettings::default())
        .unwrap()
        .with_wrong_password()
        .each(|site| site.run_with(&["--verbose", "--log-format", "json"]))
        .start()
        .unwrap();
    let to = pair.act.address("OPS");
    pair.naples.send("OPS", &["--to", &to, "--size", "10kB"]).unwrap();
    pair.naples.send("OPS", &["--to", &pair.naples.address("OPS"), "--size", "10kB"]).unwrap();
    pair.naples.receive("OPS", 1).unwrap();
    // The peer refuses the bind: what it was bound with must not be in anybody's complaint.
    let refused = pair
        .naples
        .wait_until("the refusal", SOON, |status| status.peers[0].channels[0].last_error.is_some());
    let error = refused.unwrap().peers[0].channels[0].last_error.clone().unwrap();
    assert!(error.contains("authentication"), "{error}");
    // Nor what a user tried.
    let wrong = "pw-wrong-but-typed-by-a-user";
    fs::write(pair.act.path().join("secrets/user-OPS"), wrong).unwrap();
    assert_eq!(pair.act.xuxa("OPS", &["receive"]).unwrap().code, 1);

    for site in [&pair.naples, &pair.act] {
        for verb in [&["status"][..], &["status", "--json"], &["check"], &["check", "--json"]] {
            assert_eq!(site.mta(verb).unwrap().code, 0);
        }
    }
    let secrets: Vec<&str> = [&pair.naples, &pair.act]
        .iter()
        .flat_map(|site| site.secrets().iter().map(String::as_str))
        .chain([wrong])
        .collect();
    assert_eq!(secrets.len(), 7, "two users, two peers with two each, one wrong: {secrets:?}");
    for site in [&pair.naples, &pair.act] {
        let printed = site.printed().unwrap();
        assert!(printed.iter().any(|(_, text)| text.contains("associat")), "something was logged");
        for (path, text) in &printed {
            for secret in &secrets {
                assert!(!text.contains(secret), "{secret} is in {}", path.display());
            }
        }
        assert_holds_none(&site.path().join("data"), &secrets);
    }
}

/// No file below this directory holds one of these.
fn assert_holds_none(directory: &Path, secrets: &[&str]) {
    let mut seen = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            assert_holds_none(&path, secrets);
        } else if kind.is_file() {
            let octets = fs::read(&path).unwrap();
            for secret in secrets {
                let found = octets.windows(secret.len()).any(|w| w == secret.as_bytes());
                assert!(!found, "{secret} is in {}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 0 || directory.file_name().is_some_and(|name| name != "data"));
}
