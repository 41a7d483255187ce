//! Slow lines. While the peer owes something for what was sent, the edge is asked now and then how
//! much the peer's transport has taken: that is progress, if it is not too little, though no checkpoint
//! was confirmed for minutes. And it tells how fast the line is: the checkpoints of the next association suit it.

use crate::api::{ChannelId, Output};
use crate::association::Association;
use crate::config::Channel;
use crate::context::Context;
use crate::machines::Outbound;
use crate::node::Node;
use crate::user::DELIVERY_TIMEOUT;
use base::{AssociationId, Instant, Now};
use osi::api::Input;
use osi::stack::least_progress;
use std::time::Duration;

/// Least time between two looks at what a connection has outstanding.
const LEAST: Duration = Duration::from_secs(1);
/// The same where a timer is so short that it would expire between two.
const LEAST_EVER: Duration = Duration::from_millis(250);
/// What a checkpoint takes on the line, where its size follows the rate.
const STEP: Duration = Duration::from_secs(10);
/// A rate is taken over so much time or so many octets at least: a segment more or less, which takes
/// 5 s at 2,400 bit/s, is to make little of it.
const SAMPLE: (Duration, u64) = (Duration::from_secs(20), 16 << 10);
/// Octets in a unit of checkpointSize (X.228 7.1.1).
const UNIT: u64 = 1024;

/// How fast the line of a channel was for one association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    bit_s: Option<u64>,
}

fn rate(octets: u64, took: Duration) -> u64 {
    let micros = took.as_micros().max(1);
    u64::try_from(u128::from(octets) * 8_000_000 / micros).unwrap_or(u64::MAX)
}

impl Line {
    /// So many octets went over it in this time, in which something always waited.
    pub(crate) fn measured(&mut self, octets: u64, took: Duration) {
        let new = rate(octets, took);
        self.bit_s = Some(self.bit_s.map_or(new, |old| old / 2 + new / 2));
    }

    /// So many octets went over it in this time, and perhaps more could have.
    pub(crate) fn at_least(&mut self, octets: u64, took: Duration) {
        self.bit_s = self.bit_s.map(|old| old.max(rate(octets, took)));
    }

    /// Bits a second; `None` until it was measured.
    pub(crate) fn bit_s(self) -> Option<u64> {
        self.bit_s
    }

    /// The checkpoint size that suits it, in units of 1,024 octets: a power of two, [`STEP`] long or
    /// somewhat less, 1 to `most`; `most` where the rate is not known.
    pub(crate) fn checkpoint(self, most: u32) -> u32 {
        let Some(bit_s) = self.bit_s else { return most };
        let units = bit_s.saturating_mul(STEP.as_secs()) / (8 * UNIT);
        let units = u32::try_from(units).unwrap_or(1 << 31).max(1);
        (1u32 << units.ilog2()).min(most)
    }
}

impl Association {
    /// A look at its connection is due.
    pub(crate) fn take_due_look(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }
}

impl Outbound {
    /// The checkpoint size that an association of this channel proposes, or accepts at most.
    pub(crate) fn checkpoint_size(&self, id: ChannelId, channel: &Channel) -> u32 {
        let most = channel.rts.checkpoint_size;
        let line = self.channels.get(&id).map(|state| state.line).unwrap_or_default();
        if channel.checkpoint_adapts { line.checkpoint(most) } else { most }
    }
}

impl Context {
    /// Files when to look at an association's connection: while there is anything to be seen.
    pub(crate) fn plan_look(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.associations.get(&id) else { return };
        let awaits = link.stack.outstanding() > 0;
        if awaits == link.look_at.is_some() {
            return;
        }
        let timer = self.progress_timer(link);
        let pause = (timer / 4).max(LEAST).min(timer / 2).max(LEAST_EVER);
        if let Some(link) = self.associations.get_mut(&id) {
            link.look_at = awaits.then_some(now.mono + pause);
            if !awaits {
                link.looked = None;
            }
        }
    }

    /// Within how long what the peer owes must make progress.
    pub(crate) fn progress_timer(&self, link: &Association) -> Duration {
        match link.channel().and_then(|channel| self.peer_and_channel(channel)) {
            Some((_, channel)) => channel.rts.transfer_timeout.min(self.config.hold.stall),
            None => DELIVERY_TIMEOUT,
        }
    }

    /// Asks how much the peer has taken.
    pub(crate) fn look(&mut self, id: AssociationId) {
        self.output(Output::Measure { association: id });
    }

    /// Octets that the peer has not taken yet.
    pub(crate) fn outstanding(&self, id: AssociationId) -> u64 {
        self.associations.get(&id).map_or(0, |link| link.stack.outstanding())
    }
}

impl Node {
    /// The peer's transport has taken so many octets of an association.
    pub(crate) fn taken(&mut self, now: Now, id: AssociationId, octets: u64) {
        let before = self.cx.outstanding(id);
        self.feed(now, id, Input::Taken(octets));
        let after = self.cx.outstanding(id);
        let Some(link) = self.cx.associations.get(&id) else { return };
        let least = least_progress(self.cx.progress_timer(link));
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        let sample = link.looked.filter(|(at, from)| {
            now.mono.since(*at) >= SAMPLE.0 || octets.saturating_sub(*from) >= SAMPLE.1
        });
        if after == 0 {
            link.looked = None;
        } else if link.looked.is_none() || sample.is_some() {
            link.looked = Some((now.mono, octets));
        }
        if after >= before {
            return;
        }
        let progress = after == 0 || octets.saturating_sub(link.progressed) >= least;
        if progress {
            link.progressed = octets;
        }
        if progress && link.delivery_deadline.is_some() {
            link.delivery_deadline = Some(now.mono + DELIVERY_TIMEOUT);
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_checkpoint_takes_ten_seconds_or_less() {
        let of = |bit_s: u64| Line { bit_s: Some(bit_s) }.checkpoint(64);
        let sizes = [0, 75, 800, 1_600, 2_400, 4_800, 9_600, 19_200, 52_429, 64_000, u64::MAX];
        assert_eq!(sizes.map(of), [1, 1, 1, 1, 2, 4, 8, 16, 64, 64, 64]);
        assert_eq!(Line::default().checkpoint(64), 64, "not measured yet");
        assert_eq!(Line { bit_s: Some(2_400) }.checkpoint(1), 1, "never above the largest");
        assert_eq!(Line { bit_s: Some(2_400) }.checkpoint(0), 0, "nor any where there are none");
    }

    #[test]
    fn the_rate_follows_what_is_measured() {
        let mut line = Line::default();
        line.at_least(1_000_000, SECOND);
        assert_eq!(line.bit_s(), None, "it could be anything above");
        line.measured(6_000, 20 * SECOND);
        assert_eq!(line.bit_s(), Some(2_400));
        line.measured(24_000, 20 * SECOND);
        assert_eq!(line.bit_s(), Some(6_000));
        line.at_least(1_000, SECOND);
        assert_eq!(line.bit_s(), Some(8_000), "the line was changed");
        line.at_least(100, SECOND);
        assert_eq!(line.bit_s(), Some(8_000), "a short message says nothing");
        line.measured(u64::MAX, Duration::ZERO);
    }
}
