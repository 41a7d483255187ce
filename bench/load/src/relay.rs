//! A run: users submit at one MTA, others receive at another.

use crate::delivery_file::DeliveryFile;
use crate::login::Login;
use crate::summary::Summary;
use anyhow::{Context, Result, bail};
use base::ber::Writer;
use base::{Instant, Precedence};
use osi::api::Indication;
use p1::names::ORName;
use p1::p3::{ArgumentEvent, DeliveryParser, DeliveryResult, MessageSubmissionEnvelope, operation};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use ua::{Clock, Content, Message, Services, User};

/// The plan of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Plan {
    /// Users who submit, all at once; the first writes to the first receiver, and so on round.
    pub submitters: Vec<Login>,
    /// Users who receive.
    pub receivers: Vec<Login>,
    /// Octets of text of each message.
    pub size: usize,
    /// Their precedence.
    pub precedence: Precedence,
    /// No submission begins after this number of seconds.
    pub seconds: f64,
    /// No submission begins after this number of messages.
    pub count: u64,
    /// Each submitter waits for the delivery of its message, and then so long, before the next.
    pub pause_ms: Option<u64>,
    /// Messages a second of all submitters together, evenly; as fast as they are accepted if absent,
    /// and where that is slower.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The run waits until all that was accepted is delivered, and fails once nothing was delivered
    /// for this number of seconds: a slow disk makes it longer, a lost message makes it fail.
    pub drain_seconds: f64,
    /// The file for the received deliveries.
    pub delivery_file: PathBuf,
    /// Once all are bound, writes a line to standard output, and waits for one on standard input
    /// before it submits.
    #[serde(default)]
    pub held: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outcome {
    /// Octets of a whole content: heading and text.
    pub content_length: u64,
    /// Messages accepted.
    pub accepted: u64,
    /// Of those, delivered, compared and kept.
    pub delivered: u64,
    /// Deliveries of what was delivered before.
    pub again: u64,
    /// From the first submission to the last acceptance.
    pub accepting_seconds: f64,
    /// From the first submission to the last delivery.
    pub seconds: f64,
    /// Processor time of this process meanwhile.
    pub processor_seconds: f64,
    /// Submission to its answer.
    pub accepted_ms: Summary,
    /// Submission to delivery.
    pub delivered_ms: Summary,
    /// Both of each message, in microseconds, where they were sent one at a time.
    #[serde(default)]
    pub accepted_each_us: Vec<u64>,
    /// As above.
    #[serde(default)]
    pub delivered_each_us: Vec<u64>,
}

#[derive(Default)]
struct Tally {
    /// Places in the row of submissions, where they are paced.
    places: u64,
    begun: u64,
    accepted: u64,
    delivered: u64,
    again: u64,
    /// When the submission of what is not yet delivered began, by content identifier.
    open: BTreeMap<String, Instant>,
    first: Option<Instant>,
    last_accepted: Instant,
    last_delivered: Instant,
    accepted_us: Vec<u64>,
    delivered_us: Vec<u64>,
}

struct Run {
    plan: Plan,
    /// Distinguishes the content identifiers of this run from those of earlier ones: an MTA answers a
    /// repeated one with the first MTS identifier and does not send the message again.
    tag: u64,
    /// The same for all messages: only the content identifiers differ.
    content: Content,
    clock: Clock,
    started: Instant,
    until: Instant,
    tally: RefCell<Tally>,
    delivered: Notify,
    /// The first thing that went wrong.
    trouble: RefCell<Option<anyhow::Error>>,
}

/// Binds all users, runs the plan, unbinds.
///
/// # Errors
/// A user is refused or loses its association; a content arrives changed.
pub fn run(plan: Plan) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime")?;
    LocalSet::new().block_on(&runtime, relay(plan))
}

