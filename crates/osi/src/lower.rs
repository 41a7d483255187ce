//! The lower half of the stack as one machine: octets of a TCP connection below, the session
//! service above (RFC 1006, X.224 class 0, X.225 version 2).

use crate::api::{Config, Role, Selectors};
use crate::session::service;
use base::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// What the lower layers take from an association's configuration.
#[derive(Clone, Debug)]
pub struct LowerConfig {
    /// Which end of the TCP connection we are.
    pub role: Role,
    /// Our selectors (the presentation selector is unused here).
    pub local: Selectors,
    /// The peer's.
    pub remote: Selectors,
    /// Largest TPDU, as [`Config::tpdu_size`].
    pub tpdu_size: Option<u32>,
    /// Longest wait for each answer of the peer while a connection is made or ended.
    pub setup_timeout: Duration,
}

impl LowerConfig {
    /// The part of `config` that concerns the lower layers.
    pub fn new(config: &Config, role: Role) -> LowerConfig {
        LowerConfig {
            role,
            local: config.local.clone(),
            remote: config.remote.clone(),
            tpdu_size: config.tpdu_size,
            setup_timeout: config.setup_timeout,
        }
    }
}

/// What the lower layers want done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerOutput {
    /// Write these octets to the TCP connection, in order.
    Send(Bytes),
    /// Close the TCP connection once all is written. Nothing follows.
    Close,
    /// Tells the session user.
    Indication(service::Indication),
}

/// A request the session service does not allow now: a fault of our own, not of the peer. Nothing
/// was sent and no state changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{request} is not allowed: {why} ({clause})")]
pub struct Misuse {
    /// The primitive.
    pub request: &'static str,
    /// The state, or the parameter that is out of range.
    pub why: String,
    /// The clause that forbids it.
    pub clause: &'static str,
}

/// Transport and session of one association.
#[derive(Debug)]
pub struct Lower {
    config: LowerConfig,
    out: VecDeque<LowerOutput>,
}

impl Lower {
    /// A machine at rest, its TCP connection just made. An initiator sends nothing before
    /// [`service::Request::Connect`]; a responder waits for the peer until the setup timeout, counted
    /// from the first call.
    pub fn new(config: &Config, role: Role) -> Lower {
        Lower { config: LowerConfig::new(config, role), out: VecDeque::new() }
    }

    /// Takes octets from the TCP connection, any division.
    pub fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        let _ = (now, bytes);
    }

    /// The peer closed its side, or the TCP connection was lost.
    pub fn eof(&mut self, now: Instant) {
        let _ = now;
    }

    /// The deadline passed. Early and needless calls do no harm.
    pub fn tick(&mut self, now: Instant) {
        let _ = now;
    }

    /// A primitive of the session user.
    ///
    /// # Errors
    /// [`Misuse`] where the state table has no cell for it or a parameter is out of range.
    pub fn request(&mut self, now: Instant, request: service::Request) -> Result<(), Misuse> {
        let _ = (now, request, &self.config);
        Ok(())
    }

    /// The next thing to do; drain until `None` after each call that hands something in.
    pub fn poll(&mut self) -> Option<LowerOutput> {
        self.out.pop_front()
    }

    /// When to call [`Lower::tick`].
    pub fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The calling transport selector of the peer (responder, after its connect request).
    pub fn calling_transport(&self) -> Option<&Bytes> {
        None
    }
}
