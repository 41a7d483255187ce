//! Orders of MINIMIZE, and the floors in force.

use base::{Instant, Precedence, Utc};
use scheduler::Scope;
use std::collections::BTreeMap;

/// What the operator ordered: in force until then, or until it is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloorOrder {
    pub(crate) floor: Option<Precedence>,
    pub(crate) until: Option<Utc>,
}

/// What is in force.
#[derive(Debug, Default)]
pub(crate) struct Minimizing {
    /// As the scheduler has them.
    pub(crate) floors: BTreeMap<Scope, Precedence>,
    pub(crate) orders: BTreeMap<Scope, FloorOrder>,
    pub(crate) look_at: Option<Instant>,
}

impl Minimizing {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }
}
