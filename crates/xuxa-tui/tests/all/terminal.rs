//! A terminal of tmux, for tests that type and read as a user does.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Longest wait for a text.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(30);

/// Ends the tmux server of a test that was killed: a server is a process of its own, which nothing else ends. It looks
/// each second, for ten minutes at most, whether test and server are there.
const WATCHDOG: &str = "n=0; while kill -0 \"$1\" && [ $n -lt 600 ] && tmux -L \"$2\" has-session; \
                        do sleep 1; n=$((n + 1)); done; tmux -L \"$2\" kill-server";

/// A terminal of its own, with a shell in it.
pub(crate) struct Terminal {
    socket: String,
    watchdog: Option<Child>,
    runtime: tokio::runtime::Runtime,
}

impl Terminal {
    pub(crate) fn new(name: &str, columns: u16, rows: u16) -> Terminal {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let socket = format!("xuxa-{name}-{}", std::process::id());
        let mut terminal = Terminal { socket, watchdog: None, runtime };
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
        terminal.watched();
        terminal.waits_for("ready:");
        terminal
    }

    /// Starts the watchdog, in a process group of its own: what kills the test's does not kill it.
    fn watched(&mut self) {
        let mut command = Command::new("sh");
        let test = std::process::id().to_string();
        command.args(["-c", WATCHDOG, "watchdog", &test, &self.socket]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.watchdog = Some(command.spawn().unwrap());
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output: Output = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(arguments)
            .output()
            .expect("tmux is needed: apt-get install tmux");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types text as it is.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses keys by their names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn waits_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
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

    /// Closes the terminal under what runs in it.
    #[allow(dead_code, reason = "the tests of xuxa-cli use a part of it")]
    pub(crate) fn closes(&self) {
        self.tmux(&["kill-server"]);
    }

    #[allow(dead_code, reason = "as above")]
    pub(crate) fn waits_without_a_screen(&self, what: &str, holds: impl Fn() -> bool) {
        let mut waited = Duration::ZERO;
        while !holds() {
            assert!(waited < PATIENCE, "{what}: not yet");
            self.runtime.block_on(async { tokio::time::sleep(STEP).await });
            waited += STEP;
        }
    }

    pub(crate) fn waits_for(&self, text: &str) -> String {
        self.waits_until(text, |screen| screen.contains(text))
    }

    /// Runs a command between two looks at the modes of the terminal.
    pub(crate) fn starts(&self, command: &str) {
        self.types(&format!(
            "a=$(stty -g); {command}; echo exit $?; [ \"$a\" = \"$(stty -g)\" ] && echo as-before"
        ));
        self.press(&["Enter"]);
    }

    /// The program has ended, and the terminal is as it was.
    pub(crate) fn is_as_before(&self) -> String {
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
        if let Some(mut watchdog) = self.watchdog.take() {
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
    }
}
