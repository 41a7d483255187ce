//! The verbs on a mailbox, as a user types them, against a message store in this process.
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

use base::Precedence::{Flash, Override, Routine};
use p1::extension::{ExtensionField, ExtensionType};
use p1::p3::{ArgumentEvent, MessageSubmissionEnvelope, SubmissionParser};
use p772::{
    ContentBuilder, ContentEvent, ContentParser, Heading, IpmIdentifier, PartForm, PartKind,
};
use place::Place;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn a_mailbox_is_listed_and_searched() {
    let place = Place::new();
    place.server.deliver(Routine, "Fire drill", 10);
    place.server.deliver(Flash, "Fire in the harbour", 10);
    place.server.deliver_report(Routine);
    place.server.deliver(Override, "Withdraw", 10);
    assert_eq!(place.numbers(&["list", "--new", "--limit", "1"]), [4]);
    assert_eq!(place.numbers(&["list"]), [4, 2, 3, 1]);
    assert_eq!(place.numbers(&["list", "--by", "arrival"]), [1, 2, 3, 4]);
    assert_eq!(
        place.numbers(&["list", "--precedence", "flash", "--precedence", "routine"]),
        [2, 3, 1]
    );
    assert_eq!(place.numbers(&["list", "--new"]), [0; 0]);
    assert_eq!(place.numbers(&["list", "--subject", "FIRE"]), [2, 1]);
    assert_eq!(place.numbers(&["list", "--from", "smith"]), [4, 2, 1]);
    assert_eq!(place.numbers(&["list", "--from", "nobody"]), [0; 0]);
    assert_eq!(place.numbers(&["list", "--since", "300101000000Z"]), [0; 0]);
    assert_eq!(place.numbers(&["search", "fire"]), [2, 1]);
    assert_eq!(place.numbers(&["search", "fire", "harbour"]), [2]);
    assert_eq!(place.numbers(&["search", "flash"]), [2]);
    assert_eq!(place.json(&["list", "--limit", "2"])["more"], true);
    let text = place.done(&["list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].contains("precedence") && lines[1].contains("override"), "{text}");
    assert!(lines[3].contains("report on"), "{text}");
    place.fails(&["search", ""], 2, "empty");
}

#[test]
fn a_content_is_fetched_into_a_file_that_was_not_there() {
    let place = Place::new();
    place.server.deliver(Routine, "Large", 3 << 20);
    place.server.deliver_report(Routine);
    let fetched = place.json(&["fetch", "1"]);
    let octets = std::fs::read(place.path("1.content")).unwrap();
    assert_eq!(fetched["content_length"].as_u64(), Some(octets.len() as u64));
    assert!(octets.len() > 3 << 20 && octets.ends_with(b"xxxx"));
    place.fails(&["fetch", "1"], 2, "exists");
    place.fails(&["fetch", "2", "--out", "report"], 2, "is a report");
    place.fails(&["fetch", "9"], 1, "no entry 9");
    let output = place.run(&["fetch", "1", "--out", "-"]);
    assert_eq!(output.stdout, octets);
    // Nothing is left of the tries that failed.
    let mut names: Vec<_> = std::fs::read_dir(place.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["1.content", "config.toml", "jones.password"]);
}

/// A content with these files.
fn with_files(files: &[(&str, &[u8])]) -> Vec<u8> {
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
        ..Heading::default()
    };
    let builder = ContentBuilder::new(&heading).unwrap().text("see the files");
    let part = |builder: ContentBuilder, (name, octets): &(&str, &[u8])| {
        builder.part(&PartForm::File { name: Some((*name).to_owned()) }, octets)
    };
    files.iter().fold(builder, part).finish()
}

#[test]
fn files_come_out_as_they_went_in_and_overwrite_nothing() {
    let place = Place::new();
    let files: [(&str, &[u8]); 3] =
        [("chart.bin", &[7; 5_000]), ("../../escape", b"a"), ("chart.bin", b"another")];
    place.server.deliver_content(Routine, &with_files(&files));
    let extracted = place.json(&["extract", "1", "--into", "out"]);
    let read = |name: &str| std::fs::read(place.path("out").join(name)).unwrap();
    assert_eq!(extracted["extracted"].as_array().unwrap().len(), 3);
    assert_eq!((read("chart.bin"), read("chart-1.bin")), (vec![7; 5_000], b"another".to_vec()));
    assert_eq!(read("escape"), b"a");
    assert!(!Path::new("/tmp/escape").exists());
    place.done(&["extract", "1", "--into", "out"]);
    assert_eq!((read("chart.bin"), read("chart-2.bin")), (vec![7; 5_000], vec![7; 5_000]));
    place.server.deliver_report(Routine);
    place.fails(&["extract", "2"], 2, "is a report");
}

#[test]
fn a_message_is_read_with_its_heading_and_a_report_in_words() {
    let place = Place::new();
    place.server.deliver(Flash, "Fire in the harbour", 10);
    place.server.deliver_report(Routine);
    let text = place.done(&["read", "1"]);
    for part in ["flash", "S=Smith", "Fire in the harbour", "S=Jones", "\n    xxxxxxxxxx\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let read = place.json(&["read", "1"]);
    assert_eq!(
        (&read["status"], &read["parts"][0]["text"]),
        (&"processed".into(), &"xxxxxxxxxx".into())
    );
    assert_eq!(read["heading"]["subject"][0], "Fire in the harbour");
    let text = place.done(&["read", "2"]);
    assert!(text.contains("not delivered: there is no such recipient"), "{text}");
    assert_eq!(place.json(&["read", "2"])["recipients"][0]["delivered"], false);
    // Nothing is consumed.
    assert_eq!(place.numbers(&["list"]), [1, 2]);
}

#[test]
fn entries_are_deleted() {
    let place = Place::new();
    (0..7).for_each(|_| _ = place.server.deliver(Routine, "Exercise", 10));
    place.fails(&["delete", "1", "99"], 1, "no entry 99");
    place.done(&["delete", "7", "2-4"]);
    assert_eq!(place.numbers(&["list"]), [6, 5, 1]);
    place.fails(&["delete", "4-2"], 2, "below the first");
}

#[test]
fn a_password_is_changed_here_and_there() {
    let place = Place::new();
    let new = place.path("new");
    std::fs::write(&new, "etna\n").unwrap();
    place.fails(&["password"], 2, "--new-file");
    place.fails(&["password", "--new-file", "new"], 2, "others may read");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    place.done(&["password", "--new-file", "new"]);
    let file = place.path("jones.password");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "etna\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.numbers(&["list"]), [0; 0]);
    place.fails(&["password", "--new-file", "new"], 2, "is the old one");
    std::fs::write(&file, "vesuvio\n").unwrap();
    place.fails(&["list"], 1, "authentication");
}

#[test]
fn without_a_store_the_error_names_what_to_add() {
    let place = Place::new();
    let config = place.path("config.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("store =", "# store =");
    std::fs::write(&config, text).unwrap();
    place.fails(&["list"], 2, "add store = ");
}

/// What was submitted last: envelope and content.
fn submitted(place: &Place) -> (Box<MessageSubmissionEnvelope>, Vec<u8>) {
    let all = place.server.shared.lock().unwrap().submitted.clone();
    let (mut rest, mut content) = (all.last().unwrap().as_slice(), Vec::new());
    let (mut parser, mut envelope) = (SubmissionParser::default(), None);
    while let Some(event) = parser.next(&mut rest).unwrap() {
        match event {
            ArgumentEvent::Envelope(of) => envelope = Some(of),
            ArgumentEvent::Content(octets) => content.extend_from_slice(octets),
            ArgumentEvent::End => {}
        }
    }
    (envelope.unwrap(), content)
}

/// The heading of a content, and its body parts.
fn opened(content: &[u8]) -> (Heading, Vec<(PartKind, Vec<u8>)>) {
    let (mut parser, mut rest) = (ContentParser::new(), content);
    let (mut heading, mut parts) = (None, Vec::new());
    while let Some(event) = parser.next(&mut rest).unwrap() {
        match event {
            ContentEvent::Heading(of) => heading = Some(*of),
            ContentEvent::PartBegin(kind) => parts.push((kind, Vec::new())),
            ContentEvent::Data(data) => parts.last_mut().unwrap().1.extend_from_slice(&data),
            _ => {}
        }
    }
    (heading.unwrap(), parts)
}

#[test]
fn a_reply_goes_to_the_originator_and_names_what_it_answers() {
    let place = Place::new();
    place.server.deliver(Flash, "Fire", 10);
    let accepted = place.json(&["reply", "1", "--text", "on our way"]);
    assert_eq!(
        (&accepted["precedence"], &accepted["mts_identifier"].is_string()),
        (&"flash".into(), &true)
    );
    let (envelope, content) = submitted(&place);
    let to: Vec<String> =
        envelope.recipients.iter().map(|r| r.recipient.address.to_string()).collect();
    assert!(to.len() == 1 && to[0].contains("S=Smith"), "{to:?}");
    let (heading, parts) = opened(&content);
    assert_eq!(heading.subject.as_deref(), Some("Re: Fire"));
    assert_eq!(heading.replied_to.map(|ipm| ipm.local), Some("1".to_owned()));
    assert_eq!(heading.military.primary_precedence.and_then(|p| p.level()), Some(Flash));
    assert_eq!(parts[0].1, b"on our way");
    place.json(&["reply", "1", "--text", "x", "--precedence", "routine", "--subject", "Later"]);
    let (heading, _) = opened(&submitted(&place).1);
    assert_eq!(heading.subject.as_deref(), Some("Later"));
    // Both are in the record of what was sent.
    let sent = place.json(&["sent"]);
    let recorded = sent["messages"].as_array().unwrap();
    let subjects: Vec<&Value> = recorded.iter().map(|m| &m["message"]["subject"]).collect();
    assert_eq!(subjects, ["Re: Fire", "Later"]);
    assert_eq!(recorded[0]["message"]["mts_identifier"], accepted["mts_identifier"]);
    assert_eq!(heading.military.primary_precedence.and_then(|p| p.level()), Some(Routine));
    place.server.deliver_report(Routine);
    place.fails(&["reply", "2", "--text", "x"], 2, "not a message that can be replied to");
}

#[test]
fn a_message_is_forwarded_whole() {
    let place = Place::new();
    place.server.deliver(Flash, "Fire", 100_000);
    place.done(&["fetch", "1", "--out", "original"]);
    let original = std::fs::read(place.path("original")).unwrap();
    let to = "/C=XX/ADMD= /PRMD=alpha/S=Miller";
    place.json(&["forward", "1", "--to", to, "--text", "for you"]);
    let (envelope, content) = submitted(&place);
    assert!(envelope.recipients[0].recipient.address.to_string().contains("S=Miller"));
    let (heading, parts) = opened(&content);
    assert_eq!(heading.subject.as_deref(), Some("Fwd: Fire"));
    assert_eq!((parts.len(), parts[0].1.as_slice()), (2, &b"for you"[..]));
    let PartKind::Extended { data, parameters } = &parts[1].0 else { panic!("{:?}", parts[1].0) };
    assert_eq!(data.to_string(), "1.3.26.0.4406.0.7.9");
    assert!(parameters.as_ref().unwrap().len() > 50);
    // As it came, but for the outer tag, which is that of an IPM here.
    assert_eq!((parts[1].1[0], &parts[1].1[1..]), (0x30, &original[1..]));
    place.server.deliver_report(Routine);
    place.fails(&["forward", "2", "--to", to], 2, "is a report");
    let unreadable = place.server.deliver_content(Routine, b"nothing known").to_string();
    place.fails(&["forward", &unreadable, "--to", to], 1, "cannot be forwarded");
}

/// The labels of what was submitted last, as octets.
fn submitted_labels(place: &Place) -> Vec<Vec<u8>> {
    let kind = ExtensionType::Standard(p1::extension::number::MESSAGE_SECURITY_LABEL);
    let extensions = submitted(place).0.extensions.0;
    let labels = extensions.iter().filter(|field| field.kind == kind);
    labels.map(|field| field.value.to_vec()).collect()
}

#[test]
fn what_is_submitted_has_the_label_that_was_given_kept_or_of_the_profile() {
    let place = Place::new();
    let of = |text: &str| ua::label::field(&text.parse().unwrap());
    let deliver = |labels: Vec<ExtensionField>| {
        place.server.shared.lock().unwrap().world.copies.labels = labels;
        place.server.deliver(Routine, "Fire", 10)
    };
    deliver(vec![of("/secret")]);
    place.done(&["reply", "1", "--text", "x"]);
    assert!(submitted_labels(&place).is_empty());
    place.done(&["export", "kept"]);
    let config = place.path("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}label = \"/restricted\"\n")).unwrap();
    place.done(&["reply", "1", "--text", "x"]);
    assert_eq!(submitted_labels(&place), [of("/restricted").value.to_vec()]);
    place.done(&["reply", "1", "--text", "x", "--label", "/confidential"]);
    assert_eq!(submitted_labels(&place), [of("/confidential").value.to_vec()]);
    place.done(&["import", "kept", "--resubmit"]);
    assert_eq!(submitted_labels(&place), [of("/secret").value.to_vec()]);
    place.done(&["forward", "1", "--to", "/C=XX/ADMD= /PRMD=alpha/S=Jones"]);
    assert_eq!(submitted_labels(&place), [of("/secret").value.to_vec()]);
    std::fs::write(&config, format!("{text}label = \"/topmost\"\n")).unwrap();
    place.fails(&["reply", "1", "--text", "x"], 2, "the profile's label: ");
}

#[test]
fn an_exported_mailbox_is_whole_can_be_continued_and_resubmitted() {
    let place = Place::new();
    place.server.deliver(Flash, "Fire", 100_000);
    place.server.deliver_report(Routine);
    let exported = place.json(&["export", "kept"]);
    assert_eq!((&exported["exported"], &exported["already_there"]), (&2.into(), &0.into()));
    let content = std::fs::read(place.path("kept/entries/0000000001.content")).unwrap();
    place.done(&["fetch", "1", "--out", "fetched"]);
    assert_eq!(std::fs::read(place.path("fetched")).unwrap(), content);
    // The index was cut off in its last line, as by a full disk.
    let index = place.path("kept/index.jsonl");
    let text = std::fs::read_to_string(&index).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    std::fs::write(&index, &text[..text.len() - 10]).unwrap();
    place.server.deliver(Routine, "Later", 10);
    let exported = place.json(&["export", "kept"]);
    assert_eq!((&exported["exported"], &exported["already_there"]), (&2.into(), &1.into()));
    let check = place.json(&["import", "kept", "--check"]);
    assert_eq!((&check["whole"], &check["faulty"].as_array().unwrap().len()), (&3.into(), &0));
    // Without --check or --resubmit it does nothing, and names them.
    place.fails(&["import", "kept"], 2, "--resubmit");
    let resubmitted = place.json(&["import", "kept", "--resubmit"]);
    assert_eq!(resubmitted["submitted"].as_array().unwrap().len(), 2);
    assert_eq!(resubmitted["reports_left_out"], 1);
    assert_eq!(resubmitted["submitted_before"].as_array().unwrap().len(), 0);
    let again = place.json(&["import", "kept", "--resubmit"]);
    assert_eq!(again["submitted"].as_array().unwrap().len(), 0);
    assert_eq!(again["submitted_before"], resubmitted["submitted"]);
    let first = place.server.shared.lock().unwrap().submitted[0].clone();
    assert!(first.ends_with(&content));
    std::fs::write(place.path("kept/entries/0000000003.content"), b"changed").unwrap();
    place.fails(&["import", "kept", "--check"], 1, "0000000003.content is not what was exported");
    place.fails(&["import", "kept", "--resubmit"], 1, "nothing is submitted");
    std::fs::write(place.path("kept/index.jsonl"), "{}").unwrap();
    place.fails(&["import", "kept", "--check"], 1, "index is empty");
    place.fails(&["export", "."], 2, "is not empty");
}

#[test]
fn a_mailbox_becomes_a_maildir() {
    let place = Place::new();
    place.server.deliver(Flash, "Fire", 10);
    place.server.deliver_content(Routine, &with_files(&[("../chart.bin", &[7; 100])]));
    place.server.deliver_content(Routine, b"nothing known");
    place.server.deliver_report(Routine);
    assert_eq!(place.json(&["export", "mail", "--maildir"])["exported"], 4);
    let mut mails: Vec<(String, String)> = std::fs::read_dir(place.path("mail/cur"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let text = String::from_utf8(std::fs::read(entry.path()).unwrap()).unwrap();
            (entry.file_name().into_string().unwrap(), text.replace("=\r\n", ""))
        })
        .collect();
    mails.sort_by_key(|(name, _)| name.split('.').nth(1).map(str::to_owned));
    let has =
        |at: usize, part: &str| assert!(mails[at].1.contains(part), "{part}: {}", mails[at].1);
    has(0, "Subject: Fire");
    has(0, "X400-Precedence: flash");
    has(1, "chart.bin");
    has(2, "unreadable.bin");
    has(3, "there is no such recipient");
    assert_eq!(std::fs::read_dir(place.path("mail/tmp")).unwrap().count(), 0);
    place.fails(&["export", "mail", "--maildir"], 2, "is not empty");
}

/// A watch, and what it prints.
struct Watching {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watching {
    fn start(place: &Place, args: &[&str]) -> Watching {
        let mut command = place.command(&[&["watch", "--json"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Watching { child, lines }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(20)).expect("an alert");
        serde_json::from_str(&line).unwrap()
    }

    fn end(mut self) -> Option<i32> {
        let interrupt = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(interrupt.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_watch_shows_what_arrives_and_survives_a_lost_connection() {
    let place = Place::new();
    place.server.deliver(Flash, "Before", 10);
    place.server.deliver(Routine, "Not this", 10);
    let watching = Watching::start(&place, &["--precedence", "immediate"]);
    assert_eq!(watching.next()["subject"], "Before");
    place.server.deliver(Routine, "Not this", 10);
    place.server.deliver(Flash, "At once", 10);
    assert_eq!(watching.next()["subject"], "At once");
    place.server.drop_associations();
    place.server.deliver(Override, "While away", 10);
    let line = watching.next();
    assert_eq!((&line["subject"], &line["precedence"]), (&"While away".into(), &"override".into()));
    place.server.deliver(Flash, "Again", 10);
    assert_eq!(watching.next()["subject"], "Again");
    assert_eq!(watching.end(), Some(130));
}

#[test]
fn a_watch_that_was_away_shows_what_another_client_has_listed() {
    let place = Place::new();
    place.server.deliver(Flash, "Old", 10);
    assert!(place.command(&["list"]).output().unwrap().status.success());
    let watching = Watching::start(&place, &[]);
    place.server.deliver(Flash, "First", 10);
    assert_eq!(watching.next()["subject"], "First");
    let pid = watching.child.id().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    place.server.drop_associations();
    place.server.deliver(Flash, "Listed elsewhere", 10);
    assert!(place.command(&["list"]).output().unwrap().status.success());
    signal("-CONT");
    assert_eq!(watching.next()["subject"], "Listed elsewhere");
    place.server.deliver(Flash, "Last", 10);
    assert_eq!(watching.next()["subject"], "Last");
    assert_eq!(watching.end(), Some(130));
}

#[test]
fn a_watch_ends_after_its_count_and_runs_a_program() {
    let place = Place::new();
    let program = place.path("program");
    let out = place.path("out");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$XUXA_PRECEDENCE $XUXA_SUBJECT $#\" >>out\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let exec = program.to_str().unwrap();
    let mut watching = Watching::start(&place, &["--count", "1", "--exec", exec]);
    place.server.deliver(Flash, "$(touch x) `id`", 10);
    assert_eq!(watching.next()["number"], 1);
    assert_eq!(watching.child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "flash $(touch x) `id` 0\n");
    assert!(!place.path("x").exists());
}