async fn relay(plan: Plan) -> Result<Outcome> {
    let clock = Clock::start();
    let first = plan.submitters.first().context("no submitters")?;
    let originator: ORName = first.address.parse().context("a submitter's address")?;
    let size = plan.size as u64;
    let message = Message::canned(originator, Vec::new(), plan.precedence, size, "LOAD");
    let content = message.content()?;
    let file = DeliveryFile::start(&plan.delivery_file)?;
    let mut receivers = Vec::new();
    for login in &plan.receivers {
        receivers.push(login.bind(Services::Delivery, clock).await?);
    }
    let mut submitters = Vec::new();
    for login in &plan.submitters {
        submitters.push(login.bind(Services::Submission, clock).await?);
    }
    if plan.held {
        released().await?;
    }
    let started = clock.now();
    let until = started + Duration::from_secs_f64(plan.seconds);
    let run = Rc::new(Run {
        plan,
        tag: (Clock::utc().0 / 1_000) & 0xff_ffff,
        content,
        clock,
        started,
        until,
        tally: RefCell::default(),
        delivered: Notify::new(),
        trouble: RefCell::new(None),
    });
    for user in receivers {
        let (run, file) = (Rc::clone(&run), file.clone());
        tokio::task::spawn_local(async move {
            let ended = receive(&run, user, &file).await;
            run.went_wrong(ended.err());
        });
    }
    let mut tasks = Vec::new();
    for (number, user) in submitters.into_iter().enumerate() {
        let run = Rc::clone(&run);
        tasks.push(tokio::task::spawn_local(async move {
            let ended = submit_all(&run, user, number).await;
            run.went_wrong(ended.err());
        }));
    }
    for task in tasks {
        task.await.context("a submitter panicked")?;
    }
    run.drained().await?;
    run.outcome()
}

/// Reports `ready`, and returns with a line on standard input.
async fn released() -> Result<()> {
    println!("ready");
    let line = || std::io::stdin().read_line(&mut String::new());
    let read = tokio::task::spawn_blocking(line).await.context("reading standard input")?;
    match read.context("reading standard input")? {
        0 => bail!("standard input was closed before the start"),
        _ => Ok(()),
    }
}

impl Run {
    fn went_wrong(&self, error: Option<anyhow::Error>) {
        if let Some(error) = error {
            self.trouble.borrow_mut().get_or_insert(error);
            self.delivered.notify_waiters();
        }
    }

