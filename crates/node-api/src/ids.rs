//! Names that node and edge use for things.

use base::PeerId;

pub use settings::ListenerId;

/// Pairs an output with the input that answers it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Token(pub u64);

/// Whose password is to be checked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Principal {
    /// A peer MTA that binds to us.
    Peer(PeerId),
    /// A user, by the canonical text of the O/R address.
    User(String),
}
