//! The transport connections of associations: accepted, opened, served and closed.

use super::budget::BudgetOwner;
use super::connection::{Arrival, TcpConnection};
use super::socket::{self, ConnectError, Connected};
use super::{Driver, DriverAnswer};
use crate::config::ChannelSocket;
use crate::pcap::{Pcap, Tap};
use base::{AssociationId, Precedence};
use capture::Opener;
use dscp::Dscp;
use node::{ChannelId, Input, ListenerId};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A connection of a channel that is made so soon after another one tries the next place of the peer first.
const SAME_PLACE: Duration = Duration::from_secs(60);

/// Accepted connections that wait for the node, over all listeners; more wait in the kernel.
pub(super) const MAX_INCOMING: usize = 16;

/// Wait after `accept` failed, usually for lack of file descriptors.
pub(super) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// An accepted connection.
pub(super) struct IncomingConnection {
    listener: ListenerId,
    connected: Connected,
    remote: SocketAddr,
}

/// A connection that is offered to the node.
pub(super) struct Arriving {
    listener: ListenerId,
    stream: TcpStream,
    remote: IpAddr,
}

/// The transport connection of an association.
pub(super) enum Transport {
    /// Being opened, on this channel.
    Connecting(ChannelId, AbortHandle),
    /// Open.
    Open(TcpConnection),
}

impl Driver {
    /// Reads and writes one slice of a connection.
    pub(super) fn serve(&mut self, association: AssociationId) {
        let Some(Transport::Open(connection)) = self.transports.get_mut(&association) else {
            return;
        };
        connection.serve();
        while let Some(Transport::Open(connection)) = self.transports.get(&association)
            && let Some(arrival) = connection.arrival()
        {
            self.arrival(arrival);
        }
    }

    /// The current precedence of what an association carries.
    pub(super) fn level(&self, association: AssociationId) -> Precedence {
        let level = self.node.level(association);
        if let Some(Transport::Open(connection)) = self.transports.get(&association) {
            connection.set_level(level);
        }
        level
    }

    pub(super) fn connected(
        &mut self,
        association: AssociationId,
        result: Result<Connected, ConnectError>,
    ) {
        let Some(Transport::Connecting(channel, _)) = self.transports.get(&association) else {
            return; // closed meanwhile
        };
        match result {
            Ok(Connected { stream, seen }) => {
                let socket = self.site.channels.get(channel);
                let (label, tos) = socket.map_or(("", 0), |s| (s.label.as_str(), s.tcp.dscp.tos()));
                let tap = tap(self.pcap.as_ref(), &stream, label, Opener::Local, tos);
                let share = self.budgets.share(BudgetOwner::Peer(channel.peer));
                let who = (association, self.node.level(association));
                let connection = TcpConnection::start(who, stream, &self.inbox, share, tap);
                self.transports.insert(association, Transport::Open(connection));
                self.input(Input::Connected { association });
                self.mark_seen(association, seen);
            }
            Err(error) => {
                self.transports.remove(&association);
                let error = error.to_string();
                self.input(Input::ConnectFailed { association, error });
            }
        }
    }

    pub(super) fn mark_seen(&mut self, association: AssociationId, seen: Option<Dscp>) {
        if let Some(dscp) = seen {
            self.input(Input::MarkSeen { association, dscp });
        }
    }

    /// Admits one accepted connection, if there is one. It runs beside answers and input, so load
    /// does not keep new connections out.
    pub(super) fn admit_one(&mut self, arriving: &mut mpsc::Receiver<IncomingConnection>) {
        if let Ok(incoming) = arriving.try_recv() {
            self.accepted(incoming);
        }
    }

    pub(super) fn accepted(
        &mut self,
        IncomingConnection { listener, connected, remote }: IncomingConnection,
    ) {
        let Connected { stream, seen } = connected;
        let remote = remote.ip().to_canonical();
        self.last_connection += 1;
        let connection = self.last_connection;
        self.arriving = Some(Arriving { listener, stream, remote });
        self.input(Input::Accepted { connection, listener, remote });
        if let Some(association) = self.admitted.take() {
            self.level(association);
            self.mark_seen(association, seen);
        }
    }

