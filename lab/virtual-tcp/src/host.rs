//! A host: smoltcp, its connections and listeners, and the packets between it and the network.

use crate::connection::{Connection, ConnectionContext, State};
use crate::device::Device;
use crate::segment::{self, ConnectionCount, Flow, Meter, Segment};
use crate::settings::{Congestion, TcpSettings};
use dscp::Dscp;
use router::{Packet, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State as TcpState};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv6Address};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Listening sockets of a port: so many connections may arrive at one moment.
const BACKLOG: usize = 2;
/// How long a socket without an owner may take to close.
const ORPHANED: Duration = Duration::from_secs(60);
/// When a socket that is due now and does nothing is polled again.
const POLL_AGAIN: Duration = Duration::from_millis(1);
/// The shortest limit of a segment that Linux takes.
const MIN_SEGMENT: u16 = 88;
/// Local ports of connections that the host makes.
const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;

/// A connection of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// An event of a host.
#[derive(Debug)]
pub enum HostEvent {
    /// The connection that [`TcpHost::connect`] requested is open.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// The mark of the peer's handshake as it arrived.
        seen: Option<Dscp>,
    },
    /// The connection that [`TcpHost::connect`] requested could not be made.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// The reason, as text.
        error: String,
    },
    /// A peer has connected.
    Accepted {
        /// The connection.
        id: ConnectionId,
        /// The port of the listener.
        port: u16,
        /// The address of the peer.
        remote: IpAddr,
        /// The mark of the peer's handshake as it arrived.
        seen: Option<Dscp>,
    },
    /// Octets have arrived.
    Bytes {
        /// The connection.
        id: ConnectionId,
        /// The octets.
        bytes: bytes::Bytes,
    },
    /// There is room, as [`TcpHost::want_room`] requested.
    Room {
        /// The connection.
        id: ConnectionId,
    },
    /// The connection has ended. No event of it follows.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// The fault that ended it; `None` after an orderly close.
        error: Option<String>,
    },
}

/// A port at which the host listens.
#[derive(Debug)]
struct Listener {
    dscp: Dscp,
    /// Its sockets without a connection.
    free: Vec<SocketHandle>,
}

/// A host. After each call that takes the time, [`TcpHost::poll`] is due. Then the caller takes events
/// and packets until there are none.
pub struct TcpHost {
    name: String,
    tcp: TcpSettings,
    interface: Interface,
    sockets: SocketSet<'static>,
    device: Device,
    listeners: BTreeMap<u16, Listener>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Connections whose segments are shorter than the path permits, and their longest payload.
    segments: BTreeMap<Flow, u16>,
    /// Sockets whose connection has ended, and since when.
    orphans: Vec<(SocketHandle, Time)>,
    meters: BTreeMap<Flow, Meter>,
    /// Meters of earlier connections with the same flow.
    past: Vec<(Flow, Meter)>,
    events: VecDeque<HostEvent>,
    packets: VecDeque<Vec<u8>>,
    last_connection: u64,
    next_port: u16,
    due: Option<Time>,
}

fn instant(now: Time) -> Instant {
    Instant::from_micros(i64::try_from(now.0 / 1_000).unwrap_or(i64::MAX))
}

fn duration(duration: Duration) -> smoltcp::time::Duration {
    let micros = duration.as_micros().min(u128::from(u64::MAX / 4));
    smoltcp::time::Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX / 4))
}

