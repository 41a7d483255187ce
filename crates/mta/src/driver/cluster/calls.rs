//! The threads that call the store for a node of a site: one for its lease, one for the other calls, one that waits
//! for changes by other nodes, and one that reads the entries of shards.

use crate::clock::stopwatch;
use crate::driver::DriverAnswer;
use crate::driver::inbox::Inbox;
use base::Precedence;
use bytes::Bytes;
use engine::journal::QueueId;
use engine::registered::REGISTERED;
use membership::{Answer, Call};
use node::mailbox;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use store::cluster::reads::{self, Found, Wanted};
use store::cluster::{Acquired, Changes, Cluster, Fence, NodeEpoch, Place};
use store::{BatchId, QueueStore, StoreError};

/// What a thread answers.
pub(crate) enum ClusterAnswer {
    /// The call about the lease ended.
    OfLease(Answer),
    /// The other call ended.
    Ended(Answer),
    /// Something changed in the store.
    Changed(Changes),
    /// Entries of a shard, or what a user has registered, were read.
    Found(Found),
    /// A value that all nodes share was read.
    Value(&'static str, Result<Option<Bytes>, StoreError>),
    /// All batches before the node left this shard have ended.
    Left(QueueId, Fence),
}

/// A call, with the number of the last batch that was submitted before it.
pub(super) type NumberedCall = (Call, BatchId);

/// The threads. They end when this is dropped, each after the call that it is at.
pub(super) struct Calls {
    lease: Sender<NumberedCall>,
    other: Sender<NumberedCall>,
    reads: Sender<Wanted>,
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
/// Pause after a failed call for changes.
const PAUSE: Duration = Duration::from_millis(500);

impl Calls {
    pub(super) fn start(
        (cluster, store): (&Arc<dyn Cluster>, &Arc<dyn QueueStore>),
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
            let (answer, ends) = (give(answers), Arc::clone(answers));
            let run = move || {
                let mut fails = false;
                for call in todo {
                    let made = make(&*cluster, &names, &call);
                    if let Err(error) = &made
                        && error.is_of_another_process()
                    {
                        let fatal = DriverAnswer::Fatal(error.to_string());
                        return ends.answer(Precedence::Override, fatal);
                    }
                    note(&call.0, &made, &mut fails);
                    answer(wrap(made.unwrap_or(Answer::Failed)));
                }
            };
            thread::Builder::new().name(name.to_owned()).spawn(run).map(|_| calls)
        };
        let lease = caller("lease", ClusterAnswer::OfLease)?;
        let other = caller("cluster calls", ClusterAnswer::Ended)?;
        let (reads, todo) = channel();
        let (reader, answer) = ((Arc::clone(cluster), Arc::clone(store)), give(answers));
        thread::Builder::new().name("shard reader".to_owned()).spawn(move || {
            reads::serve(&*reader.0, &*reader.1, &todo, |found| {
                answer(ClusterAnswer::Found(found));
            });
        })?;
        let (watcher, answer, ends) = (Arc::clone(cluster), give(answers), Arc::clone(&ending));
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&*watcher, &ends, answer))?;
        Ok(Calls { lease, other, reads, ending })
    }

    /// Makes a call; the inbox gets its answer.
    pub(super) fn make(&self, call: Call, last: BatchId) {
        let lane = if call.is_of_lease() { &self.lease } else { &self.other };
        // Fails only if the thread panicked, which ends the daemon.
        let _ = lane.send((call, last));
    }

    /// Reads entries of a shard, and the value of this name before them.
    pub(super) fn read(
        &self,
        (shard, fence): (QueueId, Fence),
        after: Place,
        value: Option<String>,
    ) {
        let _ = self.reads.send(Wanted::Page(shard, fence, after, value));
    }

    /// Finds those of these shards that have entries after a place.
    pub(super) fn look_for_news(&self, places: Vec<(QueueId, Place)>) {
        let _ = self.reads.send(Wanted::News(places));
    }

    /// Has the other nodes learn that the peer of this shard has called this one.
    pub(super) fn announce(&self, shard: QueueId) {
        let _ = self.reads.send(Wanted::Announcement(shard));
    }

    /// Reads what a user has registered, by the name of the value, or what all have.
    pub(super) fn read_registrations(&self, name: Option<String>) {
        let _ = self.reads.send(Wanted::Values(name.unwrap_or_else(|| REGISTERED.to_owned())));
    }
}

