//! The lower half of the stack as one machine: octets of a TCP connection below, the session
//! service above (RFC 1006, X.224 class 0, X.225 version 2).

use crate::api::{Config, Role, Selectors};
use crate::cotp;
use crate::session::pdu::{VERSION_1, VERSION_2};
use crate::session::{self, service};
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
    /// As [`Config::turn_away`].
    pub turn_away: bool,
    /// Proposes, or takes up, version 1 of the session protocol beside version 2.
    pub version_1: bool,
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
            turn_away: config.turn_away,
            version_1: config.mode.is_x410(),
        }
    }
}

impl LowerConfig {
    /// The versions of the session protocol, a bit each.
    pub(crate) fn versions(&self) -> u8 {
        if self.version_1 { VERSION_1 | VERSION_2 } else { VERSION_2 }
    }
}

/// An output of the lower layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerOutput {
    /// Write these octets to the TCP connection, in order.
    Send(Bytes),
    /// Close the TCP connection once all is written. Nothing follows.
    Close,
    /// Indicates to the session user.
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
#[derive(Clone, Debug)]
pub struct Lower {
    transport: cotp::Machine,
    session: session::Machine,
    role: Role,
    started: bool,
    over: bool,
    /// The instant last handed in.
    now: Instant,
    out: VecDeque<LowerOutput>,
}

impl Lower {
    /// A machine at rest, its TCP connection just made. An initiator sends nothing before
    /// [`service::Request::Connect`]; a responder waits for the peer until the setup timeout, counted
    /// from the first call of any kind.
    pub fn new(config: &Config, role: Role) -> Lower {
        let config = LowerConfig::new(config, role);
        Lower {
            transport: cotp::Machine::new(config.clone()),
            session: session::Machine::new(config),
            role,
            started: false,
            over: false,
            now: Instant::default(),
            out: VecDeque::new(),
        }
    }

    /// Takes octets from the TCP connection, any division.
    pub fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.start(now);
        if !self.over {
            self.transport.bytes(now, Bytes::copy_from_slice(bytes));
        }
    }

    /// The peer closed its side, or the TCP connection was lost.
    pub fn eof(&mut self, now: Instant) {
        self.start(now);
        self.transport.eof(now);
    }

    /// The deadline passed. Early and needless calls do no harm.
    pub fn tick(&mut self, now: Instant) {
        self.start(now);
        self.transport.tick(now);
        self.session.tick(now);
    }

    /// A primitive of the session user.
    ///
    /// # Errors
    /// [`Misuse`] where the state table has no cell for it or a parameter is out of range.
    pub fn request(&mut self, now: Instant, request: service::Request) -> Result<(), Misuse> {
        self.start(now);
        if self.over {
            return Err(Misuse {
                request: "a session primitive",
                why: "the connection is over".to_owned(),
                clause: "X.225 A.4.1.1",
            });
        }
        self.session.request(now, request)
    }

    /// The next thing to do; drain until `None` after each call that hands something in. What came
    /// after the SPDU of an indication is looked at when the next output is asked for: requests made
    /// meanwhile find the state of the indication, however TCP divided the octets.
    pub fn poll(&mut self) -> Option<LowerOutput> {
        if self.out.is_empty() {
            self.advance();
        }
        self.out.pop_front()
    }

    /// Which TSDU or packet is half received, as [`cotp::Machine::unfinished`].
    pub(crate) fn unfinished(&self) -> Option<u64> {
        self.transport.unfinished()
    }

    /// When to call [`Lower::tick`]. A responder that was never called asks for a call at once, to
    /// start its timer.
    pub fn deadline(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        if !self.started && self.role == Role::Responder {
            return Some(Instant::default());
        }
        match (self.transport.deadline(), self.session.deadline()) {
            (Some(transport), Some(session)) => Some(transport.min(session)),
            (transport, session) => transport.or(session),
        }
    }

    /// The calling transport selector of the peer (responder, after its connect request).
    pub fn calling_transport(&self) -> Option<&Bytes> {
        self.transport.peer_selector()
    }

    /// Whether tokens are in use and all are ours: at the start this is who has the turn.
    pub fn owns_tokens(&self) -> bool {
        self.session.owns_tokens()
    }

    /// Why a connection was refused, for the log: layer, reason, clause.
    pub fn refusal_detail(&self) -> Option<&str> {
        self.session.detail()
    }

    /// Octets held between calls.
    pub(crate) fn held(&self) -> usize {
        self.transport.held() + self.session.held()
    }

    /// Most octets [`Lower::held`] ever gives.
    pub(crate) const MAX_HELD: usize = cotp::Machine::MAX_HELD + session::Machine::MAX_HELD;

    /// The states of both layers, named as in [`crate::stack::Association::states`].
    #[cfg(test)]
    pub(crate) fn states(&self) -> [String; 2] {
        [
            format!("cotp {:?}", self.transport.state()),
            format!("session {:?}", self.session.state()),
        ]
    }

    fn start(&mut self, now: Instant) {
        self.now = now;
        if !std::mem::replace(&mut self.started, true) && self.role == Role::Responder {
            self.transport.listen(now);
        }
    }

    /// Passes outputs between the layers, the session layer's first, until there is an output.
    fn advance(&mut self) {
        let now = self.now;
        while self.out.is_empty() {
            if let Some(output) = self.session.poll() {
                match output {
                    session::Output::ConnectTransport => self.transport.connect(now),
                    session::Output::Data { bytes, last } => self.transport.send(now, bytes, last),
                    session::Output::Truncate => self.transport.truncate(),
                    session::Output::DisconnectTransport => self.transport.disconnect(now),
                    session::Output::Indication(indication) => {
                        self.out.push_back(LowerOutput::Indication(indication));
                    }
                }
                continue;
            }
            match self.transport.poll() {
                None => return,
                Some(cotp::Output::Send(bytes)) => self.out.push_back(LowerOutput::Send(bytes)),
                Some(cotp::Output::Connected) => self.session.transport_connected(now),
                Some(cotp::Output::Data { bytes, last }) => self.session.data(now, bytes, last),
                Some(cotp::Output::Disconnected { refused, detail }) => {
                    self.session.transport_lost(now, refused, detail);
                }
                Some(cotp::Output::Close) => {
                    if !std::mem::replace(&mut self.over, true) {
                        self.out.push_back(LowerOutput::Close);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
