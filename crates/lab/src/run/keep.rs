//! Runs kept in files.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use study::measured::Ground;
use study::{Measured, Planned};

/// Changed when a run would come out otherwise, or is kept otherwise.
const VERSION: u32 = 1;

/// A directory of runs.
#[derive(Debug)]
pub(super) struct Keep {
    directory: PathBuf,
    seed: u64,
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
    pub(super) fn at(directory: &Path, seed: u64) -> Result<Keep> {
        let directory = directory.join("runs");
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Ok(Keep { directory, seed })
    }

    /// A run that was made of just this before.
    pub(super) fn find(&self, planned: &Planned, ground: Ground, scale: u32) -> Option<Measured> {
        let text = fs::read_to_string(self.file(&planned.id)).ok()?;
        // One that cannot be read is made again.
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.key == self.key(planned, ground, scale)?).then_some(kept.measured)
    }

    /// Keeps a run, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn put(&self, planned: &Planned, measured: &Measured) -> Result<()> {
        let key = self.key(planned, measured.ground, measured.scale).context("a run's key")?;
        let text = serde_json::to_string(&Kept { key, measured: measured.clone() })?;
        let file = self.file(&planned.id);
        let mut whole = tempfile::NamedTempFile::new_in(&self.directory)?;
        std::io::Write::write_all(&mut whole, text.as_bytes())?;
        whole.persist(&file).with_context(|| format!("keeping {}", file.display()))?;
        Ok(())
    }

    /// All that decides about a run.
    fn key(&self, planned: &Planned, ground: Ground, scale: u32) -> Option<String> {
        let all = serde_json::to_vec(&(VERSION, planned, ground, scale, self.seed)).ok()?;
        Some(hex(&Sha256::digest(&all), 32))
    }

    /// A name for people, and a few digits that make it unlike any other.
    fn file(&self, id: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = id.chars().map(plain).take(100).collect();
        self.directory.join(format!("{name}-{}.json", hex(&Sha256::digest(id.as_bytes()), 4)))
    }
}

fn hex(octets: &[u8], most: usize) -> String {
    octets.iter().take(most).map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    #[test]
    fn what_is_kept_is_found_while_nothing_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let found = run::find("isode-nato-2007").unwrap();
        let planned = found.plan().unwrap().swap_remove(0);
        let keep = Keep::at(directory.path(), 1).unwrap();
        assert_eq!(keep.find(&planned, Ground::Real, 1), None);
        let measured = Measured { id: planned.id.clone(), scale: 1, ..Measured::default() };
        keep.put(&planned, &measured).unwrap();
        assert_eq!(keep.find(&planned, Ground::Real, 1), Some(measured));
        assert_eq!(keep.find(&planned, Ground::Real, 10), None);
        assert_eq!(keep.find(&planned, Ground::Virtual, 1), None);
        let other = Keep::at(directory.path(), 2).unwrap();
        assert_eq!(other.find(&planned, Ground::Real, 1), None);
        let mut changed = planned.clone();
        changed.limit += std::time::Duration::from_secs(1);
        assert_eq!(keep.find(&changed, Ground::Real, 1), None);
        fs::write(keep.file(&planned.id), "{").unwrap();
        assert_eq!(keep.find(&planned, Ground::Real, 1), None);
    }
}
