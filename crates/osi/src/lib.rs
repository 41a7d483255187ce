//! The OSI stack without input or output, incremental at every layer.

pub mod api;
pub mod cotp;
pub mod lower;
pub mod rtse;
pub mod session;
pub mod tpkt;
