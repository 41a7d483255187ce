//! The floors of MINIMIZE in force.

use base::{Instant, Precedence};
use scheduler::Scope;
use std::collections::BTreeMap;

/// What is in force. The orders are in the context, because the store has them.
#[derive(Debug, Default)]
pub(crate) struct Minimizing {
    /// As the scheduler has them.
    pub(crate) floors: BTreeMap<Scope, Precedence>,
    pub(crate) look_at: Option<Instant>,
}

impl Minimizing {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }
}
