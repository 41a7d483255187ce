//! The configuration and the wall clock change.

mod channels;
mod clock;
mod day;
mod gained;
mod lists;
mod orders;
mod reload;
mod shards;
