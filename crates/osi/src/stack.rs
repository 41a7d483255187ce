//! A whole association: TPKT to RTSE or ROSE, composed.

mod below;
#[cfg(test)]
mod tests;
mod upper;

pub(crate) use below::{Above, Below};

use crate::api::{Config, Indication, Input, Output, Request, Role};
use crate::lower::{Lower, LowerOutput};
use crate::rtse::InterruptedReceive;
use base::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;
use upper::{Upper, UpperOutput};

/// Most that is demanded.
const MAX_DEMANDED: u64 = 256;

/// Octets that the peer's transport takes at least within this time for it to be progress, unless it
/// has taken all there is: a quarter of what a line of 75 bit/s carries, and no more than 256. With
/// single octets a peer could keep a transfer for ever.
pub fn least_progress(time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (millis.saturating_mul(75) / (8 * 4 * 1000)).clamp(1, MAX_DEMANDED)
}

/// One association, either end.
///
/// `handle(now, input)`, then `poll()` until `None`; `deadline()` states when to pass in
/// [`Input::Tick`]. An initiator is made once its TCP connection is open, and requests with
/// [`crate::api::Request::Open`] or [`crate::api::Request::Recover`].
///
/// A request that the state does not allow is a fault of the caller: it ends the association with
/// [`Indication::Aborted`], which names request and state. One that crossed an event of the peer
/// (an answer to a transfer that was cut off meanwhile) is dropped.
#[derive(Clone, Debug)]
pub struct Association {
    lower: Lower,
    upper: Upper,
    out: VecDeque<Output>,
    /// A responder's set-up timer runs.
    started: bool,
    /// Octets written so far, those of them that end what our user sends now, and those that the
    /// peer's transport has taken.
    written: u64,
    sends_to: u64,
    taken: u64,
    /// Those that it had when that was last progress.
    counted: u64,
    /// The TSDU or packet that is half received while nothing else has a timer, and its bound.
    stall: Option<(u64, Instant)>,
    closed: bool,
}

