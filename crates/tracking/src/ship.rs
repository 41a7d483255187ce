//! Copies what was tracked to where all nodes of a site find it.
//!
//! A thread reads the files behind the one that writes them: messages wait for neither. It copies only what is
//! durable here, so the copy never has what a power cut takes from the files. The copy keeps how far it is, in
//! the transaction that adds to it. So whatever ends in between, nothing is missing and nothing is there twice.

mod tail;

use self::tail::Tail;
use crate::page::{Durable, Page, Place};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two copies of what came meanwhile.
const EVERY: Duration = Duration::from_secs(1);

/// Between two copies where more waits than one takes: with [`tail::READ`] it is 2 MiB a second, so
/// that after an outage messages still have the database.
const BEHIND: Duration = Duration::from_millis(250);

/// After a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Between two looks at whether the copy is longer than its limit, in rounds, while it is not.
const PRUNE: u32 = 60;

/// The longest that an end waits for what is not copied yet.
const AT_END: Duration = Duration::from_secs(2);

/// The name of the file that names its directory.
const NAME: &str = "origin";

/// Where events are copied from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A number that no other directory has.
    pub directory: u128,
    /// The node that writes there.
    pub node: String,
}

impl Origin {
    /// That of a directory; one that has no number yet gets `fresh`, a random one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(directory: &Path, node: &str, fresh: u128) -> io::Result<Origin> {
        if let Some(origin) = Origin::read(directory, node)? {
            return Ok(origin);
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut options = OpenOptions::new();
        let path = directory.join(NAME);
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        writeln!(file, "{fresh:032x}")?;
        file.sync_all()?;
        Ok(Origin { directory: fresh, node: node.to_owned() })
    }

    /// That of a directory; `None`: nothing was copied from it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn read(directory: &Path, node: &str) -> io::Result<Option<Origin>> {
        let text = match std::fs::read_to_string(directory.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // One that was cut off by a power cut is written anew.
        let number = Some(text.trim()).filter(|text| text.len() == 32);
        let number = number.and_then(|text| u128::from_str_radix(text, 16).ok());
        Ok(number.map(|directory| Origin { directory, node: node.to_owned() }))
    }
}

/// Why a copy failed.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Where it is copied to.
pub trait Archive: Send {
    /// How far the copy of this origin is. Where its directory was copied from under another name, it goes on
    /// from there.
    ///
    /// # Errors
    /// It cannot be reached.
    fn begin(&mut self, origin: &Origin) -> Result<Place, Failed>;

    /// Adds pages to the copy, which is then as far as `to`, if it is as far as `from` now; whether it was.
    ///
    /// # Errors
    /// It cannot be reached, or refuses. Whether they were added is not known.
    fn append(&mut self, from: Place, to: Place, pages: &[Page]) -> Result<bool, Failed>;

    /// Removes a few of the oldest pages of the site if all have more octets than this; whether there were any.
    ///
    /// # Errors
    /// As [`Archive::append`].
    fn prune(&mut self, limit: u64) -> Result<bool, Failed>;

    /// All that this origin has tracked is copied, and it ends.
    ///
    /// # Errors
    /// As [`Archive::append`].
    fn end(&mut self) -> Result<(), Failed>;
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// All that is durable is copied.
    Done,
    /// There is more.
    More,
    /// The archive is away, or the files cannot be read.
    Failed,
}

