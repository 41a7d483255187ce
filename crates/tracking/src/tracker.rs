//! The daemon's end: events wait in a queue of limited size, and a thread writes them.

use crate::event::Event;
use crate::page::{Durable, Place};
use crate::ship::{Archive, Origin, Shipper};
use crate::writer::Writer;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, mem};

/// Events are collected for this long and written together.
const GATHER: Duration = Duration::from_millis(200);

/// What was written is made durable after so many rounds of [`GATHER`], half a second in all: with the
/// time of the sync itself it is durable within a second.
const ROUNDS: u32 = 2;

/// Most octets of events that wait for a slow disk; further ones are lost.
const MAX_WAITING: usize = 32 << 20;

/// Events are written together up to so many octets.
const PART: usize = 256 << 10;

/// A file that is there while a daemon writes, and after it if not all was stored.
const RUNNING: &str = "running";

/// Keeps track of messages. Dropping it writes what waits.
#[derive(Debug)]
pub struct Tracker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Copies the files; it ends after the thread that writes them.
    shipper: Option<Shipper>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// Events lost since the start.
    lost: AtomicU64,
    /// The disk has little room: nothing is written.
    short: AtomicBool,
    durable: Durable,
}

#[derive(Debug, Default)]
struct Waiting {
    events: Vec<Event>,
    octets: usize,
    /// Events lost to a full queue, which no stored event stands for yet.
    lost: u64,
    ended: bool,
    /// The thread sleeps until an event comes.
    idle: bool,
}

impl Tracker {
    /// Opens the directory and starts the thread that writes there, `limit` octets at most.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(directory: &Path, limit: u64) -> io::Result<Tracker> {
        Tracker::start_after(directory, limit, Place::default())
    }

    /// The same; what is behind this place of the directory was copied before, so the first event is put behind
    /// it ([`Writer::go_on_after`]).
    ///
    /// # Errors
    /// The operating system's.
    pub fn start_after(directory: &Path, limit: u64, copied: Place) -> io::Result<Tracker> {
        let mut writer = Writer::open(directory, limit)?;
        writer.go_on_after(copied)?;
        let running = directory.join(RUNNING);
        // Else the last one was killed, or ended with events that it could not store.
        let was_ended = !running.exists();
        File::create(&running)?;
        let shared = Arc::new(Shared::default());
        writer.sync()?;
        shared.durable.put(writer.place());
        let path = directory.display().to_string();
        let mut work = Work {
            writer,
            path,
            running,
            was_ended,
            unstored: 0,
            stood_for: (0, 0),
            failing: false,
        };
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("tracking".to_owned())
            .spawn(move || work.run(&theirs))?;
        Ok(Tracker { shared, thread: Some(thread), shipper: None })
    }

    /// The same, and another thread copies what is durable to an archive, which is kept below `limit` octets
    /// too. The archive may be away.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start_copied(
        directory: &Path,
        limit: u64,
        origin: Origin,
        mut archive: impl Archive + 'static,
    ) -> io::Result<Tracker> {
        // Without an answer the directory is taken for what it nearly always is: at least as long as the copy.
        let copied = archive.begin(&origin).unwrap_or_default();
        let mut tracker = Tracker::start_after(directory, limit, copied)?;
        let durable = tracker.durable();
        tracker.shipper = Some(Shipper::start(directory, origin, durable, limit, archive)?);
        Ok(tracker)
    }

    /// Adds an event. It can be found half a second later.
    pub fn put(&self, event: Event) {
        let mut waiting = self.shared.lock();
        let octets = event.held();
        if waiting.octets + octets > MAX_WAITING {
            if waiting.lost == 0 {
                tracing::warn!(
                    waiting = MAX_WAITING,
                    "tracking loses events: the disk takes them too slowly"
                );
            }
            waiting.lost += 1;
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.octets += octets;
        waiting.events.push(event);
        if mem::take(&mut waiting.idle) {
            self.shared.more.notify_one();
        }
    }

    /// The disk has little room, which is kept for messages: nothing is written until it has again.
    pub fn short_of_space(&self, is_short: bool) {
        if self.shared.short.swap(is_short, Ordering::Relaxed) != is_short {
            match is_short {
                true => tracing::warn!("tracking stops until the disk has room again"),
                false => tracing::info!("tracking goes on: the disk has room again"),
            }
        }
    }

    /// How far its files are durable, then and later.
    pub fn durable(&self) -> Durable {
        self.shared.durable.clone()
    }

    /// Events lost since the start.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.more.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // the hook has reported its panic
        }
        drop(self.shipper.take());
    }
}

