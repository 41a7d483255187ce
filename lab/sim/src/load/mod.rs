//! What hosts send: messages, bulk transfers over TCP, and UDP.

pub(crate) mod bulk;
pub(crate) mod content;
pub(crate) mod message;
pub(crate) mod udp;
