//! The presentation layer, normal mode, kernel (X.226).

mod connect;
mod machine;
pub(crate) mod pdu;
mod receive;
pub(crate) mod service;
pub(crate) mod table;

pub(crate) use machine::Presentation;
pub(crate) use receive::integer;
