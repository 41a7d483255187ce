//! Runs kept in files.

use super::Job;
use anyhow::{Context as _, Result};
use emulator::DataPathKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use study::Measured;
use study::measured::Environment;

/// Changed when a run would come out otherwise, or is kept otherwise.
const VERSION: u32 = 6;
/// Likewise, of what is made in simulation alone.
const SIMULATION: u32 = 7;

/// A directory of runs.
#[derive(Debug)]
pub(super) struct Keep {
    directory: PathBuf,
    /// The data path of the testbed that is asked for.
    path: Option<DataPathKind>,
    /// Runs of one name differ in what decides them: each has a file of its own, without its series.
    is_of_rivals: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    measured: Measured,
}

impl Keep {
    /// In a directory, made if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn at(directory: &Path, path: Option<DataPathKind>) -> Result<Keep> {
        let directory = directory.join("runs");
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Ok(Keep { directory, path, is_of_rivals: false })
    }

    /// Likewise, for the runs of rivals: those that are made of the same are made once.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn of_rivals(directory: &Path) -> Result<Keep> {
        Ok(Keep { is_of_rivals: true, ..Keep::at(directory, None)? })
    }

    /// A run that was made of just this before.
    pub(super) fn find(&self, job: &Job) -> Option<Measured> {
        let text = fs::read_to_string(self.file(job)).ok()?;
        // One that cannot be read is made again.
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.key == self.key(job)?).then_some(kept.measured)
    }

    /// Keeps a run, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn put(&self, job: &Job, mut measured: Measured) -> Result<Measured> {
        let key = self.key(job).context("a run's key")?;
        if self.is_of_rivals {
            measured.series.clear();
        }
        let kept = Kept { key, measured };
        let text = serde_json::to_string(&kept)?;
        let file = self.file(job);
        let mut whole = tempfile::NamedTempFile::new_in(&self.directory)?;
        std::io::Write::write_all(&mut whole, text.as_bytes())?;
        whole.persist(&file).with_context(|| format!("keeping {}", file.display()))?;
        Ok(kept.measured)
    }

    /// Everything that decides the results of a run, and nothing that is only shown or compared.
    pub(super) fn key(&self, job: &Job) -> Option<String> {
        let mut planned = job.planned.clone();
        planned.table.clear();
        planned.why.clear();
        planned.special.clear();
        planned.fitted.clear();
        // What they come to is in the network, the policies and the mail.
        planned.settings.clear();
        // Every simulation has the only one there is.
        planned.tcp.initial_window = None;
        planned.repeat = 1;
        planned.experiment = 0;
        // What these come to stands in the job.
        (planned.scale_most, planned.above_scale, planned.environments) = Default::default();
        for message in &mut planned.messages {
            (message.base, message.paper) = (None, BTreeMap::new());
            message.no_fit_reason.clear();
        }
        for load in &mut planned.loads {
            (load.base, load.paper) = (None, BTreeMap::new());
            load.paper_tos.clear();
            load.no_fit_reason.clear();
        }
        let path = self
            .path
            .filter(|_| job.environment == Environment::Testbed)
            .map(|path| path.to_string());
        let version = match job.environment {
            Environment::Testbed => VERSION,
            Environment::Simulation => SIMULATION,
        };
        let all = (version, planned, job.environment, job.scale, job.seed, path);
        Some(hex(&Sha256::digest(&serde_json::to_vec(&all).ok()?), 32))
    }

    /// A readable name, and a few digits that make it unique.
    fn file(&self, job: &Job) -> PathBuf {
        let id = &job.planned.id;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = id.chars().map(plain).take(100).collect();
        let again = if job.time > 1 { format!("-again-{}", job.time) } else { String::new() };
        let unlike = match self.key(job).filter(|_| self.is_of_rivals) {
            Some(key) => key,
            None => hex(&Sha256::digest(id.as_bytes()), 4),
        };
        self.directory.join(format!("{name}-{unlike}{again}.json"))
    }
}

fn hex(octets: &[u8], most: usize) -> String {
    octets.iter().take(most).map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use study::Scale;

    fn job(environment: Environment, scale: u32, seed: u64) -> Job {
        let found = crate::find("isode-nato-2007").unwrap();
        let planned = found.plan().unwrap().swap_remove(0);
        let scale = Scale::whole(scale);
        Job { planned, environment, scale, seed, time: 1, expected: Duration::ZERO }
    }

    #[test]
    fn what_is_kept_is_found_while_nothing_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let keep = Keep::at(directory.path(), None).unwrap();
        let one = || job(Environment::Testbed, 1, 1);
        assert_eq!(keep.find(&one()), None);
        let measured =
            Measured { id: one().planned.id, scale: Scale::ONE, seed: 7, ..Measured::default() };
        keep.put(&one(), measured.clone()).unwrap();
        assert_eq!(keep.find(&one()), Some(measured.clone()));
        for other in [
            job(Environment::Testbed, 10, 1),
            job(Environment::Simulation, 1, 1),
            job(Environment::Testbed, 1, 2),
        ] {
            assert_eq!(keep.find(&other), None);
        }
        let mut changed = one();
        changed.planned.limit += Duration::from_secs(1);
        assert_eq!(keep.find(&changed), None);
        // Its description may change, and how often it is made.
        let mut notified = one();
        notified.planned.why.push("another reason".to_owned());
        notified.planned.messages[0].paper.insert("seconds".to_owned(), 3.0);
        notified.planned.repeat = 5;
        assert_eq!(keep.find(&notified), Some(measured));
        // Each time it is made has a file of its own.
        notified.time = 2;
        assert_eq!(keep.find(&notified), None);
        keep.put(&notified, Measured::default()).unwrap();
        assert_eq!(keep.find(&notified), Some(Measured::default()));
        assert_eq!(keep.find(&one()).unwrap().seed, 7);
        // The data path of the testbed makes another number, that of the virtual one does not.
        let packet = Keep::at(directory.path(), Some(DataPathKind::Packet)).unwrap();
        assert_eq!(packet.find(&one()), None);
        let simulated = job(Environment::Simulation, 1, 1);
        keep.put(&simulated, Measured::default()).unwrap();
        assert_eq!(packet.find(&simulated), Some(Measured::default()));
        fs::write(keep.file(&one()), "{").unwrap();
        assert_eq!(keep.find(&one()), None);
    }
}
