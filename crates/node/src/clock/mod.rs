//! The wall clock, which may be wrong.

pub mod wall;
pub(crate) mod watch;
