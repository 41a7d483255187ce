//! What users of a mailbox rely on: order, states, forwarded messages, acknowledgements, and clear ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

#[path = "../../ua/tests/common/mod.rs"]
mod common;
mod place;

use base::Precedence::{Flash, Routine};
use common::Fault;
use p7::operation as op;
use p772::{ContentBuilder, Heading, IpmIdentifier, PartForm, RecipientSpecifier};
use place::Place;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;

#[test]
fn a_list_begins_with_the_newest_of_each_precedence() {
    let place = Place::new();
    for number in 0..130 {
        let level = if number % 40 == 7 { Flash } else { Routine };
        place.server.deliver(level, &format!("N{number}"), 10);
    }
    // What a list does not show stays new.
    assert_eq!(place.numbers(&["list", "--limit", "6"]), [128, 88, 48, 8, 130, 129]);
    assert_eq!(place.numbers(&["list", "--new", "--limit", "2"]), [127, 126]);
    assert_eq!(place.numbers(&["list", "--new", "--limit", "200"]).len(), 122);
    let all = place.json(&["list", "--limit", "130"]);
    assert_eq!((all["entries"].as_array().unwrap().len(), &all["more"]), (130, &false.into()));
    assert_eq!(place.json(&["list", "--limit", "129"])["more"], true);
    assert_eq!(place.numbers(&["list", "--by", "arrival", "--limit", "3"]), [1, 2, 3]);
    assert_eq!(place.numbers(&["list", "--by", "newest", "--limit", "3"]), [130, 129, 128]);
    assert_eq!(place.numbers(&["search", "n12", "--limit", "3"]), [128, 130, 129]);
    assert_eq!(place.numbers(&["list", "--from", "smith", "--limit", "5"]), [128, 88, 48, 8, 130]);
}

#[test]
fn an_export_keeps_the_status_that_an_entry_had() {
    let place = Place::new();
    (0..3).for_each(|_| _ = place.server.deliver(Routine, "Exercise", 10));
    place.done(&["read", "1"]);
    assert_eq!(place.numbers(&["list", "--limit", "1"]), [3]);
    let exported = place.json(&["export", "kept"]);
    assert_eq!(exported["made_processed"], 2);
    let index = std::fs::read_to_string(place.path("kept/index.jsonl")).unwrap();
    let status = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        entry["status"].as_str().unwrap().to_owned()
    };
    let all: Vec<String> = index.lines().skip(1).map(status).collect();
    assert_eq!(all, ["processed", "new", "listed"]);
    assert!(place.done(&["export", "--help"]).contains("processed"));
}

/// A message with a file, inside another, inside another, and so on.
fn nested(depth: usize, military: bool) -> Vec<u8> {
    let heading = |level: usize| Heading {
        this_ipm: IpmIdentifier { user: None, local: level.to_string() },
        subject: Some(format!("LEVEL {level}")),
        ..Heading::default()
    };
    let file = PartForm::File { name: Some("chart.bin".to_owned()) };
    let inner = ContentBuilder::new(&heading(depth)).unwrap().text("THE INNERMOST");
    let mut content = inner.part(&file, &[0, 27, 255]).finish();
    for level in (0..depth).rev() {
        let header = p772::content_header(&content).unwrap().unwrap();
        let rest = content.split_off(header.size);
        let outer = ContentBuilder::new(&heading(level)).unwrap().text(&format!("TEXT {level}"));
        let forwarded = p772::Forwarded { military, delivery: None };
        content = outer.finish_forwarding(&forwarded, rest.len() as u64).head;
        content.extend(rest);
    }
    content
}

#[test]
fn a_message_in_a_message_is_read_and_its_files_are_extracted() {
    let place = Place::new();
    for military in [false, true] {
        let number = place.server.deliver_content(Routine, &nested(3, military)).to_string();
        let text = place.done(&["read", &number]);
        for part in ["LEVEL 0", "TEXT 0", "LEVEL 3", "THE INNERMOST", "chart.bin"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let into = format!("out-{military}");
        place.done(&["extract", &number, "--into", &into]);
        let file = std::fs::read(place.path(&into).join("chart.bin")).unwrap();
        assert_eq!(file, [0, 27, 255]);
    }
    // Deeper than anybody forwards: it ends, and names what is not shown.
    let number = place.server.deliver_content(Routine, &nested(40, false)).to_string();
    let text = place.done(&["read", &number]);
    assert!(text.contains("LEVEL 8") && !text.contains("LEVEL 9"), "{text}");
    assert!(text.contains("not shown"), "{text}");
}

/// A message whose originator asks us for a notification.
fn asking(local: &str) -> Vec<u8> {
    let me: p1::names::ORName = "/C=XX/ADMD= /PRMD=alpha/S=Jones".parse().unwrap();
    let mut recipient = RecipientSpecifier::from(me);
    recipient.notification_requests.receipt = true;
    let user: p1::names::ORName = "/C=XX/ADMD= /PRMD=alpha/S=Smith".parse().unwrap();
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: local.to_owned() },
        originator: Some(user.into()),
        primary_recipients: vec![recipient],
        subject: Some("CONTACT".to_owned()),
        ..Heading::default()
    };
    ContentBuilder::new(&heading).unwrap().text("TWO SHIPS.").finish()
}

