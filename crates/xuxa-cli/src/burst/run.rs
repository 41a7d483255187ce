//! A running burst: associations that submit, users that receive, event logs that are followed.

mod logs;
mod submitting;

use super::follow::Counts;
use super::plan::{BurstPlan, Group};
use super::receive::receive;
use super::schedule::Planned;
use super::tally::{Micros, Tally};
use super::value::Stage;
use crate::profile::{Profile, Wrong};
use crate::submission::{Failure, MtaAccess, Prepared};
use anyhow::{Context, Result, bail};
use base::rng::Rng;
use base::{Instant, Utc};
use logs::Logs;
use p1::names::ORName;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use submitting::submit_group;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use ua::{Clock, Interrupted, Message, Services};

/// Time without events after which missing events are given up, once all is delivered.
const QUIET: Duration = Duration::from_secs(1);
/// Longest wait for missing events.
const LINGER: Duration = Duration::from_secs(5);

/// Time for submissions in progress after Ctrl-C: an answer that arrives in it keeps a message
/// from being in doubt.
const GRACE: Duration = Duration::from_secs(2);

/// A plan with its profiles.
#[derive(Debug)]
pub(crate) struct Setup {
    pub plan: BurstPlan,
    pub planned: Vec<Planned>,
    /// For each group, the profiles that submit: at least one.
    pub from: Vec<Vec<Rc<Profile>>>,
    /// The profiles that receive.
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

    /// Checks that each delivery that a group waits for can be observed.
    ///
    /// # Errors
    /// [`Wrong`]: names one that cannot.
    pub(super) fn check(&self) -> Result<()> {
        let BurstPlan { groups, events, .. } = &self.plan;
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

/// A group is given up: the group it waits for has not reached a stage in time.
#[derive(Debug, thiserror::Error)]
#[error("not all of group {group:?} were {} {seconds} s after its last submission", stage.name())]
struct StageMissed {
    group: String,
    stage: Stage,
    seconds: f64,
}

/// A running burst; shared by all its tasks, in one thread.
pub(crate) struct Run {
    setup: Setup,
    /// The submitting users' own names, for each group and profile.
    names: Vec<Vec<ORName>>,
    /// The date-time group of all messages.
    pub dtg: Utc,
    pub tally: RefCell<Tally>,
    /// Of all event logs together.
    pub counts: Cell<Counts>,
    /// When each group submitted its last message.
    ended: RefCell<BTreeMap<usize, Instant>>,
    changed: Notify,
    /// Set to end the submissions in progress.
    cut: Interrupted,
    /// Set to unbind the recipients.
    pub(super) stop: Interrupted,
    /// Prints a line above the live table.
    output: Box<dyn Fn(&str)>,
}

impl Run {
    /// A burst before its start.
    ///
    /// # Errors
    /// A profile has an invalid address.
    pub(crate) fn new(setup: Setup, output: Box<dyn Fn(&str)>) -> Result<Rc<Run>> {
        let dtg = Clock::utc();
        // Two bursts that start at the same moment differ by their processes.
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
            output,
        }))
    }

    pub(crate) fn plan(&self) -> &BurstPlan {
        &self.setup.plan
    }

    /// Whether deliveries can be observed: in event logs, or because all recipients are ours.
    fn may_see_deliveries(&self) -> bool {
        let groups = &self.setup.plan.groups;
        !self.setup.plan.events.is_empty() || groups.iter().all(|group| self.setup.receives(group))
    }

    /// For each group, whether its deliveries were observed: all recipients are ours, or the event
    /// logs include those of the delivering MTAs.
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

    pub(super) fn access<'a>(
        &self,
        profile: &'a Profile,
        interrupted: &Interrupted,
    ) -> MtaAccess<'a> {
        let (clock, interrupted) = (self.setup.clock, interrupted.clone());
        let answer_timeout = self.setup.plan.answer_timeout;
        MtaAccess { profile, pcap: None, clock, interrupted, progress: false, answer_timeout }
    }

    pub(super) fn print_line(&self, what: &str) {
        (self.output)(what);
    }

    /// Which message of this run a content identifier names.
    pub(super) fn number_of(&self, content_identifier: &str) -> Option<usize> {
        self.tally.borrow().by_content_identifier(content_identifier)
    }

    /// A message as it is submitted: the same octets at each call.
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

    /// Waits until all messages of a group have reached a stage, at most the plan's deadline after
    /// the group's last submission.
    async fn wait_for(&self, group: usize, stage: Stage) -> Result<(), StageMissed> {
        let ended = || self.ended.borrow().get(&group).copied();
        self.wait(None, |tally| tally.has_reached(group, stage) || ended().is_some()).await;
        let limit = ended().map(|at| at + self.setup.plan.deadline);
        let reached = self.wait(limit, |tally| tally.has_reached(group, stage)).await;
        if reached || self.is_interrupted() {
            return Ok(());
        }
        let group = self.setup.plan.groups.get(group).map(|group| group.name.clone());
        let seconds = self.setup.plan.deadline.as_secs_f64();
        Err(StageMissed { group: group.unwrap_or_default(), stage, seconds })
    }

    /// A group has submitted its last message.
    fn group_ended(&self, group: usize) {
        self.ended.borrow_mut().insert(group, self.setup.clock.now());
        self.changed.notify_waiters();
    }

    /// Waits for a condition; `false` if the limit or an interrupt comes first.
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

/// Runs the whole burst: binds all, submits, waits for the deliveries, unbinds.
///
/// # Errors
/// A profile cannot bind, or an event log cannot be read: nothing was submitted.
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
        let access = run.access(profile, &run.stop);
        let bound = access.bind(Services::Delivery).await;
        receivers.push(bound.with_context(|| format!("the recipient {}", profile.name))?);
    }
    let mut submitters = Vec::new();
    for (group, profiles) in run.setup.plan.groups.iter().zip(&run.setup.from) {
        let mut bound = Vec::new();
        for profile in profiles.iter().cycle().take(count(group.associations)) {
            let access = run.access(profile, &run.cut);
            let user = access.bind(Services::Submission).await;
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

/// A count of messages or associations: bounded by the plan.
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
    // A user may receive a message before an MTA on its path has logged it.
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
