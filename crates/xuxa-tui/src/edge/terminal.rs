//! The terminal: its state before is what it is left in, however the program ends.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event as TerminalEvent,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, IsTerminal as _, Stdout, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

use super::RunError;
use crate::event::Event;
use crate::state::App;

/// How long the reader waits for a key before it looks whether it has to end.
const POLL: Duration = Duration::from_millis(50);

/// The terminal in raw mode, with a screen of its own.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal; a panic gives it back before it is reported.
    pub(super) fn open() -> Result<Screen, RunError> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(RunError::NoTerminal);
        }
        static HOOK: std::sync::Once = std::sync::Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                report(info);
            }));
        });
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Relaxed);
        // From here on its Drop restores the terminal.
        let mut screen = Screen { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? };
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// The event of a size that the state does not know yet.
    pub(super) fn resized(&self, app: &App) -> io::Result<Option<Event>> {
        let (columns, rows) = self.size()?;
        Ok((app.size != (columns, rows)).then_some(Event::Resized(columns, rows)))
    }

    /// Draws the state.
    pub(super) fn draw(&mut self, app: &App) -> io::Result<()> {
        self.terminal.draw(|frame| app.draw(frame)).map(drop)
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    pub(super) fn bell(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(b"\x07")?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal is ours, and has to be restored.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Leaves the terminal as it was, once: what was reported since would be overwritten by a second time.
/// An error has nobody to go to.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// The thread that reads keys; it ends with this value.
pub(super) struct Reader {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Under a terminal that hung up its thread reads for ever, and ends with the program.
        if let Some(thread) = self.thread.take().filter(|_| !has_hung_up()) {
            let _ = thread.join();
        }
    }
}

/// Whether the terminal is gone. A program that ignores SIGHUP has to look.
pub(super) fn has_hung_up() -> bool {
    !io::stdin().is_terminal()
}

/// Begins to read keys, pasted text and changes of size.
pub(super) fn read_events(to: UnboundedSender<Event>) -> Reader {
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    let thread = std::thread::spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            let event = match event::poll(POLL) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let event = match event {
                Ok(TerminalEvent::Key(key)) => Event::Key(key),
                Ok(TerminalEvent::Paste(text)) => Event::Paste(text),
                Ok(TerminalEvent::Resize(columns, rows)) => Event::Resized(columns, rows),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The terminal is gone.
                Err(_) => {
                    let _ = to.send(Event::Stop);
                    return;
                }
            };
            if to.send(event).is_err() {
                return;
            }
        }
    });
    Reader { is_over, thread: Some(thread) }
}
