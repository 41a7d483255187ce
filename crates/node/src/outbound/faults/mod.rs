//! Whose fault it is that transfers fail.

pub(crate) mod judging;