fn watch(cluster: &dyn Cluster, ending: &AtomicBool, answer: impl Fn(ClusterAnswer)) {
    let mut missed = false;
    let time = stopwatch();
    let mut looked = time();
    while !ending.load(Ordering::Relaxed) {
        match cluster.watch(WATCH) {
            // Looked at also if nothing was notified: a notification may be lost.
            Ok(changes) => {
                let all = changes.all || std::mem::take(&mut missed);
                let changes = Changes { all, ..changes };
                let is_look = all || changes == Changes::default();
                answer(ClusterAnswer::Changed(changes));
                // Where something is notified all the time too.
                if !is_look && time().saturating_sub(looked) >= WATCH {
                    answer(ClusterAnswer::Changed(Changes::default()));
                    looked = time();
                } else if is_look {
                    looked = time();
                }
            }
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::debug!(%error, "cannot wait for changes of the site");
                missed = true;
                thread::park_timeout(PAUSE);
            }
        }
    }
}

/// The first failure of several in a row is logged, and their end.
fn note(call: &Call, made: &Result<Answer, StoreError>, fails: &mut bool) {
    match made {
        Err(error) if !std::mem::replace(fails, true) => {
            tracing::warn!(?call, %error, "a call of the site's store failed: it is tried again");
        }
        Err(error) => tracing::debug!(?call, %error, "a call of the site's store failed"),
        Ok(_) if std::mem::take(fails) => {
            tracing::info!("the store of the site answers again");
        }
        Ok(_) => {}
    }
}

fn make(
    cluster: &dyn Cluster,
    names: &Names,
    (call, last): &NumberedCall,
) -> Result<Answer, StoreError> {
    match call {
        Call::Join => cluster.join(&names.node, names.lease).map(Answer::Joined),
        Call::Renew { draining } => cluster.renew(*draining).map(Answer::Renewed),
        Call::Bury(nodes) => bury(cluster, nodes).map(|()| Answer::Done),
        Call::Acquire { shard, name } => {
            acquire(cluster, *shard, name, *last).map(Answer::Acquired)
        }
        Call::Release { shard, name } => {
            cluster.release(&both(*shard, name)).map(|()| Answer::Done)
        }
        Call::Ask(shard) => cluster.ask(*shard).map(|()| Answer::Done),
        Call::Withdraw(shard) => cluster.withdraw(*shard).map(|()| Answer::Done),
        Call::Look => look(cluster),
    }
}

fn bury(cluster: &dyn Cluster, nodes: &[NodeEpoch]) -> Result<(), StoreError> {
    for node in cluster.bury(nodes)? {
        tracing::warn!(%node, "a node of the site does not renew its lease: its shards are free");
    }
    Ok(())
}

/// A shard, and the queue of the items where it is a mailbox: they have one owner.
fn both(shard: QueueId, name: &str) -> Vec<QueueId> {
    match shard.is_of_mailbox() && !name.is_empty() {
        true => vec![mailbox::item::queue_at(name), shard],
        false => vec![shard],
    }
}

fn acquire(
    cluster: &dyn Cluster,
    shard: QueueId,
    name: &str,
    last: BatchId,
) -> Result<Acquired, StoreError> {
    let mut acquired = Acquired::Dead;
    for part in both(shard, name) {
        acquired = cluster.acquire(part, name, last)?;
        if !matches!(acquired, Acquired::Ours(_)) {
            break;
        }
    }
    Ok(acquired)
}

fn look(cluster: &dyn Cluster) -> Result<Answer, StoreError> {
    let mut shards = cluster.shards()?;
    shards.retain(|row| !mailbox::item::is_queue(row.shard));
    // One without a name has lost its entries meanwhile, or is a peer's that is not configured.
    shards.retain(|row| !row.shard.is_of_mailbox() || !row.name.is_empty());
    Ok(Answer::Looked { nodes: cluster.nodes()?, shards })
}
