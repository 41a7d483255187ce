//! Orders of an operator for a channel.
//!
//! | Order | Then |
//! |---|---|
//! | disable | durable first; the channel counts as down: what is queued takes another channel that has its precedence, or waits. Our associations end as at the end of a window, those of the peer once nothing comes on them; binds of the peer are refused: busy |
//! | enable | durable first; the channel opens as configured |
//! | disconnect | the associations end in the same way; the channel opens again after the first wait of `reopen` |
//! | connect | opened now, outside its hours too, for [`OPENED`] |

use crate::api::Output;
use crate::api::channel_order::{ChannelOrder, ChannelOutcome, Disabled, TransferInProgress};
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{ChannelOperation, PendingAnswer, PendingRetry};
use crate::config::Channel;
use crate::context::Context;
use crate::error::{CommitError, EdgeError};
use crate::outbound::Outbound;
use crate::outbound::channels::state::ChannelState;
use base::{AssociationId, Now, Precedence};
use osi::api::{AbortReason, Request};
use scheduler::ChannelId;
use std::time::Duration;

/// How long a channel that an operator opened outside its hours stays open.
const OPENED: Duration = Duration::from_secs(15 * 60);

impl Outbound {
    /// Takes over what the store has: at the start, or when another node has changed it. Gives the associations
    /// that end in order.
    pub(crate) fn recovered_disabled(
        &mut self,
        cx: &mut Context,
        value: &[u8],
    ) -> Vec<AssociationId> {
        if let Err(error) = cx.closed.recovered(value) {
            let detail = format!("which channels were disabled is lost: {error}");
            cx.event(LogLevel::Error, Kind::StoreFailed, detail);
        }
        self.renew_schedules(cx);
        let closed = |state: &ChannelState| state.schedule.disabled.is_some();
        let channels: Vec<ChannelId> = self.channels.keys().copied().collect();
        let disabled = channels.into_iter().filter(|id| self.channels.get(id).is_some_and(closed));
        disabled.flat_map(|id| self.end_associations(cx, id, false)).collect()
    }

    /// What an order does, or would do.
    pub(crate) fn outcome(
        &self,
        cx: &Context,
        channel: ChannelId,
        now: Now,
        order: ChannelOrder,
    ) -> ChannelOutcome {
        let name = cx.label(channel).unwrap_or_default();
        let disabled = cx.closed.get(&name);
        let ends = order != ChannelOrder::Enable;
        let associations = || cx.associations.of_channel(channel).filter(|_| ends);
        let status = cx.queue.scheduler.status(channel);
        let queued = Precedence::ALL.into_iter().zip(status.queued()).filter(|(_, n)| *n > 0);
        let mut outcome = ChannelOutcome {
            changed: match order {
                ChannelOrder::Disable => disabled.is_none(),
                ChannelOrder::Enable => disabled.is_some(),
                ChannelOrder::Disconnect => associations().next().is_some(),
            },
            ending: associations().count(),
            in_transfer: associations().filter(|a| a.is_open() && !a.is_idle()).count(),
            transfers: associations()
                .filter(|a| a.is_open() && !a.is_idle())
                .map(|association| {
                    let entry = association.sending().map(|sending| sending.entry);
                    TransferInProgress {
                        association: association.id.to_string(),
                        entry: entry.map(|entry| entry.to_string()),
                        stalled_since: entry.and_then(|e| cx.stalled_since_utc(now, e)),
                    }
                })
                .collect(),
            queued: queued.collect(),
            disabled: disabled.cloned().filter(|_| ends),
            ..ChannelOutcome::default()
        };
        let Some(peer) = cx.config.peer(channel.peer).filter(|_| ends) else { return outcome };
        for precedence in outcome.queued.keys() {
            let takes = |(id, other): &(ChannelId, &Channel)| {
                *id != channel
                    && cx.label(*id).is_some_and(|name| cx.closed.get(&name).is_none())
                    && (other.precedences.contains(precedence)
                        || other.fallback.contains(precedence))
            };
            let names: Vec<String> =
                peer.channels().filter(takes).map(|(_, other)| other.name.clone()).collect();
            if !names.is_empty() {
                outcome.elsewhere.insert(*precedence, names);
            }
        }
        outcome
    }

