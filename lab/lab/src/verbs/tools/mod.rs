//! Hidden verbs: what the testbed runs inside a namespace.

pub(super) mod bleach;
#[cfg(feature = "studies")]
pub(super) mod probe;
pub(super) mod record;