/// What the thread has to do.
struct Round {
    events: Vec<Event>,
    /// Events lost before these.
    lost: u64,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for [`GATHER`], after an event where there is nothing else to do.
    fn next(&self, rests: bool) -> Round {
        let mut waiting = self.lock();
        if rests {
            waiting.idle = true;
            let is_idle = |w: &mut Waiting| w.idle && w.events.is_empty() && !w.ended;
            waiting =
                self.more.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
            waiting.idle = false;
        }
        let gathered = self.more.wait_timeout_while(waiting, GATHER, |w| !w.ended);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        waiting.octets = 0;
        Round {
            events: mem::take(&mut waiting.events),
            lost: mem::take(&mut waiting.lost),
            ended: waiting.ended,
        }
    }
}

/// The thread.
struct Work {
    writer: Writer,
    path: String,
    /// The file [`RUNNING`].
    running: PathBuf,
    /// The daemon before this one has stored all it saw.
    was_ended: bool,
    /// Events lost that no stored event stands for yet.
    unstored: u64,
    /// Events not written yet that stand for lost ones: how many, and for how many.
    stood_for: (u64, u64),
    failing: bool,
}

impl Work {
    fn run(&mut self, shared: &Shared) {
        // Rounds since something was written that is not durable yet.
        let mut rounds = 0;
        loop {
            let round = shared.next(rounds == 0);
            let (is_empty, ended) = (round.events.is_empty(), round.ended);
            if shared.short.load(Ordering::Relaxed) {
                self.lose(shared, round.events.len() as u64);
                self.unstored += round.lost;
            } else {
                self.store(shared, round);
            }
            rounds = if is_empty && rounds == 0 { 0 } else { rounds + 1 };
            if rounds >= ROUNDS || ended {
                rounds = 0;
                match self.writer.sync() {
                    Ok(()) => shared.durable.put(self.writer.place()),
                    Err(error) => self.ended(shared, Err((error, 0))),
                }
            }
            if ended {
                if self.unstored == 0 && self.was_ended {
                    let _ = std::fs::remove_file(&self.running); // if not, a gap is shown that is none
                }
                return;
            }
        }
    }

    fn store(&mut self, shared: &Shared, round: Round) {
        let Round { events, lost, .. } = round;
        for event in events {
            if !mem::replace(&mut self.was_ended, true) {
                self.writer.append(&Event::lost(event.time, 0));
            }
            if self.unstored > 0 {
                let count = mem::take(&mut self.unstored);
                self.writer.append(&Event::lost(event.time, count));
                self.stood_for = (self.stood_for.0 + 1, self.stood_for.1 + count);
            }
            if !self.writer.append(&event) {
                self.lose(shared, 1);
            }
            if self.writer.waiting() >= PART {
                let written = self.writer.write();
                self.ended(shared, written);
            }
        }
        let written = self.writer.write();
        self.ended(shared, written);
        // They came when the queue was full of these events.
        self.unstored += lost;
    }

    fn lose(&mut self, shared: &Shared, count: u64) {
        self.unstored += count;
        shared.lost.fetch_add(count, Ordering::Relaxed);
    }

    fn ended(&mut self, shared: &Shared, result: Result<(), (io::Error, u64)>) {
        match result {
            Ok(()) => {
                self.stood_for = (0, 0);
                if mem::take(&mut self.failing) {
                    tracing::info!(
                        path = self.path,
                        lost = shared.lost.load(Ordering::Relaxed),
                        "tracking goes on"
                    );
                }
            }
            Err((error, lost)) => {
                let (events, count) = mem::take(&mut self.stood_for);
                self.unstored += count;
                self.lose(shared, lost.saturating_sub(events));
                if !mem::replace(&mut self.failing, true) {
                    tracing::warn!(path = self.path, %error, "tracking loses events until it can write");
                }
            }
        }
    }
}
