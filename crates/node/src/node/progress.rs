//! Whether a peer takes what is sent to it fast enough.

use crate::node::Node;
use base::{AssociationId, Now};
use osi::api::Input;
use osi::stack::least_progress;

impl Node {
    /// The peer's transport has taken so many octets of an association.
    pub(crate) fn taken(&mut self, now: Now, id: AssociationId, octets: u64) {
        let before = self.cx.outstanding(id);
        self.feed(now, id, Input::Taken(octets));
        let outstanding = (before, self.cx.outstanding(id));
        let Some(association) = self.cx.associations.get(&id) else { return };
        let least = least_progress(self.cx.progress_timer(association));
        let channel = association.channel();
        let Some(association) = self.cx.associations.get_mut(&id) else { return };
        let taken = association.note_taken(now, octets, outstanding, least);
        if let Some(entry) = taken.progressed {
            self.cx.queue.scheduler.progress(now.mono, entry);
        }
        if let (Some(channel), Some(sample)) = (channel, taken.sample) {
            self.outbound.note_rate(channel, sample);
        }
    }
}
