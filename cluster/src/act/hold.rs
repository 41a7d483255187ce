//! An operator's hold: ordered at one node, kept while the node that owns the entry is killed, and released at whichever
//! node owns it then.

use super::{Event, Probe, Striker};
use crate::ledger::Hold;
use crate::message::{Message, PROBE};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::time::Duration;
use testbed::clock::{Deadline, is_interrupted};

/// Longest submission: the site has no other fault when it begins.
const SUBMITTED: Duration = Duration::from_secs(30);
/// Longest time until an order is carried out: longer than a takeover and a promotion together.
const ORDERED: Duration = Duration::from_secs(90);
/// Between two tries of an order.
const AGAIN: Duration = Duration::from_millis(300);
/// After an order that is the site's, until all nodes know it.
const KNOWN: Duration = Duration::from_secs(2);

/// A message that is held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    message: Message,
    mts_identifier: String,
    /// When the order was acknowledged, since the start of the trial.
    from: Duration,
    /// The node that held it, and was killed.
    pub(crate) owner: usize,
}

impl Striker<'_> {
    /// Holds a Routine that was submitted at this node, and kills the node that owns it. Its channel is disabled at one
    /// node meanwhile and enabled at another, so that it cannot have left.
    pub(crate) fn hold(&mut self, number: usize) -> Result<()> {
        let message = Message::held(self.seed, self.probes);
        self.probes += 1;
        let peer = message.to.first().context("a recipient")?.place.name();
        let channel = format!("{peer}/other");
        self.order(number, &["channel", "disable", &channel])?;
        self.wait(KNOWN)?;
        let held = self.submit_and_hold(number, &message);
        // Whatever the outcome, the site must not stay like this.
        self.order(number + 1, &["channel", "enable", &channel])?;
        let Some(held) = held? else { return Ok(()) };
        self.take_down(held.owner)?;
        self.held = Some(held);
        Ok(())
    }

    /// The message once it is held; nothing where the submission was not answered, and is repeated by others.
    fn submit_and_hold(&mut self, number: usize, message: &Message) -> Result<Option<Held>> {
        let mut client = self.world.clients.start(PROBE, number, &message.arguments())?;
        let answer = match client.ends_within(SUBMITTED)? {
            true => client.accepted(self.start.elapsed())?,
            false => {
                client.stop();
                None
            }
        };
        let mts_identifier = answer.as_ref().map(|answer| answer.mts_identifier.clone());
        self.report(Event::Queued(Probe { message: message.clone(), answer, killed: None }))?;
        let Some(mts_identifier) = mts_identifier else { return Ok(None) };
        let owner = self.act_on("hold", &message.id)?;
        let from = self.start.elapsed();
        Ok(Some(Held { message: message.clone(), mts_identifier, from, owner }))
    }

    /// Releases what is held, at the node that owns it now.
    pub(crate) fn release(&mut self, held: &Held) -> Result<()> {
        let until = self.start.elapsed();
        self.act_on("release", &held.message.id)?;
        let user = held.message.to.first().map(|user| user.shown()).unwrap_or_default();
        let (mts_identifier, from) = (held.mts_identifier.clone(), held.from);
        self.report(Event::Held(Hold { user, mts_identifier, from, until }))
    }

    /// Orders it at each node in turn until one has carried it out for this message: its number.
    fn act_on(&mut self, act: &str, id: &str) -> Result<usize> {
        let deadline = Deadline::after(ORDERED);
        let mut answers = String::new();
        while !deadline.has_passed() && !is_interrupted() {
            answers.clear();
            for number in 0..self.world.nodes.len() {
                if self.down.contains(&number) {
                    continue;
                }
                let arguments = ["queue", act, "--identifier", id, "--yes", "--json"];
                let answer = self.world.node(number)?.site.mta(&arguments)?;
                if is_done(&answer.stdout) {
                    return Ok(number);
                }
                answers += &format!("n{}: {} {}\n", number + 1, answer.stdout, answer.stderr);
            }
            self.wait(AGAIN)?;
        }
        bail!("no node would {act} {id}:\n{answers}")
    }

    /// Orders something at this node, or one after it, until it is acknowledged.
    fn order(&mut self, from: usize, arguments: &[&str]) -> Result<()> {
        let deadline = Deadline::after(ORDERED);
        let (mut number, mut answer) = (from, String::new());
        while !deadline.has_passed() && !is_interrupted() {
            let node = number % self.world.nodes.len();
            number += 1;
            if self.down.contains(&node) {
                continue;
            }
            let output = self.world.node(node)?.site.mta(arguments)?;
            if output.code == 0 {
                return Ok(());
            }
            answer = output.stderr;
            self.wait(AGAIN)?;
        }
        bail!("no node would {}: {answer}", arguments.join(" "))
    }
}

/// Whether exactly one entry was acted on, now or by a try whose answer was lost: `{"e7":"done"}`.
fn is_done(json: &str) -> bool {
    let outcomes = serde_json::from_str::<Value>(json).ok();
    let outcomes = outcomes.as_ref().and_then(Value::as_object);
    outcomes.is_some_and(|of| {
        of.len() == 1 && of.values().all(|outcome| outcome == "done" || outcome == "unchanged")
    })
}
