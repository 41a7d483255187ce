//! Keeps a flood of refusals out of the log: the first of a kind from an address is said at once,
//! what follows within a minute is counted and said in one line.

use crate::api::ChannelId;
use crate::event::{Kind, Level};
use crate::network::Origin;
use base::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long what repeats is only counted.
const ROUND: Duration = Duration::from_secs(60);
/// Pairs of kind and address told apart; beyond that addresses are counted together, by kind.
const MOST_PAIRS: usize = 32;

/// What repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// Over a limit.
    Limit(crate::limits::Limit),
    /// A bind was refused.
    Bind,
    /// A bind was refused unseen: too many had failed.
    Busy,
    /// A connection ended before anybody had bound.
    NoBind,
    /// A half-open connection had to make room.
    MadeRoom,
}

/// A line that stands for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    pub level: Level,
    pub kind: Kind,
    pub channel: Option<ChannelId>,
    pub detail: String,
}

#[derive(Debug)]
struct Round {
    more: u64,
    last: Repeated,
}

#[derive(Debug, Default)]
pub(crate) struct Hush {
    rounds: BTreeMap<(Why, Origin), Round>,
    /// When they end, in order: all are of one length.
    ends: VecDeque<(Instant, (Why, Origin))>,
}

impl Hush {
    /// Whether to say it now; else it is counted.
    pub(crate) fn says(&mut self, now: Instant, why: Why, origin: Origin, line: Repeated) -> bool {
        let known = self.rounds.contains_key(&(why, origin));
        let origin = if known || self.rounds.len() < MOST_PAIRS { origin } else { Origin::Others };
        match self.rounds.get_mut(&(why, origin)) {
            Some(round) => {
                round.more += 1;
                round.last = line;
                false
            }
            None => {
                self.rounds.insert((why, origin), Round { more: 0, last: line });
                self.ends.push_back((now + ROUND, (why, origin)));
                true
            }
        }
    }

    /// When the next round ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.ends.front().map(|(at, _)| *at)
    }

    /// What was counted in a round that has ended, for the log. Where it goes on, so does the
    /// counting.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Repeated> {
        while let Some((at, key)) = self.ends.front().copied()
            && at <= now
        {
            self.ends.pop_front();
            let Some(round) = self.rounds.get_mut(&key) else { continue };
            if round.more == 0 {
                self.rounds.remove(&key);
                continue;
            }
            let mut line = round.last.clone();
            let (more, origin) = (std::mem::take(&mut round.more), key.1);
            line.detail = format!(
                "{more} more of this kind from {origin} in {} s; the last: {}",
                ROUND.as_secs(),
                line.detail
            );
            self.ends.push_back((now + ROUND, key));
            return Some(line);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn line(detail: &str) -> Repeated {
        let (level, kind) = (Level::Warning, Kind::AssociationRefused);
        Repeated { level, kind, channel: None, detail: detail.to_owned() }
    }

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000)
    }

    #[test]
    fn a_flood_is_one_line_a_minute_with_its_count() {
        let mut hush = Hush::default();
        let origin = Origin::from("192.0.2.1".parse::<IpAddr>().unwrap());
        let other = Origin::from("192.0.2.2".parse::<IpAddr>().unwrap());
        assert!(hush.says(at(0), Why::Bind, origin, line("a")));
        for _ in 0..999 {
            assert!(!hush.says(at(1), Why::Bind, origin, line("b")));
        }
        assert!(hush.says(at(1), Why::Busy, origin, line("c")), "another kind");
        assert!(hush.says(at(1), Why::Bind, other, line("d")), "another address");
        assert_eq!(hush.next_due(at(59)), None);
        assert_eq!(hush.deadline(), Some(at(60)));
        let told = hush.next_due(at(60)).unwrap();
        assert_eq!(told.detail, "999 more of this kind from 192.0.2.1 in 60 s; the last: b");
        assert_eq!(hush.next_due(at(61)), None, "the others came once");
        assert!(!hush.says(at(70), Why::Bind, origin, line("e")), "still counted");
        assert!(hush.next_due(at(120)).is_some());
        assert_eq!(hush.next_due(at(180)), None);
        assert!(
            hush.says(at(181), Why::Bind, origin, line("f")),
            "quiet for a minute: said at once"
        );
    }

    #[test]
    fn a_flood_from_everywhere_is_counted_together() {
        let mut hush = Hush::default();
        let mut said = 0;
        for n in 0..10_000u32 {
            let origin = Origin::from(IpAddr::V4(n.into()));
            said += usize::from(hush.says(at(0), Why::Bind, origin, line("x")));
        }
        assert_eq!(said, MOST_PAIRS + 1);
        assert_eq!((hush.rounds.len(), hush.ends.len()), (said, said));
        let told = hush.next_due(at(60)).unwrap();
        assert!(
            told.detail.starts_with("9967 more of this kind from several addresses"),
            "{told:?}"
        );
        assert_eq!(hush.next_due(at(60)), None);
        assert_eq!(hush.rounds.len(), 1);
    }
}
