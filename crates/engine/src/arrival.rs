//! Messages, probes and reports that arrive: reading, checking, duplicates, trace.

pub(crate) mod accept;
pub mod classify;
pub(crate) mod content;
pub mod critical;
pub(crate) mod dedupe;
pub(crate) mod passed;
pub(crate) mod prepare;
pub(crate) mod reservations;
pub(crate) mod submit;
pub(crate) mod trace;