#[test]
fn a_message_is_acknowledged_once() {
    let place = Place::new();
    place.server.deliver_content(Flash, &asking("M-1"));
    place.server.deliver(Routine, "Nothing asked", 10);
    place.server.deliver_report(Routine);
    let submitted = || place.server.shared.lock().unwrap().submitted.clone();
    let text = place.done(&["acknowledge", "1"]);
    assert!(text.contains("receipt") && text.contains("S=Smith"), "{text}");
    assert_eq!(submitted().len(), 1);
    let again = place.json(&["acknowledge", "1"]);
    assert_eq!((&again["already"], submitted().len()), (&true.into(), 1));
    place.fails(&["acknowledge", "2"], 2, "did not ask");
    place.fails(&["acknowledge", "3"], 2, "is a report");
    // An answer that was lost: the same octets again, so that the MTA knows them.
    place.server.deliver_content(Flash, &asking("M-2"));
    place.server.fault(p1::p3::operation::MESSAGE_SUBMISSION, Fault::Abort);
    let read = place.done(&["read", "4", "--acknowledge"]);
    assert!(read.contains("TWO SHIPS.") && submitted().len() == 2, "{read}");
    assert_eq!(place.json(&["acknowledge", "4"])["already"], true);
}

#[test]
fn a_time_that_is_past_is_refused_before_anything_is_sent() {
    let place = Place::new();
    let send = |more: &[&str]| {
        let to = ["send", "--to", "/C=XX/ADMD= /PRMD=alpha/S=Smith", "--text", "x"];
        [&to, more].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    for option in ["--defer-until", "--latest"] {
        let args = send(&[option, "200101000000Z"]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.fails(&args, 2, "is past");
    }
    let args = send(&["--defer-until", "+2h", "--latest", "+1h"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    place.fails(&args, 2, "before");
    // A time of this moment is not refused; the MTA of this profile is not there.
    let args = send(&["--defer-until", "+0s"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    place.fails(&args, 1, "no connection");
}

#[test]
fn a_program_that_is_missing_is_named_at_the_start() {
    let place = Place::new();
    place.fails(&["watch", "--exec", "./no-such"], 2, "no-such");
    place.fails(&["watch", "--exec", "no-such-program"], 2, "no-such-program");
    std::fs::write(place.path("plain"), "x").unwrap();
    place.fails(&["watch", "--exec", "./plain"], 2, "cannot be run");
}

#[test]
fn a_deletion_is_shown() {
    let place = Place::new();
    (0..7).for_each(|_| _ = place.server.deliver(Routine, "Exercise", 10));
    let text = place.done(&["delete", "7", "2-4"]);
    assert!(text.contains("7, 2-4") && text.contains("4 entries"), "{text}");
    let deleted = place.json(&["delete", "1", "5-99"]);
    assert_eq!((&deleted["count"], &deleted["deleted"][1]), (&3.into(), &"5-99".into()));
    assert!(place.done(&["delete", "2-4"]).contains("no entries"));
}

#[test]
fn a_store_that_does_not_answer_is_given_up_in_time() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let config = place.path("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let silent = text.replace(&place.server.address, &address);
    std::fs::write(&config, silent).unwrap();
    let clock = ua::Clock::start();
    let began = clock.now();
    place.fails(&["list", "--answer-timeout", "1s"], 1, "no answer to the bind within 1 s");
    assert!(clock.now().since(began).as_secs() < 5, "the bind");
    // One that was bound, and is silent then.
    std::fs::write(&config, text).unwrap();
    place.server.fault(op::SUMMARIZE, Fault::Silence);
    let began = clock.now();
    place.fails(&["list", "--answer-timeout", "1s"], 1, "");
    assert!(clock.now().since(began).as_secs() < 6, "an operation");
}

#[test]
fn what_failed_has_its_cause_once() {
    let place = Place::new();
    let config = place.path("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let with_store = |address: &str| {
        std::fs::write(&config, text.replace(&place.server.address, address)).unwrap();
    };
    with_store("no.such.host.invalid:1");
    place.fails(&["list"], 1, "is not an address");
    with_store("127.0.0.1:1");
    place.fails(&["list"], 1, "no connection");
    with_store(&place.server.address);
    place.server.shared.lock().unwrap().password = b"other".to_vec();
    place.fails(&["list"], 1, "authentication error");
    place.server.shared.lock().unwrap().password = b"vesuvio".to_vec();
    place.fails(&["--pcap", "/no/such", "list"], 1, "cannot write the capture");
    place.server.fault(op::SUMMARIZE, Fault::Octets(vec![5, 0]));
    place.fails(&["list"], 1, "answered wrongly");
}

#[test]
fn a_profile_is_made_with_the_store_that_the_user_can_bind_to() {
    let place = Place::new();
    let init = |name: &str, more: &[&str]| {
        let address = &place.server.address;
        let user = "/C=XX/ADMD= /PRMD=alpha/S=Jones";
        let all = ["init", "--name", name, "--mta", "127.0.0.1:1", "--user", user];
        let mut command =
            place.command(&[&all[..], &["--store", address, "--password-stdin"], more].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"wrong\n").unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = init("a", &[]);
    assert!(code == Some(2) && error.contains("the message store"), "{error}");
    assert_eq!(init("b", &["--no-bind"]).0, Some(0));
    let text = std::fs::read_to_string(place.path("config.toml")).unwrap();
    assert!(text.contains("[profile.\"b\"]") && !text.contains("[profile.\"a\"]"), "{text}");
}
