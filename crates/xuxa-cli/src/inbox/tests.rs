use super::*;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

fn open(dir: &Path) -> Inbox {
    Inbox::open(dir, true).unwrap()
}

/// Begins a message of these octets.
fn deliver(inbox: &mut Inbox, id: &str, octets: &[u8]) -> Incoming {
    let mut message = inbox.begin(id).unwrap();
    message.write(octets).unwrap();
    message
}

fn finish(inbox: &mut Inbox, incoming: Incoming, id: &str) -> Kept {
    inbox.finish(incoming, id, "content", |_| Ok(())).unwrap()
}

/// Delivers a message to who opens the inbox now.
fn take(dir: &Path, id: &str, octets: &[u8]) -> Kept {
    let mut inbox = open(dir);
    let message = deliver(&mut inbox, id, octets);
    finish(&mut inbox, message, id)
}

fn is_known(inbox: &Inbox, id: &str, octets: &[u8]) -> bool {
    inbox.was_received(id, &show::hex(&Sha256::digest(octets)), "content") == Some(true)
}

fn lines(dir: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(dir.join("received.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

const ID: &str = "[/ADMD=NATO/C=XX/;7]";

#[test]
fn what_has_the_name_of_a_new_message_stays() {
    let dir = tempfile::tempdir().unwrap();
    let name = file_name(ID, &show::hex(&Sha256::digest(b"retreat")));
    let there = dir.path().join(format!("{name}.content"));
    open(dir.path());
    fs::write(&there, b"attack").unwrap();
    let kept = take(dir.path(), ID, b"retreat");
    assert_eq!(kept.file, Some(dir.path().join(format!("{name}-1.content"))));
    assert_eq!(fs::read(&there).unwrap(), b"attack");
    assert_eq!(fs::read(kept.file.unwrap()).unwrap(), b"retreat");
    // One that was kept and not remembered has its name already.
    fs::remove_file(dir.path().join("received.log")).unwrap();
    let again = take(dir.path(), ID, b"retreat");
    assert_eq!((again.duplicate, names(dir.path())), (false, 3));
}

#[test]
fn remembers_what_was_finished_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = take(dir.path(), "[/C=XX/;1]", b"hello").file.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    let mut inbox = open(dir.path());
    drop(inbox.begin("[/C=XX/;2]").unwrap());
    // A line cut short by a crash is not a confirmed message.
    let log = dir.path().join("received.log");
    let mut text = fs::read(&log).unwrap();
    let whole = text.clone();
    text.extend_from_slice(b"{\"id\":\"[/C=XX/;3]\",\"sha256\":\"");
    fs::write(&log, text).unwrap();
    for _ in 0..2 {
        let again = open(dir.path());
        assert!(is_known(&again, "[/C=XX/;1]", b"hello"));
        assert!(!is_known(&again, "[/C=XX/;2]", b"") && !is_known(&again, "[/C=XX/;3]", b""));
        assert_eq!(again.unreadable_lines(), 0);
    }
    assert_eq!(fs::read(&log).unwrap(), whole);
    assert_eq!(lines(dir.path())[0]["id"], "[/C=XX/;1]");
    assert_eq!(lines(dir.path())[0]["sha256"], show::hex(&Sha256::digest(b"hello")));
}

#[test]
fn an_identifier_with_a_line_break_makes_no_line_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let victim = "[/PRMD=A/ADMD=NATO/C=XX/;VICTIM]";
    let forged =
        format!("[/PRMD=A/ADMD=NATO/C=XX/;x]\n{victim}\n{{\"id\":\"{victim}\",\"sha256\":\"\"}}\n");
    assert!(!take(dir.path(), &forged, b"evil").duplicate);
    let kept = take(dir.path(), victim, b"true");
    assert!(!kept.duplicate && !kept.identifier_reused, "{kept:?}");
    assert_eq!(fs::read(kept.file.unwrap()).unwrap(), b"true");
    // Nor does a terminal obey what is in the log.
    take(dir.path(), "[/C=XX/;\u{1b}[2J\u{9b}2J\u{202e}]", b"");
    let lines = lines(dir.path());
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2]["id"], "[/C=XX/;\u{1b}[2J\u{9b}2J\u{202e}]");
    let text = fs::read_to_string(dir.path().join("received.log")).unwrap();
    assert!(!text.contains(|c| base::shown::is_obeyed(c) && c != '\n'), "{text:?}");
}

