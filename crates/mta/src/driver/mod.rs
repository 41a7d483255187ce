//! The driver: one task owns the node, passes it inputs and executes its outputs.
//!
//! ```text
//!  listeners ─┐                    ┌─▶ connections (read, write)   by slices
//!  connects ──┤  answers, ready    ├─▶ committer thread            1
//!  connections┼────▶ Driver ───────┼─▶ reader thread (look-ups)    1
//!  disk ──────┤     owns Node      ├─▶ disk threads: spools, reads 8
//!  admin ─────┤                    ├─▶ blocking threads: argon2    bounded
//!  signals ───┘                    └─▶ log
//! ```
//!
//! Work is served by precedence: items for the driver (answers, and connections ready to be read
//! or written) and for the disk threads have the precedence of their association, entry or batch.
//! One turn in eight goes to the item that has waited longest.
//!
//! Input is bounded: a connection is not read while too much of its input is unhandled or
//! unstored, or too much output is unsent. Answers are not bounded here, but each belongs to one
//! output, so the node bounds them.

mod budget;
pub(crate) mod cluster;
mod connection;
mod disk;
mod inbox;
pub mod monitoring;
mod operations;
mod pool;
pub(crate) mod recording;
mod reload;
mod send_timeout;
pub(crate) mod socket;
mod start;
mod stopping;
mod transports;

pub use recording::Wanted as WantedRecording;
pub use socket::ListenError;
pub use start::DriverError;
pub(crate) use start::{
    EPOCH, OWN_VALUES, SITE, STORE, database_options, epoch_file, identity_of, open_store, users_of,
};

use crate::admin::server::{AdminServer, ListsChanged, Operated};
use crate::advice::{self, Facts};
use crate::clock::Clock;
use crate::config::Site;
use crate::pcap::{Pcap, Wanted};
use base::{AssociationId, Instant, Now, Precedence, Utc};
use budget::Budgets;
use cluster::site::{self, NodeOrders};
use cluster::{ClusterAnswer, Joined, Membered};
use disk::StoreThreads;
use disk_room::quota::Quotas;
use engine::journal::SpoolId;
use inbox::{Inbox, Work};
use monitoring::event_log::EventLogFile;
use monitoring::labels::Labels;
use monitoring::{log, metrics};
use node::channel_order::ChannelOutcome;
use node::connect;
use node::event::LogEvent;
use node::names::NameError;
use node::{ChannelId, CommitError, Input, ListenerId, Node, Output, Principal, Token};
use ownership::BatchEnd;
use passwords::{ReadUsers, UserReader, Verifier};
use record::Header;
use recording::Recording;
use reload::Listening;
use site_view::Watcher;
use socket::{ConnectError, Connected};
use start::OpenStore;
use start::reading::{QueuePart, QueueReader};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stopping::{ABORT_GRACE, StopSignals, disk_wait, in_time};
use store::QueueStore;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tracking::{Event, Tracker};
use transports::{Arriving, IncomingConnection, MAX_INCOMING, Transport};

/// More content is read for a connection below this many queued octets, 64 KiB at a time. Queued
/// octets can be neither stopped nor overtaken, so there are few; but enough that the kernel,
/// which buffers as much again, does not run dry during a read.
const MAX_UNSENT: usize = 32 << 10;

/// Work is done for this long before the kernel is polled for more readiness events.
const PASS: Duration = Duration::from_micros(100);

/// Answers to the driver's requests.
pub(crate) enum DriverAnswer {
    /// An input for the node.
    Input(Input),
    /// A batch was committed, or failed.
    Committed { token: Token, end: BatchEnd, result: Result<(), CommitError>, spools: Vec<SpoolId> },
    /// Another node has changed a value that a batch was to replace: what all of them are now.
    ChangedValues { token: Token, values: Result<Vec<Input>, store::StoreError> },
    /// A connection was opened, or failed.
    Connected { association: AssociationId, result: Result<Connected, ConnectError> },
    /// A part of the queue was read, after the start.
    QueuePart(QueuePart),
    /// A call for this node of a site was answered.
    Cluster(ClusterAnswer),
    /// The users were read in the database.
    Users(ReadUsers),
    /// A user has the right password.
    UserVerified { token: Token, mailbox: String },
    /// This process cannot continue.
    Fatal(String),
}

