//! What the disk itself can do, so that figures which rest on it can be judged.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;
use testbed::clock;

/// The duration of each measurement.
const TIME: Duration = Duration::from_secs(1);
/// Octets of a write: a page of the database.
const BLOCK: usize = 4_096;
/// Blocks of the file that is overwritten.
const BLOCKS: u64 = 4_096;

/// Write and fdatasync, times a second, one after the other.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Disk {
    /// 4 KiB over what is there.
    overwrite_per_s: f64,
    /// 4 KiB behind the end of a file, which the file system has to record.
    append_per_s: f64,
    /// 1 MiB over what is there, in megabytes.
    overwrite_mb_per_s: f64,
}

impl Disk {
    /// Measures the disk that holds this directory.
    pub(super) fn measure(directory: &Path) -> Result<Disk> {
        let path = directory.join("disk-rate");
        let measured = (|| {
            let mut file =
                OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
            let append_per_s = per_second(|_| {
                file.write_all(&[1; BLOCK])?;
                file.sync_data()
            })?;
            file.set_len(0)?;
            file.write_all_at(&vec![0; BLOCK * usize::try_from(BLOCKS).unwrap_or(0)], 0)?;
            file.sync_all()?;
            let overwrite_per_s = per_second(|n| over(&file, n % BLOCKS, BLOCK))?;
            let mib = per_second(|n| over(&file, (n % 16) * 256, 1 << 20))?;
            let overwrite_mb_per_s = mib * f64::from(1u32 << 20) / 1e6;
            Ok(Disk { overwrite_per_s, append_per_s, overwrite_mb_per_s })
        })();
        let _ = std::fs::remove_file(&path);
        measured.map_err(|error: std::io::Error| error).context("measuring the disk")
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        format!(
            "fdatasync of 4 KiB: {:.0}/s overwritten, {:.0}/s appended; of 1 MiB: {:.0} MB/s",
            self.overwrite_per_s, self.append_per_s, self.overwrite_mb_per_s
        )
    }
}

fn over(file: &File, block: u64, octets: usize) -> std::io::Result<()> {
    file.write_all_at(&vec![2; octets], block * BLOCK as u64)?;
    file.sync_data()
}

fn per_second(mut once: impl FnMut(u64) -> std::io::Result<()>) -> std::io::Result<f64> {
    let begin = clock::since_1970();
    for count in 0.. {
        let passed = clock::since_1970().saturating_sub(begin);
        if passed >= TIME {
            return Ok(count as f64 / passed.as_secs_f64());
        }
        once(count)?;
    }
    Ok(0.0)
}
