//! How much memory arrivals take, from their first octet until their commit is done, and for whom it is
//! held. The edge bounds what it holds itself (contents, octets not yet written) by the same limits.
//!
//! Each level keeps a sixteenth of each limit, so that Routine arrivals that make no progress take
//! nothing from a Flash. Until its level is known, an envelope counts as lowest. Only its first octets
//! may use what is kept, or the level of a Flash would never become known.

use crate::NameDigest;
use crate::limits::Limits;
use base::ip_prefix::Origin;
use base::{PeerId, PerPrecedence, Precedence};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// For whom memory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// A peer.
    Peer(PeerId),
    /// A user: where from, and of which mailbox.
    User(Origin, NameDigest),
}

/// What `limits.memory_per_peer` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Account {
    Peer(PeerId),
    /// The users at one address.
    Address(Origin),
    /// The associations of one mailbox, wherever they come from.
    Mailbox(NameDigest),
}

impl Payer {
    fn accounts(self) -> impl Iterator<Item = Account> {
        let accounts = match self {
            Payer::Peer(peer) => [Some(Account::Peer(peer)), None],
            Payer::User(origin, name) => {
                [Some(Account::Address(origin)), Some(Account::Mailbox(name))]
            }
        };
        accounts.into_iter().flatten()
    }
}

/// Of each limit, each level keeps one in so many.
const SHARE: usize = 16;

/// The first octets of an envelope, for which nothing is kept: most envelopes are whole by then, and
/// as many associations as one address may have take less than half of what is kept from the lowest.
const FRONT: usize = 16 << 10;

/// What is held for one arrival, until its commit is done; for whom, and as what level.
#[derive(Debug)]
pub struct MemoryCharge {
    payer: Payer,
    level: Precedence,
    octets: usize,
}

impl MemoryCharge {
    /// Nothing yet, as this level until the message's is known.
    pub fn new(payer: Payer, level: Precedence) -> MemoryCharge {
        MemoryCharge { payer, level, octets: 0 }
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// What one peer, address or mailbox may have.
    OfPeer,
    /// What all may have.
    All,
    /// What users may have of all.
    Users,
}

/// A limit is reached: its key and size, and how much of it is kept for higher levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub struct NoRoom {
    limit: Limited,
    most: usize,
    kept: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.limit {
            Limited::OfPeer => "limits.memory_per_peer",
            Limited::All => "limits.memory",
            Limited::Users => "three quarters of limits.memory",
        })?;
        write!(f, " = {} octets", self.most)?;
        match self.kept {
            0 => Ok(()),
            kept => write!(f, ", of which {kept} are kept for higher levels"),
        }
    }
}

/// Octets held by each level.
#[derive(Debug, Default)]
struct HeldOctets(PerPrecedence<usize>);

impl HeldOctets {
    fn octets(&self) -> usize {
        self.0.iter().map(|(_, octets)| octets).sum()
    }

    fn add(&mut self, level: Precedence, octets: usize) {
        let held = self.0.get_mut(level);
        *held = held.saturating_add(octets);
    }

    fn give(&mut self, level: Precedence, octets: usize) {
        let held = self.0.get_mut(level);
        *held = held.saturating_sub(octets);
    }

    /// Whether so much more fits into `most`; `from` is the level from which higher ones keep, if
    /// any. Else how much they keep. An envelope is left to each level, however small the limit.
    fn room(
        &self,
        from: Option<Precedence>,
        octets: usize,
        most: usize,
        envelope: usize,
    ) -> Result<(), usize> {
        let share = most / SHARE;
        let kept =
            from.map_or(0, |level| crate::kept(self.0.iter(), Some(level), share, most, envelope));
        match self.octets().checked_add(octets) {
            Some(held) if held <= most - kept => Ok(()),
            _ => Err(kept),
        }
    }
}

/// What is held, by whom.
#[derive(Debug, Default)]
pub struct ArrivalMemory {
    held: BTreeMap<Account, HeldOctets>,
    /// Of all users.
    users: HeldOctets,
    all: HeldOctets,
}

