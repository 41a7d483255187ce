//! What a mailbox holds, by level, and the last sequence number it used: one small named value of the store.

use base::{Precedence, Utc};
use bytes::Bytes;
use engine::journal::MailboxId;
use serde::{Deserialize, Serialize};

/// Version of the encoding, in its first octet.
const VERSION: u8 = 1;

/// Items and octets of one precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Items.
    pub items: u64,
    /// Octets, as [`crate::item::counted`] counts them.
    pub octets: u64,
}

/// What a mailbox holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The last sequence number used; 0 if none was. It never descends.
    pub last: u32,
    /// The creation-time of the last item. Creation times never descend either, so a range of them is one of
    /// numbers.
    pub newest: Utc,
    /// Whether an alert found no association of its user since the last one ended (X.413 7.1.3,
    /// alert-indication).
    pub alerted: bool,
    levels: [Level; Precedence::ALL.len()],
}

/// A named value that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A newer release wrote it.
    #[error("version {0} is not known")]
    Version(u8),
    /// It is malformed.
    #[error("fields: {0}")]
    Fields(#[from] postcard::Error),
    /// Its BER is malformed.
    #[error("BER: {0}")]
    Ber(#[from] base::ber::Error),
    /// It is empty.
    #[error("empty value")]
    Empty,
}

impl Totals {
    /// The name under which the store has the value of a mailbox.
    #[must_use]
    pub fn name(mailbox: MailboxId) -> String {
        format!("mailbox/{}/totals", mailbox.0)
    }

    /// The value.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        // Plain data into a growing buffer cannot fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default().into()
    }

    /// Reads it back.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn decode(value: &[u8]) -> Result<Totals, ValueError> {
        match value.split_first().ok_or(ValueError::Empty)? {
            (&VERSION, fields) => Ok(postcard::from_bytes(fields)?),
            (&version, _) => Err(ValueError::Version(version)),
        }
    }

    /// Items and octets of this precedence.
    #[must_use]
    pub fn level(&self, precedence: Precedence) -> Level {
        self.levels.get(usize::from(precedence.number())).copied().unwrap_or_default()
    }

    /// Items and octets of all precedences.
    #[must_use]
    pub fn all(&self) -> Level {
        self.levels.iter().fold(Level::default(), |sum, level| Level {
            items: sum.items.saturating_add(level.items),
            octets: sum.octets.saturating_add(level.octets),
        })
    }

    /// Counts an item that comes.
    pub(crate) fn add(&mut self, precedence: Precedence, octets: u64) {
        self.change(precedence, |level| Level {
            items: level.items.saturating_add(1),
            octets: level.octets.saturating_add(octets),
        });
    }

    /// Counts an item that goes.
    pub(crate) fn remove(&mut self, precedence: Precedence, octets: u64) {
        self.change(precedence, |level| Level {
            items: level.items.saturating_sub(1),
            octets: level.octets.saturating_sub(octets),
        });
    }

    /// Replaces what was held `before` by what was counted, and keeps what was added since.
    pub(crate) fn correct(&mut self, before: &Totals, counted: &Totals) {
        for precedence in Precedence::ALL {
            let (before, counted) = (before.level(precedence), counted.level(precedence));
            self.change(precedence, |now| Level {
                items: counted.items.saturating_add(now.items.saturating_sub(before.items)),
                octets: counted.octets.saturating_add(now.octets.saturating_sub(before.octets)),
            });
        }
    }

    fn change(&mut self, precedence: Precedence, to: impl Fn(Level) -> Level) {
        if let Some(level) = self.levels.get_mut(usize::from(precedence.number())) {
            *level = to(*level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_back() {
        let mut totals = Totals { last: 9, ..Totals::default() };
        totals.add(Precedence::Flash, 700);
        totals.add(Precedence::Flash, 300);
        totals.add(Precedence::Deferred, 1);
        totals.remove(Precedence::Flash, 700);
        assert_eq!(totals.level(Precedence::Flash), Level { items: 1, octets: 300 });
        assert_eq!(totals.all(), Level { items: 2, octets: 301 });
        assert_eq!(Totals::decode(&totals.encode()), Ok(totals));
        assert_eq!(Totals::decode(&[9]), Err(ValueError::Version(9)));
        assert_eq!(Totals::decode(&[]), Err(ValueError::Empty));
        assert!(Totals::decode(&[1, 4]).is_err());
    }
}
