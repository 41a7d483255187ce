//! Guessing is slow: who fails to bind too often waits, and password hashes are computed a few at a
//! time, for one address after the other.
//!
//! Failures are counted by address **and** name. By name alone, anybody could lock a user or a peer
//! out by failing in its name; by address alone, one bad client would lock out all behind the same
//! gateway. Where hashes are computed (users), an address has a second, larger allowance for all
//! names together, for names cost nothing to make up; a name that bound from there lately does not
//! need it.

use crate::api::Secret;
use crate::network::Origin;
use base::{AssociationId, Instant};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

/// How many times as many failures an address has for all names together.
const ALL_NAMES: u32 = 8;
/// Allowances remembered; the one nearest to its full has to make room.
const MOST_KEYS: usize = 4_096;
/// How long a successful bind is remembered.
const PROVEN: Duration = Duration::from_secs(24 * 3_600);

/// A name as presented. Names are as long as who binds likes, so only a digest is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name([u8; 16]);

impl Name {
    /// The name of an MTA or, in canonical form, of a user.
    pub(crate) fn of(text: &str) -> Name {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let mut name = [0; 16];
        name.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Name(name)
    }
}

/// Who binds, as far as failures are counted. Without a name: whoever is at that address.
pub(crate) type Key = (Origin, Option<Name>);

/// A bind of a user that waits for its hash.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub link: AssociationId,
    pub mailbox: String,
    pub password: Secret,
}

#[derive(Debug)]
pub(crate) struct Access {
    /// Failures that may come at once.
    burst: u32,
    /// After so long one more may.
    refill: Duration,
    /// Hashes computed at once.
    most_running: usize,
    /// When each allowance is whole again; only those that are not.
    full_at: BTreeMap<Key, Instant>,
    /// Until when who bound is remembered.
    proven: BTreeMap<Key, Instant>,
    waiting: BTreeMap<Origin, VecDeque<Waiting>>,
    last_served: Option<Origin>,
    running: usize,
}

impl Access {
    pub(crate) fn new(limits: &crate::limits::Limits) -> Access {
        Access {
            burst: limits.failures.max(1),
            refill: limits.failure_refill,
            most_running: limits.verifications.max(1),
            full_at: BTreeMap::new(),
            proven: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last_served: None,
            running: 0,
        }
    }

    /// Whether this one may try to bind now.
    pub(crate) fn may_try(&self, now: Instant, origin: Origin, name: Name) -> bool {
        self.has_left(now, (origin, Some(name)), 1)
    }

    /// The same where the try costs a hash.
    pub(crate) fn may_cost(&self, now: Instant, origin: Origin, name: Name) -> bool {
        let proven = self.proven.get(&(origin, Some(name))).is_some_and(|until| *until > now);
        self.may_try(now, origin, name) && (proven || self.has_left(now, (origin, None), ALL_NAMES))
    }

    /// Whether one more failure is within the allowance: so many refills, times the factor, may be
    /// missing. An allowance for all names is as much larger and fills as much faster.
    fn has_left(&self, now: Instant, key: Key, factor: u32) -> bool {
        let one = self.refill / factor;
        let Some(full_at) = self.full_at.get(&key) else { return true };
        full_at.since(now) + one <= one * self.burst.saturating_mul(factor)
    }

    /// A bind failed.
    pub(crate) fn failed(&mut self, now: Instant, origin: Origin, name: Name, costs: bool) {
        self.take(now, (origin, Some(name)), 1);
        self.proven.remove(&(origin, Some(name)));
        if costs {
            self.take(now, (origin, None), ALL_NAMES);
        }
    }

    fn take(&mut self, now: Instant, key: Key, factor: u32) {
        let one = self.refill / factor;
        // What is under way when an allowance is used up is not owed beyond it.
        let most = now + one * self.burst.saturating_mul(factor);
        let full_at = self.full_at.get(&key).copied().unwrap_or(now).max(now) + one;
        self.full_at.insert(key, full_at.min(most));
        make_room(&mut self.full_at, now);
    }

    /// A bind succeeded.
    pub(crate) fn succeeded(&mut self, now: Instant, origin: Origin, name: Name) {
        self.full_at.remove(&(origin, Some(name)));
        self.proven.insert((origin, Some(name)), now + PROVEN);
        make_room(&mut self.proven, now);
    }

    // ----- hashes -------------------------------------------------------------------------------

    /// A user's bind waits for its turn.
    pub(crate) fn wait(&mut self, origin: Origin, waiting: Waiting) {
        self.waiting.entry(origin).or_default().push_back(waiting);
    }

