//! Association control, normal mode (X.227).

mod machine;
pub(crate) mod pdu;
pub(crate) mod table;

pub(crate) use machine::{Acse, Indication, Request};
pub(crate) use pdu::diagnostic;