#[test]
fn another_content_under_a_known_identifier_is_a_message_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let first = take(dir.path(), ID, b"first");
    assert!(!first.identifier_reused);
    let second = take(dir.path(), ID, b"second");
    assert!(!second.duplicate && second.identifier_reused, "{second:?}");
    assert_ne!(first.file, second.file);
    for (kept, octets) in [(&first, &b"first"[..]), (&second, b"second")] {
        assert_eq!(fs::read(kept.file.as_ref().unwrap()).unwrap(), octets);
        assert!(take(dir.path(), ID, octets).duplicate);
    }
    // Identifiers only are kept: the same holds.
    let mut inbox = Inbox::open(dir.path(), false).unwrap();
    for (octets, duplicate) in [(&b"second"[..], true), (b"third", false), (b"third", true)] {
        let message = deliver(&mut inbox, ID, octets);
        let kept = finish(&mut inbox, message, ID);
        assert_eq!((kept.duplicate, kept.identifier_reused), (duplicate, !duplicate));
        assert_eq!(kept.file, None);
    }
}

#[test]
fn the_log_of_an_earlier_version_still_holds() {
    let dir = tempfile::tempdir().unwrap();
    let report = "report 0123456789abcdef on [/C=XX/;1]";
    let old = format!("{ID}\n{report}\n[/C=XX/;gone]\n");
    fs::write(dir.path().join("received.log"), old).unwrap();
    fs::write(dir.path().join(format!("{}.content", file_name(ID, ""))), b"hello").unwrap();
    fs::write(dir.path().join(format!("{}.report", file_name(report, ""))), b"0").unwrap();
    // What is there is known; what only has its name is not.
    assert!(take(dir.path(), ID, b"hello").duplicate);
    let mut inbox = open(dir.path());
    let message = deliver(&mut inbox, report, b"0");
    assert!(inbox.finish(message, report, "report", |_| Ok(())).unwrap().duplicate);
    for (id, octets) in [(ID, &b"another"[..]), ("[/C=XX/;gone]", b"gone")] {
        let kept = take(dir.path(), id, octets);
        assert!(!kept.duplicate && kept.identifier_reused, "{kept:?}");
        assert_eq!(fs::read(kept.file.unwrap()).unwrap(), octets);
        assert!(take(dir.path(), id, octets).duplicate, "now it is known");
    }
    assert_eq!(open(dir.path()).unreadable_lines(), 0);
}

#[test]
fn a_line_that_cannot_be_read_is_counted_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    take(dir.path(), "[/C=XX/;1]", b"1");
    let log = dir.path().join("received.log");
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"\0\0\0\0\n{\"id\":7}\n\xff\xfe\n{\n\n17\n").unwrap();
    take(dir.path(), "[/C=XX/;2]", b"2");
    let inbox = open(dir.path());
    assert_eq!(inbox.unreadable_lines(), 5);
    assert!(is_known(&inbox, "[/C=XX/;1]", b"1") && is_known(&inbox, "[/C=XX/;2]", b"2"));
}

#[test]
fn one_delivered_again_is_one_file_wherever_the_first_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    // Killed in the middle of its content: its file is there, and nobody's.
    fs::write(dir.path().join(format!(".xuxa-inbox.{}.77-1.part", file_name(ID, ""))), b"hel")
        .unwrap();
    // Killed when the file was there and the identifier was not.
    let path = take(dir.path(), ID, b"hello").file.unwrap();
    fs::write(dir.path().join("received.log"), "").unwrap();
    // Killed when both were there, before the confirm.
    let kept = take(dir.path(), ID, b"hello");
    assert_eq!((kept.duplicate, kept.file.as_ref()), (false, Some(&path)));
    let kept = take(dir.path(), ID, b"hello");
    assert_eq!((kept.duplicate, kept.file), (true, None));
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    assert_eq!(lines(dir.path()).len(), 1);
    assert_eq!(names(dir.path()), 2, "the file and the log");
}

