//! Rule 8, pre-emption: a transfer is paused while a higher one for the same peer makes progress.
//!
//! Only transfers pause others, not waiting items: a waiting item might wait for the association
//! that the paused transfer occupies, and neither would ever continue. So the highest transfer is
//! never paused, and an item above everything in transfer on its channel has rule 4's reserved
//! association.

use crate::machine::Scheduler;
use crate::peer::View;
use crate::queue::Place;
use crate::rules::{ChannelId, Hold};
use base::{EntryId, Instant, PeerId};

/// The fields of an item in transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Its channel; `None` for a mailbox.
    pub(crate) channel: Option<ChannelId>,
    /// The time at which the transfer started.
    pub(crate) started: Instant,
    /// The last confirmed progress.
    pub(crate) progress: Instant,
    /// It started by rule 7; no pause applies to it.
    pub(crate) by_share: bool,
    /// It should be paused.
    pub(crate) paused: bool,
    /// The caller has paused it.
    pub(crate) notified: bool,
}

impl Transfer {
    pub(crate) fn place(&self) -> Place {
        if self.paused { Place::Paused } else { Place::Live(self.progress) }
    }
}

impl Scheduler {
    /// A transfer to pause (true) or to resume (false): each change once. Resuming counts as
    /// progress.
    pub fn pauses(&mut self, now: Instant) -> Option<(EntryId, bool)> {
        self.tick(now);
        let id = self.pausing.pop_first()?;
        let transfer = self.transfers.get_mut(&id)?;
        transfer.notified = transfer.paused;
        Some((id, transfer.paused))
    }

    /// Whether a transfer is paused, or should be.
    pub fn is_paused(&self, id: EntryId) -> bool {
        self.transfers.get(&id).is_some_and(|transfer| transfer.paused)
    }

    /// Pauses the transfers of a peer that rules 1 and 2 hold, and resumes the others: from the
    /// highest precedence down, as a paused transfer holds nothing itself.
    pub(crate) fn repause(&mut self, peer: PeerId) {
        let Some(known) = self.peers.get(&peer) else { return };
        let on = self.policy.preempt && self.policy.hold != Hold::Off;
        let any_paused = || known.queues.iter().any(|(_, queue)| queue.in_transfer().1 > 0);
        if !on && !any_paused() {
            return;
        }
        let mut above = false;
        for precedence in base::Precedence::ALL.into_iter().rev() {
            let Some(known) = self.peers.get(&peer) else { return };
            let Some(queue) = known.queues.get(precedence) else { continue };
            let wrong: Vec<EntryId> = queue
                .transfers()
                .filter(|(id, paused)| {
                    let by_share = self.transfers.get(id).is_some_and(|t| t.by_share);
                    *paused != (above && !by_share)
                })
                .map(|(id, _)| id)
                .collect();
            for id in wrong {
                self.set_paused(id, above);
            }
            let Some(known) = self.peers.get(&peer) else { return };
            let view = self.view();
            above |= on
                && known.alive(&view, precedence).is_some()
                && !known.is_passed(&view, precedence);
        }
    }

    fn set_paused(&mut self, id: EntryId, paused: bool) {
        self.take_out(id);
        let now = self.now;
        if let Some(transfer) = self.transfers.get_mut(&id) {
            transfer.paused = paused;
            if !paused {
                transfer.progress = now;
            }
            if transfer.notified == paused {
                self.pausing.remove(&id);
            } else {
                self.pausing.insert(id);
            }
        }
        self.put_in(id);
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { now: self.now, policy: &self.policy, floor: self.floor, items: &self.items }
    }
}