impl ArrivalMemory {
    /// So much more is held, if that is within the limits; else the limit's key and size. `level` is
    /// that of the message, where it is known. Users, whoever they are, leave peers a quarter.
    pub fn take(
        &mut self,
        charge: &mut MemoryCharge,
        level: Option<Precedence>,
        octets: usize,
        limits: &Limits,
    ) -> Result<(), NoRoom> {
        self.know(charge, level);
        if octets == 0 {
            return Ok(());
        }
        let front = level.is_none() && charge.octets.saturating_add(octets) <= FRONT;
        let from = (!front).then_some(charge.level);
        let room = |held: &HeldOctets, most| held.room(from, octets, most, limits.envelope);
        let most = limits.memory_per_peer;
        let mut accounts = charge.payer.accounts().map(|account| match self.held.get(&account) {
            Some(held) => room(held, most),
            None => room(&HeldOctets::default(), most),
        });
        if let Some(kept) = accounts.find_map(Result::err) {
            return Err(NoRoom { limit: Limited::OfPeer, most, kept });
        }
        let most = limits.memory;
        room(&self.all, most).map_err(|kept| NoRoom { limit: Limited::All, most, kept })?;
        if matches!(charge.payer, Payer::User(..)) {
            room(&self.users, most - most / 4).map_err(|kept| NoRoom {
                limit: Limited::Users,
                most,
                kept,
            })?;
        }
        self.add(charge, octets);
        Ok(())
    }

    /// What is held counts as this level from now on.
    fn know(&mut self, charge: &mut MemoryCharge, level: Option<Precedence>) {
        let Some(level) = level.filter(|level| *level != charge.level) else { return };
        let octets = charge.octets;
        self.give(charge);
        charge.level = level;
        self.add(charge, octets);
    }

    /// So much more is held, whatever the limits: what is being committed is counted, so that
    /// others wait, and not refused any more.
    pub fn add(&mut self, charge: &mut MemoryCharge, octets: usize) {
        if octets == 0 {
            return;
        }
        charge.octets = charge.octets.saturating_add(octets);
        for account in charge.payer.accounts() {
            self.held.entry(account).or_default().add(charge.level, octets);
        }
        if matches!(charge.payer, Payer::User(..)) {
            self.users.add(charge.level, octets);
        }
        self.all.add(charge.level, octets);
    }

    /// All that is held for it is free again.
    pub fn give(&mut self, charge: &mut MemoryCharge) {
        let octets = std::mem::take(&mut charge.octets);
        self.all.give(charge.level, octets);
        if matches!(charge.payer, Payer::User(..)) {
            self.users.give(charge.level, octets);
        }
        for account in charge.payer.accounts() {
            if let Some(held) = self.held.get_mut(&account) {
                held.give(charge.level, octets);
                if held.octets() == 0 {
                    self.held.remove(&account);
                }
            }
        }
    }

