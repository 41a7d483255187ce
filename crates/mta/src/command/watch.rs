//! Periodic display: in place on a terminal, otherwise as consecutive blocks.

use super::error::{ArgumentError, RequestError};
use super::output::{control, print, print_error};
use super::{DONE, FAILED};
use base::shown;
use std::io::IsTerminal;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinError;

/// Alternate screen (so that the terminal's content returns afterwards), hidden cursor, no
/// wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Moves the cursor to the first column of the first line.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Height assumed where the terminal does not report one.
const LINES: u16 = 24;

/// The interval between two updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Every(Duration);

impl FromStr for Every {
    type Err = ArgumentError;

    /// Seconds, 0.1 to 3600.
    fn from_str(text: &str) -> Result<Every, ArgumentError> {
        match text.parse::<f64>() {
            Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => {
                Ok(Every(Duration::from_secs_f64(seconds)))
            }
            _ => Err(ArgumentError::Interval),
        }
    }
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The request panicked.
    #[error(transparent)]
    Task(#[from] JoinError),
    #[error("cannot handle signals")]
    Signals,
}

/// The alternate screen of a terminal, until this is dropped.
struct Screen;

impl Screen {
    fn enter() -> Screen {
        control(ENTER);
        Screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        control(LEAVE);
    }
}

/// Calls `look` at each interval, `count` times or until SIGINT or SIGTERM, and prints its result
/// or its error; it goes on after an error, as the daemon may return. `lines` is for
/// machine-readable output: one line each, never in place. Returns the exit code of the last call.
pub(super) fn run(
    every: Every,
    count: Option<u64>,
    lines: bool,
    look: impl Fn() -> Result<String, RequestError> + Send + Sync + 'static,
) -> u8 {
    let in_place = !lines && std::io::stdout().is_terminal();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(&format!("cannot wait: {error}"));
            return FAILED;
        }
    };
    let screen = in_place.then(Screen::enter);
    let last = runtime.block_on(async {
        let look = Arc::new(look);
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return Err(WatchError::Signals);
        };
        let mut shown = 0;
        let mut last = Ok(());
        let repeat = async {
            let mut ticks = tokio::time::interval(every.0);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while count.is_none_or(|count| shown < count) {
                ticks.tick().await;
                let look = Arc::clone(&look);
                let seen = tokio::task::spawn_blocking(move || look()).await;
                let seen = seen.map_err(WatchError::from).and_then(|seen| Ok(seen?));
                show(&seen, in_place, !lines && shown > 0);
                last = seen.map(|_| ());
                shown += 1;
            }
        };
        tokio::select! {
            () = repeat => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        last
    });
    // Do not wait for a request that is still open.
    runtime.shutdown_background();
    drop(screen);
    match last {
        Ok(()) => DONE,
        Err(error) => {
            if in_place {
                print_error(&error.to_string()); // it went with the other screen
            }
            FAILED
        }
    }
}

fn show(seen: &Result<String, WatchError>, in_place: bool, apart: bool) {
    match seen {
        _ if in_place => {
            let size = terminal_size::terminal_size();
            let height = size.map_or(LINES, |(_, height)| height.0);
            let text = seen.as_ref().map_or_else(|error| format!("{error}\n"), String::clone);
            control(&frame(&text, usize::from(height)));
        }
        Ok(text) => print(&format!("{}{text}", if apart { "\n" } else { "" })),
        Err(error) => print_error(&error.to_string()),
    }
}

/// The text as one terminal frame, cut to the terminal's height.
fn frame(text: &str, height: usize) -> String {
    let room = height.saturating_sub(1).max(1);
    let hidden = text.lines().count().saturating_sub(room);
    let mut out = HOME.to_owned();
    for line in text.lines().take(room) {
        // Names come from configuration files, and errors from peers.
        out.push_str(&shown::line(line));
        out.push_str(CLEAR_LINE);
        out.push_str("\r\n");
    }
    if hidden > 0 {
        out.push_str(&format!("… {hidden} more lines{CLEAR_LINE}"));
    }
    out + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_covers_what_was_there_and_no_more_than_fits() {
        let shown = |text, height| frame(text, height).replace('\x1b', "ESC").replace("\r\n", "|");
        assert_eq!(shown("a\n\nb\n", 24), "ESC[HaESC[K|ESC[K|bESC[K|ESC[J");
        assert_eq!(shown("a\nb\nc\n", 3), "ESC[HaESC[K|bESC[K|… 1 more linesESC[KESC[J");
        assert_eq!(shown("\x1b[2Jx\n", 3), "ESC[H\\u{1b}[2JxESC[K|ESC[J");
        assert_eq!(shown("a\nb\n", 0), "ESC[HaESC[K|… 1 more linesESC[KESC[J");
    }

    #[test]
    fn seconds_are_bounded() {
        assert_eq!("0.5".parse(), Ok(Every(Duration::from_millis(500))));
        for bad in ["0", "-1", "3601", "NaN", "inf", "x", ""] {
            assert!(bad.parse::<Every>().is_err(), "{bad}");
        }
    }
}
