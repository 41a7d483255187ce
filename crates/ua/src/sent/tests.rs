//! States of messages, and a log that is cut off.

use super::*;

#[test]
fn an_acknowledgement_that_was_begun_keeps_identifier_and_time() {
    let directory = tempfile::tempdir().unwrap();
    let log = SentLog::new(directory.path().join("sent.log"));
    let at = |second: &[u8]| Utc::from_utc_time(second).unwrap();
    let first = at(b"260504030201Z");
    let begun = Some(("A".to_owned(), first));
    assert_eq!(log.acknowledge("M", "A", first).unwrap(), begun);
    assert_eq!(log.acknowledge("M", "B", at(b"260504030202Z")).unwrap(), begun);
    let done = Entry::Acknowledged {
        mts_identifier: "M".to_owned(),
        ipm: "1*".to_owned(),
        notification: "N".to_owned(),
    };
    log.append(&[done]).unwrap();
    assert_eq!(log.acknowledge("M", "C", first).unwrap(), None);
    assert!(log.acknowledge("OTHER", "C", first).unwrap().is_some());
}

fn submitted(n: u32, mts: &str) -> Submitted {
    Submitted {
        mts_identifier: mts.to_owned(),
        ipm: format!("M{n}*/S=A/C=XX"),
        content_identifier: format!("C{n}"),
        dtg: "260504030201Z".to_owned(),
        recipients: vec!["/S=B/C=XX".to_owned(), "/S=C/C=XX".to_owned()],
        precedence: "flash".to_owned(),
        ..Submitted::default()
    }
}

fn notified(recipient: &str, read: bool) -> Entry {
    let (ipm, recipient) = ("M1*/S=A/C=XX".to_owned(), recipient.to_owned());
    Entry::Notified { ipm, recipient, read, detail: "at noon".to_owned() }
}

fn reported(recipient: &str, delivered: bool) -> Entry {
    let (mts_identifier, recipient) = ("[X;1]".to_owned(), recipient.to_owned());
    Entry::Reported { mts_identifier, recipient, delivered, detail: "no such user".to_owned() }
}

#[test]
fn states_follow_from_what_was_received() {
    let directory = tempfile::tempdir().unwrap();
    let log = SentLog::new(directory.path().join("new/sent.log"));
    assert!(log.read().unwrap().messages.is_empty());
    log.append(&[Entry::Begun(submitted(1, ""))]).unwrap();
    assert!(log.read().unwrap().messages[0].summary().starts_with("in doubt"));
    log.append(&[Entry::Accepted(submitted(1, "[X;1]"))]).unwrap();
    let sent = log.read().unwrap();
    assert_eq!((sent.messages.len(), sent.messages[0].summary().as_str()), (1, "accepted"));
    log.append(&[reported("/S=b/C=xx", true), reported("/S=C/C=XX", false)]).unwrap();
    let sent = log.read().unwrap();
    let summary = sent.by_mts("[X;1]").unwrap().summary();
    assert_eq!(summary, "delivered 1 of 2, not delivered 1 of 2");
    // A notification, then the report again, which takes nothing back.
    log.append(&[notified("/S=B/C=XX", true), reported("/S=B/C=XX", true)]).unwrap();
    let sent = log.read().unwrap();
    let message = sent.by_ipm("M1*/S=A/C=XX").next().unwrap();
    assert_eq!(message.recipients.len(), 2);
    assert_eq!(message.recipients[0].1.to_string(), "at noon");
    assert_eq!(message.recipients[1].1.to_string(), "not delivered: no such user");
    let end = |n: u32| Entry::Ended {
        content_identifier: format!("C{n}"),
        ipm: format!("M{n}*/S=A/C=XX"),
        outcome: "refused".to_owned(),
        reason: "too long".to_owned(),
    };
    log.append(&[Entry::Begun(submitted(2, "")), end(2), end(1)]).unwrap();
    let sent = log.read().unwrap();
    assert_eq!(sent.messages[1].summary(), "not sent: refused: too long");
    assert!(sent.messages[0].summary().starts_with("read 1 of 2"));
}

#[test]
fn a_torn_line_is_removed_and_writers_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sent.log");
    fs::write(&path, "nonsense\n{\"entry\":\"beg").unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let log = SentLog::new(path.clone());
            scope.spawn(move || {
                for m in 0..5 {
                    let entry = Entry::Begun(submitted(n * 10 + m, ""));
                    log.append(&[entry]).unwrap();
                }
            });
        }
    });
    let sent = SentLog::new(path.clone()).read().unwrap();
    assert_eq!((sent.messages.len(), sent.unreadable), (40, 1));
    use std::os::unix::fs::PermissionsExt as _;
    fs::remove_file(&path).unwrap();
    SentLog::new(path.clone()).append(&[]).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
