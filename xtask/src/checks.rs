//! Checks of the source: its form, its dependencies and its size.

pub(crate) mod circles;
pub(crate) mod conformance;
pub(crate) mod deny;
pub(crate) mod edges;
pub(crate) mod purity;
pub(crate) mod ratio;
pub(crate) mod rooms;
pub(crate) mod source;
pub(crate) mod tidy;
pub(crate) mod wording;