struct Driver {
    node: Node,
    /// Inputs that were made within a step of the node: they come after it.
    inputs: VecDeque<Input>,
    /// The node takes inputs, and their outputs are carried out.
    is_stepping: bool,
    site: Site,
    clock: Clock,
    labels: Labels,
    transports: BTreeMap<AssociationId, Transport>,
    last_connection: u64,
    /// When a connection of a channel was made last, and which place of its peer was tried first.
    places: BTreeMap<ChannelId, (Instant, usize)>,
    arriving: Option<Arriving>,
    /// The association of the connection that arrived last, until it is taken note of.
    admitted: Option<AssociationId>,
    disk: StoreThreads,
    quotas: Quotas,
    verifier: Verifier,
    users: UserReader,
    pcap: Option<Pcap>,
    recording: Option<Recording>,
    events: Option<EventLogFile>,
    tracker: Option<Tracker>,
    inbox: Arc<Inbox>,
    incoming: mpsc::Sender<IncomingConnection>,
    budgets: Budgets,
    listening: BTreeMap<ListenerId, Listening>,
    /// The configuration file.
    file: PathBuf,
    stopping: bool,
    stopped: bool,
    /// The queue is being read.
    reading: Option<QueueReader>,
    /// Operators who wait until their change is durable.
    operators: BTreeMap<u64, oneshot::Sender<Operated>>,
    list_changes: BTreeMap<u64, oneshot::Sender<ListsChanged>>,
    /// Operators who wait for items of mailboxes to be deleted.
    purges: BTreeMap<u64, oneshot::Sender<Result<u64, String>>>,
    ordering: BTreeMap<u64, oneshot::Sender<Result<ChannelOutcome, String>>>,
    connecting: BTreeMap<u64, oneshot::Sender<Result<connect::ConnectOutcome, NameError>>>,
    last_request: u64,
    /// Which node of a site it is, where there are several.
    member: Option<Membered>,
    orders: NodeOrders,
    /// Looks at the database, where there is one.
    watcher: Option<Watcher>,
}

/// What a run writes besides, where that is asked for.
#[derive(Debug, Default)]
pub struct Files {
    /// One association, for Wireshark.
    pub pcap: Option<Wanted>,
    /// Every input of the node.
    pub record: Option<WantedRecording>,
}

/// Runs the MTA of a site, as read from this file, until a signal stops it.
///
/// # Errors
/// [`DriverError`]: it could not start, or could not go on.
pub async fn run(site: Site, file: PathBuf, clock: Clock, files: Files) -> Result<(), DriverError> {
    let mut signals = StopSignals::new().map_err(DriverError::Signals)?;
    start::make_data_dir(&site)?;
    let asked = clock.now().mono;
    let opened = open_store(&site)?;
    let ended = serve(site, file, clock, files, (&opened, asked), &mut signals).await;
    let store = opened.store;
    // Whatever ended the daemon: other holders of the store find it closed.
    let closing = tokio::task::spawn_blocking(move || store.close());
    in_time(closing, disk_wait(&ended), &mut signals).await;
    if ended.is_ok() {
        tracing::info!("stopped");
    }
    ended
}

