//! How types of other crates are written in the file of a world.

use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(remote = "p1::flags::ReportRequest", rename_all = "snake_case")]
pub(crate) enum ReportRequest {
    None,
    NonDelivery,
    Report,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "scheduler::Hold", rename_all = "snake_case")]
pub(crate) enum Hold {
    Off,
    Conserving,
    Strict,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "testkit::Death", rename_all = "snake_case")]
pub(crate) enum Death {
    Power,
    Process,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "store::faulty::Loss", rename_all = "snake_case")]
enum Loss {
    Everything,
    Nothing,
    Some(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "testkit::real::Fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    Power {
        #[serde(with = "Loss")]
        loss: store::faulty::Loss,
        after: bool,
    },
    Kill,
    Fails(#[serde(with = "error")] ErrorKind),
    FailsFor(#[serde(with = "error")] ErrorKind, Duration),
    Full(Duration),
    Rot(u64),
    UnreadableOnce,
    Unreadable(Duration),
}

/// One of the two errors that a disk in memory fails with.
mod error {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use std::io::ErrorKind;

    pub(super) fn serialize<S: Serializer>(kind: &ErrorKind, to: S) -> Result<S::Ok, S::Error> {
        (*kind == ErrorKind::StorageFull).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<ErrorKind, D::Error> {
        let is_full = bool::deserialize(from)?;
        Ok(if is_full { ErrorKind::StorageFull } else { ErrorKind::Other })
    }
}
