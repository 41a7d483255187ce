//! The interface in a real terminal: tmux types, and what it shows is read.

use crate::terminal::Terminal;
use std::path::PathBuf;

/// The example of this crate, which cargo builds with its tests.
fn example() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().with_file_name("examples").join("memory");
    assert!(path.is_file(), "{} is missing: cargo build -p xuxa-tui --examples", path.display());
    path
}

#[test]
fn a_message_is_sent_alerted_read_answered_extracted_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().join("chart.bin");
    std::fs::write(&chart, [0, 27, 255, 7]).unwrap();
    let terminal = Terminal::new("acts", 80, 24);
    terminal.starts(&format!("{} --messages 50", example().display()));
    terminal.waits_for("50 messages");
    // Those that were unread before the start interrupt too.
    terminal.waits_for("Ctrl-G read");
    terminal.press(&["C-x", "C-x", "C-x"]);
    terminal.waits_until("no banner", |screen| !screen.contains("Ctrl-G"));

    terminal.press(&["c"]);
    terminal.waits_for("Write a message");
    terminal.types("me");
    terminal.press(&["Down", "Down"]);
    terminal.types("f");
    terminal.press(&["Down"]);
    terminal.types("CONTACT");
    terminal.press(&["Down", "Down", "Right", "Right", "Down"]);
    terminal.types(&chart.display().to_string());
    terminal.press(&["Down", "Down"]);
    terminal.types("TWO SHIPS.");
    terminal.press(&["C-s"]);
    // The alert of it interrupts.
    let screen = terminal.waits_for("Ctrl-G read");
    assert!(screen.contains("!! FLASH from me: CONTACT"), "{screen}");
    terminal.press(&["C-g"]);
    let screen = terminal.waits_for("TWO SHIPS.");
    assert!(screen.contains("chart.bin (4 B)") && !screen.contains("Ctrl-G"), "{screen}");

    terminal.press(&["a"]);
    terminal.waits_for("gets a notification");
    terminal.press(&["x"]);
    terminal.waits_for("Write a file into this directory");
    terminal.press(&["C-u"]);
    let out = dir.path().join("out");
    terminal.types(&out.display().to_string());
    terminal.press(&["Enter"]);
    let screen = terminal.waits_until("the file", |screen| {
        screen.lines().any(|line| line.contains("written:") && !line.contains("overwritten"))
    });
    assert!(out.is_dir(), "{screen}");
    let written: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(std::fs::read(&written[0]).unwrap(), [0, 27, 255, 7]);

    terminal.press(&["r"]);
    terminal.waits_for("Re: CONTACT");
    terminal.types("WILCO");
    terminal.press(&["C-s"]);
    terminal.waits_for("from me: Re: CONTACT");
    terminal.press(&["C-g"]);
    terminal.waits_for("WILCO");
    terminal.press(&["d"]);
    terminal.waits_for("Delete this message?");
    terminal.press(&["y"]);
    terminal.waits_for("deleted");
    terminal.press(&["2"]);
    let screen = terminal.waits_for("Sent items");
    assert!(terminal.waits_for("Re: CONTACT").contains("delivered"), "{screen}");
    terminal.press(&["q", "q"]);
    terminal.is_as_before();
}

#[test]
fn a_terminal_is_left_as_it_was_by_every_end() {
    let terminal = Terminal::new("ends", 100, 30);
    let example = example().display().to_string();
    let rounds: [(&str, &[&str], &str); 3] = [
        ("", &["C-c"], "exit 0"),
        ("--answer-after 60000", &["q"], "exit 0"),
        ("--panic-after 300", &[], "exit 101"),
    ];
    for (options, keys, exit) in rounds {
        terminal.starts(&format!("clear; {example} {options}"));
        terminal.waits_for("Mailbox by precedence");
        if !keys.is_empty() {
            terminal.press(&["?"]);
            terminal.waits_for("Keys");
            terminal.press(&["Escape"]);
            // Another key at once would make one with Alt of it.
            terminal.waits_until("no help", |screen| !screen.contains("Keys"));
            terminal.press(keys);
        }
        assert!(terminal.is_as_before().contains(exit), "{options}");
        terminal.types("clear");
        terminal.press(&["Enter"]);
        terminal.waits_until("an empty screen", |screen| !screen.contains("as-before"));
    }
}

#[test]
fn a_lost_store_is_bound_again_and_a_resize_is_followed() {
    let terminal = Terminal::new("lost", 80, 24);
    let options = "--messages 5 --lose-after 300 --away 600";
    terminal.starts(&format!("{} {options}", example().display()));
    terminal.waits_for("NOT BOUND");
    terminal.press(&["j"]);
    terminal.waits_until("a moved selection", |s| !s.lines().nth(3).unwrap_or("").starts_with('>'));
    terminal.waits_for("bound to memory");
    terminal.tmux(&["resize-window", "-x", "160", "-y", "50"]);
    terminal.waits_for("Enter shows the selected message here.");
    terminal.tmux(&["resize-window", "-x", "30", "-y", "8"]);
    terminal.waits_until("a small screen", |screen| !screen.contains("Enter shows"));
    terminal.press(&["q"]);
    terminal.tmux(&["resize-window", "-x", "120", "-y", "24"]);
    terminal.is_as_before();
}

#[test]
fn a_terminal_that_is_gone_ends_it_where_the_signal_of_that_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let terminal = Terminal::new("gone", 80, 24);
    let (file_name, example) = (file.display(), example());
    terminal.types(&format!("trap '' HUP; echo $$ >{file_name}; exec {}", example.display()));
    terminal.press(&["Enter"]);
    terminal.waits_for("Mailbox by precedence");
    let pid = std::fs::read_to_string(&file).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    terminal.closes();
    terminal.waits_without_a_screen("the program ends", || !process.exists());
}

/// Not a test by itself: what the next one starts and kills.
#[test]
#[ignore = "it waits until it is killed"]
fn a_test_that_is_killed() {
    let terminal = Terminal::new("killed", 80, 24);
    terminal.types("echo holding");
    terminal.waits_until("the end", |_| false);
}

#[test]
fn a_test_that_is_killed_leaves_no_server() {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "tmux::a_test_that_is_killed", "--ignored"];
    let mut child = std::process::Command::new(this)
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let socket = format!("xuxa-killed-{}", child.id());
    let is_there = || {
        let mut command = std::process::Command::new("tmux");
        command.args(["-L", &socket, "has-session"]).output().unwrap().status.success()
    };
    let other = Terminal::new("killer", 80, 24);
    other.waits_without_a_screen("a server", is_there);
    other.waits_without_a_screen("a watchdog", || {
        let listed = std::process::Command::new("pgrep").args(["-f", &socket]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().count() >= 2
    });
    child.kill().unwrap();
    child.wait().unwrap();
    other.waits_without_a_screen("no server", || !is_there());
}
