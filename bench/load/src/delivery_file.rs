//! The file of the deliveries that the receiving users confirm, synced for all waiting users together.
//!
//! The file is a ring, allocated before the run, so that its syncs are those of overwritten blocks:
//! the file system has no new length to record. Later deliveries overwrite the first ones.

use anyhow::{Context, Result};
use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use tokio::sync::{mpsc, oneshot};

/// Octets of the file.
const RING: u64 = 64 << 20;
/// Jobs of one write.
const BATCH: usize = 256;
/// Bound of waiting jobs; a user with another one waits.
const WAITING: usize = 256;

enum Job {
    Octets(Bytes),
    Commit(oneshot::Sender<()>),
}

/// A handle for one user; all write to one file.
#[derive(Clone)]
pub(crate) struct DeliveryFile {
    jobs: mpsc::Sender<Job>,
}

impl DeliveryFile {
    /// Creates the file and starts the thread that writes it, which ends with the last handle.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn start(path: &Path) -> Result<DeliveryFile> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let zeros = vec![0; 1 << 20];
        for _ in 0..RING >> 20 {
            file.write_all(&zeros).context("allocating the delivery file")?;
        }
        file.sync_all().context("allocating the delivery file")?;
        file.seek(SeekFrom::Start(0)).context("the delivery file")?;
        let (jobs, queue) = mpsc::channel(WAITING);
        std::thread::Builder::new()
            .name("deliveries".to_owned())
            .spawn(move || write(file, queue))
            .context("starting the delivery file's thread")?;
        Ok(DeliveryFile { jobs })
    }

    /// Queues octets to be written.
    pub(crate) async fn append(&self, octets: Bytes) -> Result<()> {
        self.jobs.send(Job::Octets(octets)).await.ok().context("the delivery file failed")
    }

    /// Returns when all octets queued before are on the disk.
    pub(crate) async fn commit(&self) -> Result<()> {
        let (done, wait) = oneshot::channel();
        self.jobs.send(Job::Commit(done)).await.ok().context("the delivery file failed")?;
        wait.await.context("the delivery file failed")
    }
}

fn write(mut file: File, mut queue: mpsc::Receiver<Job>) {
    let (mut jobs, mut waiting) = (Vec::with_capacity(BATCH), Vec::new());
    let mut octets = Vec::new();
    let mut at = 0;
    while queue.blocking_recv_many(&mut jobs, BATCH) > 0 {
        for job in jobs.drain(..) {
            match job {
                Job::Octets(piece) => octets.extend_from_slice(&piece),
                Job::Commit(done) => waiting.push(done),
            }
        }
        if at + octets.len() as u64 > RING {
            at = 0;
        }
        at += octets.len() as u64;
        let written = file
            .seek(SeekFrom::Start(at - octets.len() as u64))
            .and_then(|_| file.write_all(&octets))
            .and_then(|()| if waiting.is_empty() { Ok(()) } else { file.sync_data() });
        octets.clear();
        if let Err(error) = written {
            eprintln!("the delivery file of the receiving users: {error}");
            return; // those that wait get the error of the closed channel
        }
        for done in waiting.drain(..) {
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_committed_is_in_the_file_round_and_round() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deliveries");
        let file = DeliveryFile::start(&path).unwrap();
        file.append(Bytes::from_static(b"one")).await.unwrap();
        file.append(Bytes::from_static(b" two")).await.unwrap();
        file.commit().await.unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[..8], b"one two\0");
        for _ in 0..RING >> 20 {
            file.append(Bytes::from(vec![7; 1 << 20])).await.unwrap();
        }
        file.commit().await.unwrap();
        let file = std::fs::read(&path).unwrap();
        assert_eq!((file.len() as u64, file[0], file[7]), (RING, 7, 7));
    }
}
