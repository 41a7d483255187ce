//! The edge: the terminal, and the tasks that perform effects.

mod tasks;
mod terminal;

use base::Utc;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::backend::Backend;
use crate::draw::style::Palette;
use crate::event::{Effect, Event};
use crate::state::App;
use tasks::Tasks;
use terminal::Screen;

/// How often the clock of the screen is read.
const TICK: Duration = Duration::from_millis(500);
/// Events that are handled before the screen is drawn again.
const BURST: usize = 256;

/// Why the interface cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Standard input or output is a file or a pipe.
    #[error(
        "xuxa tui needs a terminal for input and output; in scripts use `xuxa list`, `xuxa read` and `xuxa send` with --json"
    )]
    NoTerminal,
    /// The terminal cannot be read or written.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
}

/// Runs the interface on this terminal until the user quits or `stop` completes, and leaves the
/// terminal as it was. `utc` reads the clock; `seed` makes content identifiers that nobody else makes.
///
/// # Errors
/// [`RunError`].
pub async fn run<B: Backend>(
    backend: Rc<B>,
    palette: Palette,
    utc: impl Fn() -> Utc,
    seed: u64,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let screen = Screen::open()?;
    let local = LocalSet::new();
    let app = App::new(backend.who(), palette, screen.size()?, utc(), seed);
    local.run_until(converse(Rc::clone(&backend), app, screen, utc, stop)).await?;
    // What is in progress ends here; the store needs not wait for a timeout.
    local
        .run_until(async {
            _ = tokio::time::timeout(Duration::from_secs(1), backend.close()).await;
        })
        .await;
    Ok(())
}

async fn converse<B: Backend>(
    backend: Rc<B>,
    mut app: App,
    mut screen: Screen,
    utc: impl Fn() -> Utc,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let (sender, mut events) = mpsc::unbounded_channel();
    let _reader = terminal::read_events(sender.clone());
    let mut tasks = Tasks::start(backend, sender);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = std::pin::pin!(stop);
    loop {
        screen.draw(&app)?;
        let first = tokio::select! {
            event = events.recv() => event.unwrap_or(Event::Stop),
            _ = tick.tick() => match terminal::has_hung_up() {
                true => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                false => Event::Tick(utc()),
            },
            () = &mut stop => Event::Stop,
            () = tasks.ended() => continue,
        };
        let more = std::iter::from_fn(|| events.try_recv().ok()).take(BURST);
        let burst: Vec<Event> =
            std::iter::once(first).chain(more).chain(screen.resized(&app)?).collect();
        let mut rings = false;
        for event in burst {
            for effect in app.handle(event) {
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Bell => rings = true,
                    Effect::Redraw => screen.clear()?,
                    effect => tasks.perform(effect),
                }
            }
        }
        if rings {
            screen.bell()?;
        }
    }
}
