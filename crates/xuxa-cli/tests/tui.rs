//! `xuxa tui` in a terminal of tmux, against a message store in this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

#[path = "../../ua/tests/common/mod.rs"]
mod common;
#[path = "../../xuxa-tui/tests/all/terminal.rs"]
mod terminal;

use base::Precedence::{Flash, Routine};
use common::TestStore;
use p1::p3::{ArgumentEvent, MessageSubmissionEnvelope, SubmissionParser};
use p772::{ContentBuilder, ContentEvent, ContentParser, Heading, IpmIdentifier, PartForm};
use std::os::unix::fs::PermissionsExt as _;
use terminal::Terminal;
use tokio::runtime::Runtime;

/// A store, and a user of it with a profile and an address book.
struct Place {
    dir: tempfile::TempDir,
    server: TestStore,
    _runtime: Runtime,
}

impl Place {
    fn new() -> Place {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(TestStore::start());
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("xuxa");
        std::fs::create_dir(&home).unwrap();
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("jones.password", "vesuvio\n");
        write("book.toml", "[address]\nact-ops = \"/C=XX/ADMD= /PRMD=alpha/S=Ops\"\n");
        let address = &server.address;
        write(
            "config.toml",
            &format!(
                "[profile.jones]\nmta = \"127.0.0.1:1\"\nstore = \"{address}\"\n\
                 user = \"/C=XX/ADMD= /PRMD=alpha/S=Jones\"\npassword = {{ file = \"jones.password\" }}\ninbox = \"inbox\"\n"
            ),
        );
        Place { dir, server, _runtime: runtime }
    }

    fn starts(&self, terminal: &Terminal) {
        let program = env!("CARGO_BIN_EXE_xuxa");
        let home = self.dir.path().display();
        terminal.starts(&format!("XDG_CONFIG_HOME={home} XDG_DATA_HOME={home} {program} tui"));
    }

    /// What was submitted last: envelope, heading and the octets of its body parts.
    fn submitted(&self) -> (Box<MessageSubmissionEnvelope>, Box<Heading>, Vec<Vec<u8>>) {
        let all = self.server.shared.lock().unwrap().submitted.clone();
        let argument = all.last().unwrap();
        let (mut parser, mut rest) = (SubmissionParser::default(), argument.as_slice());
        let (mut envelope, mut content) = (None, Vec::new());
        while let Ok(Some(event)) = parser.next(&mut rest) {
            match event {
                ArgumentEvent::Envelope(one) => envelope = Some(one),
                ArgumentEvent::Content(octets) => content.extend_from_slice(octets),
                _ => {}
            }
        }
        let (mut parser, mut rest) = (ContentParser::new(), content.as_slice());
        let (mut heading, mut parts) = (None, Vec::new());
        while let Ok(Some(event)) = parser.next(&mut rest) {
            match event {
                ContentEvent::Heading(one) => heading = Some(one),
                ContentEvent::PartBegin(_) => parts.push(Vec::new()),
                ContentEvent::Data(octets) => parts.last_mut().unwrap().extend_from_slice(&octets),
                ContentEvent::End => break,
                _ => {}
            }
        }
        (envelope.unwrap(), heading.unwrap(), parts)
    }
}

/// A content with a text and a file.
fn contact() -> Vec<u8> {
    let user = "/C=XX/ADMD= /PRMD=alpha/S=Ops".parse().unwrap();
    let me: p1::names::ORName = "/C=XX/ADMD= /PRMD=alpha/S=Jones".parse().unwrap();
    let mut recipient = p772::RecipientSpecifier::from(me);
    recipient.notification_requests.receipt = true;
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "M-1".to_owned() },
        originator: Some(p1::names::ORName::into(user)),
        primary_recipients: vec![recipient],
        subject: Some("CONTACT \u{1b}[31mREPORT".to_owned()),
        ..Heading::default()
    };
    let name = Some("../chart.bin".to_owned());
    ContentBuilder::new(&heading)
        .unwrap()
        .text("TWO SHIPS.")
        .part(&PartForm::File { name }, &[0, 27, 255, 7])
        .finish()
}

