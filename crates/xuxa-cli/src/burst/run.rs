//! A burst under way: associations that submit, users that receive, event logs that are followed.

use super::event::Event;
use super::follow::{Counts, Follower};
use super::plan::{Group, Plan};
use super::receive::receive;
use super::schedule::Planned;
use super::tally::{Micros, Tally};
use super::value::Stage;
use crate::profile::{Profile, Wrong};
use crate::submission::{self, Disposition, Failure, MtaAccess, Prepared, Watch};
use anyhow::{Context, Result, bail};
use base::rng::Rng;
use base::{Instant, Utc};
use p1::names::ORName;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use ua::{Clock, Interrupted, Message, Services, User};

/// How often the event logs are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Looks whose events wait to be counted; the follower waits beyond it.
const LOOKS_WAITING: usize = 64;
/// How long the logs may be quiet before events still missing are given up, once all is delivered.
const QUIET: Duration = Duration::from_secs(1);
/// How long, after the last event, in all.
const LINGER: Duration = Duration::from_secs(5);

/// How long submissions that have begun may take after Ctrl-C: the answer that is on its way here
/// keeps a message from being in doubt.
const GRACE: Duration = Duration::from_secs(2);

/// What a burst needs beside its plan.
#[derive(Debug)]
pub(crate) struct Setup {
    pub plan: Plan,
    pub planned: Vec<Planned>,
    /// For each group, who submits: at least one.
    pub from: Vec<Vec<Rc<Profile>>>,
    /// Who receives.
    pub receive: Vec<Rc<Profile>>,
    pub clock: Clock,
    pub interrupted: Interrupted,
}

impl Setup {
    /// Whether all recipients of a group are ours.
    pub(super) fn receives(&self, group: &Group) -> bool {
        let ours: Vec<ORName> = self.receive.iter().filter_map(|p| p.user().ok()).collect();
        group.to.iter().all(|to| ours.iter().any(|name| name.address == to.address))
    }

    /// Looks whether each delivery that a group waits for is seen by somebody.
    ///
    /// # Errors
    /// [`Wrong`]: which is not.
    pub(super) fn check(&self) -> Result<()> {
        let Plan { groups, events, .. } = &self.plan;
        for group in groups.iter().filter(|_| events.is_empty()) {
            if let Some((other, Stage::Delivered)) = group.after
                && let Some(other) = groups.get(other).filter(|other| !self.receives(other))
            {
                bail!(Wrong(format!(
                    "group {:?} is after the deliveries of {:?}, and receive does not name all \
                     its recipients: name them, or the MTAs' event logs in events",
                    group.name, other.name
                )));
            }
        }
        Ok(())
    }
}

/// A burst under way; shared by all its tasks, in one thread.
pub(crate) struct Run {
    setup: Setup,
    /// The submitting users' own names, for each group and profile.
    names: Vec<Vec<ORName>>,
    /// The date-time group of all messages.
    pub dtg: Utc,
    pub tally: RefCell<Tally>,
    /// Of all event logs together.
    pub counts: Cell<Counts>,
    /// When each group had submitted its last.
    ended: RefCell<BTreeMap<usize, Instant>>,
    changed: Notify,
    /// Set when submissions that have begun are to end.
    cut: Interrupted,
    /// Set when the recipients are to unbind.
    pub(super) stop: Interrupted,
    /// What is said meanwhile goes past the live table.
    voice: Box<dyn Fn(&str)>,
}

impl Run {
    /// A burst that has not begun.
    ///
    /// # Errors
    /// A profile's address is none.
    pub(crate) fn new(setup: Setup, voice: Box<dyn Fn(&str)>) -> Result<Rc<Run>> {
        let dtg = Clock::utc();
        // Two bursts begun at once differ by their processes.
        let seed = dtg.0 ^ u64::from(std::process::id()) << 44;
        let tag = u32::try_from(Rng::new(seed).next_u64() >> 32).unwrap_or_default();
        let users = setup.receive.iter().map(|p| Ok(p.user()?.address));
        let users = users.collect::<Result<_>>()?;
        let tally = RefCell::new(Tally::new(&setup.plan, setup.planned.clone(), users, tag));
        let names = setup.from.iter().map(|profiles| profiles.iter().map(|p| p.user()).collect());
        Ok(Rc::new(Run {
            names: names.collect::<Result<_>>()?,
            setup,
            dtg,
            tally,
            counts: Cell::default(),
            ended: RefCell::default(),
            changed: Notify::new(),
            cut: Interrupted::default(),
            stop: Interrupted::default(),
            voice,
        }))
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.setup.plan
    }

    /// Whether deliveries may be seen: in event logs, or because all recipients are ours.
    fn may_see_deliveries(&self) -> bool {
        let groups = &self.setup.plan.groups;
        !self.setup.plan.events.is_empty() || groups.iter().all(|group| self.setup.receives(group))
    }