    /// The next bind to be verified, each address in its turn. Its hash runs until
    /// [`Access::ended`].
    pub(crate) fn next(&mut self) -> Option<(Origin, Waiting)> {
        if self.running >= self.most_running {
            return None;
        }
        let after = self.last_served.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.waiting.range((after, Bound::Unbounded)).next();
        let origin = next.or_else(|| self.waiting.first_key_value()).map(|(origin, _)| *origin)?;
        let queue = self.waiting.get_mut(&origin)?;
        let waiting = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&origin);
        }
        self.last_served = Some(origin);
        self.running += 1;
        waiting.map(|waiting| (origin, waiting))
    }

    /// A hash that ran is there, or need not be computed.
    pub(crate) fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }
}

/// Forgets what is over; where that is not enough, what is over first.
fn make_room(table: &mut BTreeMap<Key, Instant>, now: Instant) {
    if table.len() <= MOST_KEYS {
        return;
    }
    table.retain(|_, at| *at > now);
    if table.len() > MOST_KEYS
        && let Some(key) = table.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
    {
        table.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use std::net::IpAddr;

    fn access() -> Access {
        Access::new(&Limits { verifications: 1, ..Limits::default() })
    }

    fn origin(n: u8) -> Origin {
        Origin::from(IpAddr::from([192, 0, 2, n]))
    }

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000)
    }

    #[test]
    fn after_five_failures_one_every_half_minute() {
        let mut access = access();
        let (here, name) = (origin(1), Name::of("MTA-ACT"));
        for _ in 0..5 {
            assert!(access.may_try(at(0), here, name));
            access.failed(at(0), here, name, false);
        }
        assert!(!access.may_try(at(0), here, name) && !access.may_try(at(29), here, name));
        assert!(access.may_try(at(0), origin(2), name), "the same name from elsewhere");
        assert!(access.may_try(at(0), here, Name::of("MTA-NAPLES")), "another name from there");
        // Recovery: one a refill, and whole again after five of them.
        assert!(access.may_try(at(30), here, name));
        access.failed(at(30), here, name, false);
        assert!(!access.may_try(at(31), here, name));
        let mut tries = 0;
        while access.may_try(at(1_000), here, name) {
            access.failed(at(1_000), here, name, false);
            tries += 1;
        }
        assert_eq!(tries, 5);
        access.succeeded(at(1_030), here, name);
        access.failed(at(1_030), here, name, false);
        assert!(access.may_try(at(1_030), here, name), "a success wipes the slate");
    }

    #[test]
    fn names_made_up_use_the_allowance_of_their_address() {
        let mut access = access();
        let mut tries = 0;
        let made_up = |n: u32| Name::of(&format!("user {n}"));
        while access.may_cost(at(0), origin(1), made_up(tries)) {
            access.failed(at(0), origin(1), made_up(tries), true);
            tries += 1;
        }
        assert_eq!(tries, 40);
        assert!(access.may_try(at(0), origin(1), made_up(99)), "what costs nothing may be tried");
        assert!(access.may_cost(at(0), origin(2), made_up(0)), "another address");
        access.succeeded(at(0), origin(1), Name::of("ops"));
        assert!(access.may_cost(at(0), origin(1), Name::of("ops")), "who bound from there lately");
        assert!(access.may_cost(at(4), origin(1), made_up(99)), "one every 3.75 s");
        access.failed(at(4), origin(1), made_up(99), true);
        assert!(!access.may_cost(at(4), origin(1), made_up(98)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_worst_is_kept() {
        let mut access = access();
        let bad = Name::of("bad");
        (0..5).for_each(|_| access.failed(at(0), origin(1), bad, false));
        for n in 0..3 * MOST_KEYS {
            access.failed(at(1), origin(2), Name::of(&n.to_string()), false);
        }
        assert!(access.full_at.len() <= MOST_KEYS);
        assert!(!access.may_try(at(1), origin(1), bad));
    }

    #[test]
    fn hashes_are_computed_for_one_address_after_the_other() {
        let mut access = access();
        let mut bind = |from: u8, link| {
            let (link, password) = (AssociationId(link), Secret::default());
            access.wait(origin(from), Waiting { link, mailbox: String::new(), password });
        };
        (0..50).for_each(|n| bind(1, n));
        bind(2, 100);
        bind(3, 200);
        let mut order = Vec::new();
        while let Some((_, waiting)) = access.next() {
            assert!(access.next().is_none(), "one at a time");
            access.ended();
            order.push(waiting.link.0);
        }
        assert_eq!(order[..5], [0, 100, 200, 1, 2]);
        assert_eq!(order.len(), 52);
    }
}
