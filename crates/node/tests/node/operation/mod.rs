//! The configuration and the wall clock change.

mod clock;
mod orders;
mod reload;
