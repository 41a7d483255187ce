//! Guessing is slow: whoever fails to bind too often waits, and password hashes are computed a few at a
//! time, for one address after the other.
//!
//! Failures are counted by address **and** name. If they were counted by name alone, anybody could lock
//! out a user or a peer by failing in its name. If they were counted by address alone, one bad client
//! would lock out all behind the same gateway. Where hashes are computed (users), an address has a
//! second, larger allowance for all names together, because names cost nothing to make up. A name that
//! bound from there lately does not need it. Beyond this allowance a bind is not refused: it waits until
//! no other bind does.
//!
//! Binds that come at once are counted as if they came one after the other. For one name and address of
//! a peer, one password is checked at a time. If more binds fail than an allowance has, because their
//! hashes were computed at the same time, the allowance takes longer to fill.

use crate::{NameDigest, Secret};
use base::ip_prefix::Origin;
use base::{AssociationId, Instant};
use scheduler::ChannelId;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

/// How many times as many failures an address has for all names together.
const ALL_NAMES: u32 = 8;

/// Most allowances remembered. The one that is full first makes room.
const MAX_KEYS: usize = 4_096;

/// Between two hashes for addresses that used their allowance up.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a successful bind is remembered.
const PROVEN: Duration = Duration::from_secs(24 * 3_600);

/// How long a wrong password of a peer is known again.
const COUNTED: Duration = Duration::from_secs(3_600);

/// What failures are counted for: an address and a name, or an address alone.
pub type AllowanceKey = (Origin, Option<NameDigest>);

/// A bind of a user that waits for its hash.
#[derive(Debug)]
pub struct WaitingBind {
    /// On which association.
    pub association: AssociationId,
    /// The mailbox that is named.
    pub mailbox: String,
    /// The password that is presented.
    pub password: Secret,
}

/// A bind of a peer that waits until the one before it, of that name and address, is checked.
#[derive(Debug)]
pub struct PeerBind {
    /// On which association.
    pub association: AssociationId,
    /// Of which channel.
    pub channel: ChannelId,
    /// The name, for the log.
    pub presented: String,
    /// The password that is presented.
    pub password: Secret,
}

/// Binds that wait, each address in its turn.
#[derive(Debug, Default)]
struct Turns {
    waiting: BTreeMap<Origin, VecDeque<WaitingBind>>,
    last_served: Option<Origin>,
}

impl Turns {
    fn push(&mut self, origin: Origin, waiting: WaitingBind) {
        self.waiting.entry(origin).or_default().push_back(waiting);
    }

    fn pop(&mut self) -> Option<(Origin, WaitingBind)> {
        let after = self.last_served.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.waiting.range((after, Bound::Unbounded)).next();
        let origin = next.or_else(|| self.waiting.first_key_value()).map(|(origin, _)| *origin)?;
        let queue = self.waiting.get_mut(&origin)?;
        let waiting = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&origin);
        }
        self.last_served = Some(origin);
        waiting.map(|waiting| (origin, waiting))
    }

    fn forget(&mut self, origin: Origin, id: AssociationId) {
        if let Some(queue) = self.waiting.get_mut(&origin) {
            queue.retain(|waiting| waiting.association != id);
            if queue.is_empty() {
                self.waiting.remove(&origin);
            }
        }
    }
}

/// Failures and binds in progress, by address and name.
#[derive(Debug)]
pub struct Access {
    /// Failures that may come at once.
    burst: u32,
    /// After so long one more may.
    refill: Duration,
    /// Hashes computed at once.
    most_running: usize,
    /// When each allowance is whole again; only those that are not.
    full_at: BTreeMap<AllowanceKey, Instant>,
    /// Until when who bound is remembered.
    proven: BTreeMap<AllowanceKey, Instant>,
    /// Users, and those of addresses that used their allowance up.
    waiting: Turns,
    late: Turns,
    put_last: Vec<AssociationId>,
    /// When one of the latter may be next.
    late_at: Instant,
    running: usize,
    /// Wrong passwords of peers that were counted, by a digest, and until when each is remembered.
    counted: BTreeMap<(AllowanceKey, NameDigest), Instant>,
    /// Peers: a name is here while a password is checked for it.
    peers: BTreeMap<(Origin, NameDigest), VecDeque<PeerBind>>,
}

