//! Identifiers that stay unique across crashes and clock resets: a durable epoch and a counter. Those of
//! entries are in [`crate::numbers`].

use crate::journal::FIRST_ITEM;
pub mod numbers;

use crate::ids::numbers::Numbers;
use base::{BodyId, EntryId, Utc};
use p1::names::{GlobalDomainId, MtaName, MtsIdentifier};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Bits of the counter in the identifier of a body, or of an entry in its long form ([`crate::numbers`]); the epoch is in the bits above.
pub(crate) const COUNTER_BITS: u32 = 40;

/// Generates identifiers.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Distinguishes the MTAs of one domain.
    name: String,
    epoch: u32,
    /// Of this start, in MTS identifiers alone.
    salt: String,
    pub(crate) entries: Numbers,
    bodies: u64,
    messages: u64,
}

impl Source {
    /// `salt`: below 36^4.
    pub(crate) fn new(mta: &MtaName, epoch: u32, salt: u32) -> Source {
        let salt = if salt == 0 { String::new() } else { format!("{:0>4}", base36(salt.into())) };
        let mut source = Source {
            name: short_name(mta),
            epoch,
            salt,
            entries: Numbers::default(),
            bodies: 0,
            messages: 0,
        };
        source.entries = Numbers::from(source.number(1));
        source
    }

    /// Identifiers of bodies of this epoch are not below this number, all earlier ones are.
    pub(crate) fn first_number(&self) -> u64 {
        self.number(0)
    }

    /// Unique for 2^23 starts of 2^40 entries each.
    fn number(&self, counter: u64) -> u64 {
        u64::from(self.epoch) << COUNTER_BITS | counter
    }

    pub(crate) fn entry(&mut self) -> EntryId {
        self.entries.next()
    }

    pub(crate) fn body(&mut self) -> BodyId {
        self.bodies += 1;
        BodyId(self.number(self.bodies))
    }

    /// A local-identifier of at most 32 IA5 characters (ub-local-id-length): MTA, epoch and salt, counter.
    pub(crate) fn mts(&mut self, domain: &GlobalDomainId) -> MtsIdentifier {
        self.messages += 1;
        let local =
            format!("{}.{:x}{}.{}", self.name, self.epoch, self.salt, base36(self.messages));
        MtsIdentifier { domain: domain.clone(), local }
    }
}

/// Digits and small letters.
fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(u32::try_from(number % 36).unwrap_or(0), 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// At most 12 characters: the name if it fits, else its beginning and six digits of its hash, as
/// the MTAs of a domain often differ in the last character only.
fn short_name(mta: &MtaName) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let name: String = mta.0.chars().filter(plain).collect();
    if name.len() <= 12 && name == mta.0 {
        return name;
    }
    let hash = Sha256::digest(mta.0.as_bytes());
    let digits: String = hash.iter().take(3).map(|b| format!("{b:02x}")).collect();
    format!("{}{digits}", name.get(..6).unwrap_or(&name))
}

/// 2026-01-01T00:00:00Z.
const BEGINNING: Utc = Utc(1_767_225_600_000_000);

/// Epochs have 23 bits: identifiers of entries have the others below [`FIRST_ITEM`].
const END: u32 = 1 << 23;

const _: () = assert!((END as u64) << COUNTER_BITS == FIRST_ITEM);

/// A clock that gives more of these, after the year 2041, is not believed.
const BELIEVED: u64 = 1 << 22;

/// The clock counts in these.
const TICK: Duration = Duration::from_secs(120);

/// The epoch of a start: a number that no earlier start had, which all identifiers contain. It is the count
/// of starts, in the store (`None`: damaged) and, in case that is lost, in a file. In case both are older
/// copies that were restored, it is at least half the number of minutes since 2026. `None` if all are used.
#[must_use]
pub fn next_epoch(stored: Option<u32>, kept: Option<u32>, now: Utc) -> Option<u32> {
    let ticks = now.since(BEGINNING).as_secs() / TICK.as_secs();
    let by_clock = u32::try_from(ticks).ok().filter(|_| ticks < BELIEVED).unwrap_or(0);
    let last = stored.unwrap_or(0).max(kept.unwrap_or(0));
    Some(last.checked_add(1)?.max(by_clock)).filter(|epoch| *epoch < END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_identifiers_fit_and_never_repeat() {
        let domain = GlobalDomainId::default();
        let long = MtaName("an-mta-name-of-31-characters-1".to_owned());
        let other = MtaName("an-mta-name-of-31-characters-2".to_owned());
        let mut seen = std::collections::BTreeSet::new();
        for name in [&long, &other, &MtaName("mta1".to_owned()), &MtaName("é".to_owned())] {
            for (epoch, salt) in
                [(0, 0), (1, 1), (1, 35), (1, 36), ((1 << 23) - 1, 36 * 36 * 36 * 36 - 1)]
            {
                let mut source = Source::new(name, epoch, salt);
                source.messages = (1 << COUNTER_BITS) - 3;
                for _ in 0..2 {
                    let id = source.mts(&domain).local;
                    assert!(id.len() <= 32 && id.is_ascii(), "{id}");
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(Source::new(&MtaName("mta1".to_owned()), 10, 0).mts(&domain).local, "mta1.a.1");
    }

    #[test]
    fn entries_of_two_starts_differ() {
        let name = MtaName("m".to_owned());
        let (mut a, mut b) = (Source::new(&name, 1, 0), Source::new(&name, 2, 0));
        assert!(a.entry() < a.entry() && a.entry() < b.entry() && a.body() < b.body());
    }

    #[test]
    fn no_epoch_comes_twice_whatever_is_lost() {
        let at = |ticks: u32| BEGINNING + TICK * ticks;
        assert_eq!(next_epoch(Some(5), Some(5), at(0)), Some(6), "an old clock");
        assert_eq!(next_epoch(Some(0), Some(9), at(0)), Some(10), "the store is lost");
        assert_eq!(next_epoch(None, Some(9), at(0)), Some(10), "or damaged");
        assert_eq!(next_epoch(Some(3), Some(3), at(700)), Some(700), "both are restored");
        assert_eq!(next_epoch(Some(700), None, at(700)), Some(701), "twice within a tick");
        assert_eq!(next_epoch(Some(3), None, at(1 << 23)), Some(4), "a clock far ahead");
        assert_eq!(next_epoch(Some(END - 1), None, at(0)), None);
    }
}
