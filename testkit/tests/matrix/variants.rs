//! The variants of a fault at one operation of a disk.

use crate::scenario::Case;
use std::fmt;
use std::io::ErrorKind;
use std::str::FromStr;
use std::time::Duration;
use store::faulty::Loss;
use testkit::real::Fault;

/// A variant: the faults that begin with the operation `n`.
pub(crate) struct Variant {
    pub name: &'static str,
    /// Whether something of it is left to chance.
    pub is_seeded: bool,
    /// Of the operations that other variants are tried at, it is tried at one in so many.
    pub cost: u64,
    faults: fn(u64, u64) -> Vec<(u64, Fault)>,
}

impl Variant {
    pub(crate) fn faults(&self, n: u64, seed: u64) -> Vec<(u64, Fault)> {
        (self.faults)(n, 1_000 * n + seed)
    }
}

/// A place of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// None: without a fault.
    pub variant: Option<&'static str>,
    pub site: usize,
    pub n: u64,
    pub seed: u64,
}

impl Place {
    /// A run without a fault.
    pub(crate) const NOWHERE: Place = Place { variant: None, site: 0, n: 0, seed: 0 };

    pub(crate) fn case(&self) -> Case {
        let variant = VARIANTS.iter().find(|variant| Some(variant.name) == self.variant);
        let faults = variant.map(|variant| variant.faults(self.n, self.seed));
        Case { site: self.site, faults: faults.unwrap_or_default(), mutant: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { site, n, seed, .. } = self;
        write!(f, "{}:{site}:{n}:{seed}", self.variant.unwrap_or("no fault"))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let words: Vec<&str> = text.split(':').collect();
        let [name, site, n, seed] = words[..] else { return Err(format!("{text}: not a place")) };
        let number = |word: &str| word.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        let variant = VARIANTS.iter().find(|variant| variant.name == name);
        Ok(Place {
            variant: variant.map(|variant| variant.name),
            site: number(site)? as usize,
            n: number(n)?,
            seed: number(seed)?,
        })
    }
}

const fn power(loss: Loss) -> Fault {
    Fault::Power { loss, after: false }
}

const fn power_after(loss: Loss) -> Fault {
    Fault::Power { loss, after: true }
}

/// Longer than the time after which a daemon is started again, and a transfer repeated.
const WHILE: Duration = Duration::from_secs(20);

/// As long as it takes to fill a segment with the small values that a node writes each minute.
const LONG: Duration = Duration::from_secs(3_600);

/// All variants.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant {
        name: "lost",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, power(Loss::Everything))],
    },
    Variant {
        name: "kept",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, power(Loss::Nothing))],
    },
    Variant {
        name: "torn",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, power(Loss::Some(s)))],
    },
    Variant {
        name: "lost, made",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, power_after(Loss::Everything))],
    },
    Variant {
        name: "kept, made",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, power_after(Loss::Nothing))],
    },
    Variant {
        name: "torn, made",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, power_after(Loss::Some(s)))],
    },
    Variant {
        name: "failed, lost",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::Fails(ErrorKind::Other)), (2, power(Loss::Everything))],
    },
    Variant {
        name: "failed, torn",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, Fault::Fails(ErrorKind::Other)), (1 + s % 9, power(Loss::Some(s)))],
    },
    Variant {
        name: "failed",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::Fails(ErrorKind::Other))],
    },
    Variant {
        name: "failing",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::FailsFor(ErrorKind::Other, WHILE))],
    },
    Variant {
        name: "no room once",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::Fails(ErrorKind::StorageFull))],
    },
    Variant {
        name: "no room at all",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::FailsFor(ErrorKind::StorageFull, WHILE))],
    },
    Variant {
        name: "full",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::Full(WHILE))],
    },
    Variant {
        name: "full for long",
        is_seeded: false,
        cost: 4,
        faults: |n, _| vec![(n, Fault::Full(LONG))],
    },
    Variant {
        name: "full, torn",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, Fault::Full(WHILE)), (1 + s % 5, power(Loss::Some(s)))],
    },
    Variant {
        name: "twice",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, power(Loss::Some(s))), (1 + s % 17, power(Loss::Some(s + 1)))],
    },
    Variant { name: "killed", is_seeded: false, cost: 1, faults: |n, _| vec![(n, Fault::Kill)] },
    Variant {
        name: "killed, lost",
        is_seeded: false,
        cost: 1,
        faults: |n, _| vec![(n, Fault::Kill), (25, power(Loss::Everything))],
    },
    Variant {
        name: "killed, torn",
        is_seeded: true,
        cost: 1,
        faults: |n, s| vec![(n, Fault::Kill), (1 + s % 60, power(Loss::Some(s)))],
    },
    Variant {
        name: "unread",
        is_seeded: false,
        cost: 2,
        faults: |n, _| vec![(n, Fault::UnreadableOnce)],
    },
    Variant {
        name: "unread, killed",
        is_seeded: false,
        cost: 2,
        faults: |n, _| vec![(n, Fault::Kill), (1, Fault::UnreadableOnce)],
    },
    Variant {
        name: "unreadable",
        is_seeded: false,
        cost: 2,
        faults: |n, _| vec![(n, Fault::Unreadable(WHILE))],
    },
    Variant {
        name: "killed, unreadable",
        is_seeded: false,
        cost: 2,
        faults: |n, _| vec![(n, Fault::Kill), (1, Fault::Unreadable(WHILE))],
    },
    Variant { name: "rot", is_seeded: true, cost: 1, faults: |n, s| vec![(n, Fault::Rot(s))] },
];