#[test]
fn what_could_not_be_done_besides_was_not_received() {
    let dir = tempfile::tempdir().unwrap();
    let mut inbox = open(dir.path());
    let message = deliver(&mut inbox, ID, b"hello");
    let full =
        |_: &mut Taking<'_>| Err(not_kept("write")(io::ErrorKind::StorageFull.into()).into());
    let error = inbox.finish(message, ID, "content", full).unwrap_err();
    assert!(error.is::<NotKept>());
    assert!(!is_known(&open(dir.path()), ID, b"hello"));
    assert!(!take(dir.path(), ID, b"hello").duplicate);
    // A repetition does nothing besides.
    let message = deliver(&mut inbox, ID, b"hello");
    let never = |_: &mut Taking<'_>| panic!("it was done before");
    assert!(inbox.finish(message, ID, "content", never).unwrap().duplicate);
}

#[test]
fn what_another_one_received_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let mut inboxes = [0, 1].map(|_| open(dir.path()));
    for (n, inbox) in inboxes.iter_mut().enumerate() {
        let message = deliver(inbox, ID, b"");
        assert_eq!(finish(inbox, message, ID).duplicate, n == 1);
    }
    assert_eq!(lines(dir.path()).len(), 1);
}

#[test]
fn one_delivered_to_two_at_once_is_one_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let [mut first, mut second] = [0, 1].map(|_| open(dir.path()));
    let one = deliver(&mut first, ID, b"hello");
    // Between the last octet of the first and its end, the second begins, and a third opens.
    let mut other = deliver(&mut second, ID, b"hel");
    open(dir.path());
    let path = finish(&mut first, one, ID).file.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    other.write(b"lo").unwrap();
    let kept = finish(&mut second, other, ID);
    assert_eq!((kept.duplicate, kept.file), (true, None));
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    assert_eq!(names(dir.path()), 2, "the file and the log");
}

#[test]
fn a_line_cut_short_by_another_swallows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut inbox = open(dir.path());
    let log = dir.path().join("received.log");
    let mut other = OpenOptions::new().append(true).open(&log).unwrap();
    let digest = show::hex(&Sha256::digest(b"1"));
    let whole = format!("{{\"id\":\"[/C=XX/;1]\",\"sha256\":\"{digest}\"}}\n{{\"id\":\"[/C=");
    other.write_all(whole.as_bytes()).unwrap();
    let message = deliver(&mut inbox, "[/C=XX/;3]", b"3");
    finish(&mut inbox, message, "[/C=XX/;3]");
    assert!(is_known(&inbox, "[/C=XX/;1]", b"1") && is_known(&inbox, "[/C=XX/;3]", b"3"));
    assert_eq!(lines(dir.path()).len(), 2);
}

#[test]
fn what_is_not_finished_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut inbox = open(dir.path());
    let part = dir.path().join(".xuxa-inbox.of-another-day.1-1.part");
    fs::write(&part, b"hel").unwrap();
    // What was sent under such a name may have been extracted here.
    let file = dir.path().join("x.part");
    fs::write(&file, b"sent").unwrap();
    let message = deliver(&mut inbox, ID, b"hel");
    // One that is being written stays, whoever opens the inbox.
    open(dir.path());
    assert!(!part.exists());
    assert_eq!(fs::read(&file).unwrap(), b"sent");
    assert_eq!(names(dir.path()), 3, "the part, the log and the file");
    drop(message);
    assert_eq!(names(dir.path()), 2, "the log and the file");
}

#[test]
fn nobody_else_may_look_in() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let inbox = dir.path().join("a/inbox");
    let path = take(&inbox, ID, b"hello").file.unwrap();
    let log = inbox.join("received.log");
    assert_eq!([mode(&inbox), mode(&path), mode(&log)], [0o700, 0o600, 0o600]);
    // As an earlier version made them; what a link leads to is not ours.
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, inbox.join("link")).unwrap();
    for (path, old) in [(&inbox, 0o755), (&path, 0o644), (&log, 0o664), (&elsewhere, 0o644)] {
        set(path, old);
    }
    open(&inbox);
    assert_eq!([mode(&inbox), mode(&path), mode(&log)], [0o700, 0o600, 0o600]);
    assert_eq!(mode(&elsewhere), 0o644);
}

#[test]
fn names_stay_inside_the_directory() {
    assert_eq!(file_name("../../etc/passwd", ""), "etc_passwd-3754d6cb");
    assert_eq!(file_name("/C=XX/ADMD=NATO;a-1", ""), "C_XX_ADMD_NATO_a-1-931a44df");
    assert_ne!(file_name("/C=XX;a 1", ""), file_name("/C=XX;a/1", ""));
    assert_ne!(file_name("/C=XX;a", "00"), file_name("/C=XX;a", "01"));
}
