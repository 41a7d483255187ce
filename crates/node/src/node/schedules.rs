//! Channels that are there at certain hours.
//!
//! Within its windows such a channel is kept open like a permanent one. When one ends, idle
//! associations of ours are released and a transfer is interrupted at its next checkpoint; it is
//! kept like one that was cut off, until the next window has begun, and goes on there; where the
//! peer has kept it for less, it begins again. Outside its windows we open none and the channel counts as down, but for an association
//! that the peer opened: on that we may send, too.

use crate::api::event::{Kind, Level};
use crate::config::Connection;
use crate::node::Node;
use base::{AssociationId, Now};
use scheduler::ChannelId;
use std::time::Duration;

/// The wall clock is looked at so often at least, for it may be set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Node {
    /// Does what the time brings for channels: one that waited may be opened again, one that is
    /// scheduled opens or closes.
    pub(crate) fn mind_channels(&mut self, now: Now) {
        while let Some(id) = self.outbound.agenda.looks.pop(now.mono) {
            let Some(state) = self.outbound.channels.get_mut(&id) else { continue };
            state.not_before = state.not_before.filter(|at| *at > now.mono);
            self.keep_schedule(now, id);
        }
    }

    /// Looks at the clock for every scheduled channel.
    pub(crate) fn keep_schedules(&mut self, now: Now) {
        let ids: Vec<ChannelId> = self.outbound.channels.keys().copied().collect();
        for id in ids {
            self.keep_schedule(now, id);
        }
    }

    /// Looks at the clock for a channel where it is time, and opens or closes it.
    fn keep_schedule(&mut self, now: Now, id: ChannelId) {
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
        let ours: Vec<AssociationId> = self
            .cx
            .associations
            .of_channel(channel)
            .filter(|l| l.is_initiator())
            .map(|l| l.id)
            .collect();
        for id in ours {
            if let Some(link) = self.cx.associations.get_mut(&id) {
                link.end.leaving = true;
            }
            self.wind_down(now, id);
        }
    }
}
