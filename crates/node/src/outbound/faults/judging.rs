//! What follows when an association ended under a transfer, or the peer refused one for good, by
//! whose fault it is ([`guard::blame`]).
//!
//! | Fault | The message | The channel |
//! |---|---|---|
//! | the connection's | is resumed, or waits again at once | waits as after any loss |
//! | the message's | waits, longer each time; at last it is given up | is opened again at once |
//! | nobody's, but at the same place again | waits, longer each time | is opened again at once |
//! | the channel's | waits for the channel's next try, if it is its turn then | waits, longer each time, but for messages that did not fail |

use crate::api::event::{Kind, LogLevel};
use crate::association::transfer::FailedTransfer;
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now};
use engine::Record;
use guard::blame::{TransferFault, TransferPlace, is_about_the_message};
use osi::api::AbortReason;
use scheduler::ChannelId;

/// Which failure of a message by itself this is, where `most` are allowed (0: any number).
fn failure(charges: u32, most: u32) -> String {
    match most {
        0 => format!("failure {charges} of this message by itself"),
        most if charges < most => {
            format!("failure {charges} of {most} (message_aborts) of this message by itself")
        }
        most => format!(
            "failure {charges} of this message by itself, and message_aborts is {most}: nothing else \
             got through meanwhile, so the fault may be the channel's; once another message got \
             through, the next failure is the last"
        ),
    }
}

impl Outbound {
    /// The association of this transfer ended, by an abort with this reason or without a word. What
    /// follows for the message, unless it is the connection's fault.
    pub(crate) fn judge(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        failed: &FailedTransfer,
        reason: Option<AbortReason>,
    ) -> TransferFault {
        // Nothing of it was sent, or a pause kept it from moving.
        let Some(place) = failed.place else { return TransferFault::Connection };
        let deliberate = is_about_the_message(reason);
        // As long as it may be resumed, a loss is charged to the connection.
        if !deliberate && (failed.resumption.is_some() || failed.if_lost.is_some()) {
            return TransferFault::Connection;
        }
        self.lay_blame(cx, now, (id, channel), failed, place, deliberate)
    }

    /// The peer refused this transfer for good, on an association that lives on. Whether it is dealt
    /// with.
    pub(crate) fn judge_refused(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        failed: &FailedTransfer,
    ) -> bool {
        let channel = cx.associations.get(&id).and_then(|a| a.channel());
        let (Some(channel), Some(place)) = (channel, failed.place) else { return false };
        self.lay_blame(cx, now, (id, channel), failed, place, true) != TransferFault::Connection
    }

    /// What follows by whose fault it is.
    fn lay_blame(
        &mut self,
        cx: &mut Context,
        now: Now,
        (id, channel): (AssociationId, ChannelId),
        failed: &FailedTransfer,
        place: TransferPlace,
        deliberate: bool,
    ) -> TransferFault {
        let entry = failed.entry;
        let Some(item) = cx.queue.get(entry) else { return TransferFault::Connection };
        let most = cx.peer_and_channel(channel).map_or(0, |(peer, _)| peer.message_aborts);
        let about = (entry, item.precedence);
        let fault = self.blame.failed(channel, about, place, deliberate, most);
        match fault {
            TransferFault::Connection => {}
            TransferFault::Suspect => {
                let detail = "lost at the same place again";
                self.waits_alone(
                    cx,
                    now,
                    (id, channel),
                    failed,
                    detail,
                    "; it is not given up for that",
                );
            }
            TransferFault::Message { charges, give_up: true } => {
                self.give_up(cx, now, id, channel, failed, charges);
            }
            TransferFault::Message { charges, give_up: false } => {
                let detail = failure(charges, most);
                self.waits_alone(cx, now, (id, channel), failed, &detail, "");
            }
            TransferFault::Channel { messages } => {
                self.channel_at_fault(cx, now, channel, entry, messages);
            }
        }
        fault
    }

    /// Different messages failed on a channel and none got through in between: it backs off. What
    /// failed waits for its next try, and one of it is tried then, if nothing else is there to try.
    fn channel_at_fault(
        &mut self,
        cx: &mut Context,
        now: Now,
        channel: ChannelId,
        entry: EntryId,
        messages: usize,
    ) {
        let reopen = cx.peer_and_channel(channel).map(|(_, c)| c.reopen).unwrap_or_default();
        let (until, begins) = match self.blame.next_round(now.mono, channel) {
            Err(until) => (until, false),
            Ok(round) => {
                let seed = cx.rng.next_u64();
                let until = now.mono + reopen.wait(round, seed);
                self.blame.backs_off_until(channel, until);
                let wait = until.since(now.mono).as_secs_f64();
                let detail = format!(
                    "{messages} different messages failed and none got through in between: no \
                     message is blamed; next try in {wait:.1} s, at once for one that did not fail; \
                     ask the peer's operator what it aborts for"
                );
                cx.event(LogLevel::Warning, Kind::ChannelBlamed, detail).channel(Some(channel));
                (until, true)
            }
        };
        let later = until + reopen.longest;
        for entry in self.blame.that_wait(channel, entry, begins) {
            cx.queue.scheduler.delay(now.mono, entry, later);
        }
        if cx.queue.scheduler.peek(now.mono, channel).is_none()
            && let Some(try_next) = self.blame.next_to_try(channel)
        {
            cx.queue.scheduler.delay(now.mono, try_next, until);
        }
        if let Some(state) = self.channels.get_mut(&channel) {
            state.failures = state.failures.max(1);
            state.not_before = Some(until);
        }
    }

