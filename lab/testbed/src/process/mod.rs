//! Processes that the testbed starts: the paths of the programs, and their start and end.

pub mod child;
pub(crate) mod programs;
pub mod tool;