    /// Octets in all.
    pub fn total(&self) -> usize {
        self.all.octets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// Without shares: an envelope may take the whole limit.
    fn limits(memory: usize) -> Limits {
        Limits { memory, memory_per_peer: 100, ..Limits::default() }
    }

    fn peer(name: &str) -> MemoryCharge {
        MemoryCharge::new(Payer::Peer(PeerId::of_name(name)), Precedence::Routine)
    }

    fn user(from: u8, name: &str) -> MemoryCharge {
        let from = Origin::from(IpAddr::from([192, 0, 2, from]));
        MemoryCharge::new(Payer::User(from, NameDigest::new(name)), Precedence::Deferred)
    }

    #[test]
    fn one_cannot_take_what_all_have_and_all_no_more_than_there_is() {
        let limits = limits(250);
        let mut memory = ArrivalMemory::default();
        let [mut a, mut b, mut c] = ["a", "b", "c"].map(peer);
        let mut take =
            |charge: &mut MemoryCharge, octets| memory.take(charge, None, octets, &limits);
        assert_eq!(take(&mut a, 100), Ok(()));
        assert!(take(&mut a, 1).unwrap_err().to_string().contains("memory_per_peer = 100"));
        assert_eq!(take(&mut b, 100), Ok(()));
        assert!(take(&mut c, 51).unwrap_err().to_string().contains("limits.memory = 250"));
        assert_eq!(take(&mut c, 50), Ok(()));
        memory.give(&mut a);
        assert_eq!(memory.take(&mut a, None, 100, &limits), Ok(()));
        assert!(memory.take(&mut a, None, usize::MAX, &limits).is_err());
        [a, b, c].iter_mut().for_each(|held| memory.give(held));
        assert_eq!((memory.total(), memory.held.len()), (0, 0));
    }

    #[test]
    fn users_leave_peers_a_quarter_and_a_mailbox_is_one_wherever_it_is_used() {
        let limits = limits(400);
        let mut memory = ArrivalMemory::default();
        let mut take =
            |charge: &mut MemoryCharge, octets| memory.take(charge, None, octets, &limits);
        let (mut a1, mut a2) = (user(1, "a"), user(2, "a"));
        assert_eq!(take(&mut a1, 60), Ok(()));
        let why = take(&mut a2, 41).unwrap_err().to_string();
        assert!(why.contains("memory_per_peer = 100"), "the mailbox: {why}");
        assert!(take(&mut user(1, "b"), 41).is_err(), "the address");
        assert_eq!(take(&mut a2, 40), Ok(()));
        let (mut c, mut d) = (user(3, "c"), user(4, "d"));
        assert_eq!((take(&mut c, 100), take(&mut d, 100)), (Ok(()), Ok(())));
        let why = take(&mut user(5, "e"), 1).unwrap_err().to_string();
        assert!(why.contains("three quarters of limits.memory = 400"), "{why}");
        let mut p = peer("a");
        assert_eq!(take(&mut p, 100), Ok(()));
        // What is being committed is counted beyond the limits.
        memory.add(&mut p, 50);
        memory.give(&mut c);
        assert!(memory.take(&mut peer("b"), None, 51, &limits).is_err());
        [p, a1, a2, d].iter_mut().for_each(|held| memory.give(held));
        assert_eq!((memory.total(), memory.users.octets(), memory.held.len()), (0, 0, 0));
    }

    #[test]
    fn each_level_keeps_a_sixteenth_and_the_front_of_an_envelope_finds_room_in_it() {
        use Precedence::{Flash, Override, Routine};
        const UNIT: usize = 64 << 10;
        let (limits, mut memory) = (
            Limits { memory_per_peer: 16 * UNIT, envelope: UNIT, ..Limits::default() },
            ArrivalMemory::default(),
        );
        let mut take = |charge: &mut MemoryCharge, level, octets| {
            memory
                .take(charge, level, octets, &limits)
                .map_err(|why| why.to_string().contains("are kept"))
        };
        let (mut low, mut unknown) = (peer("a"), peer("a"));
        assert_eq!(take(&mut low, Some(Routine), 12 * UNIT), Ok(()));
        assert_eq!(take(&mut low, Some(Routine), 1), Err(true), "four higher ones keep");
        assert_eq!(take(&mut unknown, None, FRONT), Ok(()));
        assert_eq!(take(&mut unknown, None, 1), Err(true), "it counts as its channel's lowest");
        assert_eq!(take(&mut peer("a"), Some(Routine), 1), Err(true));
        assert_eq!(take(&mut unknown, Some(Flash), 3 * UNIT - FRONT), Ok(()));
        assert_eq!(take(&mut peer("a"), Some(Flash), 1), Err(true));
        let mut over = peer("a");
        assert_eq!(take(&mut over, Some(Override), UNIT), Ok(()));
        assert_eq!(take(&mut over, Some(Override), 1), Err(false), "all is taken");
    }

    #[test]
    fn an_envelope_of_any_level_fits_into_the_smallest_limit() {
        let limits = Limits { memory_per_peer: 1 << 20, envelope: 1 << 20, ..Limits::default() };
        assert_eq!(ArrivalMemory::default().take(&mut peer("a"), None, 1 << 20, &limits), Ok(()));
    }
}
