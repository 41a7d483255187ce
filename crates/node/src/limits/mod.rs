//! What others can make this MTA hold: shares that higher levels keep, and memory.

pub(crate) mod levels;
pub(crate) mod memory;