impl Access {
    /// Nobody has failed yet.
    pub fn new(limits: &crate::limits::Limits) -> Access {
        Access {
            burst: limits.failures.max(1),
            refill: limits.failure_refill,
            most_running: limits.verifications.max(1),
            full_at: BTreeMap::new(),
            proven: BTreeMap::new(),
            waiting: Turns::default(),
            late: Turns::default(),
            put_last: Vec::new(),
            late_at: Instant(0),
            running: 0,
            counted: BTreeMap::new(),
            peers: BTreeMap::new(),
        }
    }

    /// The configuration was read again, perhaps with other limits. What failed is forgotten: an
    /// operator has acted, and who has the right password now is not to wait for the wrong ones.
    pub fn reload(&mut self, limits: &crate::limits::Limits) {
        self.full_at.clear();
        self.counted.clear();
        self.burst = limits.failures.max(1);
        self.refill = limits.failure_refill;
        self.most_running = limits.verifications.max(1);
    }

    /// Whether this one may try to bind now.
    pub fn may_try(&self, now: Instant, origin: Origin, name: NameDigest) -> bool {
        self.has_left(now, (origin, Some(name)), 1)
    }

    /// Whether its hash need not wait until nobody else does.
    fn is_trusted(&self, now: Instant, origin: Origin, mailbox: &str) -> bool {
        let proven = self.proven.get(&(origin, Some(NameDigest::new(mailbox))));
        proven.is_some_and(|until| *until > now) || self.has_left(now, (origin, None), ALL_NAMES)
    }

    /// Whether one more failure is within the allowance: so many refills, times the factor, may be
    /// missing. An allowance for all names is as much larger and fills as much faster.
    fn has_left(&self, now: Instant, key: AllowanceKey, factor: u32) -> bool {
        let one = self.refill / factor;
        let Some(full_at) = self.full_at.get(&key) else { return true };
        full_at.since(now) + one <= one * self.burst.saturating_mul(factor)
    }

    /// A bind failed.
    pub fn failed(&mut self, now: Instant, origin: Origin, name: NameDigest, costs: bool) {
        self.take(now, (origin, Some(name)), 1);
        // Once is anybody's slip, or a stranger's behind the same gateway.
        if !self.may_try(now, origin, name) {
            self.proven.remove(&(origin, Some(name)));
        }
        if costs {
            self.take(now, (origin, None), ALL_NAMES);
        }
    }

    /// A peer's bind failed. The same wrong password again is not another guess: an MTA with a
    /// wrong configuration presents it on each of its channels, again and again. Once it is corrected,
    /// its bind must not wait.
    pub fn peer_failed(
        &mut self,
        now: Instant,
        origin: Origin,
        name: NameDigest,
        password: NameDigest,
    ) {
        let attempt = ((origin, Some(name)), password);
        if self.counted.insert(attempt, now + COUNTED).is_none_or(|until| until <= now) {
            self.failed(now, origin, name, false);
        }
        make_room(&mut self.counted, now);
    }

    fn take(&mut self, now: Instant, key: AllowanceKey, factor: u32) {
        let one = self.refill / factor;
        let mut full_at = self.full_at.get(&key).copied().unwrap_or(now).max(now) + one;
        // Binds in progress when a name's allowance was used up count beyond it, else the rate would
        // grow with the binds tried at once. An address's allowance refuses nothing, so it has a bound.
        if key.1.is_none() {
            full_at = full_at.min(now + one * self.burst.saturating_mul(factor));
        }
        self.full_at.insert(key, full_at);
        make_room(&mut self.full_at, now);
    }

    /// A bind succeeded.
    pub fn succeeded(&mut self, now: Instant, origin: Origin, name: NameDigest) {
        self.full_at.remove(&(origin, Some(name)));
        self.proven.insert((origin, Some(name)), now + PROVEN);
        make_room(&mut self.proven, now);
    }

    /// These have another password or are gone: their earlier binds prove nothing now.
    pub fn unprove(&mut self, names: &[NameDigest]) {
        self.proven.retain(|(_, name), _| name.is_none_or(|name| !names.contains(&name)));
    }

    // ----- hashes -------------------------------------------------------------------------------

