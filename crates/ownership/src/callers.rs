//! Peers that call this node while another one owns what waits for them: their owner is to know that they are there.

use base::Instant;
use engine::NextHop;
use engine::journal::QueueId;
use node_api::api::shards::PeerAssociations;
use std::collections::BTreeMap;
use std::time::Duration;

/// Least time between two announcements of a peer: it may bind as often as it likes.
const PAUSE: Duration = Duration::from_secs(1);

/// A peer that has called this node.
#[derive(Debug, Default)]
struct Caller {
    /// When the last association was opened that is known.
    opened: Option<Instant>,
    /// When it was last announced, if it was.
    announced: Option<Instant>,
    /// It is to be announced then.
    due: Option<Instant>,
}

/// The peers that have called this node: of those that are configured.
#[derive(Debug, Default)]
pub(crate) struct Callers(BTreeMap<QueueId, Caller>);

impl Callers {
    /// The associations of this node have changed. Those that `is_anothers` names are to be announced.
    pub(crate) fn changed(
        &mut self,
        now: Instant,
        found: &PeerAssociations,
        is_anothers: impl Fn(QueueId) -> bool,
    ) {
        for (peer, opened) in &found.called {
            let shard = NextHop::Peer(*peer).queue();
            let caller = self.0.entry(shard).or_default();
            if caller.opened.is_none_or(|last| *opened > last) {
                caller.opened = Some(*opened);
                let earliest = caller.announced.map_or(now, |last| now.max(last + PAUSE));
                caller.due = is_anothers(shard).then_some(earliest);
            }
        }
    }

    /// When the next one is to be announced.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|caller| caller.due).min()
    }

    /// Those that are to be announced now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<QueueId> {
        let due = self.0.iter_mut().filter(|(_, caller)| caller.due.is_some_and(|due| due <= now));
        let announced = due.map(|(shard, caller)| {
            (caller.due, caller.announced) = (None, Some(now));
            *shard
        });
        announced.collect()
    }
}