    /// An operator's order. Gives the associations of the channel that end in order.
    pub(crate) fn order_channel(
        &mut self,
        cx: &mut Context,
        now: Now,
        operation: ChannelOperation,
        order: ChannelOrder,
    ) -> Vec<AssociationId> {
        let mut operation = operation;
        let channel = operation.channel;
        operation.outcome = self.outcome(cx, channel, now, order);
        let Some(name) = cx.label(channel) else {
            // It was removed a moment ago.
            let result = Ok(Box::default());
            cx.output(Output::ChannelOrdered { request: operation.request, result });
            return Vec::new();
        };
        if order == ChannelOrder::Disconnect {
            self.wait_after_disconnect(cx, now, channel);
            cx.event(LogLevel::Warning, Kind::ChannelOrdered, "disconnected")
                .by(&operation.by)
                .channel(Some(channel));
            let result = Ok(Box::new(operation.outcome));
            cx.output(Output::ChannelOrdered { request: operation.request, result });
            return self.end_associations(cx, channel, operation.at_once);
        }
        if !operation.outcome.changed {
            let result = Ok(Box::new(operation.outcome));
            cx.output(Output::ChannelOrdered { request: operation.request, result });
            return Vec::new();
        }
        let disabled = (order == ChannelOrder::Disable)
            .then(|| Disabled { by: operation.by.to_string(), since: now.utc });
        operation.before = cx.closed.set(&name, disabled.clone());
        operation.outcome.disabled.clone_from(&disabled);
        operation.name = name;
        let ended = self.set_disabled(cx, channel, disabled, operation.at_once);
        let batch = vec![cx.closed.put()];
        cx.commit(batch, PendingAnswer::Channel(operation));
        ended
    }

    /// What was ordered is durable, or not: then nothing is changed. Gives the associations that end.
    pub(crate) fn channel_committed(
        &mut self,
        cx: &mut Context,
        now: Now,
        operation: ChannelOperation,
        result: Result<(), CommitError>,
    ) -> Vec<AssociationId> {
        if result == Err(CommitError::Changed) {
            // Another node has disabled or enabled one meanwhile. That is known by now, and this besides.
            let batch = vec![cx.closed.put()];
            cx.commit(batch, PendingAnswer::Channel(operation));
            return Vec::new();
        }
        let result = result.map_err(EdgeError::from);
        let ChannelOperation { request, channel, name, by, before, outcome, .. } = operation;
        cx.closed.settled(&name);
        let mut ended = Vec::new();
        match &result {
            Ok(()) => {
                let what = if outcome.disabled.is_some() { "disabled" } else { "enabled" };
                cx.event(LogLevel::Warning, Kind::ChannelOrdered, what)
                    .by(&by)
                    .channel(Some(channel));
            }
            Err(error) => {
                cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string());
                // Unless a later order changed it.
                if cx.closed.get(&name) == outcome.disabled.as_ref() {
                    cx.closed.set(&name, before.clone());
                    cx.closed.settled(&name);
                    ended = self.set_disabled(cx, channel, before, false);
                    // A later one may have written what is undone here.
                    let batch = vec![cx.closed.put()];
                    cx.commits.retry_later(now, PendingRetry::alone(batch));
                }
            }
        }
        cx.output(Output::ChannelOrdered { request, result: result.map(|()| Box::new(outcome)) });
        ended
    }

    /// Brings a channel up to date with what is ordered. Gives the associations that end in order.
    fn set_disabled(
        &mut self,
        cx: &mut Context,
        channel: ChannelId,
        disabled: Option<Disabled>,
        at_once: bool,
    ) -> Vec<AssociationId> {
        let ends = disabled.is_some();
        if let Some(state) = self.channels.get_mut(&channel) {
            state.schedule.disabled = disabled;
        }
        if ends {
            return self.end_associations(cx, channel, at_once);
        }
        if self.channels.get(&channel).is_some_and(|state| state.schedule.is_open()) {
            self.window_begins(cx, channel);
        }
        Vec::new()
    }

    /// Ends the associations of a channel: nothing more begins on them. Gives those that end in order; the others
    /// are aborted.
    fn end_associations(
        &self,
        cx: &mut Context,
        channel: ChannelId,
        at_once: bool,
    ) -> Vec<AssociationId> {
        let all = cx.associations.of_channel(channel).map(|a| (a.id, a.is_open()));
        let all: Vec<(AssociationId, bool)> = all.collect();
        let mut in_order = Vec::new();
        for (id, is_open) in all {
            if let Some(association) = cx.associations.get_mut(&id) {
                association.leave();
            }
            match at_once && is_open {
                true => cx.request(id, Request::Abort(AbortReason::TemporaryProblem)),
                false => in_order.push(id),
            }
        }
        in_order
    }

    fn wait_after_disconnect(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        let Some((_, config)) = cx.peer_and_channel(channel) else { return };
        let reopen = config.reopen;
        let seed = cx.rng.next_u64();
        if let Some(state) = self.channels.get_mut(&channel) {
            let until = now.mono + reopen.wait(1, seed);
            state.not_before = Some(state.not_before.map_or(until, |at| at.max(until)));
            state.schedule.opened_until = None;
            state.schedule.look_at = state.schedule.look_at.map(|_| now.mono);
        }
    }

    /// An operator wants a channel opened outside its hours.
    pub(crate) fn open_outside_hours(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        let Some(state) = self.channels.get_mut(&channel) else { return };
        if state.schedule.closed {
            state.schedule.opened_until = Some(now.mono + OPENED);
            state.schedule.look_at = None;
            self.keep_schedule(cx, now, channel);
        }
    }
}
