//! The OSI stack without input or output, incremental at every layer.

mod acse;
pub mod api;
pub mod cotp;
pub mod lower;
mod presentation;
pub mod profiles;
mod raw;
mod rose;
pub mod rtse;
pub mod session;
pub mod shown;
pub mod stack;
mod table;
pub mod tpkt;
mod x410;
