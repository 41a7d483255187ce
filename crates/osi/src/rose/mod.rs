//! Remote operations (X.229) on presentation and ACSE, without RTSE.

mod incoming;
mod machine;
pub(crate) mod pdu;
mod sending;
pub(crate) mod table;

pub(crate) use machine::Rose;
