//! Which precedence an association serves, and a change to the store is for: the edge takes what is
//! higher first.

use crate::context::Context;
use base::{AssociationId, Precedence};

/// A submission has this level until its envelope is read: the highest that is not urgent. So it
/// overtakes nothing urgent, whatever its precedence; and a Flash waits, among submissions that are not
/// urgent, only for those that are as high and came before it.
pub(crate) const UNKNOWN: Precedence = Precedence::HIGHEST_NOT_URGENT;

impl Context {
    /// The precedence that an association serves, where a message of this precedence arrives on it.
    pub(crate) fn level_of(&self, id: AssociationId, arriving: Option<Precedence>) -> Precedence {
        let Some(association) = self.associations.get(&id) else { return UNKNOWN };
        let sending = association.sending().map(|sending| sending.precedence);
        if let Some(level) = sending.max(arriving) {
            return level;
        }
        let channel = association.channel().and_then(|channel| self.peer_and_channel(channel));
        let highest = channel.and_then(|(_, channel)| channel.precedences.iter().max());
        highest.copied().unwrap_or(UNKNOWN)
    }
}