#[test]
fn a_flash_is_alerted_read_acknowledged_answered_forwarded_extracted_and_deleted() {
    let place = Place::new();
    for number in 0..40 {
        place.server.deliver(Routine, &format!("SITREP {number:02}"), 500);
    }
    let terminal = Terminal::new("xuxa", 100, 30);
    place.starts(&terminal);
    terminal.waits_for("40 messages, 40 unread");
    terminal.waits_for("SITREP 39");
    place.server.deliver_content(Flash, &contact());
    let screen = terminal.waits_for("Ctrl-G read");
    let first = screen.lines().nth(4).unwrap();
    assert!(first.contains("!! FLASH"), "on top:\n{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    terminal.press(&["C-g"]);
    let screen = terminal.waits_for("TWO SHIPS.");
    assert!(screen.contains("chart.bin") && screen.contains("\\u{1b}[31mREPORT"), "{screen}");

    terminal.press(&["a"]);
    terminal.waits_for("gets a notification");
    terminal.press(&["r"]);
    terminal.waits_for("Re: CONTACT");
    terminal.types("WILCO");
    terminal.press(&["C-s"]);
    terminal.waits_for("the MTA accepted the message");
    let (envelope, heading, parts) = place.submitted();
    assert_eq!(envelope.priority, p1::grade::split(Flash).0);
    assert_eq!(heading.replied_to.as_ref().unwrap().local, "M-1");
    assert_eq!(parts, [b"WILCO".to_vec()]);

    terminal.press(&["f"]);
    terminal.waits_for("Forward message");
    terminal.types("act");
    terminal.waits_for("> act-ops");
    terminal.press(&["Enter", "C-s"]);
    terminal.waits_for("the MTA accepted the message: Fwd: CONTACT");
    let (envelope, heading, parts) = place.submitted();
    assert!(envelope.recipients[0].recipient.address.to_string().contains("S=Ops"));
    assert!(heading.subject.as_ref().unwrap().starts_with("Fwd: CONTACT"));
    assert!(parts.len() == 1 && parts[0].windows(10).any(|w| w == b"TWO SHIPS."));

    let out = place.dir.path().join("out");
    terminal.press(&["x"]);
    terminal.waits_for("Write a file into this directory");
    terminal.press(&["C-u"]);
    terminal.types(&out.display().to_string());
    terminal.press(&["Enter"]);
    terminal.waits_until("the file", |screen| {
        screen.lines().any(|line| line.contains("written:") && !line.contains("overwritten"))
    });
    let written: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(written, [out.join("chart.bin")]);
    assert_eq!(std::fs::read(&written[0]).unwrap(), [0, 27, 255, 7]);

    terminal.press(&["d"]);
    terminal.waits_for("Delete this message?");
    terminal.press(&["y"]);
    terminal.waits_for("40 messages");
    terminal.press(&["2"]);
    terminal.waits_for("Sent items");
    let screen = terminal.waits_for("Fwd: CONTACT");
    assert!(screen.contains("Re: CONTACT") && screen.contains("accepted"), "{screen}");
    terminal.press(&["q", "q"]);
    assert!(terminal.is_as_before().contains("exit 0"));
}

#[test]
fn an_association_that_ends_is_opened_again_and_a_wrong_password_is_explained() {
    let place = Place::new();
    place.server.deliver(Routine, "BEFORE", 500);
    let terminal = Terminal::new("bind", 80, 24);
    place.starts(&terminal);
    terminal.waits_for("BEFORE");
    place.server.drop_associations();
    terminal.waits_for("NOT BOUND");
    place.server.deliver(Flash, "MEANWHILE", 500);
    terminal.waits_for("bound to");
    terminal.waits_for("MEANWHILE");
    terminal.press(&["C-c"]);
    terminal.is_as_before();

    place.server.shared.lock().unwrap().password = b"other".to_vec();
    terminal.types("clear");
    terminal.press(&["Enter"]);
    terminal.waits_until("an empty screen", |screen| !screen.contains("as-before"));
    place.starts(&terminal);
    let screen = terminal.waits_for("BIND REFUSED");
    assert!(screen.contains("Correct the profile"), "{screen}");
    terminal.press(&["q"]);
    terminal.is_as_before();
}

#[test]
fn a_forwarded_message_is_shown_whole_and_an_acknowledgement_is_known_after_a_restart() {
    let place = Place::new();
    let inner = contact();
    let header = p772::content_header(&inner).unwrap().unwrap();
    let rest = &inner[header.size..];
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "M-2".to_owned() },
        subject: Some("OUTER".to_owned()),
        ..Heading::default()
    };
    let outer = ContentBuilder::new(&heading).unwrap().text("SEE BELOW.");
    let forwarded = p772::Forwarded { military: true, delivery: None };
    let head = outer.finish_forwarding(&forwarded, rest.len() as u64).head;
    place.server.deliver_content(Routine, &[head, rest.to_vec()].concat());
    place.server.deliver_content(Flash, &contact());
    let terminal = Terminal::new("again", 100, 40);
    place.starts(&terminal);
    // It was unread before the start.
    terminal.waits_for("Ctrl-G read");
    terminal.press(&["C-g"]);
    terminal.waits_for("TWO SHIPS.");
    terminal.press(&["a"]);
    terminal.waits_for("gets a notification");
    terminal.press(&["n"]);
    // The parts come one after the other.
    for part in ["SEE BELOW.", "forwarded message 1", "subject", "TWO SHIPS.", "chart.bin"] {
        terminal.waits_for(part);
    }
    terminal.press(&["q", "q"]);
    terminal.is_as_before();
    terminal.types("clear");
    terminal.press(&["Enter"]);
    terminal.waits_until("an empty screen", |screen| !screen.contains("as-before"));
    place.starts(&terminal);
    terminal.waits_for("> ");
    terminal.press(&["a"]);
    terminal.waits_for("acknowledged already");
    assert_eq!(place.server.shared.lock().unwrap().submitted.len(), 1);
    terminal.press(&["q"]);
    terminal.is_as_before();
}
