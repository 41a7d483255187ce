//! The variants of a fault at one operation of a disk.

use std::io::ErrorKind;
use std::time::Duration;
use store::faulty::Loss;
use testkit::real::Fault;

/// A variant: the faults that begin with the operation `n`.
pub(crate) struct Variant {
    pub name: &'static str,
    faults: fn(u64, u64) -> Vec<(u64, Fault)>,
}

impl Variant {
    pub(crate) fn faults(&self, n: u64, seed: u64) -> Vec<(u64, Fault)> {
        (self.faults)(n, 1_000 * n + seed)
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

/// All variants.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant { name: "lost", faults: |n, _| vec![(n, power(Loss::Everything))] },
    Variant { name: "kept", faults: |n, _| vec![(n, power(Loss::Nothing))] },
    Variant { name: "torn", faults: |n, s| vec![(n, power(Loss::Some(s)))] },
    Variant { name: "lost, made", faults: |n, _| vec![(n, power_after(Loss::Everything))] },
    Variant { name: "kept, made", faults: |n, _| vec![(n, power_after(Loss::Nothing))] },
    Variant { name: "torn, made", faults: |n, s| vec![(n, power_after(Loss::Some(s)))] },
    Variant {
        name: "failed, lost",
        faults: |n, _| vec![(n, Fault::Fails(ErrorKind::Other)), (2, power(Loss::Everything))],
    },
    Variant {
        name: "failed, torn",
        faults: |n, s| vec![(n, Fault::Fails(ErrorKind::Other)), (1 + s % 9, power(Loss::Some(s)))],
    },
    Variant { name: "failed", faults: |n, _| vec![(n, Fault::Fails(ErrorKind::Other))] },
    Variant { name: "failing", faults: |n, _| vec![(n, Fault::FailsFor(ErrorKind::Other, WHILE))] },
    Variant { name: "no room once", faults: |n, _| vec![(n, Fault::Fails(ErrorKind::StorageFull))] },
    Variant {
        name: "no room at all",
        faults: |n, _| vec![(n, Fault::FailsFor(ErrorKind::StorageFull, WHILE))],
    },
    Variant { name: "full", faults: |n, _| vec![(n, Fault::Full(WHILE))] },
    Variant {
        name: "full, torn",
        faults: |n, s| vec![(n, Fault::Full(WHILE)), (1 + s % 5, power(Loss::Some(s)))],
    },
    Variant {
        name: "twice",
        faults: |n, s| vec![(n, power(Loss::Some(s))), (1 + s % 17, power(Loss::Some(s + 1)))],
    },
    Variant { name: "rot", faults: |n, s| vec![(n, Fault::Rot(s))] },
];