    /// A user's bind waits for its turn; whether that comes before those of addresses that used
    /// their allowance up.
    pub fn wait(&mut self, now: Instant, origin: Origin, waiting: WaitingBind) -> bool {
        let trusted = self.is_trusted(now, origin, &waiting.mailbox);
        let turns = if trusted { &mut self.waiting } else { &mut self.late };
        turns.push(origin, waiting);
        trusted
    }

    /// Those that wait longer than [`Access::wait`] had it, for others from there failed meanwhile.
    pub fn take_put_last(&mut self) -> Vec<AssociationId> {
        std::mem::take(&mut self.put_last)
    }

    /// The next bind to be verified of those still there. Its hash runs until [`Access::ended`].
    pub fn next(
        &mut self,
        now: Instant,
        is_there: impl Fn(AssociationId) -> bool,
    ) -> Option<(Origin, WaitingBind)> {
        if self.running >= self.most_running {
            return None;
        }
        while let Some((origin, waiting)) = self.waiting.pop() {
            if !is_there(waiting.association) {
                continue;
            }
            if self.is_trusted(now, origin, &waiting.mailbox) {
                self.running += 1;
                return Some((origin, waiting));
            }
            self.put_last.push(waiting.association);
            self.late.push(origin, waiting);
        }
        if now < self.late_at {
            return None;
        }
        while let Some((origin, waiting)) = self.late.pop() {
            if is_there(waiting.association) {
                self.late_at = now + PAUSE;
                self.running += 1;
                return Some((origin, waiting));
            }
        }
        None
    }

    /// When one that waits may be next.
    pub fn deadline(&self) -> Option<Instant> {
        let waits = self.running < self.most_running && !self.late.waiting.is_empty();
        waits.then_some(self.late_at)
    }

    /// A connection is gone: nothing of it waits any more.
    pub fn forget(&mut self, id: AssociationId, origin: Origin, name: Option<NameDigest>) {
        self.waiting.forget(origin, id);
        self.late.forget(origin, id);
        if let Some(queue) = name.and_then(|name| self.peers.get_mut(&(origin, name))) {
            queue.retain(|bind| bind.association != id);
        }
    }

    /// A hash that ran is there, or need not be computed.
    pub fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    // ----- peers --------------------------------------------------------------------------------

    /// A peer's bind, to be checked now; or it waits for the one before it.
    pub fn peer_waits(
        &mut self,
        origin: Origin,
        name: NameDigest,
        bind: PeerBind,
    ) -> Option<PeerBind> {
        match self.peers.get_mut(&(origin, name)) {
            Some(queue) => {
                queue.push_back(bind);
                None
            }
            None => {
                self.peers.insert((origin, name), VecDeque::new());
                Some(bind)
            }
        }
    }

    /// The next one, after one was checked or needs no check.
    pub fn next_peer(&mut self, origin: Origin, name: NameDigest) -> Option<PeerBind> {
        let next = self.peers.get_mut(&(origin, name))?.pop_front();
        if next.is_none() {
            self.peers.remove(&(origin, name));
        }
        next
    }
}

