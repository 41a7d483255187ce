//! Verbs that keep a network up, or speak to one that is up.

pub(super) mod capture;
pub(super) mod down;
pub(super) mod exec;
pub(super) mod list;
pub(super) mod router;
pub(super) mod status;
pub(super) mod up;