async fn serve(
    site: Site,
    file: PathBuf,
    clock: Clock,
    files: Files,
    (opened, asked): (&OpenStore, Instant),
    signals: &mut StopSignals,
) -> Result<(), DriverError> {
    let store = &opened.store;
    let hang_up = signal(SignalKind::hangup()).map_err(DriverError::Signals)?;
    let users = start::read_users(&site, &opened.users)?;
    let sink = start::create_recording(files.record.as_ref(), clock)?;
    let (config, first) = start::configure_node(&site, &users, opened, clock.now().utc)?;
    let header = Header::new("mta run".to_owned(), clock.now(), config, first);
    let node = header.node();
    let recording = start::begin_recording(sink, &header)?;
    let events = start::open_events(&site, clock)?;
    let tracker = start::start_tracking(&site);
    let pcap = start::open_pcap(files.pcap, clock)?;

    let inbox = Arc::<Inbox>::default();
    let (incoming, arriving) = mpsc::channel(MAX_INCOMING);
    end_on_panic(Arc::clone(&inbox));
    let admin = AdminServer::open(&site.paths.admin_socket)
        .map_err(|error| DriverError::Admin { path: site.paths.admin_socket.clone(), error })?;
    let (questions, measuring) = mpsc::channel(1);
    if let Some(address) = site.metrics {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| DriverError::Metrics { address, error })?;
        tokio::spawn(metrics::serve(listener, questions));
    }
    let peers = cluster::shards_of(&site.node);
    let join = |joined: &Joined| Membered::start(joined, peers, &inbox, asked);
    let member = opened.joined.as_ref().map(join).transpose()?;
    let mut driver = Driver {
        member,
        orders: NodeOrders::default(),
        watcher: site::watch(&site),
        node,
        inputs: VecDeque::new(),
        is_stepping: false,
        labels: Labels::from_site(&site),
        transports: BTreeMap::new(),
        last_connection: 0,
        places: BTreeMap::new(),
        arriving: None,
        admitted: None,
        disk: StoreThreads::start(Arc::clone(store), Arc::clone(&inbox))?,
        quotas: Quotas::new(&site.paths.data_dir),
        verifier: Verifier::new(site.expected.clone(), users, site.node.limits.verifications)?,
        users: UserReader::new(opened.users.clone()),
        pcap,
        recording,
        events,
        tracker,
        inbox,
        incoming,
        budgets: Budgets::new(&site.node.limits),
        listening: BTreeMap::new(),
        file,
        stopping: false,
        stopped: false,
        reading: None,
        operators: BTreeMap::new(),
        list_changes: BTreeMap::new(),
        purges: BTreeMap::new(),
        ordering: BTreeMap::new(),
        connecting: BTreeMap::new(),
        last_request: 0,
        clock,
        site,
    };
    let asking = Asking { hang_up, admin, measuring, arriving };
    let ended = attend(&mut driver, asking, store, signals).await;
    // The disk threads are not dropped here: that would wait for a disk that hangs, and ignore
    // signals.
    let parting = driver.member.map(Membered::parting);
    let parting = move || parting.into_iter().for_each(|part| part());
    in_time(driver.disk.shutdown(parting), disk_wait(&ended), signals).await;
    ended
}

/// Sources of work besides the inbox and the stop signals.
struct Asking {
    hang_up: Signal,
    admin: AdminServer,
    measuring: mpsc::Receiver<metrics::Question>,
    arriving: mpsc::Receiver<IncomingConnection>,
}

/// Does all work, from the first listener until the end.
async fn attend(
    driver: &mut Driver,
    asking: Asking,
    store: &Arc<dyn QueueStore>,
    signals: &mut StopSignals,
) -> Result<(), DriverError> {
    let Asking { mut hang_up, mut admin, mut measuring, mut arriving } = asking;
    driver.listen()?;
    let entries = driver.recover(store)?;
    driver.look_at_disk();
    tracing::info!(mta = driver.site.node.mta.0, entries, "started");
    driver.begin_to_serve();

    let inbox = Arc::clone(&driver.inbox);
    let mut looks = tokio::time::interval(send_timeout::LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut disk = tokio::time::interval(monitoring::space::INTERVAL);
    disk.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stop_by = None;
    let mut aborted = false;
    while !driver.stopped {
        let wake = driver.wake();
        tokio::select! {
            biased;
            Some(name) = signals.next() => {
                if stop_by.is_some() {
                    return Err(DriverError::StopForced);
                }
                tracing::info!(signal = name, "stopping");
                stop_by = Some(driver.stop());
            }
            // Admin requests and the stop deadline are rare and go first, so that load does not
            // delay them.
            () = until(stop_by) => {
                if aborted {
                    break;
                }
                aborted = true;
                let waited = driver.site.stop_timeout;
                tracing::warn!(?waited, "transfers did not end in time: they will be sent again");
                driver.input(Input::Stop);
                stop_by = Some(driver.clock.at(driver.clock.now().mono + ABORT_GRACE));
            }
            Some(asked) = admin.next() => {
                if driver.asked(asked) && stop_by.is_none() {
                    tracing::info!(signal = "admin", "stopping");
                    stop_by = Some(driver.stop());
                }
            }
            Some(answer) = measuring.recv() => {
                let _ = answer.send(driver.metrics());
            }
            Some(()) = hang_up.recv() => drop(driver.reload()),
            _ = disk.tick() => driver.look_at_disk(),
            _ = looks.tick(), if !driver.transports.is_empty() => driver.look(),
            () = until(wake) => {
                driver.input(Input::Tick);
                // Work done in slices is due again at once; other work runs in between.
                driver.work(&mut arriving)?;
                tokio::task::yield_now().await;
            }
            () = inbox.filled() => {
                driver.work(&mut arriving)?;
                if !inbox.is_empty() {
                    tokio::task::yield_now().await;
                }
            }
            Some(incoming) = arriving.recv() => driver.accepted(incoming),
        }
        if driver.has_parted() && stop_by.is_none() {
            stop_by = Some(driver.stop());
        }
    }
    Ok(())
}

/// Sleeps until this moment, or for ever.
async fn until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A panic in any task ends the daemon: the interrupted state is unknown.
fn end_on_panic(inbox: Arc<Inbox>) {
    let earlier = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        earlier(info);
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        inbox.answer(Precedence::Override, DriverAnswer::Fatal(format!("panic at {place}")));
    }));
}