/// Forgets what is over; where that is not enough, what is over first.
fn make_room<K: Copy + Ord>(table: &mut BTreeMap<K, Instant>, now: Instant) {
    if table.len() <= MAX_KEYS {
        return;
    }
    table.retain(|_, at| *at > now);
    if table.len() > MAX_KEYS
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
    fn one_wrong_password_of_a_peer_counts_once_and_others_each() {
        let mut access = access();
        let (here, name) = (origin(1), NameDigest::new("MTA-ACT"));
        let password = |n: u8| NameDigest::from_octets(&[n]);
        for _ in 0..100 {
            access.peer_failed(at(0), here, name, password(0));
        }
        for n in 1..5 {
            assert!(access.may_try(at(0), here, name), "{n} were tried");
            access.peer_failed(at(0), here, name, password(n));
        }
        assert!(!access.may_try(at(0), here, name));
        access.peer_failed(at(3_000), here, name, password(0));
        assert_eq!(access.full_at[&(here, Some(name))], at(150), "known still");
        access.peer_failed(at(7_000), here, name, password(0));
        assert_eq!(access.full_at[&(here, Some(name))], at(7_030), "and not for ever");
        for n in 0..=255 {
            for m in 0..20 {
                access.peer_failed(
                    at(9_000),
                    origin(m),
                    NameDigest::new(&n.to_string()),
                    password(n),
                );
            }
        }
        assert!(access.counted.len() <= MAX_KEYS);
    }

    #[test]
    fn after_five_failures_one_every_half_minute() {
        let mut access = access();
        let (here, name) = (origin(1), NameDigest::new("MTA-ACT"));
        for _ in 0..5 {
            assert!(access.may_try(at(0), here, name));
            access.failed(at(0), here, name, false);
        }
        assert!(!access.may_try(at(0), here, name) && !access.may_try(at(29), here, name));
        assert!(access.may_try(at(0), origin(2), name), "the same name from elsewhere");
        assert!(
            access.may_try(at(0), here, NameDigest::new("MTA-NAPLES")),
            "another name from there"
        );
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

    fn bind(access: &mut Access, now: Instant, from: u8, id: u64, mailbox: &str) {
        let mailbox = mailbox.to_owned();
        let waiting =
            WaitingBind { association: AssociationId(id), mailbox, password: Secret::default() };
        access.wait(now, origin(from), waiting);
    }

    fn next(access: &mut Access, now: Instant) -> Option<u64> {
        access.next(now, |_| true).map(|(_, waiting)| {
            access.ended();
            waiting.association.0
        })
    }

    #[test]
    fn names_made_up_use_the_allowance_of_their_address_and_then_come_last() {
        let mut access = access();
        let made_up = |n: u32| format!("user {n}");
        let mut tries = 0;
        while access.is_trusted(at(0), origin(1), &made_up(tries)) {
            access.failed(at(0), origin(1), NameDigest::new(&made_up(tries)), true);
            tries += 1;
        }
        assert_eq!(tries, 40);
        assert!(access.is_trusted(at(0), origin(2), "new"), "another address");
        access.succeeded(at(0), origin(1), NameDigest::new("ops"));
        access.failed(at(0), origin(1), NameDigest::new("ops"), true);
        assert!(access.is_trusted(at(0), origin(1), "ops"), "who bound from there lately");
        (0..5).for_each(|_| access.failed(at(0), origin(1), NameDigest::new("ops"), true));
        assert!(!access.is_trusted(at(0), origin(1), "ops"), "and did not fail ever since");

        (0..3).for_each(|n| bind(&mut access, at(0), 1, n, "new"));
        bind(&mut access, at(0), 2, 100, "new");
        assert_eq!((next(&mut access, at(0)), next(&mut access, at(0))), (Some(100), Some(0)));
        assert_eq!(next(&mut access, at(0)), None);
        assert_eq!(access.deadline(), Some(at(0) + PAUSE));
        access.forget(AssociationId(1), origin(1), None);
        assert_eq!(next(&mut access, at(0) + PAUSE), Some(2));
        assert_eq!(access.deadline(), None);
        assert!(access.is_trusted(at(120), origin(1), "new"), "all 40 are there again at 150 s");
    }

    #[test]
    fn failures_at_the_same_time_count_beyond_the_allowance() {
        let mut access = access();
        let (here, name) = (origin(1), NameDigest::new("ops"));
        (0..7).for_each(|_| access.failed(at(0), here, name, true));
        assert!(!access.may_try(at(89), here, name) && access.may_try(at(90), here, name));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_worst_is_kept() {
        let mut access = access();
        let bad = NameDigest::new("bad");
        (0..5).for_each(|_| access.failed(at(0), origin(1), bad, false));
        for n in 0..3 * MAX_KEYS {
            access.failed(at(1), origin(2), NameDigest::new(&n.to_string()), false);
        }
        assert!(access.full_at.len() <= MAX_KEYS);
        assert!(!access.may_try(at(1), origin(1), bad));
    }

    #[test]
    fn hashes_are_computed_for_one_address_after_the_other() {
        let mut access = access();
        (0..50).for_each(|n| bind(&mut access, at(0), 1, n, ""));
        bind(&mut access, at(0), 2, 100, "");
        bind(&mut access, at(0), 3, 200, "");
        let mut order = Vec::new();
        while let Some((_, waiting)) = access.next(at(0), |_| true) {
            assert!(access.next(at(0), |_| true).is_none(), "one at a time");
            access.ended();
            order.push(waiting.association.0);
        }
        assert_eq!(order[..5], [0, 100, 200, 1, 2]);
        assert_eq!(order.len(), 52);
    }
}