    fn check(&self) -> Result<()> {
        match self.trouble.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Waits until it is time for another submission.
    async fn pace(&self) {
        let Some(rate) = self.plan.rate else { return };
        let place = {
            let mut tally = self.tally.borrow_mut();
            tally.places += 1;
            tally.places - 1
        };
        let wait = Duration::from_secs_f64(place as f64 / rate.max(1e-3));
        let at = self.started + wait;
        tokio::time::sleep_until(self.clock.at(at.min(self.until))).await;
    }

    /// The next message of this submitter, if there is to be one.
    fn begin(&self) -> Option<String> {
        let now = self.clock.now();
        let mut tally = self.tally.borrow_mut();
        let over = now >= self.until || tally.begun >= self.plan.count;
        if over || self.trouble.borrow().is_some() {
            return None;
        }
        tally.begun += 1;
        tally.first.get_or_insert(now);
        let identifier = format!("{:06x}{:010}", self.tag, tally.begun);
        tally.open.insert(identifier.clone(), now);
        Some(identifier)
    }

    fn accepted(&self, identifier: &str, begun: Instant) {
        let now = self.clock.now();
        let mut tally = self.tally.borrow_mut();
        tally.accepted += 1;
        tally.last_accepted = now;
        tally.accepted_us.push(micros(now, begun));
        debug_assert!(identifier.len() <= 16, "X.411 ub-content-id-length");
    }

    fn delivered(&self, identifier: &str) {
        let now = self.clock.now();
        let mut tally = self.tally.borrow_mut();
        match tally.open.remove(identifier) {
            Some(begun) => {
                tally.delivered += 1;
                tally.last_delivered = now;
                tally.delivered_us.push(micros(now, begun));
            }
            None => tally.again += 1,
        }
        drop(tally);
        self.delivered.notify_waiters();
    }

    /// Waits until `done`, as long as messages are delivered meanwhile.
    async fn wait(&self, done: impl Fn(&Tally) -> bool) -> Result<()> {
        let patience = Duration::from_secs_f64(self.plan.drain_seconds);
        loop {
            let change = self.delivered.notified();
            self.check()?;
            if done(&self.tally.borrow()) {
                return Ok(());
            }
            if tokio::time::timeout(patience, change).await.is_err() {
                let Tally { accepted, delivered, .. } = *self.tally.borrow();
                bail!("{delivered} of {accepted} messages delivered, none for {patience:?}");
            }
        }
    }

    async fn drained(&self) -> Result<()> {
        self.wait(|tally| tally.delivered >= tally.accepted).await
    }

    fn outcome(&self) -> Result<Outcome> {
        let mut tally = self.tally.borrow_mut();
        let first = tally.first.context("nothing was submitted")?;
        let each = |all: &[u64]| match self.plan.pause_ms {
            Some(_) => all.to_vec(),
            None => Vec::new(),
        };
        Ok(Outcome {
            content_length: self.content.len(),
            accepted_each_us: each(&tally.accepted_us),
            delivered_each_us: each(&tally.delivered_us),
            accepted: tally.accepted,
            delivered: tally.delivered,
            again: tally.again,
            accepting_seconds: micros(tally.last_accepted, first) as f64 / 1e6,
            seconds: micros(tally.last_delivered, first) as f64 / 1e6,
            processor_seconds: testbed::processor_time(std::process::id())?.as_secs_f64(),
            accepted_ms: Summary::from_micros(std::mem::take(&mut tally.accepted_us)),
            delivered_ms: Summary::from_micros(std::mem::take(&mut tally.delivered_us)),
        })
    }
}

fn micros(later: Instant, earlier: Instant) -> u64 {
    later.0.saturating_sub(earlier.0)
}

async fn submit_all(run: &Run, mut user: User, number: usize) -> Result<()> {
    let receivers = run.plan.receivers.len().max(1);
    let login = run.plan.receivers.get(number % receivers).context("no receivers")?;
    let to: ORName = login.address.parse().context("a receiver's address")?;
    let name = user.name.clone();
    let mut envelope = Message::canned(name, vec![to], run.plan.precedence, 0, "").envelope();
    let mut invoke = 0;
    loop {
        run.pace().await;
        let Some(identifier) = run.begin() else { break };
        invoke += 1;
        let begun = run.clock.now();
        envelope.content_identifier = Some(identifier.clone());
        submit(run, &mut user, &envelope, invoke).await.with_context(|| identifier.clone())?;
        run.accepted(&identifier, begun);
        if let Some(pause) = run.plan.pause_ms {
            run.wait(|tally| !tally.open.contains_key(&identifier)).await?;
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
    user.unbind().await
}

async fn submit(
    run: &Run,
    user: &mut User,
    envelope: &MessageSubmissionEnvelope,
    invoke: i64,
) -> Result<()> {
    ua::submit(user, invoke, envelope, &run.content, |_| {}).await.outcome.map(drop)
}

/// Takes deliveries until the run drops the task.
async fn receive(run: &Run, mut user: User, file: &DeliveryFile) -> Result<()> {
    loop {
        match user.next(None).await? {
            Some(Indication::Invoked { invoke, operation: operation::MESSAGE_DELIVERY }) => {
                let identifier = take(run, &mut user, file).await?;
                file.commit().await?;
                let mut writer = Writer::new();
                DeliveryResult::default().write(&mut writer);
                user.answer(invoke, operation::MESSAGE_DELIVERY, writer.into_vec()).await?;
                run.delivered(&identifier);
            }
            Some(Indication::Data { .. }) => {}
            other => bail!("a receiving user: {}", ua::describe(other.as_ref())),
        }
    }
}

/// One delivery, compared and handed to the delivery file; its content identifier.
async fn take(run: &Run, user: &mut User, file: &DeliveryFile) -> Result<String> {
    let mut parser = DeliveryParser::default();
    let (mut identifier, mut length) = (None, 0);
    loop {
        let (bytes, last) = user.data().await.context("a delivery was cut short")?;
        let mut rest: &[u8] = &bytes;
        while let Some(event) = parser.next(&mut rest).context("in the message delivery")? {
            match event {
                ArgumentEvent::Envelope(envelope) => identifier = envelope.content_identifier,
                ArgumentEvent::Content(octets) => {
                    run.content.check(length, octets)?;
                    length += octets.len() as u64;
                }
                ArgumentEvent::End => {}
            }
        }
        file.append(bytes).await?;
        if last {
            break;
        }
    }
    if length != run.content.len() {
        bail!("{length} of {} octets were delivered", run.content.len());
    }
    identifier.context("a delivery without the content identifier of its submission")
}
