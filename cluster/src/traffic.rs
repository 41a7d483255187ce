//! Mixed traffic to, from and within the site, submitted and received by real clients that do not know what goes
//! wrong. Each originator submits one message after the other.

use crate::client::{Clients, Running};
use crate::ledger::{Acknowledged, Copy, Ledger};
use crate::mailbox::Mailbox;
use crate::message::{Message, PROBE, User};
use crate::time::Start;
use anyhow::Result;
use base::rng::Rng;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;
use testbed::answer::{DeliveredItem, ReceiveOutput, SendOutput};

/// Between the end of a client that failed and the next one.
const AFTER_FAILURE: Duration = Duration::from_millis(400);
/// Most messages of a trial.
const MOST: u64 = 100_000;

/// A user who submits.
#[derive(Debug)]
struct Originator {
    user: User,
    /// The node of his site at which he submits next.
    node: usize,
    submitting: Option<(Message, Running)>,
    /// Not sent, refused, or in doubt: to be submitted again as it was.
    again: VecDeque<Message>,
    due: Duration,
}

/// A user who receives.
#[derive(Debug)]
struct Receiver {
    user: User,
    node: usize,
    running: Option<Running>,
    due: Duration,
    /// Octets of his log that were read.
    read: u64,
}

/// All users, and what they know.
#[derive(Debug)]
pub struct Traffic {
    seed: u64,
    rng: Rng,
    start: Start,
    /// Between two submissions of one originator, on average.
    pace: Duration,
    number: u64,
    originators: Vec<Originator>,
    receivers: Vec<Receiver>,
    mailbox: Mailbox,
    has_mailbox: bool,
    pub(crate) ledger: Ledger,
    /// Submissions that were repeated.
    pub(crate) repeated: u64,
    /// Octets of the contents that were acknowledged.
    pub(crate) octets: u64,
}

impl Traffic {
    pub(crate) fn new(seed: u64, start: Start, pace: Duration, has_mailbox: bool) -> Traffic {
        let mut submitters = User::submitters();
        submitters.push(PROBE);
        let originator = |(node, user)| {
            let (submitting, again) = (None, VecDeque::new());
            Originator { user, node, submitting, again, due: Duration::ZERO }
        };
        let receiver =
            |(node, user)| Receiver { user, node, running: None, due: Duration::ZERO, read: 0 };
        Traffic {
            seed,
            rng: Rng::new(seed ^ 0x7AFF),
            start,
            pace,
            number: 0,
            originators: submitters.into_iter().enumerate().map(originator).collect(),
            receivers: User::receivers().into_iter().enumerate().map(receiver).collect(),
            mailbox: Mailbox::default(),
            has_mailbox,
            ledger: Ledger::default(),
            repeated: 0,
            octets: 0,
        }
    }

    /// Looks after all clients. Where `more`, new messages are submitted, too. Whether a submission is
    /// without an answer.
    ///
    /// # Errors
    /// A client cannot be started or read.
    pub(crate) fn tend(&mut self, clients: &Clients, more: bool) -> Result<bool> {
        for index in 0..self.originators.len() {
            self.tend_originator(clients, index, more)?;
        }
        let now = self.start.elapsed();
        for receiver in &mut self.receivers {
            receiver.tend(clients, now, &self.start, &mut self.ledger)?;
        }
        self.mailbox.tend(clients, now, &mut self.ledger)?;
        let is_open = |one: &Originator| one.submitting.is_some() || !one.again.is_empty();
        Ok(self.originators.iter().any(is_open))
    }

    /// The Flash of a fault: it was acknowledged, or is submitted again until it is.
    pub(crate) fn probed(&mut self, message: &Message, answer: Option<Acknowledged>) {
        self.ledger.sends(message.sent());
        match answer {
            Some(answer) => self.ledger.acknowledges(&message.id, answer),
            None => {
                let probe = self.originators.iter_mut().find(|one| one.user == PROBE);
                probe.into_iter().for_each(|one| one.again.push_back(message.clone()));
            }
        }
    }

