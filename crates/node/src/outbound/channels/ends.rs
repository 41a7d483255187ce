//! What the end of an association means for its channel.

use crate::api::event::Kind;
use crate::association::ended::EndedAssociation;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, Now};
use guard::blame::TransferFault;

impl Outbound {
    /// An association of ours ended: when its channel is opened again.
    pub(crate) fn note_end(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        ended: &EndedAssociation,
        fault: TransferFault,
    ) {
        // How an association ended that had to end does not concern its channel.
        let concerns = ended.is_initiator && !ended.drained;
        let Some(channel) = ended.channel.filter(|_| concerns) else { return };
        if ended.kind == Kind::AssociationReleased {
            return;
        }
        if fault != TransferFault::Connection {
            // The wait was decided with the fault.
            if let Some(state) = self.channels.get_mut(&channel) {
                state.last_error = Some(ended.detail.clone());
            }
            return;
        }
        let reopen = cx.peer_and_channel(channel).map(|(_, c)| c.reopen).unwrap_or_default();
        let seed = cx.rng.next_u64();
        if let Some(state) = self.channels.get_mut(&channel) {
            state.note_loss(now, ended, &reopen, seed);
        }
        if ended.did_not_open() {
            let until = self.channels.get(&channel).and_then(|state| state.not_before);
            let (level, kind, detail) = ended.failed(now, until);
            cx.event(level, kind, detail).association(id).channel(Some(channel));
        }
    }
}
