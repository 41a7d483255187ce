//! Messages of P1: activities of a session over TPKT, on any port, known by their content.

mod association;
mod envelope;
mod stream;

pub(crate) use association::{Association, Passing, Transfer};
pub(crate) use stream::looks_like_tpkt;