impl Driver {
    /// Reports the room on the disk to the node, and what was found damaged since.
    fn look_at_disk(&mut self) {
        self.report_damage();
        if let Some(space) = monitoring::space::look(&self.site, &self.quotas, self.disk.no_room())
        {
            // As long as anything may be refused for it.
            self.disk.short_of_space(space.free < space.reserve / 16 * 17);
            if let Some(tracker) = &self.tracker {
                tracker.short_of_space(space.free < space.reserve.saturating_mul(2));
            }
            self.input(Input::DiskSpace(space));
        }
    }

    /// Hands what was found damaged since to the node, once it knows the whole queue.
    fn report_damage(&mut self) {
        if self.reading.is_none()
            && let Some((records, contents)) = self.disk.new_damage()
        {
            self.input(Input::Damaged { records, contents });
        }
    }

    /// The node's next deadline.
    fn wake(&self) -> Option<tokio::time::Instant> {
        let deadlines = [self.node.deadline(), self.site_deadline()];
        deadlines.into_iter().flatten().min().map(|instant| self.clock.wake(instant))
    }

    /// Opens all listeners, or none.
    pub(in crate::driver) fn listen(&mut self) -> Result<(), DriverError> {
        for advice in advice::give_once(&self.site, &Facts::read()) {
            advice.log();
        }
        let mut open = Vec::new();
        for socket in &self.site.listeners {
            let listener =
                socket::listen(socket, false).map_err(|error| ListenError::new(socket, error))?;
            open.push((socket.id, listener));
        }
        for (id, listener) in open {
            self.accept_on(id, listener);
        }
        Ok(())
    }

    /// Passes an input to the node and executes its outputs. Within a step of the node: behind that step.
    fn input(&mut self, input: Input) {
        self.inputs.push_back(input);
        self.go_on();
    }

    /// Passes the node all inputs that there are, each in a step of its own: those that come of what it owns
    /// before those that wait.
    fn go_on(&mut self) {
        if std::mem::replace(&mut self.is_stepping, true) {
            return; // who is at it goes on
        }
        self.site_wants();
        while let Some(input) = self.inputs.pop_front() {
            self.look_at_lease();
            self.step(input);
            self.look_at_peers();
            self.site_wants();
        }
        self.is_stepping = false;
    }

    fn step(&mut self, input: Input) {
        let now = self.clock.now();
        if let Some(recording) = &mut self.recording {
            recording.input(now, &input);
        }
        self.node.handle(now, input);
        self.drain(now);
    }

