//! Remote operations (X.229) on presentation and ACSE, without RTSE.

mod association;
mod incoming;
mod machine;
pub(crate) mod pdu;
mod receiving;
mod sending;
pub(crate) mod table;

pub(crate) use machine::Rose;
