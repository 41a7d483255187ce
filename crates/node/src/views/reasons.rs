//! Why an entry is not in transfer, in words.

use crate::association::Association;
use crate::delivery::controlling::held_at_bind;
use crate::node::Node;
use crate::outbound::channels::state::ChannelState;
use base::{EntryId, Instant, Now, PeerId, Utc};
use node_api::queue::row::QueueRow;
use scheduler::agenda::channels_of;
use scheduler::{Destination, ItemState, Listed};

impl Node {
    /// Each reason why an entry waits; none while it is in transfer and makes progress.
    pub(crate) fn reasons(&self, now: Now, listed: &Listed, row: &QueueRow) -> Vec<String> {
        let mut reasons = Vec::new();
        match listed.at {
            ItemState::InTransfer { paused: false, channel } => {
                let label = channel.and_then(|channel| self.cx.label(channel));
                if let Some(label) = label.filter(|_| row.state == "stalled") {
                    reasons.push(self.why_stalled(listed.item.id, row, &label));
                }
                return reasons;
            }
            ItemState::InTransfer { paused: true, .. } => {
                reasons.push("a message of a higher precedence is in transfer".to_owned());
                return reasons;
            }
            ItemState::Expired => {
                reasons.push("its time is over: its report is being committed".to_owned());
                return reasons;
            }
            ItemState::Held(_) | ItemState::Ready if row.held_because.is_some() => {
                reasons.extend(row.held_because.clone());
            }
            ItemState::Held(reason) => reasons.push(match row.state.as_str() {
                "held_by_operator" => "an operator holds it: `mta queue release`".to_owned(),
                _ => reason.to_string(),
            }),
            ItemState::Delayed(_) => {
                let until = row.delayed_until.as_deref().unwrap_or_default();
                let why = match self.cx.queue.deferred.has(listed.item.id) {
                    true => "its originator deferred it",
                    false if listed.failures > 0 => "it failed, and is tried again",
                    false => "it waits for its next try",
                };
                reasons.push(format!("{why}: not before {until}"));
            }
            ItemState::Ready => {}
        }
        let is_delayed = matches!(listed.at, ItemState::Delayed(_));
        let until = self.cx.queue.deferred.until(listed.item.id);
        if let Some(until) = until.filter(|until| !is_delayed && *until > now.mono) {
            reasons.push(format!("its originator deferred it: not before {}", utc(now, until)));
        }
        match listed.item.destination {
            Destination::Peer(peer) => self.reasons_of_peer(now, peer, listed, &mut reasons),
            Destination::Mailbox(_) if reasons.is_empty() => {
                let is_bound = row.mailbox.as_deref().is_some_and(|mailbox| self.is_bound(mailbox));
                reasons.push(match is_bound {
                    true => {
                        "deliveries to its user go before it, or it is his turn next".to_owned()
                    }
                    false => "its user is not bound, or does not take deliveries".to_owned(),
                });
                if let Some(by) = held_at_bind(&self.cx, &listed.item).filter(|_| !is_bound) {
                    reasons.push(format!("{by} (registered)"));
                }
            }
            Destination::Mailbox(_) => {}
        }
        reasons
    }

    fn is_bound(&self, mailbox: &str) -> bool {
        let takes =
            |a: &Association| a.is_open() && a.takes_deliveries() && a.mailbox() == Some(mailbox);
        self.cx.associations.values().any(takes)
    }

    /// How the channels stand that may carry it.
    fn reasons_of_peer(&self, now: Now, peer: PeerId, listed: &Listed, out: &mut Vec<String>) {
        if self.cx.config.peer(peer).is_none() {
            out.push("its peer is no longer configured: it is being routed again".to_owned());
            return;
        }
        let precedence = listed.item.precedence;
        let mut carried = false;
        let mut open = false;
        for id in self.outbound.channels.keys_in(channels_of(peer)) {
            let carries = self
                .cx
                .peer_and_channel(id)
                .is_some_and(|(_, channel)| channel.precedences.contains(&precedence));
            let Some(state) = self.outbound.channels.get(&id).filter(|_| carries) else { continue };
            carried = true;
            let name =
                self.cx.place(id).map_or_else(String::new, |(_, channel)| channel.to_owned());
            let is_open = |a: &Association| a.is_open() && a.is_initiator();
            if self.cx.associations.of_channel(id).any(is_open) {
                open = true;
                continue;
            }
            let disabled = state.schedule.disabled.as_ref().and_then(|_| self.cx.label(id));
            let remedy = disabled.map(|id| format!(": `mta channel enable {id}`"));
            let why = self.why_closed(now, state);
            out.push(format!("channel {name}: {why}{}", remedy.unwrap_or_default()));
        }
        if !carried {
            out.push(format!("no channel of its peer carries {precedence}"));
        } else if open && out.is_empty() {
            out.push("others go before it, or no association is free".to_owned());
        }
    }

    /// The channels that may carry an entry, if operators disabled all of them.
    pub(crate) fn only_disabled(&self, listed: &Listed) -> Vec<String> {
        let Destination::Peer(peer) = listed.item.destination else { return Vec::new() };
        let mut disabled = Vec::new();
        for id in self.outbound.channels.keys_in(channels_of(peer)) {
            let carries = self
                .cx
                .peer_and_channel(id)
                .is_some_and(|(_, channel)| channel.precedences.contains(&listed.item.precedence));
            let Some(state) = self.outbound.channels.get(&id).filter(|_| carries) else { continue };
            if state.schedule.disabled.is_none() {
                return Vec::new();
            }
            disabled.extend(self.cx.label(id));
        }
        disabled
    }

    /// What a transfer without progress waits for, and what frees it.
    fn why_stalled(&self, id: EntryId, row: &QueueRow, label: &str) -> String {
        let its = |a: &&Association| a.sending().is_some_and(|s| s.entry == id);
        let Some(association) = self.cx.associations.values().find(its) else {
            return format!("{label}: the recovery of its association, which was lost");
        };
        let since = row.last_progress.as_deref().unwrap_or_default();
        let (done, total) = (row.bytes_confirmed.unwrap_or(0), row.bytes_total.unwrap_or(0));
        format!(
            "{label}: nothing was confirmed or taken on {} since {since}; {done} of {total} octets are \
             confirmed: `mta channel disconnect {label} --now` cuts it, and it is tried again",
            association.id
        )
    }

    fn why_closed(&self, now: Now, state: &ChannelState) -> String {
        if let Some(hours) = state.schedule.describe() {
            return hours;
        }
        let since = state.down_since.map(|at| format!(", since {at}")).unwrap_or_default();
        let next = state.not_before.filter(|at| *at > now.mono);
        let next = next.map(|at| format!("; next try at {}", utc(now, at))).unwrap_or_default();
        match &state.last_error {
            Some(error) => format!("{}{since}{next}", base::shown::line(error)),
            None => format!("not open{since}{next}"),
        }
    }
}

/// The time of day of an instant.
pub(crate) fn utc(now: Now, at: Instant) -> Utc {
    Utc(now.utc.0.saturating_add(at.0).saturating_sub(now.mono.0))
}
