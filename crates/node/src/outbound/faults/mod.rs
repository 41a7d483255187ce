//! Whose fault it is that transfers fail.

pub(crate) mod blame;
pub(crate) mod judging;
