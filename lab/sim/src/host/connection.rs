//! One connection, driven as the daemon's driver does it: a queue above TCP that can be watched, a
//! reader that stops while too much waits to be written, an end that lets what was written go first.

use super::tcp::Flow;
use super::{ConnectionId, HostEvent};
use bytes::{Buf as _, Bytes};
use dscp::Dscp;
use router::Time;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, State};
use std::collections::VecDeque;
use std::time::Duration;

/// Octets to be written at which reading stops, and no more content is asked for; the daemon's.
pub(crate) const MAX_UNSENT: usize = 1 << 20;
/// How long the peer may take to close after we did; the daemon's.
const LINGER: Duration = Duration::from_secs(5);
/// Most octets handed on at once.
const CHUNK: usize = 64 << 10;

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its handshake goes on, until then at most; the port it came in at, if it did.
    Opening { until: Time, accepted: Option<u16> },
    /// Octets go both ways.
    Open,
    /// What was written goes out, then the end; what comes is dropped.
    Closing,
    /// The end was said; the peer's is awaited until then.
    Lingering { until: Time },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) handle: SocketHandle,
    pub(super) flow: Flow,
    pub(super) wants: Option<usize>,
    stage: Stage,
    /// Closed before it was open.
    early_close: bool,
    outgoing: VecDeque<Bytes>,
    waiting: usize,
    /// Octets that TCP took.
    taken: u64,
    /// Whether TCP has enough until half of it went out.
    full: bool,
    /// Whether TCP is to send full segments only.
    whole: bool,
}

/// What a connection is told when it is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) id: ConnectionId,
    /// Octets of payload that TCP has sent so far.
    pub(super) sent: u64,
    /// The mark the peer's handshake arrived with.
    pub(super) seen: Option<Dscp>,
    /// Octets that TCP takes beyond those sent.
    pub(super) not_sent: usize,
    /// Octets of a full segment.
    pub(super) segment: usize,
}

/// What came of serving a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    /// TCP may have something to do.
    pub(super) again: bool,
    /// The connection is over.
    pub(super) over: bool,
}

const OVER: Served = Served { again: true, over: true };

impl Connection {
    pub(super) fn new(handle: SocketHandle, flow: Flow, stage: Stage) -> Connection {
        Connection {
            handle,
            flow,
            wants: None,
            stage,
            early_close: false,
            outgoing: VecDeque::new(),
            waiting: 0,
            taken: 0,
            full: false,
            whole: false,
        }
    }

