//! What is stored and where: the queue, and the message store.

pub mod engine;
pub(crate) mod p7;