impl TcpHost {
    /// A host with these addresses, at most 8. `mtu` is the longest packet of its links.
    pub fn new(
        name: &str,
        addresses: &[IpAddr],
        mtu: usize,
        tcp: &TcpSettings,
        seed: u64,
    ) -> TcpHost {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut device = Device::new(mtu);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|known| {
            for address in addresses {
                let length = if address.is_ipv4() { 32 } else { 128 };
                // smoltcp has room for 8.
                let _ = known.push(IpCidr::new((*address).into(), length));
            }
        });
        // The network routes: all packets leave by one interface.
        let _ = interface.routes_mut().add_default_ipv4_route(Ipv4Address::new(192, 0, 2, 1));
        let to = Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let _ = interface.routes_mut().add_default_ipv6_route(to);
        TcpHost {
            name: name.to_owned(),
            tcp: tcp.clone(),
            interface,
            sockets: SocketSet::new(Vec::new()),
            device,
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            segments: BTreeMap::new(),
            orphans: Vec::new(),
            meters: BTreeMap::new(),
            past: Vec::new(),
            events: VecDeque::new(),
            packets: VecDeque::new(),
            last_connection: 0,
            next_port: EPHEMERAL.start,
            due: None,
        }
    }

    /// Accepts connections at a port. Packets sent on them have this mark.
    pub fn listen(&mut self, port: u16, dscp: Dscp) {
        self.listeners.insert(port, Listener { dscp, free: Vec::new() });
        self.stock(port);
    }

    /// Makes a connection. [`HostEvent::Connected`] or [`HostEvent::Failed`] follows.
    pub fn connect(
        &mut self,
        now: Time,
        local: IpAddr,
        remote: SocketAddr,
        dscp: Dscp,
    ) -> ConnectionId {
        self.last_connection += 1;
        let id = ConnectionId(self.last_connection);
        let local = SocketAddr::new(local, self.free_port(local, remote));
        let flow = Flow { local, remote };
        let mut socket = self.socket();
        let requested = socket.connect(self.interface.context(), remote, local);
        let handle = self.sockets.add(socket);
        self.begin(flow, Meter::new(dscp, true));
        let until = match requested {
            Ok(()) => now + self.tcp.connect_timeout,
            // An address of another family: the next poll reports it.
            Err(_) => now,
        };
        let state = State::Opening { until, accepted: None };
        self.connections.insert(id, Connection::new(handle, flow, state));
        self.due = Some(now);
        id
    }

    /// Limits the payload of the segments that a connection sends, as TCP_MAXSEG does: 88 octets or
    /// more. Right after [`TcpHost::connect`], before the peer has answered.
    pub fn limit_segments(&mut self, id: ConnectionId, octets: u16) {
        if let Some(connection) = self.connections.get(&id) {
            self.segments.insert(connection.flow, octets.max(MIN_SEGMENT));
        }
    }

    /// Queues octets to send.
    pub fn write(&mut self, now: Time, id: ConnectionId, bytes: bytes::Bytes) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.write(bytes);
            self.due = Some(now);
        }
    }

    /// Octets that TCP has not taken yet.
    pub fn waiting(&self, id: ConnectionId) -> usize {
        self.connections.get(&id).map_or(0, Connection::waiting)
    }

    /// Octets that the other end has acknowledged.
    pub fn taken(&self, id: ConnectionId) -> Option<u64> {
        let connection = self.connections.get(&id)?;
        let socket = self.sockets.get::<Socket<'_>>(connection.handle);
        Some(connection.taken().saturating_sub(socket.send_queue() as u64))
    }

    /// Requests [`HostEvent::Room`] for the time when fewer than `below` octets wait.
    pub fn want_room(&mut self, now: Time, id: ConnectionId, below: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.room_below = Some(below);
            self.due = Some(now);
        }
    }

    /// Closes a connection after the octets written before. [`HostEvent::Closed`] follows.
    pub fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.close();
            self.due = Some(now);
        }
    }

    /// Aborts a connection. No event of it follows.
    pub fn drop_now(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(&id) {
            self.sockets.get_mut::<Socket<'_>>(connection.handle).abort();
            self.orphans.push((connection.handle, now));
            self.due = Some(now);
        }
    }

    /// Receives a packet. `mtu` gives the longest packet for the path to an address.
    pub fn receive(&mut self, now: Time, octets: Vec<u8>, mtu: impl FnOnce(IpAddr) -> usize) {
        let packet = match Packet::read(octets, 0, now) {
            Ok(packet) => packet,
            Err((octets, _)) => return self.device.recycle(octets),
        };
        let segment = Segment::from_packet(&packet);
        if let Some(segment) = segment.as_ref().filter(|segment| segment.payload > 0) {
            let flow = Flow { local: segment.to, remote: segment.from };
            if let Some(meter) = self.meters.get_mut(&flow) {
                meter.received += 1;
            }
        }
        let syn = segment.filter(Segment::is_syn);
        let transport = packet.header().transport;
        let mut octets = packet.into_octets();
        if let Some(syn) = syn {
            let headers = if syn.from.is_ipv4() { 40 } else { 60 };
            let limit = mtu(syn.from.ip()).saturating_sub(headers);
            let flow = Flow { local: syn.to, remote: syn.from };
            let own = self.segments.get(&flow).copied().unwrap_or(u16::MAX);
            let limit = u16::try_from(limit).unwrap_or(u16::MAX).min(own);
            segment::clamp(&mut octets, transport, limit);
            if let Some(listener) = self.listeners.get(&syn.to.port()).filter(|_| syn.is_first()) {
                let dscp = listener.dscp;
                let known = self.meters.get(&flow).is_some_and(|meter| !self.is_past(flow, meter));
                if !known {
                    self.begin(flow, Meter::new(dscp, false));
                }
            }
            if let Some(meter) = self.meters.get_mut(&flow) {
                meter.seen = Some(syn.dscp);
            }
        }
        self.device.incoming.push_back(octets);
        self.due = Some(now);
    }

    /// Takes back the buffer of a packet that the network has consumed.
    pub fn recycle(&mut self, octets: Vec<u8>) {
        self.device.recycle(octets);
    }

    /// The longest packet of its links, in octets.
    pub fn mtu(&self) -> usize {
        self.device.mtu()
    }

    /// When [`TcpHost::poll`] is due.
    pub fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// The next event; `None` once there is none.
    pub fn event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// The next packet to send; `None` once there is none.
    pub fn packet(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    /// Lets TCP and the connections do what is due.
    pub fn poll(&mut self, now: Time) {
        loop {
            self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
            self.send(now);
            self.accept(now);
            let mut again = false;
            let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
            for id in ids {
                again |= self.serve(now, id);
            }
            self.reap(now);
            if !again {
                break;
            }
        }
        self.due = self.next(now);
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        let at = self.interface.poll_at(instant(now), &self.sockets).map(|at| {
            let at = Time(u64::try_from(at.total_micros()).unwrap_or(0).saturating_mul(1_000));
            if at > now { at } else { now + POLL_AGAIN }
        });
        let connections = self.connections.values().filter_map(Connection::deadline);
        let orphans = self.orphans.iter().map(|(_, since)| *since + ORPHANED);
        let own = connections.chain(orphans).map(|due| due.max(now + POLL_AGAIN)).min();
        [at, own].into_iter().flatten().min()
    }

    /// Marks and counts the packets that TCP sends.
    fn send(&mut self, now: Time) {
        while let Some(octets) = self.device.outgoing.pop_front() {
            let mut packet = match Packet::read(octets, 0, now) {
                Ok(packet) => packet,
                Err((octets, _)) => {
                    self.device.recycle(octets);
                    continue;
                }
            };
            if let Some(segment) = Segment::from_packet(&packet) {
                let flow = Flow { local: segment.from, remote: segment.to };
                let listener_dscp =
                    self.listeners.get(&flow.local.port()).map(|listener| listener.dscp);
                let meter = self.meters.get_mut(&flow);
                // A listener has its mark before there is a connection too.
                let dscp = meter.as_ref().map(|meter| meter.dscp).or(listener_dscp);
                packet.set_dscp(dscp.unwrap_or(Dscp::CS0));
                if let Some(meter) = meter {
                    meter.count(now.duration_since(Time::ZERO), &segment);
                }
            }
            self.packets.push_back(packet.into_octets());
        }
    }

    /// Takes new connections from the listeners, and gives the listeners new sockets.
    fn accept(&mut self, now: Time) {
        let is_taken = |handle: &SocketHandle| {
            self.sockets.get::<Socket<'_>>(*handle).state() != TcpState::Listen
        };
        let taken =
            self.listeners.iter().filter(|(_, listener)| listener.free.iter().any(is_taken));
        let ports: Vec<u16> = taken.map(|(port, _)| *port).collect();
        for port in ports {
            let Some(listener) = self.listeners.get_mut(&port) else { continue };
            let (free, connected): (Vec<_>, Vec<_>) = listener.free.iter().partition(|handle| {
                self.sockets.get::<Socket<'_>>(**handle).state() == TcpState::Listen
            });
            listener.free = free;
            for handle in connected {
                let socket = self.sockets.get::<Socket<'_>>(handle);
                let ends = (socket.local_endpoint(), socket.remote_endpoint());
                let (Some(local), Some(remote)) = ends else {
                    self.orphans.push((handle, now));
                    continue;
                };
                let flow = Flow { local: local.into(), remote: remote.into() };
                self.last_connection += 1;
                let id = ConnectionId(self.last_connection);
                let until = now + self.tcp.dead_after;
                let state = State::Opening { until, accepted: Some(port) };
                self.connections.insert(id, Connection::new(handle, flow, state));
            }
            self.stock(port);
        }
    }

    /// Serves a connection. Whether TCP may have something to send because of it.
    fn serve(&mut self, now: Time, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let socket = self.sockets.get_mut::<Socket<'_>>(connection.handle);
        let meter = self.meters.get(&connection.flow);
        let (sent, seen) = meter.map_or((0, None), |meter| (meter.sent.octets, meter.seen));
        let headers = if connection.flow.local.is_ipv4() { 40 } else { 60 };
        let segment = self.device.mtu().saturating_sub(headers + 12);
        let TcpSettings { nagle, not_sent, .. } = self.tcp;
        let context = ConnectionContext { id, sent, seen, nagle, not_sent, segment };
        let served = connection.serve(now, context, socket, &mut self.events);
        if served.ended {
            self.orphans.push((connection.handle, now));
            self.connections.remove(&id);
        }
        served.again
    }

    /// Removes sockets that are closed.
    fn reap(&mut self, now: Time) {
        let sockets = &mut self.sockets;
        self.orphans.retain(|(handle, since)| {
            let socket = sockets.get_mut::<Socket<'_>>(*handle);
            if socket.local_endpoint().is_none() {
                sockets.remove(*handle);
                return false;
            }
            if socket.can_recv() || *since + ORPHANED <= now {
                socket.abort();
            }
            true
        });
    }

    /// Gives a listener as many sockets as it needs.
    fn stock(&mut self, port: u16) {
        loop {
            let Some(listener) = self.listeners.get(&port) else { return };
            if listener.free.len() >= BACKLOG {
                return;
            }
            let mut socket = self.socket();
            if socket.listen(port).is_err() {
                return; // port 0, which the caller has refused
            }
            let handle = self.sockets.add(socket);
            if let Some(listener) = self.listeners.get_mut(&port) {
                listener.free.push(handle);
            }
        }
    }

    fn socket(&self) -> Socket<'static> {
        let buffer = |octets: usize| SocketBuffer::new(vec![0; octets]);
        let mut socket = Socket::new(buffer(self.tcp.receive_buffer), buffer(self.tcp.send_buffer));
        socket.set_congestion_control(match self.tcp.congestion {
            Congestion::Reno => CongestionControl::Reno,
            Congestion::Cubic => CongestionControl::Cubic,
        });
        socket.set_ack_delay(self.tcp.delayed_ack.map(duration));
        socket.set_nagle_enabled(self.tcp.nagle);
        socket.set_timeout(Some(duration(self.tcp.dead_after)));
        // Two of them may be lost.
        socket.set_keep_alive(Some(duration(self.tcp.dead_after / 4)));
        if self.tcp.timestamps {
            socket.set_tsval_generator(Some(|| 1));
        }
        socket
    }

    fn free_port(&mut self, local: IpAddr, remote: SocketAddr) -> u16 {
        for _ in EPHEMERAL {
            let port = self.next_port;
            self.next_port = if port + 1 < EPHEMERAL.end { port + 1 } else { EPHEMERAL.start };
            let flow = Flow { local: SocketAddr::new(local, port), remote };
            if !self.connections.values().any(|one| one.flow == flow) {
                return port;
            }
        }
        self.next_port
    }

    /// Whether the connection that a meter counts has ended.
    fn is_past(&self, flow: Flow, meter: &Meter) -> bool {
        meter.opened.is_some() && !self.connections.values().any(|one| one.flow == flow)
    }

    fn begin(&mut self, flow: Flow, meter: Meter) {
        if let Some(past) = self.meters.insert(flow, meter) {
            self.past.push((flow, past));
        }
    }

    /// What each connection sent, in the order in which they were opened.
    pub fn usage(&self) -> Vec<ConnectionCount> {
        let past = self.past.iter().map(|(flow, meter)| (flow, meter));
        let mut counts: Vec<ConnectionCount> = past
            .chain(&self.meters)
            .filter_map(|(flow, meter)| {
                Some(ConnectionCount {
                    host: self.name.clone(),
                    local: flow.local,
                    remote: flow.remote,
                    initiator: meter.initiator,
                    dscp: meter.dscp,
                    opened: meter.opened?,
                    sent: meter.sent,
                    received_data_segments: meter.received,
                })
            })
            .collect();
        counts.sort_by_key(|count| (count.opened, count.local, count.remote));
        counts
    }
}
