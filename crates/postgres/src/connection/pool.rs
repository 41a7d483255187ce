//! A few connections for calls that may be made twice: reads, and parts of contents.

use crate::connection::client::{Connection, lock};
use crate::connection::edge::{Edge, now};
use crate::connection::failure::Failure;
use crate::connection::target::Target;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::StoreError;

/// After a failed attempt to connect the next one is made this much later: until then callers have the same
/// answer.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections, made when they are needed. Several calls share one at a time.
#[derive(Debug)]
pub(crate) struct Pool {
    edge: Arc<Edge>,
    target: Arc<Target>,
    slots: Vec<Mutex<Slot>>,
    next: AtomicUsize,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Slot {
    client: Option<Arc<Connection>>,
    failed: Option<(Instant, Failure)>,
}

impl Pool {
    pub(crate) fn new(edge: &Arc<Edge>, target: &Arc<Target>, size: usize) -> Pool {
        Pool {
            edge: Arc::clone(edge),
            target: Arc::clone(target),
            slots: (0..size.max(1)).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// Makes a call, a second time on a new connection if the first is lost.
    ///
    /// # Errors
    /// Those of the call; [`StoreError::Away`]; [`StoreError::Closed`].
    pub(crate) fn call<T, F>(
        &self,
        doing: &'static str,
        work: impl Fn(Arc<Connection>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.attempt(work).map_err(|failure| {
            if self.closed.load(Ordering::Acquire) {
                return StoreError::Closed;
            }
            failure.into_error(&self.target, doing)
        })
    }

    /// The same, with the failure as it is.
    pub(crate) fn attempt<T, F>(&self, work: impl Fn(Arc<Connection>) -> F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let slot = self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len().max(1);
        let Some(slot) = self.slots.get(slot) else {
            return Err(Failure::Lost("no connection".to_owned()));
        };
        let limit = self.target.time_limit + Duration::from_secs(1);
        let mut again = true;
        loop {
            let client = self.client(slot)?;
            let ended = self.edge.run(limit, work(Arc::clone(&client)));
            match ended {
                Err(Failure::Lost(reason)) => {
                    let mut slot = lock(slot);
                    if slot.client.as_ref().is_some_and(|held| Arc::ptr_eq(held, &client)) {
                        slot.client = None;
                    }
                    if !std::mem::replace(&mut again, false) {
                        return Err(Failure::Lost(reason));
                    }
                }
                ended => return ended,
            }
        }
    }

    /// A connection. Callers that find none wait for the one who makes it.
    fn client(&self, slot: &Mutex<Slot>) -> Result<Arc<Connection>, Failure> {
        let mut slot = lock(slot);
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::Lost("the store is closed".to_owned()));
        }
        if let Some(client) = slot.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        if let Some((at, failure)) = &slot.failed
            && now().saturating_duration_since(*at) < PAUSE
        {
            return Err(failure.clone());
        }
        let target = Arc::clone(&self.target);
        let limit = self.target.time_limit + Duration::from_secs(1);
        match self.edge.run(limit, async move { Ok(Connection::open(&target).await?.0) }) {
            Ok(client) => {
                *slot = Slot { client: Some(Arc::clone(&client)), failed: None };
                Ok(client)
            }
            Err(failure) => {
                *slot = Slot { client: None, failed: Some((now(), failure.clone())) };
                Err(failure)
            }
        }
    }

    /// Ends the connections; later calls fail.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for slot in &self.slots {
            lock(slot).client = None;
        }
    }
}
