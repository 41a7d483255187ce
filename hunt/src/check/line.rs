//! What went over the lines: how much of it, and with which marks.

use super::{Broken, Check};
use crate::world::{Link, SITES, What};
use node::config::Peer;
use node::event::Kind;
use testkit::Events;

/// Octets of a connection that carry no message: transport, session, bind, release, both ways.
const CONNECTION: u64 = 3_000;

/// Octets of an envelope, and of all that goes with a transfer, both ways.
const ENVELOPE: u64 = 4_000;

impl Check<'_> {
    /// A site warns of a mark only where a router removes them.
    pub(super) fn marks(&mut self, site: usize) {
        if self.world.has(|what| matches!(what, What::Bleached(..))) {
            return;
        }
        for detail in self.play.network.sites[site].details(Kind::MarkMismatch) {
            self.failures.push(super::Failure {
                broken: Broken::Marked,
                what: format!("at {}: {detail}", SITES[site]),
            });
        }
    }

    /// After a cut at most a window of checkpoints is sent twice.
    pub(super) fn octets(&mut self) {
        if !self.world.events.iter().all(|event| is_short(&event.what)) {
            return;
        }
        for (number, link) in self.world.links.iter().enumerate() {
            let line = self.play.lines[number].borrow();
            let most = self.carried(link) + line.made * (CONNECTION + self.twice(link));
            if line.written > most {
                let what = format!("link {number}: {} octets, at most {most}", line.written);
                drop(line);
                self.fail(Broken::Wasted, what);
            }
        }
    }

    /// What a lost connection costs: a window of checkpoints, and the one in progress; a whole message where there are none.
    fn twice(&self, link: &Link) -> u64 {
        let largest = self.world.messages.iter().map(|message| message.size as u64).max();
        let octets = match u64::from(link.checkpoint) * u64::from(link.window + 1) {
            0 => largest.unwrap_or(0) * 5 / 4,
            units => units * 1_024,
        };
        u64::from(link.associations).max(1) * (octets + ENVELOPE)
    }

    /// Octets of all transfers over a link that were confirmed, with their reports.
    fn carried(&self, link: &Link) -> u64 {
        let (a, b) = link.ends;
        let mut octets = 0;
        for (site, other) in [(a, b), (b, a)] {
            let s = &self.play.network.sites[site];
            let peers = self.world.links_of(site).position(|(_, there)| there == other);
            let id = peers.and_then(|at| s.config.peers.get(at)).map(Peer::id);
            let confirmed = s
                .of_kind(Kind::TransferConfirmed)
                .filter(|event| event.channel.map(|channel| channel.peer) == id);
            octets +=
                confirmed.map(|event| event.bytes.unwrap_or(0) * 5 / 4 + ENVELOPE).sum::<u64>();
        }
        octets
    }
}

/// Whether a transfer is resumed after it: it does not last, and both ends notice.
fn is_short(what: &What) -> bool {
    matches!(what, What::Cut(_) | What::Slow(..) | What::Bleached(..))
}
