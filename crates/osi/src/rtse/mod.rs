//! Reliable transfer, normal mode (X.228): whole APDUs over activities, with checkpoints.

mod abort;
mod incoming;
mod inflow;
mod interrupted;
mod machine;
mod open;
mod outflow;
pub(crate) mod pdu;
mod receiver;
mod sender;
pub(crate) mod table;
mod turn;

pub use interrupted::InterruptedReceive;
pub(crate) use machine::Rtse;
pub(crate) use outflow::{Piece, Pulled};