    /// Writes an event to both logs: of what is about no message, and ordered by nobody, only to ours.
    fn event(&self, utc: Utc, event: LogEvent) {
        log::event(&self.labels, &event);
        let place = event.channel.and_then(|channel| self.node.place(channel));
        let is_wanted = event.is_about_a_message() || event.is_an_order();
        if let Some(events) = self.events.as_ref().filter(|_| is_wanted) {
            events.put(&event.line(utc, &self.site.node.mta.0, place));
        }
        if let Some(tracker) = self.tracker.as_ref().filter(|_| event.is_tracked()) {
            tracker.put(Event::new(utc, event, place));
        }
    }

    fn drain(&mut self, now: Now) {
        while let Some(output) = self.node.poll() {
            if let Some(recording) = &mut self.recording {
                recording.output(&output);
            }
            self.perform(now, output);
        }
        if let Some(ended) = self.recording.as_mut().and_then(Recording::step_ended) {
            self.event(now.utc, ended);
        }
    }

    /// Begins an orderly stop; returns its deadline.
    fn stop(&mut self) -> tokio::time::Instant {
        self.stopping = true;
        self.close_listeners();
        self.input(Input::Stop);
        // It gives its shards away, and takes no others.
        self.site_input(ownership::Input::Drain);
        self.clock.at(self.clock.now().mono + self.site.stop_timeout)
    }

