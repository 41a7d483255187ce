//! P1 associations in X.410 (1984) mode: the tests of normal mode that are not about ACSE and presentation, and what
//! only this mode has.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

#[path = "../association/ending.rs"]
mod ending;
#[path = "../association/failures.rs"]
mod failures;
#[path = "../association/interruption.rs"]
mod interruption;
mod octets;
#[path = "../pair/mod.rs"]
mod pair;
#[path = "../association/recovery.rs"]
mod recovery;
#[path = "../association/shared.rs"]
mod shared;
#[path = "../association/transfers.rs"]
mod transfers;
#[path = "../association/turn.rs"]
mod turn;

use osi::api::Mode;
use shared::{bytes_of, supply, transfer, whole};

/// The mode of the associations.
const MODE: Mode = Mode::X410 { protocol: Some(Mode::P1_1988) };
