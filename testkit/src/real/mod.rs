//! The real store of a site: the daemon's log over a disk in memory that fails as planned, in virtual time.
//!
//! ```text
//!  node::Output ──▶ RealStore ── as the daemon's driver ──▶ LogStore ──▶ FaultyDisk
//!                      │                                                    │
//!                      └── Fault: power, kills, input/output errors, full, rot ────┘
//! ```
//!
//! What the daemon does on its threads happens here at once, one thing after the other; only the answers
//! take their time. A process ends where the daemon would end, and with the power of its machine. What the
//! daemon does with the store is in `crates/mta/src/driver/`, in `disk.rs` and `start/`: this follows it.

mod faults;
mod mutant;
mod outputs;
mod start;

pub use faults::Fault;
pub use mutant::{Lie, Mutant, SyncOf, When};

use crate::network::{Death, Durable, Opened};
use crate::store::{Delays, Reply};
use base::rng::Rng;
use base::{Instant, Now, Precedence, Utc};
use engine::journal::{Batch, SpoolId};
use engine::registered::Registration;
use faults::Faults;
use node::{DiskSpace, Input, Output, Token};
use start::Reading;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::faulty::FaultyDisk;
use store::{Disk, Options, QueueStore};

/// Small, so that a short run has all of it: contents in files, many segments, and runs of keys.
pub const SMALL: Options =
    Options { spool_memory: 6 << 10, cache: 1 << 20, many_keys: 2, run_keys: 4, segment: 4 << 10 };

/// The room that is kept for higher precedences.
const RESERVE: u64 = 64 << 10;

/// Where the daemon keeps its own files, beside the store.
const SITE: &str = "site";

/// What was asked of the committer.
#[derive(Debug)]
struct Job {
    token: Token,
    precedence: Precedence,
    batch: Batch,
    /// The contents that it takes.
    spools: Vec<SpoolId>,
    /// The keys that are to be forgotten expired before this.
    forgets: Option<Utc>,
    /// The reserve of a full disk is for it, all or a part.
    frees: bool,
    is_highest: bool,
}

/// The store of a site, and its disk.
#[derive(Debug)]
pub struct RealStore {
    /// The disk.
    pub disk: FaultyDisk,
    /// What opens of the store found that no crash explains.
    pub problems: Vec<String>,
    /// Commits that a full disk refused, although there is a reserve for them.
    pub refused: Vec<String>,
    /// How often the store was opened.
    pub opens: u32,
    store: Option<Arc<dyn QueueStore>>,
    faults: Faults,
    mutant: Option<Mutant>,
    /// What users have registered before the first start.
    registrations: Vec<(String, Registration)>,
    waiting: VecDeque<Job>,
    /// What is open, and whether all writes to it succeeded.
    spools: BTreeMap<SpoolId, bool>,
    /// The process ends once the answers are given.
    ends: bool,
    ending: Option<Death>,
    reading: Reading,
    batches: u64,
    space: Option<DiskSpace>,
    /// The disk became full while the store had its reserve.
    has_reserve: bool,
    /// Commits that were answered before they were made, by a mutant.
    late: Vec<Batch>,
    segment: Option<u64>,
}

impl RealStore {
    /// A store that was never opened, on a disk with these faults: each at so many operations after the one
    /// before, or the start.
    pub fn new(faults: Vec<(u64, Fault)>, mutant: Option<Mutant>) -> RealStore {
        let disk = FaultyDisk::new();
        disk.create_dir(Path::new(SITE)).expect("no fault yet");
        disk.sync_dir(Path::new("")).expect("no fault yet");
        let mut faults = Faults::new(faults);
        faults.arm(&disk);
        if mutant == Some(Mutant::Lies(Lie::KeepsCached)) {
            disk.keep_cached();
        }
        RealStore {
            disk,
            problems: Vec::new(),
            refused: Vec::new(),
            opens: 0,
            store: None,
            faults,
            mutant,
            registrations: Vec::new(),
            waiting: VecDeque::new(),
            spools: BTreeMap::new(),
            ends: false,
            ending: None,
            reading: Reading::Nothing,
            batches: 0,
            space: None,
            has_reserve: false,
            late: Vec::new(),
            segment: None,
        }
    }

    /// With segments of so many octets: most batches fit into one.
    #[must_use]
    pub fn with_segments(mut self, octets: u64) -> RealStore {
        self.segment = Some(octets);
        self
    }

    /// With what users have registered: the canonical address of each. It is there from the first start on.
    #[must_use]
    pub fn with_registrations(mut self, registrations: Vec<(String, Registration)>) -> RealStore {
        self.registrations = registrations;
        self
    }

    /// A delivery into a mailbox takes more than the segments with which the table of mutants was found.
    fn options(&self) -> Options {
        let segment = if self.mutant.is_none() { 8 << 10 } else { SMALL.segment };
        Options { segment: self.segment.unwrap_or(segment), ..SMALL }
    }

