//! The Python package against a message store in this process. `cargo xtask dist` runs it with the wheel that it
//! has built.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

#[path = "../../ua/tests/common/mod.rs"]
mod common;

use base::Precedence::{Flash, Routine};
use common::TestStore;
use p772::{ContentBuilder, Heading, IpmIdentifier, PartForm};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

#[test]
#[ignore = "needs the package: XUXA_PYTHON names a python that has it; cargo xtask dist runs this"]
fn the_package_lists_fetches_watches_submits_and_deletes() {
    let python = std::env::var("XUXA_PYTHON").expect("XUXA_PYTHON: a python that has xuxa");
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(TestStore::start());
    server.deliver(Routine, "SITREP", 500);
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "M-1".to_owned() },
        subject: Some("CONTACT".to_owned()),
        ..Heading::default()
    };
    let form = PartForm::File { name: Some("../chart.bin".to_owned()) };
    let content = ContentBuilder::new(&heading).unwrap().text("TWO SHIPS.");
    server.deliver_content(Flash, &content.part(&form, &[0, 27, 255, 7]).finish());
    let dir = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings/python/tests/store.py");
    let mut child = Command::new(python)
        .args([script, &server.address, "/C=XX/ADMD= /PRMD=alpha/S=Jones"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_ready = lines.next().as_deref() == Some("ready");
    if is_ready {
        server.deliver(Flash, "ALERT", 500);
    }
    let last = lines.last();
    assert!(child.wait().unwrap().success() && is_ready);
    assert_eq!(last.as_deref(), Some("done"));
    assert_eq!(server.shared.lock().unwrap().submitted.len(), 1);
}
