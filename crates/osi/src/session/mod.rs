//! The session layer (X.225).

pub mod service;