/// Copies in a thread of its own. Dropping it copies what the files have, if that is soon done.
#[derive(Debug)]
pub struct Shipper {
    /// Dropping it ends the thread.
    ending: Option<Sender<()>>,
    ended: Mutex<Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shipper {
    /// Begins to copy a directory, as far as it is durable. The archive is kept below `limit` octets.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(
        directory: &Path,
        origin: Origin,
        durable: Durable,
        limit: u64,
        archive: impl Archive + 'static,
    ) -> io::Result<Shipper> {
        let mut work = Work::new(directory, origin, durable, limit, archive);
        let (ending, end) = channel();
        let (done, ended) = channel();
        let thread = std::thread::Builder::new().name("shipping".to_owned()).spawn(move || {
            work.run(&end);
            drop(done);
        })?;
        Ok(Shipper { ending: Some(ending), ended: Mutex::new(ended), thread: Some(thread) })
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        drop(self.ending.take());
        // A database that hangs does not hold up the end: what is not copied is copied after the next start.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ended = ended.recv_timeout(AT_END);
        if let Some(thread) = self.thread.take().filter(|_| ended != Err(RecvTimeoutError::Timeout))
        {
            let _ = thread.join(); // the hook has reported its panic
        }
    }
}

/// The thread.
struct Work<A> {
    tail: Tail,
    origin: Origin,
    durable: Durable,
    limit: u64,
    archive: A,
    /// How far the copy is; `None` where that has to be asked.
    copied: Option<Place>,
    /// Rounds until the next look at the limit.
    until_prune: u32,
    failing: bool,
    retry: Duration,
}

impl<A: Archive> Work<A> {
    fn new(directory: &Path, origin: Origin, durable: Durable, limit: u64, archive: A) -> Work<A> {
        Work {
            tail: Tail::new(directory),
            origin,
            durable,
            limit,
            archive,
            copied: None,
            until_prune: 1,
            failing: false,
            retry: RETRY.0,
        }
    }

    fn run(&mut self, end: &Receiver<()>) {
        let mut wait = Duration::ZERO;
        while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let round = self.round();
            wait = self.wait_after(round);
        }
        // The tracker has ended before: all is durable. After AT_END nobody waits for this.
        while self.round_without_pruning() == Round::More {}
        if self.copied == Some(self.durable.place()) {
            let _ = self.archive.end(); // if not, what it is for is only a sentence
        }
    }

    fn round(&mut self) -> Round {
        let round = self.round_without_pruning();
        self.until_prune = self.until_prune.saturating_sub(1);
        if round == Round::Failed || self.until_prune > 0 {
            return round;
        }
        match self.archive.prune(self.limit) {
            // A few pages a round, until it is short enough.
            Ok(is_more) => self.until_prune = if is_more { 1 } else { PRUNE },
            Err(error) => return self.failed(&*error),
        }
        match self.until_prune {
            1 => Round::More,
            _ => round,
        }
    }

    fn wait_after(&mut self, round: Round) -> Duration {
        match round {
            Round::Done => EVERY,
            Round::More => BEHIND,
            Round::Failed => {
                let wait = self.retry;
                self.retry = RETRY.1.min(wait * 2);
                wait
            }
        }
    }

    /// Copies what is next.
    fn round_without_pruning(&mut self) -> Round {
        match self.copy() {
            Ok(round) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("what is tracked is copied to the site's database again");
                }
                self.retry = RETRY.0;
                round
            }
            Err(error) => self.failed(&*error),
        }
    }

    fn failed(&mut self, error: &dyn std::error::Error) -> Round {
        // Whether the last pages were added is not known.
        self.copied = None;
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(
                %error,
                "what is tracked is not copied to the site's database for now: other nodes do not see it"
            );
        }
        Round::Failed
    }

    fn copy(&mut self) -> Result<Round, Failed> {
        let from = match self.copied {
            Some(place) => place,
            None => self.archive.begin(&self.origin)?,
        };
        self.copied = Some(from);
        let stretch = self.tail.read(from, self.durable.place())?;
        if stretch.to == from {
            return Ok(Round::Done);
        }
        if !stretch.pages.is_empty() && !self.archive.append(from, stretch.to, &stretch.pages)? {
            // What was thought to have failed was added.
            self.copied = None;
            return Ok(Round::More);
        }
        self.copied = Some(stretch.to);
        let is_all = stretch.to >= self.durable.place();
        Ok(if is_all { Round::Done } else { Round::More })
    }
}

#[cfg(test)]
mod tests;
