//! How much is held in memory for whom: what arrives, from its first octet until its commit is done.
//! What the edge holds (contents, octets not yet written) it bounds itself, by the same limits.

use crate::access::Name;
use crate::limits::Limits;
use crate::network::Origin;
use base::PeerId;
use std::collections::BTreeMap;

/// For whom memory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payer {
    Peer(PeerId),
    /// A user: where from, and of which mailbox.
    User(Origin, Name),
}

/// What `limits.memory_per_peer` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Account {
    Peer(PeerId),
    /// The users at one address.
    Address(Origin),
    /// The associations of one mailbox, wherever they come from.
    Mailbox(Name),
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

/// What is held until a commit is done, and for whom.
#[derive(Debug)]
pub(crate) struct Charge {
    pub payer: Payer,
    pub octets: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: BTreeMap<Account, usize>,
    /// Of all users.
    users: usize,
    total: usize,
}

impl Memory {
    /// So much more is held, if that is within the limits; else the limit's key and size. Users,
    /// whoever they are, leave peers a quarter.
    pub(crate) fn take(
        &mut self,
        payer: Payer,
        octets: usize,
        limits: &Limits,
    ) -> Result<(), String> {
        if octets == 0 {
            return Ok(());
        }
        let fits = |held: usize, most: usize| held.checked_add(octets).is_some_and(|h| h <= most);
        let held = |account| self.held.get(&account).copied().unwrap_or(0);
        if !payer.accounts().all(|account| fits(held(account), limits.memory_per_peer)) {
            return Err(format!("limits.memory_per_peer = {} octets", limits.memory_per_peer));
        }
        if !fits(self.total, limits.memory) {
            return Err(format!("limits.memory = {} octets", limits.memory));
        }
        let share = limits.memory - limits.memory / 4;
        if matches!(payer, Payer::User(..)) && !fits(self.users, share) {
            return Err(format!("three quarters of limits.memory = {} octets", limits.memory));
        }
        self.add(payer, octets);
        Ok(())
    }

    /// So much more is held, whatever the limits: what is being committed is counted, so that
    /// others wait, and not refused any more.
    pub(crate) fn add(&mut self, payer: Payer, octets: usize) {
        if octets == 0 {
            return;
        }
        for account in payer.accounts() {
            let held = self.held.entry(account).or_default();
            *held = held.saturating_add(octets);
        }
        if matches!(payer, Payer::User(..)) {
            self.users = self.users.saturating_add(octets);
        }
        self.total = self.total.saturating_add(octets);
    }

    /// So much is free again.
    pub(crate) fn give(&mut self, payer: Payer, octets: usize) {
        self.total = self.total.saturating_sub(octets);
        if matches!(payer, Payer::User(..)) {
            self.users = self.users.saturating_sub(octets);
        }
        for account in payer.accounts() {
            if let Some(held) = self.held.get_mut(&account) {
                *held = held.saturating_sub(octets);
                if *held == 0 {
                    self.held.remove(&account);
                }
            }
        }
    }

    /// Octets in all.
    pub(crate) fn total(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn one_cannot_take_what_all_have_and_all_no_more_than_there_is() {
        let limits = Limits { memory: 250, memory_per_peer: 100, ..Limits::default() };
        let peer = |n: &str| Payer::Peer(PeerId::of_name(n));
        let mut memory = Memory::default();
        assert_eq!(memory.take(peer("a"), 100, &limits), Ok(()));
        assert!(memory.take(peer("a"), 1, &limits).unwrap_err().contains("memory_per_peer = 100"));
        assert_eq!(memory.take(peer("b"), 100, &limits), Ok(()));
        assert!(memory.take(peer("c"), 51, &limits).unwrap_err().contains("limits.memory = 250"));
        assert_eq!(memory.take(peer("c"), 50, &limits), Ok(()));
        memory.give(peer("a"), 100);
        assert_eq!(memory.take(peer("a"), 100, &limits), Ok(()));
        assert!(memory.take(peer("a"), usize::MAX, &limits).is_err());
        for n in ["a", "b", "c"] {
            memory.give(peer(n), 100);
        }
        assert_eq!((memory.total(), memory.held.len()), (0, 0));
    }

    #[test]
    fn users_leave_peers_a_quarter_and_a_mailbox_is_one_wherever_it_is_used() {
        let limits = Limits { memory: 400, memory_per_peer: 100, ..Limits::default() };
        let user = |from: u8, name: &str| {
            Payer::User(Origin::from(IpAddr::from([192, 0, 2, from])), Name::of(name))
        };
        let mut memory = Memory::default();
        assert_eq!(memory.take(user(1, "a"), 60, &limits), Ok(()));
        let why = memory.take(user(2, "a"), 41, &limits).unwrap_err();
        assert!(why.contains("memory_per_peer = 100"), "the mailbox: {why}");
        assert!(memory.take(user(1, "b"), 41, &limits).is_err(), "the address");
        assert_eq!(memory.take(user(2, "a"), 40, &limits), Ok(()));
        assert_eq!(memory.take(user(3, "c"), 100, &limits), Ok(()));
        assert_eq!(memory.take(user(4, "d"), 100, &limits), Ok(()));
        let why = memory.take(user(5, "e"), 1, &limits).unwrap_err();
        assert!(why.contains("three quarters of limits.memory = 400"), "{why}");
        let peer = Payer::Peer(PeerId::of_name("a"));
        assert_eq!(memory.take(peer, 100, &limits), Ok(()));
        // What is being committed is counted beyond the limits.
        memory.add(peer, 50);
        memory.give(user(3, "c"), 100);
        assert!(memory.take(Payer::Peer(PeerId::of_name("b")), 51, &limits).is_err());
        for (payer, octets) in
            [(peer, 150), (user(1, "a"), 60), (user(2, "a"), 40), (user(4, "d"), 100)]
        {
            memory.give(payer, octets);
        }
        assert_eq!((memory.total(), memory.users, memory.held.len()), (0, 0, 0));
    }
}
