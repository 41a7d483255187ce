//! What one direction of a TCP connection tells of loss and round-trip time.

mod round_trip;
mod track;

pub use track::Counts;
pub(crate) use {
    round_trip::RoundTrip,
    track::{Acknowledged, Seen, Track},
};
