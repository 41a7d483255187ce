//! What all crates share: time, identifiers, precedences, BER, seeded randomness, text fit to show.
//!
//! Pure: nothing here reads a clock, a file, a socket or a source of randomness.

pub mod ber;
pub mod ids;
pub mod ip_prefix;
pub mod marks;
pub mod numbers;
pub mod precedence;
pub mod precedence_queue;
pub mod quantity;
pub mod rate_meter;
pub mod rng;
pub mod shown;
pub mod steps;
pub mod time;
pub mod window;

pub use ids::{AssociationId, BodyId, EntryId, PeerId};
pub use precedence::{PerPrecedence, Precedence};
pub use precedence_queue::PrecedenceQueue;
pub use time::{Instant, Now, Utc};
pub use window::{Window, Windows};
