//! One connection, driven as the daemon's driver drives its own. A queue above TCP reports when it has
//! room. Reading stops while too many octets wait to be written. A close lets the octets written before
//! it go first.

use crate::host::{ConnectionId, HostEvent};
use crate::segment::Flow;
use bytes::{Buf as _, Bytes};
use dscp::Dscp;
use router::Time;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, State as TcpState};
use std::collections::VecDeque;
use std::time::Duration;

/// Octets waiting to be written at which reading stops and no more content is requested, as in the
/// daemon.
pub const MAX_UNSENT: usize = 1 << 20;
/// How long the peer may take to close after this end, as in the daemon.
const LINGER: Duration = Duration::from_secs(5);
/// The most octets of one [`HostEvent::Bytes`].
const MAX_CHUNK: usize = 64 << 10;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the handshake, until this time at most. An accepted connection has the port of its listener.
    Opening { until: Time, accepted: Option<u16> },
    /// Octets pass in both directions.
    Open,
    /// The octets written before are sent, then FIN. Received octets are dropped.
    Closing,
    /// FIN is sent. The peer's FIN is awaited until this time.
    Lingering { until: Time },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) handle: SocketHandle,
    pub(super) flow: Flow,
    /// [`HostEvent::Room`] follows once fewer octets than this wait.
    pub(super) room_below: Option<usize>,
    state: State,
    /// Closed before it was open.
    closed_early: bool,
    outgoing: VecDeque<Bytes>,
    /// Octets in `outgoing`.
    waiting: usize,
    /// Octets that TCP has taken.
    taken: u64,
    /// TCP takes no more until it has sent half of what it holds.
    is_full: bool,
    /// TCP sends full segments only.
    full_segments: bool,
}

/// What the host knows of a connection that it serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionContext {
    pub(super) id: ConnectionId,
    /// Octets of payload that TCP has sent so far.
    pub(super) sent: u64,
    /// The mark of the peer's handshake as it arrived.
    pub(super) seen: Option<Dscp>,
    /// Less than a full segment waits for an acknowledgement.
    pub(super) nagle: bool,
    /// Octets that TCP takes beyond those it has sent.
    pub(super) not_sent: usize,
    /// Octets of a full segment.
    pub(super) segment: usize,
}

/// The result of serving a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    /// TCP may have something to send.
    pub(super) again: bool,
    /// The connection has ended.
    pub(super) ended: bool,
}

const ENDED: Served = Served { again: true, ended: true };

impl Connection {
    pub(super) fn new(handle: SocketHandle, flow: Flow, state: State) -> Connection {
        Connection {
            handle,
            flow,
            room_below: None,
            state,
            closed_early: false,
            outgoing: VecDeque::new(),
            waiting: 0,
            taken: 0,
            is_full: false,
            full_segments: false,
        }
    }

