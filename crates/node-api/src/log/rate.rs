//! Keeps a flood of refusals out of the log. The first of a kind from an address for a reason is logged
//! at once. Those that follow within a minute are counted and logged in one line.

use crate::api::event::{Kind, LogLevel};
use base::Instant;
use base::ip_prefix::Origin;
use scheduler::ChannelId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long what repeats is only counted.
const ROUND: Duration = Duration::from_secs(60);

/// Most combinations of kind, address and reason that are counted apart. New ones beyond that are
/// counted by kind.
const MAX_ROUNDS: usize = 64;

/// Most octets of a reason.
const MAX_REASON: usize = 96;

/// What repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalCause {
    /// Over a limit.
    Limit(guard::Limit),
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
pub struct RepeatedEvent {
    /// How loud it was.
    pub level: LogLevel,
    /// Its kind.
    pub kind: Kind,
    /// Its channel.
    pub channel: Option<ChannelId>,
    /// Its text.
    pub detail: String,
}

/// What is counted together.
type RepeatKey = (RefusalCause, Origin, RepeatReason);

/// What a refusal is for: the field, the layer or the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatReason(String);

impl RepeatReason {
    /// The beginning of a text: up to its first colon, and the names of fields that follow. What
    /// comes behind are details, and values that others choose.
    pub fn new(text: &str) -> RepeatReason {
        let mut parts = text.split(": ");
        let mut head = parts.next().unwrap_or_default().to_owned();
        let is_field =
            |part: &&str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        // The last part is the detail itself.
        let mut fields = parts.by_ref().take_while(is_field).peekable();
        while let Some(field) = fields.next() {
            if fields.peek().is_none() && text.ends_with(field) {
                break;
            }
            head.push_str(": ");
            head.push_str(field);
        }
        head.truncate(head.floor_char_boundary(MAX_REASON));
        RepeatReason(head)
    }
}

#[derive(Debug)]
struct Round {
    more: u64,
    last: RepeatedEvent,
}

/// What keeps one cause from flooding the log.
#[derive(Debug, Default)]
pub struct LogRateLimiter {
    rounds: BTreeMap<RepeatKey, Round>,
    /// When they end, in order: all are of one length.
    ends: VecDeque<(Instant, RepeatKey)>,
}

impl LogRateLimiter {
    /// Whether to log it now; else it is counted.
    pub fn allows(
        &mut self,
        now: Instant,
        (why, origin, reason): (RefusalCause, Origin, RepeatReason),
        line: RepeatedEvent,
    ) -> bool {
        let mut key = (why, origin, reason);
        if !self.rounds.contains_key(&key) && self.rounds.len() >= MAX_ROUNDS {
            key = (why, Origin::Others, RepeatReason::default());
        }
        match self.rounds.get_mut(&key) {
            Some(round) => {
                round.more += 1;
                round.last = line;
                false
            }
            None => {
                self.rounds.insert(key.clone(), Round { more: 0, last: line });
                self.ends.push_back((now + ROUND, key));
                true
            }
        }
    }

    /// When the next round ends.
    pub fn deadline(&self) -> Option<Instant> {
        self.ends.front().map(|(at, _)| *at)
    }

    /// What was counted in a round that has ended, for the log. While more of the kind
    /// follow, counting continues.
    pub fn next_due(&mut self, now: Instant) -> Option<RepeatedEvent> {
        while self.ends.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.ends.pop_front() else { break };
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

    fn line(detail: &str) -> RepeatedEvent {
        let (level, kind) = (LogLevel::Warning, Kind::AssociationRefused);
        RepeatedEvent { level, kind, channel: None, detail: detail.to_owned() }
    }

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000)
    }

    #[test]
    fn a_flood_is_one_line_a_minute_with_its_count() {
        let mut limiter = LogRateLimiter::default();
        let origin = Origin::from("192.0.2.1".parse::<IpAddr>().unwrap());
        let other = Origin::from("192.0.2.2".parse::<IpAddr>().unwrap());
        assert!(limiter.allows(
            at(0),
            (RefusalCause::Bind, origin, RepeatReason::default()),
            line("a")
        ));
        for _ in 0..999 {
            assert!(!limiter.allows(
                at(1),
                (RefusalCause::Bind, origin, RepeatReason::default()),
                line("b")
            ));
        }
        assert!(
            limiter.allows(at(1), (RefusalCause::Busy, origin, RepeatReason::default()), line("c")),
            "another kind"
        );
        assert!(
            limiter.allows(at(1), (RefusalCause::Bind, other, RepeatReason::default()), line("d")),
            "another address"
        );
        let reason = (RefusalCause::Bind, origin, RepeatReason::new("mta-name: \"A\" is not B"));
        assert!(limiter.allows(at(1), reason, line("n")), "another reason");
        let reason = (RefusalCause::Bind, origin, RepeatReason::new("mta-name: \"C\" is not B"));
        assert!(!limiter.allows(at(2), reason, line("n")), "the same with another value");
        let fault = |text| (RefusalCause::Bind, origin, RepeatReason::new(text));
        let texts = ["Bind: mta-name: truncated", "Bind: credentials.strong: truncated"];
        for text in texts {
            assert!(limiter.allows(at(2), fault(text), line("o")), "{text}: another field");
        }
        assert!(!limiter.allows(at(2), fault("Bind: mta-name: absent"), line("o")), "this field");
        assert_eq!(limiter.next_due(at(59)), None);
        assert_eq!(limiter.deadline(), Some(at(60)));
        let counted = limiter.next_due(at(60)).unwrap();
        assert_eq!(counted.detail, "999 more of this kind from 192.0.2.1 in 60 s; the last: b");
        assert_eq!(limiter.next_due(at(61)).map(|l| l.detail.starts_with("1 more")), Some(true));
        assert!(limiter.next_due(at(62)).is_some_and(|l| l.detail.starts_with("1 more")));
        assert_eq!(limiter.next_due(at(62)), None, "the others came once");
        assert!(
            !limiter.allows(
                at(70),
                (RefusalCause::Bind, origin, RepeatReason::default()),
                line("e")
            ),
            "still counted"
        );
        assert!(limiter.next_due(at(120)).is_some());
        assert_eq!(limiter.next_due(at(180)), None);
        assert!(
            limiter.allows(
                at(181),
                (RefusalCause::Bind, origin, RepeatReason::default()),
                line("f")
            ),
            "quiet for a minute: logged at once"
        );
    }

    #[test]
    fn a_flood_from_everywhere_is_counted_together() {
        let mut limiter = LogRateLimiter::default();
        let mut logged = 0;
        for n in 0..10_000u32 {
            let origin = Origin::from(IpAddr::V4(n.into()));
            logged += usize::from(limiter.allows(
                at(0),
                (RefusalCause::Bind, origin, RepeatReason::default()),
                line("x"),
            ));
        }
        assert_eq!(logged, MAX_ROUNDS + 1);
        assert_eq!((limiter.rounds.len(), limiter.ends.len()), (logged, logged));
        let counted = limiter.next_due(at(60)).unwrap();
        assert!(
            counted.detail.starts_with("9935 more of this kind from several addresses"),
            "{counted:?}"
        );
        assert_eq!(limiter.next_due(at(60)), None);
        assert_eq!(limiter.rounds.len(), 1);
    }
}