    fn tend_originator(&mut self, clients: &Clients, index: usize, more: bool) -> Result<()> {
        let now = self.start.elapsed();
        let Some(one) = self.originators.get_mut(index) else { return Ok(()) };
        if let Some((message, mut client)) = one.submitting.take() {
            if !client.ended()? {
                one.submitting = Some((message, client));
                return Ok(());
            }
            let (output, _complaint) = client.output::<SendOutput>()?;
            match output.and_then(|output| output.messages.into_iter().next()) {
                Some(accepted) => {
                    self.octets += accepted.content_length;
                    let answer = Acknowledged {
                        mts_identifier: accepted.mts_identifier,
                        sha256: accepted.content_sha256,
                        at: now,
                    };
                    self.ledger.acknowledges(&message.id, answer);
                    let pace = u64::try_from(self.pace.as_millis()).unwrap_or(u64::MAX);
                    one.due = now + Duration::from_millis(self.rng.below(2 * pace.max(1)));
                    // The next one at any node.
                    one.node =
                        one.node.wrapping_add(usize::try_from(self.rng.below(7)).unwrap_or(0));
                }
                None => {
                    self.repeated += 1;
                    one.again.push_back(message);
                    one.due = now + AFTER_FAILURE;
                    one.node = one.node.wrapping_add(1);
                }
            }
        }
        if now < one.due {
            return Ok(());
        }
        let next = match one.again.pop_front() {
            Some(message) => Some(message),
            None if more && one.user != PROBE && self.number < MOST => {
                let message = Message::draw(self.seed, self.number, one.user, self.has_mailbox);
                self.number += 1;
                self.ledger.sends(message.sent());
                Some(message)
            }
            None => None,
        };
        if let Some(message) = next {
            let client = clients.start(one.user, one.node, &message.arguments())?;
            one.submitting = Some((message, client));
        }
        Ok(())
    }

    /// Ends all receivers in order, and takes what they have to report; they begin again with the next
    /// [`Traffic::tend`].
    ///
    /// # Errors
    /// What they printed cannot be read.
    pub(crate) fn stop_receiving(&mut self, clients: &Clients) -> Result<()> {
        for receiver in &mut self.receivers {
            if let Some(mut client) = receiver.running.take() {
                client.stop();
                receiver.take_output(client, &self.start, &mut self.ledger)?;
            }
            receiver.read_log(clients, &self.start, &mut self.ledger)?;
        }
        self.mailbox.stop(self.start.elapsed(), &mut self.ledger)
    }
}

impl Receiver {
    fn tend(
        &mut self,
        clients: &Clients,
        now: Duration,
        start: &Start,
        ledger: &mut Ledger,
    ) -> Result<()> {
        if let Some(mut client) = self.running.take() {
            if client.ended()? {
                self.take_output(client, start, ledger)?;
                self.node = self.node.wrapping_add(1);
                self.due = now + AFTER_FAILURE;
            } else {
                self.running = Some(client);
            }
        }
        if self.running.is_none() && now >= self.due {
            let arguments = ["--json", "receive", "--wait"].map(str::to_owned);
            self.running = Some(clients.start(self.user, self.node, &arguments)?);
        }
        self.read_log(clients, start, ledger)
    }

    /// What a receiver printed when it ended: repeated deliveries and reports, which its log does not have.
    fn take_output(&mut self, client: Running, start: &Start, ledger: &mut Ledger) -> Result<()> {
        let user = self.user.shown();
        let (output, _complaint) = client.output::<ReceiveOutput>()?;
        for item in output.into_iter().flat_map(|output| output.deliveries) {
            match item {
                DeliveredItem::Message(message) if message.duplicate => {
                    let at = start.until(&message.received_at);
                    ledger.repeats(&user, &message.mts_identifier, at);
                }
                DeliveredItem::Message(_) => {}
                DeliveredItem::Report(report) => {
                    let failed = report.recipients.iter().filter(|one| !one.delivered);
                    failed.for_each(|_| ledger.reports(&report.mts_identifier));
                }
            }
        }
        Ok(())
    }

    /// Takes the new lines of `received.log`.
    fn read_log(&mut self, clients: &Clients, start: &Start, ledger: &mut Ledger) -> Result<()> {
        let Ok(mut log) = File::open(clients.inbox_log(self.user)) else { return Ok(()) };
        if log.metadata()?.len() <= self.read {
            return Ok(());
        }
        log.seek(SeekFrom::Start(self.read))?;
        let mut octets = Vec::new();
        log.read_to_end(&mut octets)?;
        // A line that is being written is read with the next ones.
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
        self.read += whole as u64;
        let text = String::from_utf8_lossy(octets.get(..whole).unwrap_or_default()).into_owned();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let field = |name: &str| line.get(name).and_then(|value| value.as_str());
            let (Some(id), Some(sha256), Some(time)) =
                (field("id"), field("sha256"), field("time"))
            else {
                continue;
            };
            if !id.starts_with("report ") {
                let (mts_identifier, sha256) = (id.to_owned(), sha256.to_owned());
                let copy = Copy { mts_identifier, sha256, at: start.until(time) };
                ledger.delivers(&self.user.shown(), copy);
            }
        }
        Ok(())
    }
}
