//! `xuxa tui` in a terminal of tmux, against a daemon.

#[path = "../../../../crates/xuxa-tui/tests/all/terminal.rs"]
mod terminal;

use terminal::Terminal;
use testbed::Site;

#[test]
fn a_flash_is_alerted_read_acknowledged_and_deleted_in_a_terminal() {
    let mut site = Site::builder("naples").users(&["LOG"]).mailboxes(&["OPS"]).build().unwrap();
    site.start().unwrap();
    let to = site.address("OPS");
    let send = |subject: &str, more: &[&str]| {
        let arguments = [&["--to", &to, "--subject", subject][..], more].concat();
        site.send("LOG", &arguments).unwrap().messages.remove(0).mts_identifier
    };
    send("SITREP", &["--text", "NOTHING", "--precedence", "routine"]);
    let terminal = Terminal::new("site", 100, 30);
    let (program, profiles) = (site.xuxa_program().display(), site.profiles());
    let profiles = profiles.display();
    terminal.starts(&format!("{program} --config {profiles} --profile OPS tui"));
    terminal.waits_for("SITREP");

    let contact = ["--text", "TWO SHIPS.", "--precedence", "flash", "--request", "rn"];
    send("CONTACT", &contact);
    let screen = terminal.waits_for("Ctrl-G read");
    let row = screen.lines().position(|line| line.contains("!! FLASH") && line.contains("CONTACT"));
    assert!(row.is_some(), "{screen}");
    terminal.press(&["C-g"]);
    terminal.waits_for("TWO SHIPS.");
    terminal.press(&["a"]);
    terminal.waits_for("gets a notification of receipt");
    terminal.press(&["d"]);
    terminal.waits_for("Delete this message?");
    terminal.press(&["y"]);
    let screen = terminal.waits_until("a mailbox without it", |screen| {
        screen.contains("1 message") && !screen.contains("CONTACT")
    });
    assert!(screen.contains("SITREP"), "{screen}");

    // The daemon goes, and comes back: the interface binds again, and a Flash is alerted as before.
    site.kill().unwrap();
    terminal.waits_for("NOT BOUND");
    site.start().unwrap();
    terminal.waits_for("bound to");
    let to = site.address("OPS");
    let again = ["--to", &to, "--subject", "AGAIN", "--text", "X", "--precedence", "flash"];
    site.send("LOG", &again).unwrap();
    terminal.waits_for("AGAIN");
    terminal.press(&["q"]);
    assert!(terminal.is_as_before().contains("exit 0"));

    // The originator has the notification; the mailbox has what was not deleted.
    let receive = ["--json", "receive", "--count", "1", "--timeout", "60"];
    let received: serde_json::Value = site.xuxa("LOG", &receive).unwrap().json().unwrap();
    let notification = &received["deliveries"][0]["notification"];
    assert_eq!(notification["subject"], "CONTACT", "{received}");
    assert_eq!(notification["read"], true, "{received}");
    let list = site.xuxa("OPS", &["--json", "list"]).unwrap();
    let list: serde_json::Value = list.json().unwrap();
    let subjects: Vec<&str> = list["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["AGAIN", "SITREP"], "{list}");
}
