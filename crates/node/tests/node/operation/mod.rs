//! The configuration and the wall clock change.

mod clock;
mod day;
mod orders;
mod reload;
