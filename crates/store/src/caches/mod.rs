//! What is answered without reading the disk. Never wrong: what a cache does not know is read.

pub(crate) mod recent;
pub(crate) mod sieve;