    /// Does queued work, highest first, for at most [`PASS`].
    fn work(
        &mut self,
        arriving: &mut mpsc::Receiver<IncomingConnection>,
    ) -> Result<(), DriverError> {
        let began = self.clock.now().mono;
        while let Some(work) = self.inbox.pop() {
            match work {
                Work::Answer(answer) => self.answer(answer)?,
                Work::Ready(association) => self.serve(association),
            }
            self.admit_one(arriving);
            if self.stopped || self.clock.now().mono.since(began) >= PASS {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, answer: DriverAnswer) -> Result<(), DriverError> {
        match answer {
            DriverAnswer::Input(input) => self.input(input),
            DriverAnswer::Committed { token, result: Err(CommitError::Changed), .. } => {
                // Its answer comes behind the values.
                self.disk.read_values(token);
            }
            DriverAnswer::ChangedValues { token, values } => self.values_changed(token, values),
            DriverAnswer::Committed { token, end, result, spools } => {
                self.site_input(ownership::Input::Committed(token, end));
                self.orders.fenced += u64::from(matches!(result, Err(CommitError::Fenced)));
                if result.is_ok() {
                    self.disk.committed(&spools);
                }
                self.input(Input::Committed { token, result });
            }
            DriverAnswer::QueuePart(part) => self.queue_part(part),
            DriverAnswer::Connected { association, result } => self.connected(association, result),
            DriverAnswer::Cluster(answer) => self.cluster_answer(answer),
            DriverAnswer::Users(read) => self.users_read(read),
            DriverAnswer::UserVerified { token, mailbox } => {
                self.site_input(ownership::Input::User { token, mailbox });
            }
            DriverAnswer::Fatal(reason) => return Err(DriverError::Broken(reason)),
        }
        Ok(())
    }

    fn perform(&mut self, now: Now, output: Output) {
        match output {
            Output::Connect { association, channel } => self.connect(association, channel),
            Output::Admitted { connection: _, association } => self.admitted(association),
            Output::Write { association, bytes } => {
                self.level(association);
                if let Some(Transport::Open(connection)) = self.transports.get(&association) {
                    connection.write(bytes);
                }
            }
            Output::Measure { association } => self.measure(association),
            Output::Close { association } => self.close(association),
            Output::Drop { association } => match self.transports.remove(&association) {
                Some(Transport::Open(connection)) => connection.drop_now(),
                Some(Transport::Connecting(_, task)) => task.abort(),
                None => {}
            },
            Output::SpoolOpen { spool } => self.disk.spool_open(spool),
            Output::SpoolAppend { spool, association, bytes } => {
                let incoming = match self.transports.get(&association) {
                    Some(Transport::Open(c)) => Some(Arc::clone(&c.incoming)),
                    _ => None,
                };
                let level = self.node.level(association);
                self.disk.spool_append(spool, level, bytes, incoming);
            }
            Output::SpoolNote { spool, association, note } => {
                self.disk.spool_note(spool, self.node.level(association), note);
            }
            Output::SpoolSync { spool, association, token } => {
                self.disk.spool_sync(spool, self.node.level(association), token);
            }
            Output::SpoolDiscard { spool } => self.disk.spool_discard(spool),
            Output::Commit { token, precedence, batch } => {
                self.note_batch(token, &batch);
                self.disk.commit(token, precedence, batch);
            }
            Output::Load { token, precedence, id } => self.disk.load(token, precedence, id),
            Output::LookUp { token, precedence, keys } => {
                self.disk.look_up(token, precedence, keys);
            }
            Output::ForgetSeen { token, before, most } => {
                self.disk.forget_seen(token, before, most);
            }
            Output::ReadContent { token, association, body, offset, len } => {
                let outgoing = match self.transports.get(&association) {
                    Some(Transport::Open(c)) => Some(Arc::clone(&c.outgoing)),
                    _ => None,
                };
                let level = self.node.level(association);
                self.disk.read_content(token, level, (body, offset, len), outgoing, MAX_UNSENT);
            }
            Output::ReadFront { token, precedence, body, offset, len } => {
                let what = (body, offset, len);
                self.disk.read_content(token, precedence, what, None, MAX_UNSENT);
            }
            Output::ReadMailbox { token, precedence, read } => {
                self.disk.read_mailbox(token, precedence, read);
            }
            Output::ChangePassword { token, mailbox, old, new } => {
                let (verifier, inbox) = (self.verifier.clone(), Arc::clone(&self.inbox));
                let users = self.users.directory.clone();
                tokio::spawn(async move {
                    let result = verifier.change(&users, &mailbox, old, new).await;
                    let changed = Input::PasswordChanged { token, mailbox, result };
                    inbox.answer(Precedence::Immediate, DriverAnswer::Input(changed));
                });
            }
            Output::Verify { token, principal, password } => {
                let (verifier, inbox) = (self.verifier.clone(), Arc::clone(&self.inbox));
                // While it is drained no mailbox comes here: the user is refused at once.
                let is_member = self.member.is_some() && !self.orders.is_closed;
                tokio::spawn(async move {
                    let mailbox = match &principal {
                        Principal::User(mailbox) if is_member => Some(mailbox.clone()),
                        _ => None,
                    };
                    let right = verifier.verify(principal, password).await;
                    let verified = match mailbox {
                        Some(mailbox) if right => DriverAnswer::UserVerified { token, mailbox },
                        _ => DriverAnswer::Input(Input::Verified { token, right }),
                    };
                    inbox.answer(Precedence::Immediate, verified);
                });
            }
            Output::Event(event) => self.event(now.utc, *event),
            Output::Operated { request, result } => {
                if let Some(operator) = self.operators.remove(&request) {
                    let _ = operator.send(result);
                }
            }
            Output::Purged { request, result } => {
                if let Some(operator) = self.purges.remove(&request) {
                    let _ = operator.send(result);
                }
            }
            Output::ListsChanged { request, result } => {
                if let Some(operator) = self.list_changes.remove(&request) {
                    let lists = result.map(|()| self.node.distribution_lists().to_vec());
                    let _ = operator.send(lists);
                }
            }
            Output::ChannelConnected { request, outcome } => {
                if let Some(operator) = self.connecting.remove(&request) {
                    let _ = operator.send(Ok(outcome));
                }
            }
            Output::ChannelOrdered { request, result } => {
                if let Some(operator) = self.ordering.remove(&request) {
                    let _ =
                        operator.send(result.map(|done| *done).map_err(|error| error.to_string()));
                }
            }
            Output::ShardLeft { shard, stays } => {
                self.site_input(ownership::Input::ShardLeft { shard, stays });
            }
            Output::Stopped => self.stopped = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_any_thread_is_fatal() {
        let inbox = Arc::<Inbox>::default();
        end_on_panic(Arc::clone(&inbox));
        assert!(std::thread::spawn(|| panic!("as a test")).join().is_err());
        let mut reasons = std::iter::from_fn(|| match inbox.pop() {
            Some(Work::Answer(DriverAnswer::Fatal(reason))) => Some(reason),
            _ => None,
        });
        assert!(reasons.any(|reason| reason.contains("driver/mod.rs")));
    }
}
