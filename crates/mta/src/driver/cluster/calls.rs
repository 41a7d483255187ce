//! The threads that call the store for a node of a site: one for its lease, one for the other calls, one that waits
//! for changes by other nodes, and one that reads the entries of shards.

use crate::driver::DriverAnswer;
use crate::driver::inbox::Inbox;
use base::Precedence;
use engine::journal::QueueId;
use membership::{Answer, Call};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use store::cluster::{Changes, Cluster, NodeEpoch, Place, ShardPage};
use store::{BatchId, StoreError};

/// What a thread answers.
pub(crate) enum ClusterAnswer {
    /// The call about the lease ended.
    OfLease(Answer),
    /// The other call ended.
    Ended(Answer),
    /// Something changed in the store.
    Changed(Changes),
    /// Entries of a shard were read.
    Page(QueueId, Result<ShardPage, StoreError>),
    /// All batches before the node left this shard have ended.
    Left(QueueId),
}

/// A call, with the number of the last batch that was submitted before it.
pub(super) type NumberedCall = (Call, BatchId);

/// The threads. They end when this is dropped, each after the call that it is at.
pub(super) struct Calls {
    lease: Sender<NumberedCall>,
    other: Sender<NumberedCall>,
    pages: Sender<(QueueId, Place)>,
    ending: Arc<AtomicBool>,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
    }
}

/// The settings of the calls.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) node: String,
    pub(super) lease: Duration,
}

/// The longest wait for changes: then everything is looked at.
const WATCH: Duration = Duration::from_secs(2);
/// Entries in a page of a shard.
const PAGE: usize = 1024;
/// Pause after a failed call for changes.
const PAUSE: Duration = Duration::from_millis(500);

impl Calls {
    pub(super) fn start(
        cluster: &Arc<dyn Cluster>,
        answers: &Arc<Inbox>,
        names: &Names,
    ) -> std::io::Result<Calls> {
        let ending = Arc::new(AtomicBool::new(false));
        let give = |answers: &Arc<Inbox>| {
            let answers = Arc::clone(answers);
            move |answer| answers.answer(Precedence::Override, DriverAnswer::Cluster(answer))
        };
        let caller = |name: &str, wrap: fn(Answer) -> ClusterAnswer| {
            let (calls, todo) = channel::<NumberedCall>();
            let (cluster, names) = (Arc::clone(cluster), names.clone());
            let answer = give(answers);
            let run = move || {
                for call in todo {
                    answer(wrap(make(&*cluster, &names, call)));
                }
            };
            thread::Builder::new().name(name.to_owned()).spawn(run).map(|_| calls)
        };
        let lease = caller("lease", ClusterAnswer::OfLease)?;
        let other = caller("cluster calls", ClusterAnswer::Ended)?;
        let (pages, todo) = channel();
        let (reader, answer) = (Arc::clone(cluster), give(answers));
        thread::Builder::new()
            .name("shard reader".to_owned())
            .spawn(move || read_pages(&*reader, &todo, answer))?;
        let (watcher, answer, ends) = (Arc::clone(cluster), give(answers), Arc::clone(&ending));
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&*watcher, &ends, answer))?;
        Ok(Calls { lease, other, pages, ending })
    }

    /// Makes a call; the inbox gets its answer.
    pub(super) fn make(&self, call: Call, last: BatchId) {
        let lane = if call.is_of_lease() { &self.lease } else { &self.other };
        // Fails only if the thread panicked, which ends the daemon.
        let _ = lane.send((call, last));
    }

    /// Reads entries of a shard.
    pub(super) fn read(&self, shard: QueueId, after: Place) {
        let _ = self.pages.send((shard, after));
    }
}

fn read_pages(
    cluster: &dyn Cluster,
    todo: &Receiver<(QueueId, Place)>,
    answer: impl Fn(ClusterAnswer),
) {
    for (shard, after) in todo {
        answer(ClusterAnswer::Page(shard, cluster.shard_entries(shard, after, PAGE)));
    }
}

fn watch(cluster: &dyn Cluster, ending: &AtomicBool, answer: impl Fn(ClusterAnswer)) {
    while !ending.load(Ordering::Relaxed) {
        match cluster.watch(WATCH) {
            // Looked at also if nothing was notified: a notification may be lost.
            Ok(changes) => answer(ClusterAnswer::Changed(changes)),
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::debug!(%error, "cannot wait for changes of the site");
                answer(ClusterAnswer::Changed(Changes { all: true, ..Changes::default() }));
                thread::park_timeout(PAUSE);
            }
        }
    }
}

fn make(cluster: &dyn Cluster, names: &Names, (call, last): NumberedCall) -> Answer {
    let made = match &call {
        Call::Join => cluster.join(&names.node, names.lease).map(Answer::Joined),
        Call::Renew { draining } => cluster.renew(*draining).map(Answer::Renewed),
        Call::Bury(nodes) => bury(cluster, nodes).map(|()| Answer::Done),
        Call::Acquire { shard, name } => cluster.acquire(*shard, name, last).map(Answer::Acquired),
        Call::Release(shard) => cluster.release(&[*shard]).map(|()| Answer::Done),
        Call::Ask(shard) => cluster.ask(*shard).map(|()| Answer::Done),
        Call::Look => look(cluster),
    };
    made.unwrap_or_else(|error| {
        tracing::warn!(?call, %error, "a call of the site's store failed");
        Answer::Failed
    })
}

fn bury(cluster: &dyn Cluster, nodes: &[NodeEpoch]) -> Result<(), StoreError> {
    for node in cluster.bury(nodes)? {
        tracing::warn!(%node, "a node of the site does not renew its lease: its shards are free");
    }
    Ok(())
}

fn look(cluster: &dyn Cluster) -> Result<Answer, StoreError> {
    Ok(Answer::Looked { nodes: cluster.nodes()?, shards: cluster.shards()? })
}
