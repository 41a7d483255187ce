//! Verbs that translate policies of routers.

pub(super) mod export_ios;
pub(super) mod export_tc;
pub(super) mod import_ios;
