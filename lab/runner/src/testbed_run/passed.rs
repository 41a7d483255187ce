//! What passes the ports that a run analyses, captured while it passes.

use super::up::Network;
use crate::passed::{PassedAnalysis, PathEnd, read};
use anyhow::{Context as _, Result, anyhow};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use study::Planned;
use study::measured::{CodePointPassed, PassedCount};
use testbed::clock::pause;

/// The time in which the last packets of a capture come to who reads it.
const LAST: Duration = Duration::from_millis(500);

/// The captures at both ends of a run's path.
#[derive(Debug)]
pub(super) struct Captures {
    analysis: Arc<Mutex<PassedAnalysis>>,
    /// The port whose counters are compared.
    to: String,
    ends: Vec<Capture>,
}

#[derive(Debug)]
struct Capture {
    stream: UnixStream,
    reader: Option<JoinHandle<Result<()>>>,
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Captures {
    /// Begins to capture, where the run analyses anything.
    ///
    /// # Errors
    /// The network captures nothing there.
    pub(super) fn start(network: &Network, planned: &Planned) -> Result<Option<Captures>> {
        let Some(path) = &planned.analysed else { return Ok(None) };
        let analysis = Arc::new(Mutex::new(PassedAnalysis::new(path)));
        let ends = [(PathEnd::From, &path.from), (PathEnd::To, &path.to)];
        let ends = ends.map(|(end, port)| {
            let from = network.client().capture(port).with_context(|| port.clone())?;
            Capture::start(from, end, Arc::clone(&analysis))
        });
        let ends = ends.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Some(Captures { analysis, to: path.to.clone(), ends }))
    }

    /// Ends, and returns what was found beside what the router counted.
    ///
    /// # Errors
    /// A capture was damaged.
    pub(super) fn end(
        mut self,
        counted: &BTreeMap<String, BTreeMap<u8, PassedCount>>,
    ) -> Result<Vec<CodePointPassed>> {
        pause(LAST);
        for end in &mut self.ends {
            end.stream.shutdown(Shutdown::Both)?;
            let reader = end.reader.take().context("a capture that is read")?;
            reader.join().map_err(|_| anyhow!("reading a capture"))??;
        }
        self.ends.clear();
        let analysis = Arc::into_inner(self.analysis).context("all captures have ended")?;
        let analysis = analysis.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(analysis.finish(&counted.get(&self.to).cloned().unwrap_or_default()))
    }
}

impl Capture {
    fn start(
        from: BufReader<UnixStream>,
        end: PathEnd,
        analysis: Arc<Mutex<PassedAnalysis>>,
    ) -> Result<Capture> {
        let stream = from.get_ref().try_clone()?;
        let reading = move || {
            read(from, |packet| {
                // In at the one, out at the other: answers pass the other way.
                if packet.inbound != Some(end == PathEnd::From) {
                    return;
                }
                let mut analysis = analysis.lock().unwrap_or_else(PoisonError::into_inner);
                analysis.packet(end, packet.time.unwrap_or_default(), packet.octets);
            })
        };
        let reader = std::thread::Builder::new().name("capture".to_owned()).spawn(reading)?;
        Ok(Capture { stream, reader: Some(reader) })
    }
}
