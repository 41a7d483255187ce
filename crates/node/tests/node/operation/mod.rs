//! The configuration and the wall clock change.

mod channels;
mod clock;
mod orders;
mod reload;
