//! How much of each message the next MTA has confirmed, sampled at intervals.

use super::Moment;
use super::watch::{MAX_STEPS, MIN_STEP};
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use study::measured::Progress;
use testbed::StatusReader;
use testbed::clock::pause;

/// By MTS identifier.
pub(super) type AllProgress = BTreeMap<String, Progress>;

/// The thread that asks.
#[derive(Debug)]
pub(super) struct Transfers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<AllProgress>>,
}

impl Transfers {
    /// Asks the MTA that sends.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(
        sender: StatusReader,
        limit: Duration,
        origin: Moment,
    ) -> Result<Transfers> {
        let step = (limit / MAX_STEPS).max(MIN_STEP);
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let following = move || follow(&sender, step, origin, &stopping);
        let thread = std::thread::Builder::new().name("transfers".to_owned()).spawn(following)?;
        Ok(Transfers { stop, thread: Some(thread) })
    }

    /// Stops, and returns what was seen.
    pub(super) fn end(mut self) -> AllProgress {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_default()
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(sender: &StatusReader, step: Duration, origin: Moment, stop: &AtomicBool) -> AllProgress {
    let mut all = AllProgress::new();
    let mut steps = 0u32;
    while !stop.load(Ordering::Relaxed) {
        // One that does not answer now may answer at the next step; it is the run that fails if not.
        if let Ok(status) = sender.status() {
            let at = origin.seconds();
            let channels = status.peers.iter().flat_map(|peer| &peer.channels);
            let transfers = channels.flat_map(|channel| &channel.associations);
            for transfer in transfers {
                let Some((message, octets)) = transfer.confirmed() else { continue };
                all.entry(message.to_owned()).or_default().seen(at, octets);
            }
        }
        // After a slow answer the steps that were missed are left out: the MTA has other work.
        let passed = (origin.seconds() / step.as_secs_f64().max(1e-3)) as u32;
        steps = steps.max(passed).saturating_add(1);
        let due = (step * steps).as_secs_f64();
        while origin.seconds() < due && !stop.load(Ordering::Relaxed) {
            pause(Duration::from_secs_f64((due - origin.seconds()).clamp(0.001, 0.05)));
        }
    }
    all
}
