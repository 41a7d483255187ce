//! The configuration and the wall clock change.

mod clock;
mod lists;
mod orders;
mod reload;