    /// The store, while a process has it open.
    pub fn opened(&self) -> Option<&dyn QueueStore> {
        self.store.as_deref()
    }

    /// Changing operations of the disk so far.
    pub fn operations(&self) -> u64 {
        self.faults.operations(&self.disk)
    }

    /// A further fault happens at one of the next operations: at so many after those that are planned.
    pub fn plan(&mut self, after: u64, fault: Fault) {
        self.faults.plan(&self.disk, after, fault);
    }

    /// The disk is well from now on: no fault that is planned happens.
    pub fn heal(&mut self, now: Instant) {
        self.faults.end(&self.disk, now);
    }

    /// Faults that have not happened yet.
    pub fn faults_left(&self) -> usize {
        self.faults.left()
    }

    /// When the last fault was over; `None` while one lasts.
    pub fn healed(&self) -> Option<Instant> {
        self.faults.healed()
    }

    fn lies(&self, lie: Lie) -> bool {
        self.mutant == Some(Mutant::Lies(lie))
    }

    /// After something was asked of the disk: the faults that it has met by now.
    fn strike(&mut self, now: Instant) {
        let was_full = self.faults.is_full();
        if let Some(death) = self.faults.strike(&self.disk, now) {
            self.ending = Some(death);
        }
        if self.faults.is_full() != was_full {
            self.has_reserve = !was_full && self.store.is_some();
        }
    }

    fn space(&self) -> DiskSpace {
        let free = self.disk.free().map_or(1 << 30, |blocks| blocks as u64 * 4096);
        DiskSpace { free, reserve: RESERVE, no_room_for: None }
    }

    fn tidy_now(&mut self, now: Instant) {
        let Some(store) = self.store.clone() else { return };
        for _ in 0..256 {
            let left = store.tidy();
            self.strike(now);
            if self.ending.is_some() || !matches!(left, Ok(1..)) {
                return;
            }
        }
    }
}

impl Durable for RealStore {
    const LOOKS: Option<Duration> = Some(Duration::from_secs(1));

    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output> {
        self.faults.heal(&self.disk, now.mono);
        let Some(store) = self.store.clone() else { return Err(output) };
        let reply = self.perform(&*store, (delays, rng), output)?;
        self.strike(now.mono);
        Ok(if self.ending.is_some() { Reply::None } else { reply })
    }

    fn commit(&mut self, now: Now, rng: &mut Rng) -> Vec<Input> {
        self.faults.heal(&self.disk, now.mono);
        let Some(store) = self.store.clone() else { return Vec::new() };
        let answers = self.commit_group(&*store, rng);
        self.strike(now.mono);
        answers
    }

    fn tidy(&mut self, now: Now) {
        if std::mem::take(&mut self.ends) {
            self.ending = self.ending.or(Some(Death::Process));
        } else if self.ending.is_none() && self.waiting.is_empty() {
            self.tidy_now(now.mono);
        }
    }

    fn look(&mut self, now: Now) -> Option<Input> {
        self.faults.heal(&self.disk, now.mono);
        let store = self.store.clone()?;
        self.make_late(&*store);
        let space = self.space();
        let is_short = space.free < space.reserve / 16 * 17;
        store.short_of_space(is_short);
        if is_short {
            self.tidy_now(now.mono);
        }
        self.strike(now.mono);
        (self.space.replace(space) != Some(space)).then_some(Input::DiskSpace(space))
    }

    fn end(&mut self) -> Option<Death> {
        self.ending.take()
    }

    fn is_off(&self) -> bool {
        // Nor does a process that was killed answer anything more.
        self.ending.is_some()
    }

    fn die(&mut self, death: Death, _: usize, _: &mut Rng) {
        // As the process leaves it: nothing is closed in order.
        if let Some(store) = self.store.take()
            && !store.damage().is_none()
        {
            self.problems.push(format!("until its end: {:?}", store.damage()));
        }
        self.waiting.clear();
        self.spools.clear();
        self.late.clear();
        (self.ends, self.ending, self.space) = (false, None, None);
        self.reading = Reading::Nothing;
        self.faults.die(&self.disk, death);
    }

    fn start(&mut self, now: Now) -> Result<Opened, String> {
        self.faults.heal(&self.disk, now.mono);
        self.opens += 1;
        let opened = self.open(now);
        self.strike(now.mono);
        if opened.is_err() || self.ending.is_some() {
            self.store = None;
        }
        match self.ending {
            Some(death) => Err(format!("{death:?} during the start")),
            None => opened,
        }
    }

    fn part(&mut self, own: (u64, u64)) -> Option<Vec<Input>> {
        let store = self.store.clone()?;
        match self.read_on(&*store, own) {
            Ok(part) => part,
            Err(_) => {
                self.ending = Some(Death::Process);
                None
            }
        }
    }

    fn close(&mut self) {
        if let Some(store) = &self.store {
            store.close();
        }
        // A power failure during the close is one all the same.
        self.strike(Instant(0));
    }
}