    /// A transfer succeeded: nothing is held against its channel any more.
    pub(crate) fn got_through(
        &mut self,
        cx: &mut Context,
        now: Now,
        channel: ChannelId,
        entry: EntryId,
    ) {
        let backs_off = self.blame.backs_off(channel);
        self.blame.succeeded(channel, entry);
        let waits = self.channels.get(&channel).and_then(|state| state.not_before);
        if backs_off.is_some()
            && backs_off == waits
            && let Some(state) = self.channels.get_mut(&channel)
        {
            // On another association of the channel.
            state.end_wait();
        }
        while let Some(next) = self.blame.next_cleared(channel) {
            if cx.queue.scheduler.hasten(now.mono, next) {
                break;
            }
        }
    }

    /// Whether a channel that backs off because different messages failed there is opened all the
    /// same: for a message that did not.
    pub(crate) fn has_trial(&mut self, cx: &mut Context, now: Now, channel: ChannelId) -> bool {
        let waits = self.channels.get(&channel).and_then(|state| state.not_before);
        if waits.is_none() || self.blame.backs_off(channel) != waits {
            return false;
        }
        let start = cx.queue.scheduler.peek(now.mono, channel);
        start.is_some_and(|start| self.blame.may_try(channel, start.id, start.precedence))
    }

    /// A message fails wherever others do not: it is forgotten, and its report queued, in one commit.
    pub(crate) fn give_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        failed: &FailedTransfer,
        charges: u32,
    ) {
        let entry = failed.entry;
        let Some(record) = failed.record.as_deref() else {
            let seed = cx.rng.next_u64();
            cx.queue.scheduler.retry(now.mono, entry, seed);
            return;
        };
        let detail = self.given_up_detail(cx, channel, record, charges);
        cx.event(LogLevel::Error, Kind::GivenUp, detail)
            .association(id)
            .channel(Some(channel))
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size));
        self.blame.forget(entry);
        let text = format!("the next MTA refused it or broke off its transfer {charges} times");
        let concluded = cx.engine.untransferable(now.utc, record, &text);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        // No success of its peer's.
        cx.queue.scheduler.put_back(now.mono, entry);
        let (batch, bodies) = cx.queue.replace(entry, record, &concluded);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// A message waits, longer each time, and others get past it.
    fn waits_alone(
        &self,
        cx: &mut Context,
        now: Now,
        (id, channel): (AssociationId, ChannelId),
        failed: &FailedTransfer,
        why: &str,
        note: &str,
    ) {
        let entry = failed.entry;
        let seed = cx.rng.next_u64();
        let until = cx.queue.scheduler.retry(now.mono, entry, seed);
        let wait = until.map_or(0, |until| until.since(now.mono).as_secs());
        let precedence = cx.queue.get(entry).map(|item| item.precedence);
        let detail = format!("{why}: it waits {wait} s, others continue{note}");
        let draft = cx.event(LogLevel::Warning, Kind::MessageBlamed, detail);
        let draft = draft.association(id).channel(Some(channel)).entry(entry);
        let draft = draft.message(failed.message.clone());
        if let Some(precedence) = precedence {
            draft.precedence(precedence);
        }
    }

    fn given_up_detail(
        &self,
        cx: &Context,
        channel: ChannelId,
        record: &Record,
        charges: u32,
    ) -> String {
        let name = cx.peer_and_channel(channel).map(|(peer, _)| peer.name.as_str());
        let name = name.unwrap_or("?");
        let what = match record.kind() {
            engine::RecordKind::Report if record.body.is_some() => {
                "a report, which goes without the content it returns"
            }
            engine::RecordKind::Report => "a report, which is thrown away",
            engine::RecordKind::Message | engine::RecordKind::Probe => {
                "its originator gets a report"
            }
        };
        format!(
            "{charges} transfers of it failed at peer {name} while others got through: given up; \
             {what}. Ask the peer's operator what it could not take; where it is an old MTA, try \
             extensions = \"1988\"; message_aborts of the peer sets the number, 0 never gives up"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::failure;

    #[test]
    fn no_failure_is_the_fifth_of_four() {
        assert_eq!(failure(3, 4), "failure 3 of 4 (message_aborts) of this message by itself");
        assert_eq!(failure(3, 0), "failure 3 of this message by itself");
        assert!(
            failure(5, 4)
                .starts_with("failure 5 of this message by itself, and message_aborts is 4")
        );
    }
}
