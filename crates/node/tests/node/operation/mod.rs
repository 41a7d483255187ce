//! The configuration and the wall clock change.

mod channels;
mod clock;
mod day;
mod lists;
mod orders;
mod reload;
mod shards;
