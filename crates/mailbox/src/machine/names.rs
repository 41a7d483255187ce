//! The numbers of mailboxes, by the addresses of their users: durable before a mailbox has anything.

use super::open::State;
use super::{Asked, Mailboxes, NAMES, Output};
use crate::totals::ValueError;
use base::{Now, Precedence};
use bytes::Bytes;
use engine::NextHop;
use engine::journal::{KnownValue, MailboxId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Version of the encoding, in its first octet.
const VERSION: u8 = 1;

/// The numbers given so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<String, u32>,
    /// How many of them are durable, or being committed.
    committed: usize,
    is_committing: bool,
    /// Several nodes give numbers.
    pub(super) is_shared: bool,
    /// The value in the store, as far as this node knows.
    known: KnownValue,
    /// The value that is being written.
    writing: KnownValue,
    /// Numbers that were given here and, before they were durable, by another node to another address.
    lost: Vec<MailboxId>,
}

/// The number that every node of a site gives to a mailbox that has none.
pub fn shared_number(address: &str) -> MailboxId {
    let queue = NextHop::Mailbox(address.to_owned()).queue();
    MailboxId(u32::try_from(queue.0 & 0x7fff_ffff).unwrap_or_default())
}

/// The value of [`NAMES`] of a process that is alone, as a site has it, and the number of each mailbox there by its number of
/// before.
///
/// # Errors
/// It cannot be read.
pub fn shared_names(value: &[u8]) -> Result<(Bytes, BTreeMap<MailboxId, MailboxId>), ValueError> {
    let mut alone = Names::default();
    alone.recovered(value)?;
    let mut shared = Names { is_shared: true, ..Names::default() };
    let give = |(address, number): (&String, &u32)| (MailboxId(*number), shared.give(address).0);
    let numbers = alone.numbers.iter().map(give).collect();
    Ok((shared.value(), numbers))
}

impl Names {
    pub(super) fn recovered(&mut self, value: &[u8]) -> Result<(), ValueError> {
        let numbers: BTreeMap<String, u32> = match value.split_first().ok_or(ValueError::Empty)? {
            (&VERSION, fields) => postcard::from_bytes(fields)?,
            (&version, _) => return Err(ValueError::Version(version)),
        };
        self.known = KnownValue::from_octets(value);
        if self.is_shared {
            let taken: BTreeSet<u32> = numbers.values().copied().collect();
            let lost = &mut self.lost;
            self.numbers.retain(|address, number| {
                let is_ours = numbers.contains_key(address) || !taken.contains(number);
                lost.extend((!is_ours).then_some(MailboxId(*number)));
                is_ours
            });
            // Others may not have seen ours yet.
            self.numbers.extend(numbers);
        } else {
            self.committed = numbers.len();
            self.numbers = numbers;
        }
        Ok(())
    }

    pub(super) fn number(&self, address: &str) -> Option<MailboxId> {
        self.numbers.get(address).copied().map(MailboxId)
    }

    /// The number of an address, and whether it is new.
    pub(super) fn give(&mut self, address: &str) -> (MailboxId, bool) {
        if let Some(id) = self.number(address) {
            return (id, false);
        }
        let next = match self.is_shared {
            true => self.shared_number(address),
            false => self.numbers.values().max().map_or(0, |last| last.saturating_add(1)),
        };
        self.numbers.insert(address.to_owned(), next);
        (MailboxId(next), true)
    }

    /// The number for an address that no other one has: it is the same at all nodes. Of two addresses with one number,
    /// one in a thousand million pairs, the second gets another one, from the node that meets both first.
    fn shared_number(&self, address: &str) -> u32 {
        let mut number = shared_number(address).0;
        while self.numbers.values().any(|taken| *taken == number) {
            number = (number + 1) & 0x7fff_ffff;
        }
        number
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = MailboxId> + '_ {
        self.numbers.values().copied().map(MailboxId)
    }

    pub(super) fn address(&self, id: MailboxId) -> Option<&str> {
        self.numbers.iter().find(|(_, number)| **number == id.0).map(|(address, _)| &**address)
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        self.numbers.keys().cloned().collect()
    }

    fn value(&self) -> Bytes {
        // Plain data into a growing buffer cannot fail.
        postcard::to_extend(&self.numbers, vec![VERSION]).unwrap_or_default().into()
    }
}

impl Mailboxes {
    /// Commits new numbers; those that come meanwhile go with the next commit.
    pub(super) fn commit_names(&mut self) {
        if self.names.is_committing || self.names.committed == self.names.numbers.len() {
            return;
        }
        self.names.is_committing = true;
        self.names.committed = self.names.numbers.len();
        for open in self.open.values_mut().filter(|open| matches!(open.state, State::Unnamed)) {
            open.state = State::Naming;
        }
        let value = self.names.value();
        let batch = vec![match self.names.is_shared {
            // Over what this node knows: numbers that another one has given meanwhile stay.
            true => {
                self.names.writing = self.names.known;
                self.names.writing.replace(NAMES, value)
            }
            false => Op::PutMeta { name: NAMES.to_owned(), value },
        }];
        let ticket = self.ticket(Asked::Names);
        self.outputs.push_back(Output::Commit { ticket, precedence: Precedence::Override, batch });
    }

    /// Another node has given numbers meanwhile, which are known by now: nothing was written, and ours go besides.
    pub(super) fn names_changed(&mut self, now: Now) {
        self.names.is_committing = false;
        for open in self.open.values_mut().filter(|open| matches!(open.state, State::Naming)) {
            open.state = State::Unnamed;
        }
        for id in std::mem::take(&mut self.names.lost) {
            let is_ours = self.open.get(&id).is_some_and(|o| matches!(o.state, State::Unnamed));
            if is_ours {
                self.cannot_open(now, id, "another mailbox has its number");
            }
        }
        let waiting = self.open.values().filter(|open| matches!(open.state, State::Unnamed));
        self.names.committed = self.names.numbers.len().saturating_sub(waiting.count());
        self.commit_names();
    }

    pub(super) fn names_committed(&mut self, now: Now, result: Result<(), String>) {
        self.names.is_committing = false;
        let named = self.open.iter().filter(|(_, open)| matches!(open.state, State::Naming));
        let named: Vec<MailboxId> = named.map(|(id, _)| *id).collect();
        match result {
            Ok(()) => {
                self.names.known = self.names.writing;
                for id in named {
                    if let Some(open) = self.open.get_mut(&id) {
                        open.state = State::Opening;
                    }
                    self.read_open(id);
                }
            }
            Err(why) => {
                // Their numbers were never used.
                self.names.numbers.retain(|_, number| !named.contains(&MailboxId(*number)));
                let waiting = self.open.values().filter(|o| matches!(o.state, State::Unnamed));
                self.names.committed = self.names.numbers.len().saturating_sub(waiting.count());
                for id in named {
                    self.cannot_open(now, id, &why);
                }
            }
        }
        self.commit_names();
    }
}
