//! Channels that are due: one that waited may be opened again, one with hours opens or closes.

use crate::node::Node;
use base::Now;
use scheduler::ChannelId;

impl Node {
    /// Updates the channels that are due.
    pub(crate) fn update_due_channels(&mut self, now: Now) {
        while let Some(id) = self.outbound.next_due_channel(now) {
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
        for ended in self.outbound.keep_schedule(&mut self.cx, now, id) {
            self.wind_down(now, ended);
        }
    }

    /// Channels may have other hours from now on, or none.
    pub(crate) fn renew_schedules(&mut self, now: Now) {
        self.outbound.renew_schedules(&mut self.cx);
        self.keep_schedules(now);
    }
}