    pub(super) fn write(&mut self, bytes: Bytes) {
        if matches!(self.stage, Stage::Opening { .. } | Stage::Open) {
            self.waiting += bytes.len();
            self.outgoing.push_back(bytes);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Octets that TCP took so far.
    pub(super) fn handed(&self) -> u64 {
        self.taken
    }

    pub(super) fn close(&mut self) {
        match self.stage {
            Stage::Opening { .. } => self.early_close = true,
            Stage::Open => self.stage = Stage::Closing,
            Stage::Closing | Stage::Lingering { .. } => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match self.stage {
            Stage::Opening { until, .. } | Stage::Lingering { until } => Some(until),
            Stage::Open | Stage::Closing => None,
        }
    }

    pub(super) fn serve(
        &mut self,
        now: Time,
        ends: Ends,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        match self.stage {
            Stage::Opening { until, accepted } => {
                self.opening(now, ends, (until, accepted), socket, events)
            }
            Stage::Open => self.open(ends, socket, events),
            Stage::Closing => self.closing(now, ends, socket, events),
            Stage::Lingering { until } => {
                let received_event = drop_all(socket);
                if received_event.is_err() || socket.state() == State::Closed || until <= now {
                    events.push_back(HostEvent::Closed { id: ends.id, error: None });
                    return OVER;
                }
                Served::default()
            }
        }
    }

    fn opening(
        &mut self,
        now: Time,
        ends: Ends,
        (until, accepted): (Time, Option<u16>),
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let id = ends.id;
        let failed = match socket.state() {
            _ if self.early_close => Some(None),
            State::Closed | State::Listen => Some(Some("connection refused".to_owned())),
            State::SynSent | State::SynReceived if until <= now => {
                Some(Some("no answer in time".to_owned()))
            }
            State::SynSent | State::SynReceived => return Served::default(),
            _ => None,
        };
        if let Some(error) = failed {
            socket.abort();
            match (accepted, error) {
                (None, Some(error)) => events.push_back(HostEvent::Failed { id, error }),
                (None, None) => events.push_back(HostEvent::Closed { id, error: None }),
                (Some(_), _) => {} // nobody knows of it
            }
            return OVER;
        }
        self.stage = Stage::Open;
        events.push_back(match accepted {
            None => HostEvent::Connected { id, seen: ends.seen },
            Some(port) => {
                let remote = self.flow.remote.ip();
                HostEvent::Accepted { id, port, remote, seen: ends.seen }
            }
        });
        Served { again: true, over: false }
    }

    fn open(
        &mut self,
        ends: Ends,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let id = ends.id;
        let mut again = self.pump(ends, socket);
        if self.wants.is_some_and(|below| self.waiting < below) {
            self.wants = None;
            events.push_back(HostEvent::Room { id });
        }
        if self.waiting >= MAX_UNSENT {
            return Served { again, over: false };
        }
        loop {
            let read = socket.recv(|octets| {
                let part = octets.get(..CHUNK).unwrap_or(octets);
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
                    return OVER;
                }
            }
        }
        Served { again, over: false }
    }

    fn closing(
        &mut self,
        now: Time,
        ends: Ends,
        socket: &mut Socket<'_>,
        events: &mut VecDeque<HostEvent>,
    ) -> Served {
        let mut again = self.pump(ends, socket);
        let received_event = drop_all(socket);
        if matches!(received_event, Err(RecvError::InvalidState)) {
            let error = Some("the connection was lost".to_owned());
            events.push_back(HostEvent::Closed { id: ends.id, error });
            return OVER;
        }
        if self.outgoing.is_empty() {
            socket.close();
            again = true;
            self.stage = Stage::Lingering { until: now + LINGER };
        }
        Served { again, over: false }
    }

    /// Hands TCP what it takes; whether it may have something to do because of it.
    fn pump(&mut self, ends: Ends, socket: &mut Socket<'_>) -> bool {
        let taken = self.take(ends, socket);
        // Without it smoltcp fills each gap of its window with a segment as short as the gap; with it,
        // the last octets of all would wait for an acknowledgement.
        let unsent = self.taken.saturating_sub(ends.sent);
        let whole = unsent >= ends.segment as u64;
        let changed = whole != self.whole;
        if changed {
            self.whole = whole;
            socket.set_nagle_enabled(whole);
        }
        taken || (changed && !whole)
    }

    /// Hands TCP what it takes; whether it took any.
    fn take(&mut self, ends: Ends, socket: &mut Socket<'_>) -> bool {
        let before = self.taken;
        let not_sent =
            |taken: u64| usize::try_from(taken.saturating_sub(ends.sent)).unwrap_or(usize::MAX);
        // Half of it must be gone before more is taken, as with Linux.
        if self.full && not_sent(self.taken) * 2 >= ends.not_sent {
            return false;
        }
        self.full = false;
        while let Some(front) = self.outgoing.front_mut() {
            let room = ends.not_sent.saturating_sub(not_sent(self.taken));
            let part = front.get(..room).unwrap_or(front);
            let took = if part.is_empty() { Ok(0) } else { socket.send_slice(part) };
            let Ok(took) = took else { break };
            front.advance(took);
            self.waiting -= took;
            self.taken += took as u64;
            if front.is_empty() {
                self.outgoing.pop_front();
            } else if took == 0 {
                self.full = room == 0;
                break;
            }
        }
        self.taken > before
    }
}

/// Reads what came and forgets it. An error where nothing more can come.
fn drop_all(socket: &mut Socket<'_>) -> Result<(), RecvError> {
    loop {
        let read = socket.recv(|octets| (octets.len(), octets.len()))?;
        if read == 0 {
            return Ok(());
        }
    }
}