    /// For each group, whether its deliveries were seen: all recipients are ours, or the event logs
    /// reach to the MTAs that deliver.
    pub(crate) fn sees_deliveries(&self) -> Vec<bool> {
        let (groups, tally) = (&self.setup.plan.groups, self.tally.borrow());
        let has_logs = !self.setup.plan.events.is_empty();
        let sees = |(index, group)| {
            self.setup.receives(group) || (has_logs && tally.sees_deliveries(index))
        };
        groups.iter().enumerate().map(sees).collect()
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.setup.interrupted.is_set()
    }

    pub(super) fn way<'a>(&self, profile: &'a Profile, interrupted: &Interrupted) -> MtaAccess<'a> {
        let (clock, interrupted) = (self.setup.clock, interrupted.clone());
        let answer_timeout = self.setup.plan.answer_timeout;
        MtaAccess { profile, pcap: None, clock, interrupted, progress: false, answer_timeout }
    }

    pub(super) fn say(&self, what: &str) {
        (self.voice)(what);
    }

    /// Which message of this run a content identifier names.
    pub(super) fn number_of(&self, content_identifier: &str) -> Option<usize> {
        self.tally.borrow().by_content_identifier(content_identifier)
    }

    /// A message as it is submitted: the same octets whenever it is asked for.
    pub(super) fn message(&self, number: usize) -> Result<Prepared> {
        let tally = self.tally.borrow();
        let row = tally.rows.get(number).context("no such message")?;
        let group = self.setup.plan.groups.get(row.planned.group).context("no such group")?;
        let name = self.names.get(row.planned.group).and_then(|names| names.get(row.from));
        let (precedence, size) = (row.planned.precedence, row.planned.size);
        let originator = name.context("no such user")?.clone();
        let message = Message {
            authorised_at: self.dtg,
            subject: Some(format!("BURST {}", group.name.chars().take(100).collect::<String>())),
            ..Message::canned(
                originator,
                group.to.clone(),
                precedence,
                size,
                &row.content_identifier,
            )
        };
        Prepared::new(message)
    }

    pub(super) fn taken(&self, number: usize, user: usize, at: Micros, is_whole: bool) {
        self.tally.borrow_mut().taken(number, user, at, is_whole);
        self.changed.notify_waiters();
    }

    fn failed(&self, number: usize, failure: &Failure) {
        self.tally.borrow_mut().failed(number, failure);
        self.changed.notify_waiters();
    }

    /// Waits until all of a group have come so far, for no longer after its last submission than
    /// for all deliveries at the end. What has not come then is why the rest is not tried.
    async fn wait_for(&self, group: usize, stage: Stage) -> Result<(), String> {
        let ended = || self.ended.borrow().get(&group).copied();
        self.wait(None, |tally| tally.has_reached(group, stage) || ended().is_some()).await;
        let limit = ended().map(|at| at + self.setup.plan.deadline);
        let reached = self.wait(limit, |tally| tally.has_reached(group, stage)).await;
        if reached || self.is_interrupted() {
            return Ok(());
        }
        let name = self.setup.plan.groups.get(group).map_or("", |group| group.name.as_str());
        let (stage, time) = (stage.name(), self.setup.plan.deadline.as_secs_f64());
        Err(format!("not all of group {name:?} were {stage} {time} s after its last submission"))
    }

    /// Nothing more of a group is submitted.
    fn group_ended(&self, group: usize) {
        self.ended.borrow_mut().insert(group, self.setup.clock.now());
        self.changed.notify_waiters();
    }

    /// Waits until it is so; whether it is, for a limit may pass first, or an interrupt come.
    async fn wait(&self, limit: Option<Instant>, so: impl Fn(&Tally) -> bool) -> bool {
        loop {
            let change = self.changed.notified();
            if so(&self.tally.borrow()) {
                return true;
            }
            let limit = async {
                match limit {
                    Some(at) => tokio::time::sleep_until(self.setup.clock.at(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = change => {}
                () = limit => return false,
                () = self.setup.interrupted.wait() => return false,
            }
        }
    }
}

/// Makes the whole burst: binds all, submits, waits for the deliveries, unbinds.
///
/// # Errors
/// Someone cannot bind, or an event log cannot be read: nothing was submitted.
pub(crate) async fn run(run: &Rc<Run>) -> Result<()> {
    let ends = Rc::clone(run);
    let cutting = tokio::task::spawn_local(async move {
        ends.setup.interrupted.wait().await;
        tokio::time::sleep(GRACE).await;
        ends.cut.set();
    });
    let done = stages(run).await;
    cutting.abort();
    done
}

async fn stages(run: &Rc<Run>) -> Result<()> {
    let mut receivers = Vec::new();
    for profile in &run.setup.receive {
        let way = run.way(profile, &run.stop);
        let bound = way.bind(Services::Delivery).await;
        receivers.push(bound.with_context(|| format!("the recipient {}", profile.name))?);
    }
    let mut submitters = Vec::new();
    for (group, profiles) in run.setup.plan.groups.iter().zip(&run.setup.from) {
        let mut bound = Vec::new();
        for profile in profiles.iter().cycle().take(count(group.associations)) {
            let way = run.way(profile, &run.cut);
            let user = way.bind(Services::Submission).await;
            bound.push(user.with_context(|| format!("group {:?}, {}", group.name, profile.name))?);
        }
        submitters.push(bound);
    }
    let logs = Logs::follow(run)?;
    let mut recipients = JoinSet::new();
    for (number, (profile, user)) in run.setup.receive.iter().zip(receivers).enumerate() {
        recipients.spawn_local(receive(Rc::clone(run), number, Rc::clone(profile), user));
    }
    let mut groups = JoinSet::new();
    for (index, users) in submitters.into_iter().enumerate() {
        groups.spawn_local(submit_group(Rc::clone(run), index, users));
    }
    while groups.join_next().await.is_some() {}
    await_deliveries(run).await;
    run.stop.set();
    while recipients.join_next().await.is_some() {}
    logs.end().await;
    Ok(())
}

/// Messages and associations are counted in `u64`, and few.
fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

async fn await_deliveries(run: &Run) {
    let stage = if run.may_see_deliveries() { Stage::Delivered } else { Stage::Accepted };
    let now = || run.setup.clock.now();
    let deadline = now() + run.setup.plan.deadline;
    let all = run.wait(Some(deadline), |tally| tally.have_all_reached(stage)).await;
    if !all || run.setup.plan.events.is_empty() {
        return;
    }
    // A user may have it before the log of an MTA on its way was read, or written.
    let last = now() + LINGER;
    let mut before = None;
    while now() < last && run.tally.borrow().is_incomplete() {
        let seen = run.counts.get().events;
        if before == Some(seen) {
            return;
        }
        before = Some(seen);
        let quiet = (now() + QUIET).min(last);
        run.wait(Some(quiet), |tally| !tally.is_incomplete()).await;
        if run.is_interrupted() {
            return;
        }
    }
}

/// Submits the messages of a group, on all its associations.
async fn submit_group(run: Rc<Run>, index: usize, users: Vec<User>) {
    let Some(group) = run.setup.plan.groups.get(index) else {
        return;
    };
    let first = run.setup.plan.groups.iter().take(index).map(|group| count(group.count)).sum();
    let waited = match group.after {
        Some((other, stage)) => run.wait_for(other, stage).await,
        None => Ok(()),
    };
    let is_in_vain = waited.is_err();
    let line = Rc::new(Line {
        index,
        next: Cell::new(first),
        end: first + count(group.count),
        begin: run.setup.clock.now(),
        begin_utc: Clock::utc(),
        given_up: RefCell::new(waited.err()),
    });
    let mut tasks = JoinSet::new();
    for (number, user) in users.into_iter().enumerate() {
        let (run, line) = (Rc::clone(&run), Rc::clone(&line));
        tasks.spawn_local(async move {
            match is_in_vain {
                true => unbind(&run, user).await,
                false => submit_some(run, line, number, user).await,
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    // No association is left for these.
    let why = line.given_up.take().unwrap_or_else(|| "no association is left".to_owned());
    while let Some(number) = line.take() {
        run.failed(number, &Failure::not_tried(&why));
    }
    run.group_ended(index);
}

/// The messages of a group that are still to be submitted, in their order.
struct Line {
    index: usize,
    next: Cell<usize>,
    end: usize,
    /// When the group began, on both clocks.
    begin: Instant,
    begin_utc: Utc,
    /// Why the rest of it is given up, or was on one of its associations.
    given_up: RefCell<Option<String>>,
}

impl Line {
    fn take(&self) -> Option<usize> {
        let number = self.next.get();
        self.next.set(number + 1);
        (number < self.end).then_some(number)
    }
}

/// Submits what comes next, on one association, until the group has no more.
async fn submit_some(run: Rc<Run>, line: Rc<Line>, association: usize, user: User) {
    let profiles = run.setup.from.get(line.index).map_or(&[][..], Vec::as_slice);
    let from = association % profiles.len().max(1);
    let Some(profile) = profiles.get(from) else {
        return;
    };
    let way = run.way(profile, &run.cut);
    let mut user = Some(user);
    while let Some(number) = line.take() {
        let start = run.setup.planned.get(number).and_then(|planned| planned.start);
        if let Some(start) = start {
            let at = tokio::time::sleep_until(run.setup.clock.at(line.begin + start));
            tokio::select! {
                () = at => {}
                () = run.setup.interrupted.wait() => {}
            }
        }
        if run.is_interrupted() {
            run.failed(number, &Failure::not_tried("interrupted"));
            continue;
        }
        let due = start.map(|start| line.begin_utc.0 + micros(start));
        run.tally.borrow_mut().assign(number, from, due);
        if let Err(failure) = submit_one(&run, &way, &mut user, number).await {
            run.failed(number, &failure);
            if failure.is_away {
                line.given_up.replace(Some(failure.reason));
                break;
            }
        }
    }
    if let Some(user) = user {
        unbind(&run, user).await;
    }
}

async fn unbind(run: &Run, user: User) {
    if let Err(error) = user.unbind().await {
        run.say(&format!("after the last answer: {error:#}"));
    }
}

fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

async fn submit_one(
    run: &Run,
    way: &MtaAccess<'_>,
    user: &mut Option<User>,
    number: usize,
) -> Result<(), Failure> {
    let message = run.message(number).map_err(|error| Failure {
        disposition: Disposition::NotSent,
        tries: 0,
        reason: format!("{error:#}"),
        is_wrong_use: false,
        is_away: false,
    })?;
    let length = message.content.len();
    let mut watch = Begin { run, number, length };
    let retry_for = run.setup.plan.retry_for;
    let accepted = submission::submit(way, user, &message, retry_for, &mut watch).await?;
    let identifier = accepted.result.identifier.to_string();
    run.tally.borrow_mut().accepted(number, Clock::utc().0, &identifier, accepted.tries);
    run.changed.notify_waiters();
    Ok(())
}

/// Notes when the first octet goes out.
struct Begin<'a> {
    run: &'a Run,
    number: usize,
    length: u64,
}

impl Watch for Begin<'_> {
    fn begin(&mut self) {
        self.run.tally.borrow_mut().begins(self.number, Clock::utc().0, self.length);
    }

    fn piece(&mut self, _: &[u8]) {}
}

/// The event logs, read by a thread of their own so that no submission waits for a disk.
struct Logs {
    end: Arc<AtomicBool>,
    collector: Option<tokio::task::JoinHandle<()>>,
}

/// What one look at all logs gave.
struct Look {
    events: Vec<Event>,
    counts: Counts,
    trouble: Option<String>,
}

impl Logs {
    fn follow(run: &Rc<Run>) -> Result<Logs> {
        let end = Arc::new(AtomicBool::new(false));
        let paths: &[PathBuf] = &run.setup.plan.events;
        if paths.is_empty() {
            return Ok(Logs { end, collector: None });
        }
        let start = |path: &PathBuf| {
            Follower::start(path).with_context(|| format!("the event log {}", path.display()))
        };
        let followers = paths.iter().map(start).collect::<Result<Vec<_>>>()?;
        let (give, mut take) = mpsc::channel(LOOKS_WAITING);
        let flag = Arc::clone(&end);
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || look(followers, &flag, &give))
            .context("cannot start the thread that reads the event logs")?;
        let run = Rc::clone(run);
        let collector = tokio::task::spawn_local(async move {
            while let Some(Look { events, counts, trouble }) = take.recv().await {
                let mut tally = run.tally.borrow_mut();
                events.into_iter().for_each(|event| tally.event(event));
                drop(tally);
                run.counts.set(counts);
                run.changed.notify_waiters();
                if let Some(trouble) = trouble {
                    run.say(&trouble);
                }
            }
        });
        Ok(Logs { end, collector: Some(collector) })
    }

    /// Reads what is there, for the last time.
    async fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(collector) = self.collector {
            let _ = collector.await;
        }
    }
}

fn look(mut followers: Vec<Follower>, end: &AtomicBool, give: &mpsc::Sender<Look>) {
    let mut failing = false;
    loop {
        let is_last = end.load(Ordering::Relaxed);
        let (mut events, mut counts, mut trouble) = (Vec::new(), Counts::default(), None);
        for follower in &mut followers {
            if let Err(error) = follower.poll(|event| events.push(event)) {
                trouble = Some(format!("cannot read {}: {error}", follower.path().display()));
            }
            counts.events += follower.counts.events;
            counts.skipped += follower.counts.skipped;
            counts.gaps += follower.counts.gaps;
            counts.lost += follower.counts.lost;
        }
        // Said once, for it may last.
        let is_new = trouble.is_some() && !failing;
        failing = trouble.is_some();
        let look = Look { events, counts, trouble: trouble.filter(|_| is_new) };
        if give.blocking_send(look).is_err() || is_last {
            return;
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that grows gives no event to wait for")]
fn pause() {
    std::thread::sleep(LOOK);
}
