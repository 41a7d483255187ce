//! Whether a peer takes what is sent to it fast enough.

use crate::association::p3::DELIVERY_TIMEOUT;
use crate::node::Node;
use base::{AssociationId, Now};
use osi::api::Input;
use osi::stack::least_progress;
use std::time::Duration;

/// A rate is taken over so much time or so many octets at least: a segment more or less, which takes
/// 5 s at 2,400 bit/s, is to make little of it.
const SAMPLE: (Duration, u64) = (Duration::from_secs(20), 16 << 10);

impl Node {
    /// The peer's transport has taken so many octets of an association.
    pub(crate) fn taken(&mut self, now: Now, id: AssociationId, octets: u64) {
        let before = self.cx.outstanding(id);
        self.feed(now, id, Input::Taken(octets));
        let after = self.cx.outstanding(id);
        let Some(link) = self.cx.associations.get(&id) else { return };
        let least = least_progress(self.cx.progress_timer(link));
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        let sample = link.looks.last.filter(|(at, from)| {
            now.mono.since(*at) >= SAMPLE.0 || octets.saturating_sub(*from) >= SAMPLE.1
        });
        if after == 0 {
            link.looks.last = None;
        } else if link.looks.last.is_none() || sample.is_some() {
            link.looks.last = Some((now.mono, octets));
        }
        if after >= before {
            return;
        }
        let progress = after == 0 || octets.saturating_sub(link.looks.progressed) >= least;
        if progress {
            link.looks.progressed = octets;
        }
        let waits = link.p3_mut().and_then(|p3| p3.delivery_deadline.as_mut());
        if let Some(at) = waits.filter(|_| progress) {
            *at = now.mono + DELIVERY_TIMEOUT;
        }
        let entry = link.sending.as_ref().map(|sending| sending.entry);
        let channel = link.channel();
        if let Some(entry) = entry.filter(|_| progress) {
            self.cx.queue.scheduler.progress(now.mono, entry);
        }
        let state = channel.and_then(|channel| self.outbound.channels.get_mut(&channel));
        if let (Some(state), Some((at, from))) = (state, sample) {
            let (octets, took) = (octets.saturating_sub(from), now.mono.since(at));
            // Where nothing is left it may have been idle at the end.
            match after {
                0 => state.line.at_least(octets, took),
                _ => state.line.measured(octets, took),
            }
        }
    }
}
