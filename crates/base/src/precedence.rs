//! The six precedences (STANAG 4406, ACP 123), lowest first.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Precedence of a military message. The order is the order of service: `Override` goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Precedence {
    /// 0: lowest.
    Deferred = 0,
    /// 1.
    Routine = 1,
    /// 2.
    Priority = 2,
    /// 3.
    Immediate = 3,
    /// 4.
    Flash = 4,
    /// 5: highest.
    Override = 5,
}

impl Precedence {
    /// All six, lowest first.
    pub const ALL: [Precedence; 6] = [
        Precedence::Deferred,
        Precedence::Routine,
        Precedence::Priority,
        Precedence::Immediate,
        Precedence::Flash,
        Precedence::Override,
    ];

    /// The highest that is not urgent.
    pub const HIGHEST_NOT_URGENT: Precedence = Precedence::Priority;

    /// Whether it is urgent, Immediate and above: threads of the disk are kept for it, its commit waits
    /// for no others to share it, and what nobody knows the precedence of yet does not go before it.
    pub fn is_urgent(self) -> bool {
        self > Precedence::HIGHEST_NOT_URGENT
    }

    /// The precedence of P772's INTEGER (0 to 5), or `None` for national values (16 to 31) and others.
    pub fn from_number(number: i64) -> Option<Precedence> {
        usize::try_from(number).ok().and_then(|n| Precedence::ALL.get(n).copied())
    }

    /// P772's INTEGER, 0 to 5.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Lower-case name, as in configuration and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Precedence::Deferred => "deferred",
            Precedence::Routine => "routine",
            Precedence::Priority => "priority",
            Precedence::Immediate => "immediate",
            Precedence::Flash => "flash",
            Precedence::Override => "override",
        }
    }
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value for each precedence.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PerPrecedence<T>([T; 6]);

impl<T> PerPrecedence<T> {
    /// The values, lowest precedence first.
    pub const fn new(values: [T; 6]) -> PerPrecedence<T> {
        PerPrecedence(values)
    }

    /// The value `of` gives for each.
    pub fn from_fn(mut of: impl FnMut(Precedence) -> T) -> PerPrecedence<T> {
        PerPrecedence(Precedence::ALL.map(&mut of))
    }

    /// The value of this one.
    pub fn get(&self, precedence: Precedence) -> &T {
        let [deferred, routine, priority, immediate, flash, over] = &self.0;
        match precedence {
            Precedence::Deferred => deferred,
            Precedence::Routine => routine,
            Precedence::Priority => priority,
            Precedence::Immediate => immediate,
            Precedence::Flash => flash,
            Precedence::Override => over,
        }
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, precedence: Precedence) -> &mut T {
        let [deferred, routine, priority, immediate, flash, over] = &mut self.0;
        match precedence {
            Precedence::Deferred => deferred,
            Precedence::Routine => routine,
            Precedence::Priority => priority,
            Precedence::Immediate => immediate,
            Precedence::Flash => flash,
            Precedence::Override => over,
        }
    }

    /// All of them, lowest precedence first.
    pub fn iter(&self) -> impl Iterator<Item = (Precedence, &T)> {
        Precedence::ALL.into_iter().zip(&self.0)
    }
}

/// The text is none of the six names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown precedence {0:?}: use deferred, routine, priority, immediate, flash or override")]
pub struct UnknownPrecedence(pub String);

impl FromStr for Precedence {
    type Err = UnknownPrecedence;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Precedence::ALL
            .into_iter()
            .find(|p| p.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownPrecedence(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip_in_order() {
        for (n, p) in Precedence::ALL.into_iter().enumerate() {
            assert_eq!(p.name().parse(), Ok(p));
            assert_eq!(Precedence::from_number(n as i64), Some(p));
            assert_eq!(usize::from(p.number()), n);
        }
        assert!(Precedence::Override > Precedence::Flash);
        assert_eq!(Precedence::from_number(6), None);
        assert!("urgent".parse::<Precedence>().is_err());
    }

    #[test]
    fn each_precedence_has_its_own_value() {
        let mut table = PerPrecedence::from_fn(|p| p.number());
        for precedence in Precedence::ALL {
            assert_eq!(*table.get(precedence), precedence.number());
            *table.get_mut(precedence) += 10;
        }
        assert!(table.iter().all(|(precedence, value)| *value == precedence.number() + 10));
    }
}
