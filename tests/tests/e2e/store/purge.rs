//! An operator looks into mailboxes and empties them; and removes what a user has registered.

use super::Mailbox;
use testbed::Site;

fn mailbox(site: &Site, arguments: &[&str]) -> (i32, String) {
    let run = site.mta(&[&["mailbox"][..], arguments].concat()).unwrap();
    (run.code, run.stdout + &run.stderr)
}

#[test]
fn an_operator_lists_mailboxes_and_empties_one_also_of_a_user_who_is_no_more() {
    let mut stored = Mailbox::new(&[]);
    stored.send(&["--size", "1kB,2kB,3kB"]);
    stored.waits_for(3);
    let (ops, log) = (stored.site.address("OPS"), stored.site.address("LOG"));
    stored.xuxa(&["read", "1"]);

    let (code, text) = mailbox(&stored.site, &["list"]);
    let row = text.lines().find(|line| line.contains("s=ops")).unwrap();
    assert!(code == 0 && row.split_whitespace().nth(2) == Some("3"), "{text}");
    let (code, text) = mailbox(&stored.site, &["purge", &log, "--yes"]);
    assert!(code == 1 && text.contains("no mailbox in the message store"), "{text}");
    assert_eq!(mailbox(&stored.site, &["purge", &ops]).0, 2, "nobody can be asked");
    let (code, text) = mailbox(&stored.site, &["purge", &ops, "--dry-run", "--older", "1h"]);
    assert!(code == 0 && text.contains("0 items would be"), "{text}");
    let processed = ["purge", &ops, "--status", "processed"];
    let (code, text) = mailbox(&stored.site, &[&processed[..], &["--dry-run"]].concat());
    assert!(code == 0 && text.contains("1 item would be"), "{text}");
    assert_eq!(stored.waits_for(3).len(), 3, "a trial deletes nothing");
    let (code, text) = mailbox(&stored.site, &[&processed[..], &["--yes"]].concat());
    assert_eq!((code, &*text), (0, "1 item deleted\n"));
    assert_eq!(stored.waits_for(2).len(), 2);

    // The user goes, and a restart comes between.
    let run = stored.site.mta(&["user", "remove", &ops]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    stored.site.stop().unwrap();
    stored.site.start().unwrap();
    let (code, text) = mailbox(&stored.site, &["list"]);
    assert!(code == 0 && text.contains("s=ops (removed)"), "{text}");
    let (code, text) = mailbox(&stored.site, &["--json", "purge", &ops, "--yes"]);
    assert!(code == 0 && text.contains("\"items\": 2"), "{text}");
    let (_, text) = mailbox(&stored.site, &["list"]);
    let row = text.lines().find(|line| line.contains("s=ops")).unwrap();
    assert!(row.contains(" 0 "), "{text}");
    let log = std::fs::read_to_string(stored.site.log()).unwrap();
    let mut orders =
        log.lines().filter(|l| l.contains("operator_order") && l.contains("purge mailbox"));
    assert!(orders.next_back().unwrap().contains("2 items deleted"));
}

#[test]
fn an_operator_removes_what_a_user_has_registered() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let (ops, log) = (site.address("OPS"), site.address("LOG"));
    assert_eq!(site.xuxa("OPS", &["register", "--redirect-to", &log]).unwrap().code, 0);
    let (code, text) = mailbox(&site, &["unregister", &ops]);
    assert!(code == 0 && text.contains("nothing is registered"), "{text}");
    site.send("LOG", &["--to", &ops, "--size", "1kB"]).unwrap();
    assert_eq!(site.receive("OPS", 1).unwrap().messages().count(), 1, "not redirected");
    let (code, text) = mailbox(&site, &["unregister", "/C=IT/S=NOBODY"]);
    assert!(code == 1 && text.contains("nobody's address"), "{text}");
}
