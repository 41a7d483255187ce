//! What goes wrong with the disk of a site, and when.

use crate::network::Death;
use base::Instant;
use base::rng::Rng;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Disk;
use store::faulty::{FaultyDisk, Loss, Unreadable};

/// A fault, which happens at an operation of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine loses its power, and of what was not synced so much is lost.
    Power {
        /// What is lost.
        loss: Loss,
        /// The operation is still made; nobody learns it.
        after: bool,
    },
    /// The process is killed after the operation; its kernel goes on.
    Kill,
    /// The operation fails: a sync that does drops what was written.
    Fails(io::ErrorKind),
    /// It fails, and all others for so long.
    FailsFor(io::ErrorKind, Duration),
    /// From it on there is no more room for so long.
    Full(Duration),
    /// A bit of what is stored changes after it.
    Rot(u64),
    /// From it on the next read fails.
    UnreadableOnce,
    /// From it on all reads fail for so long.
    Unreadable(Duration),
}

/// The faults of a disk.
#[derive(Debug)]
pub(super) struct Faults {
    plan: VecDeque<(u64, Fault)>,
    /// The next one, and the count of operations since the last power failure at which it is due.
    armed: Option<(u64, Fault)>,
    /// Operations before the last power failure.
    before: u64,
    loss: Loss,
    /// When what lasts ends.
    heals: Option<Instant>,
    healed: Option<Instant>,
    is_full: bool,
}

impl Faults {
    pub(super) fn new(plan: Vec<(u64, Fault)>) -> Faults {
        Faults {
            plan: plan.into(),
            armed: None,
            before: 0,
            loss: Loss::Everything,
            heals: None,
            healed: Some(Instant(0)),
            is_full: false,
        }
    }

    pub(super) fn plan(&mut self, disk: &FaultyDisk, after: u64, fault: Fault) {
        self.plan.push_back((after, fault));
        if self.heals.is_none() {
            self.arm(disk);
        }
    }

    /// Forgets what is planned, and ends what lasts.
    pub(super) fn end(&mut self, disk: &FaultyDisk, now: Instant) {
        self.plan.clear();
        let lasted = self.heals.take().is_some();
        if lasted || self.armed.take().is_some() {
            self.armed = None;
            disk.heal();
            disk.resume();
        }
        self.healed = self.healed.or(Some(now));
        self.is_full = false;
    }

    pub(super) fn operations(&self, disk: &FaultyDisk) -> u64 {
        self.before + disk.calls()
    }

    pub(super) fn left(&self) -> usize {
        self.plan.len() + usize::from(self.armed.is_some())
    }

    pub(super) fn healed(&self) -> Option<Instant> {
        self.healed
    }

    /// Whether the disk is full.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Makes the next fault happen.
    pub(super) fn arm(&mut self, disk: &FaultyDisk) {
        if self.armed.is_some() {
            return;
        }
        let Some((more, fault)) = self.plan.pop_front() else { return };
        let at = disk.calls() + more;
        match fault {
            Fault::Power { after, .. } => disk.power_off_at(at + u64::from(after)),
            Fault::Kill => disk.power_off_at(at + 1),
            Fault::Fails(kind) => disk.fail_at(at, kind),
            Fault::FailsFor(kind, _) => disk.fail_from(at, kind),
            Fault::Full(_) => disk.full_from(at),
            Fault::UnreadableOnce => disk.unreadable_from(at, Unreadable::Once),
            Fault::Unreadable(_) => disk.unreadable_from(at, Unreadable::All),
            Fault::Rot(_) => {}
        }
        self.armed = Some((at, fault));
    }

    /// After an operation: how the process ends, if the fault that is due ends it.
    pub(super) fn strike(&mut self, disk: &FaultyDisk, now: Instant) -> Option<Death> {
        let (_, fault) = self.armed.take_if(|(at, _)| disk.calls() >= *at)?;
        match fault {
            Fault::Power { loss, .. } => {
                self.loss = loss;
                return Some(Death::Power);
            }
            Fault::Kill => {
                disk.resume();
                self.arm(disk);
                return Some(Death::Process);
            }
            Fault::Fails(_) | Fault::UnreadableOnce => {}
            Fault::FailsFor(_, lasts) | Fault::Full(lasts) | Fault::Unreadable(lasts) => {
                self.heals = Some(now + lasts);
                self.healed = None;
                self.is_full = matches!(fault, Fault::Full(_));
                // The next one after this is over.
                return None;
            }
            Fault::Rot(seed) => {
                rot(disk, seed);
            }
        }
        self.arm(disk);
        None
    }

    /// Ends what lasts, if it is time.
    pub(super) fn heal(&mut self, disk: &FaultyDisk, now: Instant) {
        if self.heals.take_if(|at| *at <= now).is_some() {
            self.healed = Some(now);
            self.is_full = false;
            disk.heal();
            self.arm(disk);
        }
    }

    /// The process is dead.
    pub(super) fn die(&mut self, disk: &FaultyDisk, death: Death) {
        if death != Death::Power {
            return;
        }
        self.before += disk.calls();
        disk.crash(std::mem::replace(&mut self.loss, Loss::Everything));
        if self.heals.is_some() {
            // A disk that fails does so after a restart, too.
            return;
        }
        // What was planned for the disk is gone with its power.
        if let Some((_, fault)) = self.armed.take() {
            self.plan.push_front((1, fault));
        }
        self.arm(disk);
    }
}

/// Changes a bit of a file of the store, if there is one that holds anything.
fn rot(disk: &FaultyDisk, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut octets: Vec<(PathBuf, u64)> = Vec::new();
    for directory in ["bodies", "log", "keys"] {
        let files = disk.list(Path::new(directory)).unwrap_or_default();
        let stored = files.iter().filter(|(name, _)| {
            [".body", ".segment", ".keys"].iter().any(|ending| name.ends_with(ending))
        });
        let mut here = Vec::new();
        for (name, length) in stored {
            let path = Path::new(directory).join(name);
            let all = disk.read_range(&path, 0, *length as usize).unwrap_or_default();
            let used = all.iter().enumerate().filter(|(_, octet)| **octet != 0);
            here.extend(used.map(|(at, _)| (path.clone(), at as u64)));
        }
        // Each kind of file as often as the others.
        if !here.is_empty() {
            octets.push(here.swap_remove(rng.below(here.len() as u64) as usize));
        }
    }
    if !octets.is_empty() {
        let (path, at) = &octets[rng.below(octets.len() as u64) as usize];
        // What is not durable yet does not rot.
        let _ = disk.flip(path, *at, 1 << rng.below(8));
    }
}