    /// The node gave an incoming connection an association, or none: then it is closed.
    pub(super) fn admitted(&mut self, admitted: Option<AssociationId>) {
        self.admitted = admitted;
        let arriving = self.arriving.take();
        let (Some(association), Some(Arriving { listener, stream, remote })) = (admitted, arriving)
        else {
            return;
        };
        let socket = self.site.listener(listener);
        let (label, tos) = socket.map_or(("", 0), |s| (s.label.as_str(), s.tcp.dscp.tos()));
        let tap = tap(self.pcap.as_ref(), &stream, label, Opener::Remote, tos);
        let share = self.budgets.share_at(&self.site, listener, remote);
        let who = (association, self.node.level(association));
        let connection = TcpConnection::start(who, stream, &self.inbox, share, tap);
        self.transports.insert(association, Transport::Open(connection));
    }

    pub(super) fn arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Bytes { association, bytes } => {
                let length = bytes.len();
                let Some(Transport::Open(connection)) = self.transports.get(&association) else {
                    return;
                };
                // Handled octets count until here; octets put into a spool count until they are
                // stored.
                let incoming = Arc::clone(&connection.incoming);
                self.input(Input::Bytes { association, bytes });
                self.level(association);
                incoming.sub(length);
            }
            Arrival::Closed { association, error } => {
                self.transports.remove(&association);
                self.input(Input::Closed { association, error });
            }
        }
    }

    /// The place of a peer that is tried first: the first one, or the next where another connection was made a moment
    /// ago. A node of its site that takes a connection may refuse the bind.
    fn next_place(&mut self, channel: ChannelId) -> usize {
        let now = self.clock.now().mono;
        let next = match self.places.get(&channel) {
            Some((at, place)) if now.since(*at) < SAME_PLACE => place + 1,
            _ => 0,
        };
        self.places.insert(channel, (now, next));
        next
    }

    pub(super) fn connect(&mut self, association: AssociationId, channel: ChannelId) {
        let (inbox, level) = (Arc::clone(&self.inbox), self.node.level(association));
        let socket: Option<ChannelSocket> = self.site.channels.get(&channel).cloned();
        let first = self.next_place(channel);
        let task = tokio::spawn(async move {
            let result = match socket {
                Some(socket) => socket::connect(&socket, first).await,
                None => Err(ConnectError::NotConfigured),
            };
            inbox.answer(level, DriverAnswer::Connected { association, result });
        });
        self.transports.insert(association, Transport::Connecting(channel, task.abort_handle()));
    }

    /// Checks whether the peers accept what is sent to them.
    pub(super) fn look(&mut self) {
        let now = self.clock.now().mono;
        for transport in self.transports.values_mut() {
            if let Transport::Open(connection) = transport {
                connection.look(now);
            }
        }
    }

    pub(super) fn measure(&self, association: AssociationId) {
        if let Some(Transport::Open(connection)) = self.transports.get(&association)
            && let Some(octets) = connection.taken()
        {
            let taken = DriverAnswer::Input(Input::Taken { association, octets });
            self.inbox.answer(self.node.level(association), taken);
        }
    }

    pub(super) fn close(&mut self, association: AssociationId) {
        match self.transports.get_mut(&association) {
            Some(Transport::Open(connection)) => connection.close(),
            Some(Transport::Connecting(_, task)) => {
                task.abort();
                self.transports.remove(&association);
                let input = Input::Closed { association, error: None };
                self.inbox.answer(Precedence::Immediate, DriverAnswer::Input(input));
            }
            None => {}
        }
    }
}

/// A tap, if this connection is the one to record.
fn tap(
    pcap: Option<&Pcap>,
    stream: &TcpStream,
    label: &str,
    opener: Opener,
    tos: u8,
) -> Option<Tap> {
    let ends = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    pcap?.tap(label, ends, opener, tos)
}

pub(super) async fn accept_all(
    listener: ListenerId,
    socket: Arc<TcpListener>,
    incoming: mpsc::Sender<IncomingConnection>,
) {
    let mut failed = 0u64;
    loop {
        match socket::accept(&socket).await {
            Ok((connected, remote)) => {
                failed = 0;
                if incoming.send(IncomingConnection { listener, connected, remote }).await.is_err()
                {
                    return;
                }
            }
            Err(error) => {
                failed += 1;
                // Log the first failure, then at powers of two.
                if failed.is_power_of_two() {
                    tracing::warn!(listener = listener.0, %error, failed, "accept failed");
                }
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}
