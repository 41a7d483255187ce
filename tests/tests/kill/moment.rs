//! The moments at which a daemon is killed, each made from a seed alone.

use crate::e2e::print_line;
use base::rng::Rng;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use testbed::Site;

/// The variable that repeats a run: the seed a failure has shown.
pub(super) const SEED: &str = "KILL_SEED";

/// The variable with the number of moments of a run.
const COUNT: &str = "KILL_MOMENTS";

/// Most events of the victim's log that are waited for: about what a second of traffic gives.
const MAX_EVENTS: u64 = 60;
/// Longest time that is waited for.
const MAX_TIME: u64 = 900;
/// Longest life of a daemon that is killed while it starts, in milliseconds: some do not get as far
/// as opening the store, others serve already.
const MAX_YOUTH: u64 = 120;

/// When it strikes, from the end of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Right after so many events of the victim's log.
    Event(u64),
    /// After so long.
    Time(Duration),
}

/// What is done at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// Which of the two sites is killed.
    pub(super) victim: usize,
    pub(super) when: When,
    /// It is killed again while it starts, after each of these.
    pub(super) again: Vec<Duration>,
    /// A receiving user of this site, by its number, is killed with it.
    pub(super) receiver: Option<(usize, usize)>,
}

impl Moment {
    /// Half of them are at an event, half at a time; each fourth one strikes again while the daemon
    /// starts, each third one a receiver, too.
    pub(super) fn new(seed: u64, number: u64) -> Moment {
        let mut rng = Rng::new(seed.wrapping_mul(0x1_0001).wrapping_add(number));
        let victim = rng.below(2) as usize;
        let when = match number % 2 {
            0 => When::Event(1 + rng.below(MAX_EVENTS)),
            _ => When::Time(Duration::from_millis(rng.below(MAX_TIME))),
        };
        let times = if number % 4 == 1 { 1 + rng.below(2) } else { 0 };
        let again = (0..times).map(|_| Duration::from_millis(rng.below(MAX_YOUTH))).collect();
        let receiver = (number % 3 == 2).then(|| (rng.below(2) as usize, rng.below(2) as usize));
        Moment { victim, when, again, receiver }
    }
}

/// Counts the events in a daemon's log as they are written.
pub(super) struct Log {
    path: PathBuf,
    at: u64,
}

impl Log {
    pub(super) fn from_site(site: &Site) -> Log {
        Log { path: site.log(), at: 0 }
    }

    /// Events written since it was last asked.
    pub(super) fn more(&mut self) -> u64 {
        let mut octets = Vec::new();
        if let Ok(mut file) = File::open(&self.path) {
            file.seek(SeekFrom::Start(self.at)).unwrap();
            file.read_to_end(&mut octets).unwrap();
        }
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
        self.at += whole as u64;
        let text = String::from_utf8_lossy(&octets[..whole]);
        text.lines().filter(|line| line.contains("\"event\":\"")).count() as u64
    }
}

/// Shows what a run did; `cargo xtask soak` reads it from the file that it names.
pub(super) fn report(line: &str) {
    print_line(line);
    if let Some(path) = std::env::var_os("KILL_REPORT") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
}

/// The number of moments that was asked for.
pub(super) fn count() -> Option<u64> {
    std::env::var(COUNT).ok().map(|text| text.parse().expect("KILL_MOMENTS is a number"))
}

/// The seed of this run.
pub(super) fn seed(default: u64) -> u64 {
    std::env::var(SEED).map_or(default, |text| text.parse().expect("KILL_SEED is a number"))
}
