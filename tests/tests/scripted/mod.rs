//! A peer made of literal octets, against our stack and against our daemon.
//!
//! The octets stand in `tests/vectors`: one directory a case, one numbered file a TSDU (or what else
//! is sent at once), written from the standards and from captured traffic, not with an encoder of
//! ours. What we answer is compared octet by octet. The stack takes them at every division; the
//! daemon takes them over TCP.

mod blue_book;
mod closing;
pub(crate) mod daemon;
mod foreign;
mod memory;
pub(crate) mod peer;
mod reader;
mod rts_1984;
mod script;
mod services;
mod stack;
mod strict_1988;
mod taker;
pub(crate) mod tcp;