    pub(super) fn write(&mut self, bytes: Bytes) {
        if matches!(self.state, State::Opening { .. } | State::Open) {
            self.waiting += bytes.len();
            self.outgoing.push_back(bytes);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Octets that TCP has taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn close(&mut self) {
        match self.state {
            State::Opening { .. } => self.closed_early = true,
            State::Open => self.state = State::Closing,
            State::Closing | State::Lingering { .. } => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Opening { until, .. } | State::Lingering { until } => Some(until),
            State::Open | State::Closing => None,
        }
    }

    pub(super) fn serve(
        &mut self,
        now: Time,
        context: ConnectionContext,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        match self.state {
            State::Opening { until, accepted } => {
                self.opening(now, context, (until, accepted), socket, events)
            }
            State::Open => self.open(context, socket, events),
            State::Closing => self.closing(now, context, socket, events),
            State::Lingering { until } => {
                let received = drop_received(socket);
                if received.is_err() || socket.state() == TcpState::Closed || until <= now {
                    events.push_back(HostEvent::Closed { id: context.id, error: None });
                    return ENDED;
                }
                Served::default()
            }
        }
    }

    fn opening(
        &mut self,
        now: Time,
        context: ConnectionContext,
        (until, accepted): (Time, Option<u16>),
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let id = context.id;
        let failed = match socket.state() {
            _ if self.closed_early => Some(None),
            TcpState::Closed | TcpState::Listen => Some(Some("connection refused".to_owned())),
            TcpState::SynSent | TcpState::SynReceived if until <= now => {
                Some(Some("no answer in time".to_owned()))
            }
            TcpState::SynSent | TcpState::SynReceived => return Served::default(),
            _ => None,
        };
        if let Some(error) = failed {
            socket.abort();
            match (accepted, error) {
                (None, Some(error)) => events.push_back(HostEvent::Failed { id, error }),
                (None, None) => events.push_back(HostEvent::Closed { id, error: None }),
                // It was not reported before.
                (Some(_), _) => {}
            }
            return ENDED;
        }
        self.state = State::Open;
        events.push_back(match accepted {
            None => HostEvent::Connected { id, seen: context.seen },
            Some(port) => {
                let remote = self.flow.remote.ip();
                HostEvent::Accepted { id, port, remote, seen: context.seen }
            }
        });
        Served { again: true, ended: false }
    }

    fn open(
        &mut self,
        context: ConnectionContext,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let id = context.id;
        let mut again = self.hand_over(context, socket);
        if self.room_below.is_some_and(|below| self.waiting < below) {
            self.room_below = None;
            events.push_back(HostEvent::Room { id });
        }
        if self.waiting >= MAX_UNSENT {
            return Served { again, ended: false };
        }
        loop {
            let read = socket.recv(|octets| {
                let part = octets.get(..MAX_CHUNK).unwrap_or(octets);
                (part.len(), Bytes::copy_from_slice(part))
            });
            match read {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => {
                    again = true;
                    events.push_back(HostEvent::Bytes { id, bytes });
                }
                Err(error) => {
                    let error = match error {
                        RecvError::Finished => None,
                        RecvError::InvalidState => Some("the connection was lost".to_owned()),
                    };
                    socket.close();
                    events.push_back(HostEvent::Closed { id, error });
                    return ENDED;
                }
            }
        }
        Served { again, ended: false }
    }

    fn closing(
        &mut self,
        now: Time,
        context: ConnectionContext,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let mut again = self.hand_over(context, socket);
        let received = drop_received(socket);
        if matches!(received, Err(RecvError::InvalidState)) {
            let error = Some("the connection was lost".to_owned());
            events.push_back(HostEvent::Closed { id: context.id, error });
            return ENDED;
        }
        if self.outgoing.is_empty() {
            socket.close();
            again = true;
            self.state = State::Lingering { until: now + LINGER };
        }
        Served { again, ended: false }
    }

    /// Hands TCP as many octets as it takes. Whether TCP may have something to send because of it.
    fn hand_over(&mut self, context: ConnectionContext, socket: &mut Socket<'_>) -> bool {
        let taken = self.take(context, socket);
        // Without Nagle's algorithm smoltcp fills each gap of its window with a segment as short as the
        // gap. With it, the last octets would wait for an acknowledgement.
        let unsent = self.taken.saturating_sub(context.sent);
        let full_segments = unsent >= context.segment as u64;
        let changed = full_segments != self.full_segments;
        if changed {
            self.full_segments = full_segments;
            socket.set_nagle_enabled(full_segments || context.nagle);
        }
        taken || (changed && !full_segments)
    }

    /// Hands TCP as many octets as it takes. Whether it took any.
    fn take(&mut self, context: ConnectionContext, socket: &mut Socket<'_>) -> bool {
        let before = self.taken;
        let not_sent =
            |taken: u64| usize::try_from(taken.saturating_sub(context.sent)).unwrap_or(usize::MAX);
        // As on Linux: TCP sends half of what it holds before it takes more.
        if self.is_full && not_sent(self.taken) * 2 >= context.not_sent {
            return false;
        }
        self.is_full = false;
        while let Some(front) = self.outgoing.front_mut() {
            let room = context.not_sent.saturating_sub(not_sent(self.taken));
            let part = front.get(..room).unwrap_or(front);
            let took = if part.is_empty() { Ok(0) } else { socket.send_slice(part) };
            let Ok(took) = took else { break };
            front.advance(took);
            self.waiting -= took;
            self.taken += took as u64;
            if front.is_empty() {
                self.outgoing.pop_front();
            } else if took == 0 {
                self.is_full = room == 0;
                break;
            }
        }
        self.taken > before
    }
}

/// Drops received octets. An error if no more can arrive.
fn drop_received(socket: &mut Socket<'_>) -> Result<(), RecvError> {
    loop {
        let read = socket.recv(|octets| (octets.len(), octets.len()))?;
        if read == 0 {
            return Ok(());
        }
    }
}
