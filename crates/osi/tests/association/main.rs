//! P1 associations, both ends ours: what the user sees, whatever the pipe does.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

mod ending;
mod failures;
mod interruption;
mod octets;
mod opening;
#[path = "../pair/mod.rs"]
mod pair;
mod recovery;
mod shared;
mod transfers;
mod turn;

use osi::api::Mode;
use shared::{bytes_of, supply, transfer, whole};

/// The mode of the associations.
const MODE: Mode = Mode::Normal;
