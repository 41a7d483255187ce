//! RTSE, normal mode (X.228).

/// What a receiver keeps of a transfer that was cut off, so that a recovered association can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedReceive {}
