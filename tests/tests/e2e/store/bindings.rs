//! The Python package against a daemon: submit, list, fetch, watch and delete, and a daemon that is killed meanwhile.

use super::super::SOON;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use testbed::Site;

/// The user has a mailbox, and is alone.
const USER: &str = "OPS";

#[test]
#[ignore = "needs the package: XUXA_PYTHON names a python that has it; cargo xtask dist runs this"]
fn the_python_package_submits_lists_fetches_watches_and_deletes() {
    let python = std::env::var("XUXA_PYTHON").expect("XUXA_PYTHON: a python that has xuxa");
    let mut site = Site::builder("naples").users(&[]).mailboxes(&[USER]).build().unwrap();
    site.start().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/python/tests/site.py");
    let mut child = Command::new(python)
        .args([script, &site.p7().unwrap().to_string(), &site.address(USER)])
        .args([site.password_file(USER), site.path().join("python")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_watching = lines.next().as_deref() == Some("watching");
    if is_watching {
        // The watch loses its association, and binds to the daemon that is there next.
        site.kill().unwrap();
        site.start().unwrap();
    }
    let last = lines.last();
    let ended = child.wait().unwrap();
    assert!(is_watching && ended.success(), "{ended}");
    assert_eq!(last.as_deref(), Some("done"));
    // What Python left: one message, read.
    let left = site.xuxa(USER, &["--json", "list"]).unwrap();
    let left: serde_json::Value = left.json().unwrap();
    let entries = left["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{left}");
    assert_eq!(
        (&entries[0]["subject"], &entries[0]["status"]),
        (&"AGAIN".into(), &"processed".into())
    );
    let status = site.wait_until("an end of the associations", SOON, |status| {
        status.mailboxes.iter().all(|mailbox| mailbox.bound == 0)
    });
    status.unwrap();
}
