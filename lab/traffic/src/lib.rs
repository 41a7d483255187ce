//! Load: UDP at a constant bit rate and TCP limited to a rate, in many flows of any code point, and its
//! measurement at the receiver.
//!
//! A [`LoadPlan`] defines what a [`Sender`] sends. A [`Receiver`] returns what it [`Measured`]. Each is
//! bounded in time. Times in packets are nanoseconds of CLOCK_MONOTONIC, which all network namespaces of a
//! machine share, or of CLOCK_REALTIME between machines ([`LoadClock`]).

pub mod clock;
pub mod measure;
mod plan;
mod receive;
mod report;
mod send;

pub use clock::LoadClock;
pub use load_header::{HEADER, LoadHeader};
pub use measure::spread::Summary;
pub use measure::{
    Ahead, Arrival, Counts, FlowKey, FlowMeasured, Measured, Meter, Octets, TrafficRow, kbit_s,
};
pub use plan::{Counted, FlowPlan, LoadPlan, Pacing, Transport, WrongPlan};
pub use receive::{Ending, Received, Receiver, Reception};
pub use report::{csv, received_json, received_table, sent_json, sent_table};
pub use send::pace::{MAX_JITTER, Pace};
pub use send::{Sender, Sent, SentFlow};
