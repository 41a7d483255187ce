//! Long searches for what breaks: in virtual time, and with real daemons.

pub(crate) mod cluster;
pub(crate) mod guided;
pub(crate) mod hunt;
pub(crate) mod mutants;
pub(crate) mod soak;
