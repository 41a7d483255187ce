//! One world, played and checked.

use crate::check::{Broken, Failure, check};
use crate::play::Play;
use crate::world::World;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::Duration;
use testkit::real::Mutant;

/// The outcome of a world.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was broken.
    pub failures: Vec<Failure>,
    /// Virtual time.
    pub lasted: Duration,
    /// How long it took until all was done once nothing went wrong any more.
    pub drained: Option<Duration>,
    /// Messages that arrived.
    pub deliveries: usize,
    /// Reports that arrived.
    pub reports: usize,
    /// Processes that died.
    pub deaths: usize,
    /// The story, where it is asked for.
    pub story: String,
    /// Of each site the recordings of its processes, where nodes are recorded ([`testkit::record_nodes`]).
    pub recordings: Vec<Vec<Vec<u8>>>,
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A panic is a failure of a world, and is not printed.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            PANIC.with(|panic| *panic.borrow_mut() = info.to_string());
        }));
    });
}

/// Plays a world and checks it; with its story if that is asked for, or if something is broken.
pub fn run(world: &World, mutant: Option<Mutant>, with_story: bool) -> Outcome {
    keep_panics();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut play = Play::new(world, mutant);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            play.play();
            check(&play)
        }));
        let failures = ended.unwrap_or_else(|_| vec![panicked()]);
        let delivered = || play.network.users.iter().flat_map(|user| &user.delivered);
        let is_report =
            |one: &&testkit::Delivered| matches!(one, testkit::Delivered::Report { .. });
        let story = match with_story {
            true => crate::story::story(&play),
            false => String::new(),
        };
        let recordings = play.network.sites.iter_mut().map(|site| site.take_recordings()).collect();
        Outcome {
            recordings,
            failures,
            lasted: Duration::from_micros(play.network.now.0),
            drained: play.drained,
            deliveries: delivered().filter(|one| !is_report(one)).count(),
            reports: delivered().filter(is_report).count(),
            deaths: play.network.sites.iter().map(|site| site.deaths.len()).sum(),
            story,
        }
    }));
    played.unwrap_or_else(|_| Outcome { failures: vec![panicked()], ..Outcome::default() })
}

fn panicked() -> Failure {
    let what = PANIC.with(|panic| panic.borrow().clone());
    Failure { broken: Broken::Panicked, what }
}
