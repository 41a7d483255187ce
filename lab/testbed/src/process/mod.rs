//! Processes that the testbed starts: the programs, where they are, and their end.

pub mod child;
pub(crate) mod programs;
pub mod tool;
