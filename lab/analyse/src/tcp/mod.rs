//! Loss and round-trip time, from one direction of a TCP connection.

mod round_trip;
mod track;

pub use track::TcpCounts;
pub(crate) use {
    round_trip::RoundTrip,
    track::{Acknowledged, SegmentKind, Track},
};