impl Association {
    /// An association at rest, its TCP connection just made.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a configuration is made for one association"
    )]
    pub fn new(config: Config, role: Role) -> Self {
        Association {
            lower: Lower::new(&config, role),
            upper: Upper::new(&config, role),
            out: VecDeque::new(),
            started: role == Role::Initiator,
            written: 0,
            sends_to: 0,
            taken: 0,
            counted: 0,
            stall: None,
            closed: false,
        }
    }

    /// Takes an input; drain [`Association::poll`] afterwards.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.closed {
            return;
        }
        if !std::mem::replace(&mut self.started, true) {
            self.upper.listen(now);
        }
        match input {
            Input::Bytes(bytes) => self.lower.bytes(now, bytes),
            Input::Eof => self.lower.eof(now),
            Input::Taken(octets) => self.peer_took(now, octets),
            Input::Tick => {
                self.lower.tick(now);
                self.relay(now);
                self.upper.tick(now);
            }
            Input::Request(Request::Close) => {
                self.closed = true;
                self.out.extend([Output::Indication(Indication::Released), Output::Close]);
                return;
            }
            Input::Request(request) => self.upper.request(now, request),
        }
        self.relay(now);
        if self.upper.sends() {
            self.sends_to = self.written;
        }
        self.watch(now);
    }

    /// The peer's transport took octets: progress, where they are of what our user sends, and enough.
    fn peer_took(&mut self, now: Instant, octets: u64) {
        let before = self.taken;
        self.taken = before.max(octets.min(self.written));
        let enough = self.taken - self.counted >= least_progress(self.upper.stall_timeout());
        let all = before < self.sends_to && self.sends_to <= self.taken;
        if self.taken > before && (enough || all) {
            self.counted = self.taken;
            self.upper.peer_took(now, before < self.sends_to);
        }
    }

    /// Octets of the transfer or invocation in progress that the peer's transport has not acknowledged, by
    /// the last [`Input::Taken`]. A fall by [`least_progress`], or to 0, is progress: the caller polls
    /// while this is above 0. It is 0 if no answer of the peer is pending.
    pub fn outstanding(&self) -> u64 {
        if self.closed || !self.upper.awaits_answer() {
            return 0;
        }
        self.sends_to.saturating_sub(self.taken)
    }

    /// Octets written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Those of them that the peer's transport has acknowledged, by the last [`Input::Taken`].
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Octets between checkpoints, as agreed on; `None` before that, without checkpoints, and for
    /// ROSE.
    pub fn checkpoint(&self) -> Option<u64> {
        self.upper.checkpoint()
    }

    /// Bounds what the peer has begun to send while no layer waits for anything. Its octets do not
    /// move the bound, the next packet does.
    fn watch(&mut self, now: Instant) {
        let begun = self.lower.unfinished().filter(|_| self.upper.is_idle());
        self.stall = begun.map(|packet| match self.stall {
            Some((same, at)) if same == packet => (packet, at),
            _ => (packet, now + self.upper.stall_timeout()),
        });
        if self.stall.is_some_and(|(_, at)| at <= now) {
            self.stall = None;
            let most = self.upper.stall_timeout();
            let detail = format!(
                "transport: a TPKT or TSDU begun by the peer did not end within {most:?} \
                 (RFC 1006 section 6, X.224 6.3)"
            );
            self.upper.fail(now, detail);
            self.relay(now);
        }
    }

    /// Carries primitives between the two halves until both are at rest.
    fn relay(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.upper.poll() {
                match output {
                    UpperOutput::Session(request) => {
                        if let Err(misuse) = self.lower.request(now, request) {
                            self.upper.fail(now, misuse.to_string());
                        }
                    }
                    UpperOutput::User(indication) => self.notify(indication),
                    UpperOutput::End => {
                        let user_data = bytes::Bytes::new();
                        let abort = crate::session::service::Request::Abort { user_data };
                        // Not in order only where the connection is over already.
                        let _ = self.lower.request(now, abort);
                    }
                }
                continue;
            }
            match self.lower.poll() {
                Some(LowerOutput::Send(bytes)) => {
                    self.written += bytes.len() as u64;
                    self.out.push_back(Output::Send(bytes));
                }
                Some(LowerOutput::Close) => self.close(now),
                Some(LowerOutput::Indication(i)) => self.upper.indication(now, i),
                None => return,
            }
        }
    }

    /// The transport connection ends; the user gets the reason unless it has one already.
    fn close(&mut self, now: Instant) {
        self.closed = true;
        let detail = self.lower.refusal_detail();
        let detail = detail.unwrap_or("session: the connection ended before a CONNECT (X.225 7.1)");
        self.upper.fail(now, detail.to_owned());
        while let Some(output) = self.upper.poll() {
            if let UpperOutput::User(indication) = output {
                self.notify(indication);
            }
        }
        self.out.push_back(Output::Close);
    }

    fn notify(&mut self, mut indication: Indication) {
        if let Indication::Open { calling, .. } = &mut indication {
            calling.transport = self.lower.calling_transport().cloned();
        }
        // Where the connection was refused below the session layer, that layer knows why.
        if let Indication::Refused { detail, .. } = &mut indication
            && let Some(lower) = self.lower.refusal_detail()
            && lower != detail
        {
            *detail = format!("{lower}; {detail}");
        }
        self.out.push_back(Output::Indication(indication));
    }

    /// Octets held between calls that the peer can make grow or stay: unfinished TPDUs and SPDUs,
    /// what is not sent yet, checkpoints, transfers that were cut off, invocations. Drain
    /// [`Association::poll`] first: what it still has to give is not counted.
    pub fn held(&self) -> usize {
        self.lower.held() + self.upper.held()
    }

    /// The most that [`Association::held`] gives for an association set up like this, whatever the
    /// peer sends, in octets. To it come the association's own fixed size, and what our user asked to
    /// be sent (the head and tail of its payloads).
    pub fn most_held(config: &Config) -> usize {
        let segments =
            if config.mode.is_x410() { crate::session::Machine::MAX_SEGMENTS } else { 0 };
        Lower::MAX_HELD + segments + Upper::most_held(config)
    }

    /// The state of each layer, `layer state`, for tests.
    #[cfg(test)]
    pub(crate) fn states(&self) -> Vec<String> {
        [self.lower.states(), self.upper.states()].concat()
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When to hand in [`Input::Tick`], if nothing else comes before.
    pub fn deadline(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        let stall = self.stall.map(|(_, at)| at);
        [self.lower.deadline(), self.upper.deadline(), stall].into_iter().flatten().min()
    }

    /// The transfer that is being received, as it is at the last checkpoint of which
    /// [`crate::api::Indication::Checkpoint`] gave so many octets or fewer: what
    /// [`Association::take_interrupted`] gives if the association is lost once that is confirmed.
    pub fn at_checkpoint(&self, octets: u64) -> Option<InterruptedReceive> {
        self.upper.at_checkpoint(octets)
    }

    /// After the end of an RTSE association: what it left of a transfer that was being received,
    /// for [`crate::api::Request::AcceptRecover`]. `None` where there is nothing to go on from.
    pub fn take_interrupted(&mut self) -> Option<InterruptedReceive> {
        self.upper.take_interrupted()
    }
}
