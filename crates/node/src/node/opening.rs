//! Associations that are wanted, as many at once as the limit allows.

use crate::node::Node;
use crate::outbound::channels::places::OpeningPlace;
use base::Now;

impl Node {
    /// Opens associations that are wanted, as many at once as `limits.opening` allows. First come
    /// those that a message waits for, then the higher precedences, then those not tried for longest.
    pub(crate) fn open_wanted(&mut self, now: Now) {
        if !self.outbound.agenda.wishes.take_news() {
            return;
        }
        // Where there is no place for one, there is none for those that matter less.
        while let Some((rank, _, channel)) = self.outbound.agenda.wishes.first() {
            match self.outbound.place_to_open(&mut self.cx, now, rank, channel) {
                OpeningPlace::Free => {}
                OpeningPlace::InsteadOf(id) => {
                    let why = "makes room for a channel that matters more (limits.opening)";
                    self.abandon(now, id, why);
                }
                OpeningPlace::Taken => break,
            }
            self.outbound.open_wanted(&mut self.cx, now, channel);
        }
    }
}
