//! Octets that the peer's transport took of an association, and whether they are progress.

use crate::Association;
use crate::looks::{LineSample, TakenOctets};
use crate::p3::DELIVERY_TIMEOUT;
use base::Now;
use std::time::Duration;

/// A rate is taken over so much time or so many octets at least. A segment takes 5 s at 2,400 bit/s:
/// one more or less must not change the rate much.
const SAMPLE: (Duration, u64) = (Duration::from_secs(20), 16 << 10);

impl Association {
    /// The peer's transport has taken so many octets in all. Outstanding were `before` and are `after`;
    /// `least` octets are progress.
    pub fn note_taken(
        &mut self,
        now: Now,
        octets: u64,
        (before, after): (u64, u64),
        least: u64,
    ) -> TakenOctets {
        let looks = &mut self.looks;
        let sample = looks.last.filter(|(at, from)| {
            now.mono.since(*at) >= SAMPLE.0 || octets.saturating_sub(*from) >= SAMPLE.1
        });
        if after == 0 {
            looks.last = None;
        } else if looks.last.is_none() || sample.is_some() {
            looks.last = Some((now.mono, octets));
        }
        if after >= before {
            return TakenOctets::default();
        }
        let progress = after == 0 || octets.saturating_sub(looks.progressed) >= least;
        if progress {
            looks.progressed = octets;
        }
        let waits = self.p3_mut().and_then(|p3| p3.delivery_deadline.as_mut());
        if let Some(at) = waits.filter(|_| progress) {
            *at = now.mono + DELIVERY_TIMEOUT;
        }
        let entry = self.sending.as_ref().map(|sending| sending.entry);
        let sample = sample.map(|(at, from)| LineSample {
            octets: octets.saturating_sub(from),
            took: now.mono.since(at),
            may_be_idle: after == 0,
        });
        TakenOctets { progressed: entry.filter(|_| progress), sample }
    }
}
