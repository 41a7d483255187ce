//! Channels that are there at certain hours.
//!
//! Within its windows such a channel is kept open like a permanent one. When one ends, idle
//! associations of ours are released and a transfer is interrupted at its next checkpoint; it is
//! kept like one that was cut off, until the next window has begun, and goes on there; where the
//! peer has kept it for less, it begins again. Outside its windows we open none and the channel counts as down, but for an association
//! that the peer opened: on that we may send, too.

use crate::api::ChannelId;
use crate::association::Phase;
use crate::config::Connection;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::node::Node;
use crate::recovery::KEPT;
use base::{AssociationId, Instant, Now, Utc};
use std::time::Duration;

/// The wall clock is looked at so often at least, for it may be set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A transfer to us is kept no longer than this: it takes room in the store.
const RECEIVE_KEPT: Duration = Duration::from_hours(24);

/// Where a channel stands in its hours; a channel without any is always open.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    closed: bool,
    /// When it opens.
    opens: Option<Utc>,
    /// When to look at the clock again.
    look_at: Option<Instant>,
}

impl Schedule {
    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// For the status: nothing while it is open.
    pub(crate) fn describe(&self) -> Option<String> {
        let opens = self.opens.filter(|_| self.closed)?;
        Some(format!("outside its windows, opens at {opens}"))
    }
}

impl Node {
    /// Looks at the clock for every scheduled channel.
    pub(crate) fn keep_schedules(&mut self, now: Now) {
        let ids: Vec<ChannelId> = self.outbound.channels.keys().copied().collect();
        for id in ids {
            self.keep_schedule(now, id);
        }
    }

    /// Looks at the clock for a channel where it is time, and opens or closes it.
    pub(crate) fn keep_schedule(&mut self, now: Now, id: ChannelId) {
        let Some((_, channel)) = self.cx.config.channel(id) else { return };
        let Connection::Scheduled { windows } = &channel.connection else { return };
        let Some(state) = self.outbound.channels.get_mut(&id) else { return };
        if state.schedule.look_at.is_some_and(|at| at > now.mono) {
            return;
        }
        let (open, change) = (windows.is_open(now.utc), windows.next_change(now.utc));
        let wait = change.map_or(LOOK_EVERY, |at| at.since(now.utc).min(LOOK_EVERY));
        state.schedule.look_at = Some(now.mono + wait);
        state.schedule.opens = change.filter(|_| !open);
        if state.schedule.closed != open {
            return;
        }
        state.schedule.closed = !open;
        let until = change.map(|at| format!(" until {at}")).unwrap_or_default();
        let state = if open { "within" } else { "outside" };
        self.cx
            .event(Level::Info, Kind::WindowChanged, format!("{state} its windows{until}"))
            .channel(Some(id));
        match open {
            true => self.outbound.window_begins(&mut self.cx, id),
            false => self.window_ends(now, id),
        }
    }

    /// Channels may have other hours from now on, or none.
    pub(crate) fn renew_schedules(&mut self, now: Now) {
        let ids: Vec<ChannelId> = self.outbound.channels.keys().copied().collect();
        for id in ids {
            let config = self.cx.config.channel(id).map(|(_, channel)| &channel.connection);
            let scheduled = matches!(config, Some(Connection::Scheduled { .. }));
            let Some(state) = self.outbound.channels.get_mut(&id) else { continue };
            state.schedule.look_at = None;
            if !scheduled && std::mem::take(&mut state.schedule).closed {
                self.outbound.window_begins(&mut self.cx, id);
            }
        }
        self.keep_schedules(now);
    }

    fn window_ends(&mut self, now: Now, channel: ChannelId) {
        let ours: Vec<AssociationId> =
            self.cx.associations_of(channel).filter(|l| l.is_initiator()).map(|l| l.id).collect();
        for id in ours {
            if let Some(link) = self.cx.associations.get_mut(&id) {
                link.leaving = true;
            }
            self.wind_down(now, id);
        }
    }
}

impl Context {
    /// How long a transfer of ours that was cut off now may go on later: until its channel's next
    /// window has begun, but not beyond its expiry.
    pub(crate) fn kept_until(
        &self,
        now: Now,
        channel: ChannelId,
        usual: Duration,
        expires: Instant,
    ) -> Instant {
        let usual = now.mono + usual;
        self.opens_next(now, channel).map_or(usual, |at| (at + KEPT).min(expires).max(usual))
    }

    /// The same for a transfer to us.
    pub(crate) fn receive_kept_until(&self, now: Now, channel: ChannelId) -> Instant {
        self.kept_until(now, channel, KEPT, now.mono + RECEIVE_KEPT)
    }

    /// When a channel that is outside its windows, or will be before a transfer that is cut off now
    /// is given up, is within them again.
    pub(crate) fn opens_next(&self, now: Now, channel: ChannelId) -> Option<Instant> {
        let (_, config) = self.peer_and_channel(channel)?;
        let Connection::Scheduled { windows } = &config.connection else { return None };
        let change = windows.next_change(now.utc)?;
        let opens = match windows.is_open(now.utc) {
            true if change.since(now.utc) < KEPT => windows.next_change(change)?,
            true => return None,
            false => change,
        };
        Some(now.mono + opens.since(now.utc))
    }

    /// Releases the associations of a closed channel on which the last transfer has ended.
    pub(crate) fn release_leaving(&mut self, channel: ChannelId) {
        let done: Vec<AssociationId> = self
            .associations_of(channel)
            .filter(|l| l.leaving && l.is_idle())
            .map(|l| l.id)
            .collect();
        for id in done {
            self.release(id);
        }
    }
}

impl Outbound {
    pub(crate) fn window_begins(&mut self, cx: &mut Context, channel: ChannelId) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.not_before = None;
            state.failures = 0;
        }
        let ids: Vec<AssociationId> = cx.associations_of(channel).map(|l| l.id).collect();
        for id in ids {
            // One on which the peer goes on sending is of use again.
            if let Some(link) = cx.associations.get_mut(&id)
                && link.phase == Phase::Open
                && !link.interrupting
            {
                link.leaving = false;
            }
        }
    }
}
