//! Files in messages: what was sent with `--file` comes out again, and what a recipient is shown.

use super::tshark::Decoded;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use testbed::Site;
use testbed::answer::ReceiveOutput;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_comes_out_again_octet_for_octet_under_its_name() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let to = site.address("LOG");
    let octets: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(n) >> 3) as u8).collect();
    let file = site.path().join("Lage \u{e5} 1.bin");
    fs::write(&file, &octets).unwrap();
    let file = file.display().to_string();
    let capture = site.path().join("files.pcapng");
    let pcap = capture.display().to_string();
    let send = ["--to", &to, "--file", &file, "--subject", "LAGE"];
    site.send("OPS", &[&send[..], &["--sic", "ABC", "--pcap", &pcap]].concat()).unwrap();
    site.send("OPS", &[&send[..], &["--civil"]].concat()).unwrap();
    // The independent reader finds the name, and nothing that it cannot read.
    let decoded = Decoded::from_capture(&capture, site.p3().port());
    // It shows a GraphicString as ASCII.
    let [name] = decoded.values("ftam.Pathname_item") else { panic!("{decoded:?}") };
    assert!(name.starts_with("Lage ") && name.ends_with(" 1.bin"), "{name}");

    let out = site.path().join("out");
    let directory = out.display().to_string();
    let arguments = ["--json", "receive", "--count", "2", "--timeout", "60"];
    let run = site.xuxa("LOG", &[&arguments[..], &["--extract", &directory]].concat()).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let received: ReceiveOutput = run.json().unwrap();
    let names = ["Lage \u{e5} 1.bin", "Lage \u{e5} 1-1.bin"];
    for (message, name) in received.messages().zip(names) {
        let path = out.join(name);
        assert_eq!(message.extracted, [path.display().to_string()]);
        assert_eq!(fs::read(&path).unwrap(), octets);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(message.to.len(), 1, "{message:?}");
        assert_eq!(message.dtg.is_some(), message.content_type == "P772");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
    let inbox = site.path().join("inbox-LOG");
    assert_eq!([mode(&inbox), mode(&inbox.join("received.log"))], [0o700, 0o600]);
}

#[test]
fn a_recipient_is_shown_what_a_message_is_and_no_terminal_obeys_it() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let (to, nobody) = (site.address("LOG"), site.address("NOBODY"));
    let evil = "\u{1b}]52;c;cm0=\u{7}a\rb\u{9b}2J\u{202e}c";
    let arguments = [
        "--to",
        &to,
        "--to",
        &nobody,
        "--text",
        evil,
        "--subject",
        "TEST",
        "--sic",
        "ABC",
        "--sic",
        "DEF",
        "--message-type",
        "exercise=STEADY",
        "--instruction",
        "BY HAND",
        "--dtg",
        "260504030201Z",
        "--content-identifier",
        "CID 7",
    ];
    let sent = site.send("OPS", &arguments).unwrap();
    let identifier = &sent.messages[0].mts_identifier;
    let run = site.xuxa("LOG", &["receive", "--count", "1", "--timeout", "60"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    for wanted in [
        identifier.as_str(),
        "ABC, DEF",
        "260504030201Z",
        "exercise=STEADY",
        "BY HAND",
        "TEST",
        "NOBODY",
        "\\u{1b}]52;c;cm0=\\u{7}a\\rb\\u{9b}2J\\u{202e}c",
    ] {
        assert!(run.stdout.contains(wanted), "{wanted:?} in {}", run.stdout);
    }
    let report = site.xuxa("OPS", &["receive", "--count", "1", "--timeout", "60"]).unwrap();
    let row = report.stdout.lines().find(|line| line.contains("report")).unwrap();
    for wanted in [
        "NOBODY",
        "not delivered: there is no such recipient",
        "unrecognised-OR-name",
        identifier.as_str(),
        "CID 7",
    ] {
        assert!(row.contains(wanted), "{wanted:?} in {row}");
    }
    for text in [&run.stdout, &run.stderr, &report.stdout] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }
    // A civil heading has no place for these, and a password that others may read is none.
    let civil = ["send", "--to", &to, "--text", "x", "--civil", "--sic", "ABC"];
    assert_eq!(site.xuxa("OPS", &civil).unwrap().code, 2);
    fs::set_permissions(site.password_file("OPS"), fs::Permissions::from_mode(0o644)).unwrap();
    let run = site.xuxa("OPS", &["send", "--to", &to, "--text", "x"]).unwrap();
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("others may read the password file"), "{}", run.stderr);
}
