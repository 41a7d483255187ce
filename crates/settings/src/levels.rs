//! Shares that are kept for higher levels, so that lower ones cannot take all of a limit.
//!
//! Each level keeps a share of a limit. As long as it uses less, lower levels leave the rest of its share
//! free. Of associations, the level is that of the channel, its highest precedence; of memory (see
//! [`guard::memory`]), that of the message.

use crate::{Channel, NodeConfig};
use base::{PeerId, Precedence};
use guard::kept;
use scheduler::ChannelId;
use std::collections::BTreeMap;

/// Of the associations of one peer, each level keeps one in so many.
const OF_PEER: usize = 8;

/// Of all associations.
const OF_ALL: usize = 16;

/// How many associations each level has, of those that are configured.
#[derive(Debug, Default)]
pub struct Levels(BTreeMap<Precedence, usize>);

/// The level of a channel: its highest precedence; not one it only stands in for.
pub fn of_channel(channel: &Channel) -> Option<Precedence> {
    channel.precedences.iter().max().copied()
}

/// The level that what comes on a channel has at least.
pub fn least_of_channel(channel: &Channel) -> Option<Precedence> {
    channel.precedences.iter().min().copied()
}

impl Levels {
    /// Those of a peer's channels, or of all; `count` gives the associations of a channel.
    pub fn new(
        config: &NodeConfig,
        peer: Option<PeerId>,
        count: impl Fn(ChannelId) -> usize,
    ) -> Levels {
        let mut levels = BTreeMap::new();
        let peers = config.peers.iter().filter(|p| peer.is_none_or(|id| p.id() == id));
        for (id, channel) in peers.flat_map(|peer| peer.channels()) {
            if let Some(level) = of_channel(channel) {
                *levels.entry(level).or_default() += count(id);
            }
        }
        Levels(levels)
    }

    /// One place is left at least.
    fn kept(&self, level: Option<Precedence>, share: usize, most: usize) -> usize {
        kept(self.0.iter().map(|(of, has)| (*of, has)), level, share, most, 1)
    }

    /// Of the associations of one peer.
    pub fn kept_of_peer(&self, level: Precedence, most: usize) -> usize {
        self.kept(Some(level), share_of_peer(most), most)
    }

    /// Of all associations; from users a quarter at most, for three quarters are theirs.
    pub fn kept_of_all(&self, level: Option<Precedence>, most: usize) -> usize {
        let kept = self.kept(level, (most / OF_ALL).max(1), most);
        if level.is_none() { kept.min(most / 4) } else { kept }
    }

    /// Whether a level has its share of a peer's associations.
    pub fn has_share(&self, level: Precedence, most: usize) -> bool {
        self.0.get(&level).is_some_and(|has| *has >= share_of_peer(most))
    }
}

fn share_of_peer(most: usize) -> usize {
    (most / OF_PEER).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_higher_levels_lack_of_their_shares_is_kept() {
        use Precedence::{Flash, Immediate, Override, Routine};
        let levels = Levels(BTreeMap::from([(Routine, 90), (Immediate, 10), (Flash, 40)]));
        assert_eq!(levels.kept_of_peer(Routine, 256), 22, "32 less 10, and Flash has its share");
        assert_eq!(levels.kept_of_peer(Immediate, 256), 0);
        assert!(levels.has_share(Flash, 256) && !levels.has_share(Immediate, 256));
        assert_eq!(levels.kept_of_all(Some(Routine), 1_024), 54 + 24);
        let idle = Levels(BTreeMap::from([(Routine, 0), (Flash, 0), (Override, 0)]));
        assert_eq!(idle.kept_of_peer(Routine, 2), 1, "one is left");
        assert_eq!(idle.kept_of_peer(Routine, 1), 0);
        assert_eq!(idle.kept_of_all(None, 16), 3);
        assert_eq!(idle.kept_of_all(None, 8), 2, "users have three quarters");
    }
}
