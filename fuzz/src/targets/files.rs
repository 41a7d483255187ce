//! What stands in files: the configuration, the users, a router's configuration, the frames of a
//! recording.

use mta::config;
use std::path::Path;
use testbed::frame;
use users::Users;

/// Longest text looked at, in octets: a report quotes lines of the file, as many times as there is
/// something wrong with them.
const TEXT: usize = 4_096;

pub(super) fn config(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets.get(..TEXT).unwrap_or(octets));
    // Files with secrets are looked for where there are none.
    let base = Path::new("/nonexistent");
    let secret = |name: &str| (name != "NONE").then(|| "S3CRET-OF-THE-SITE".to_owned());
    let (site, report) = config::read("fuzz.toml", &text, base, &secret);
    assert_eq!(site.is_none(), report.any_fatal(), "a site exactly where nothing is wrong");
    let output = report.render(false);
    assert!(!output.contains("S3CRET"), "a secret is shown");
    if let Some(site) = site {
        assert!(!format!("{:?}", site.node).contains("S3CRET"), "a secret is shown");
        // What was accepted is a node's configuration: a node starts with it.
        let mut node = node::Node::new(site.node);
        let now = base::Now { mono: base::Instant(1), utc: base::Utc(1_767_225_600_000_000) };
        node.handle(now, node::Input::Started);
        while node.poll().is_some() {}
    }
}

pub(super) fn users(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    match Users::parse(&text) {
        Ok(users) => assert_eq!(Users::parse(&text), Ok(users)),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
}

pub(super) fn ios(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets.get(..TEXT).unwrap_or(octets));
    let Ok(imported) = translation::ios::import("fuzz.ios", &text) else { return };
    let lines = text.lines().count();
    assert!(imported.unmapped.iter().all(|one| (1..=lines).contains(&one.line)));
    // The import is written as a file with the same meaning.
    let comments: Vec<String> = imported.unmapped.iter().map(|one| one.text.clone()).collect();
    let written = translation::ios::to_toml(&imported.policy, &comments).expect("a policy is TOML");
    let again = translation::policy_file::PolicyFile::parse("again.toml", &written);
    assert_eq!(again.expect("it is read").policy(), &imported.policy);
}

pub(super) fn frame(octets: &[u8]) {
    let before = frame::TcpSegment::from_frame(octets);
    let mut bleached = octets.to_vec();
    frame::bleach(&mut bleached);
    assert_eq!(bleached.len(), octets.len());
    let after = frame::TcpSegment::from_frame(&bleached);
    assert_eq!(after, before.map(|segment| frame::TcpSegment { dscp: 0, ..segment }));
    let mut again = bleached.clone();
    frame::bleach(&mut again);
    assert_eq!(again, bleached, "once is enough");
}
