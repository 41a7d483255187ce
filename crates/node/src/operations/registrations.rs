//! Registrations of users that are being made.

use crate::api::operator::Operator;
use base::AssociationId;
use engine::registered::Registration;
use p1::p3::RegisterArgument;
use std::collections::VecDeque;

/// Who registers something.
#[derive(Debug)]
pub(crate) enum Registrar {
    /// The user, in this invocation.
    User(AssociationId, i64),
    /// An operator, who removes all.
    Operator(u64, Operator),
}

/// What is to be registered for a mailbox.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(crate) by: Registrar,
    pub(crate) mailbox: String,
    pub(crate) argument: RegisterArgument,
}

/// Registrations that are to be made, one after the other: each begins with what the last one left.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    pub(crate) waiting: VecDeque<Registering>,
    /// The one that is being committed, with its outcome.
    pub(crate) current: Option<(Registering, Registration)>,
}
