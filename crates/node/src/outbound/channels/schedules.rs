//! Channels with hours.
//!
//! Within its windows such a channel is kept open like a permanent one. When a window ends, idle
//! associations of ours are released, and a transfer is interrupted at its next checkpoint. It is kept
//! like one that was cut off until the next window has begun, and is resumed then; where the peer has
//! kept it for less, it begins again. Outside its windows we open no association and the channel counts
//! as down. On an association that the peer opened we may send all the same.

use crate::api::event::{Kind, LogLevel};
use crate::config::Connection;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, Now};
use engine::NextHop;
use scheduler::ChannelId;
use std::time::Duration;

/// How often the wall clock is looked at, at least, for it may be set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Outbound {
    /// The next channel that is due: its wait is over, or it is time to look at the clock.
    pub(crate) fn next_due_channel(&mut self, now: Now) -> Option<ChannelId> {
        while let Some(id) = self.agenda.looks.pop(now.mono) {
            let Some(state) = self.channels.get_mut(&id) else { continue };
            state.not_before = state.not_before.filter(|at| *at > now.mono);
            return Some(id);
        }
        None
    }

    /// Looks at the clock for a channel where it is time, and opens or closes it. Gives the
    /// associations that end because its window has ended.
    pub(crate) fn keep_schedule(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: ChannelId,
    ) -> Vec<AssociationId> {
        let Some((_, channel)) = cx.config.channel(id) else { return Vec::new() };
        let Connection::Scheduled { windows } = &channel.connection else { return Vec::new() };
        let Some(state) = self.channels.get_mut(&id) else { return Vec::new() };
        if state.schedule.look_at.is_some_and(|at| at > now.mono) {
            return Vec::new();
        }
        let opened = state.schedule.opened_until.filter(|at| *at > now.mono);
        state.schedule.opened_until = opened;
        let (within, change) = (windows.is_open(now.utc), windows.next_change(now.utc));
        let open = within || opened.is_some();
        let wait = change.map_or(LOOK_EVERY, |at| at.since(now.utc).min(LOOK_EVERY));
        let wait = opened.map_or(wait, |at| at.since(now.mono).min(wait));
        state.schedule.look_at = Some(now.mono + wait);
        state.schedule.opens = change.filter(|_| !open);
        if state.schedule.closed != open {
            return Vec::new();
        }
        state.schedule.closed = !open;
        let until = change.map(|at| format!(" until {at}")).unwrap_or_default();
        let detail = match opened {
            Some(_) if !within => format!("outside its windows{until}, opened by an operator"),
            _ if open => format!("within its windows{until}"),
            _ => format!("outside its windows{until}"),
        };
        cx.event(LogLevel::Info, Kind::WindowChanged, detail).channel(Some(id));
        if open {
            self.window_begins(cx, id);
            return Vec::new();
        }
        self.window_ends(cx, id)
    }

    /// Channels may have other hours from now on, or none. The next look at the clock finds out.
    pub(crate) fn renew_schedules(&mut self, cx: &mut Context) {
        let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
        for id in ids {
            let config = cx.config.channel(id).map(|(_, channel)| &channel.connection);
            let scheduled = matches!(config, Some(Connection::Scheduled { .. }));
            let Some(state) = self.channels.get_mut(&id) else { continue };
            state.schedule.look_at = None;
            let disabled = cx.label(id).and_then(|name| cx.closed.get(&name).cloned());
            state.schedule.disabled = disabled;
            let elsewhere = !cx.queue.owns(&NextHop::Peer(id.peer));
            if std::mem::replace(&mut state.schedule.elsewhere, elsewhere) && !elsewhere {
                self.window_begins(cx, id);
            }
            let Some(state) = self.channels.get_mut(&id) else { continue };
            if !scheduled && std::mem::take(&mut state.schedule.closed) {
                (state.schedule.opens, state.schedule.opened_until) = (None, None);
                self.window_begins(cx, id);
            }
        }
    }

    /// Nothing more begins on the associations of ours. Gives them.
    pub(crate) fn window_ends(&self, cx: &mut Context, channel: ChannelId) -> Vec<AssociationId> {
        let ours = cx.associations.of_channel(channel).filter(|l| l.is_initiator());
        let ours: Vec<AssociationId> = ours.map(|l| l.id).collect();
        for id in &ours {
            if let Some(association) = cx.associations.get_mut(id) {
                association.leave();
            }
        }
        ours
    }
}
