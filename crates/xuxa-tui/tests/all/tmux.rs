//! The interface in a real terminal: tmux types, and what it shows is read.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

/// Longest wait for a text.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(30);

/// A terminal of its own, with a shell in it.
struct Terminal {
    socket: String,
    runtime: tokio::runtime::Runtime,
}

/// The example of this crate, which cargo builds with its tests.
fn example() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().with_file_name("examples").join("memory");
    assert!(path.is_file(), "{} is missing: cargo build -p xuxa-tui --examples", path.display());
    path
}

impl Terminal {
    fn new(name: &str, columns: u16, rows: u16) -> Terminal {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let terminal = Terminal { socket: format!("xuxa-{name}-{}", std::process::id()), runtime };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let shell = "env -u NO_COLOR LC_ALL=C.UTF-8 PS1=ready: sh";
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            shell,
        ]);
        terminal.waits_for("ready:");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output: Output = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(arguments)
            .output()
            .expect("tmux is needed: apt-get install tmux");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types text as it is.
    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses keys by their names.
    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn waits_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut waited = Duration::ZERO;
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(waited < PATIENCE, "{what} does not come:\n{screen}");
            self.runtime.block_on(async { tokio::time::sleep(STEP).await });
            waited += STEP;
        }
    }

    fn waits_for(&self, text: &str) -> String {
        self.waits_until(text, |screen| screen.contains(text))
    }

    /// Runs a command between two looks at the modes of the terminal.
    fn starts(&self, command: &str) {
        self.types(&format!(
            "a=$(stty -g); {command}; echo exit $?; [ \"$a\" = \"$(stty -g)\" ] && echo as-before"
        ));
        self.press(&["Enter"]);
    }

    /// The program has ended, and the terminal is as it was.
    fn is_as_before(&self) -> String {
        let screen =
            self.waits_until("the shell", |screen| screen.lines().any(|line| line == "as-before"));
        assert_eq!(
            self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(),
            "0 1"
        );
        screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

#[test]
fn a_message_is_sent_alerted_read_answered_extracted_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().join("chart.bin");
    std::fs::write(&chart, [0, 27, 255, 7]).unwrap();
    let terminal = Terminal::new("acts", 80, 24);
    terminal.starts(&format!("{} --messages 50", example().display()));
    terminal.waits_for("50 messages");

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
    terminal.waits_for("written:");
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
        terminal.press(&[&["?"], keys].concat());
        if !keys.is_empty() {
            terminal.press(&["Escape"]);
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
