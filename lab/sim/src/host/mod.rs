//! A host's TCP: smoltcp between the network and those who have connections, each driven as the
//! daemon drives its own.

pub(crate) mod connection;
mod device;
pub(crate) mod tcp;

use crate::scenario::{Congestion, Tcp};
use connection::{Connection, Stage};
use device::Device;
use dscp::Dscp;
use router::{Packet, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv6Address};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tcp::{ConnectionCount, Flow, Meter, Segment};

/// Sockets of a port that wait for connections: so many may arrive at one moment.
const BACKLOG: usize = 2;
/// A socket whose owner is gone is given so long to say goodbye.
const ORPHANED: Duration = Duration::from_secs(60);
/// Where a socket says that it is due and does nothing, it is asked again after so long.
const STUCK: Duration = Duration::from_millis(1);
/// Ports that connections are made from.
const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;

/// A connection of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What happens at a host.
#[derive(Debug)]
pub(crate) enum HostEvent {
    /// The connection asked for is there.
    Connected { id: ConnectionId, seen: Option<Dscp> },
    /// It could not be made.
    Failed { id: ConnectionId, error: String },
    /// Somebody connected.
    Accepted { id: ConnectionId, port: u16, remote: IpAddr, seen: Option<Dscp> },
    /// Octets came.
    Bytes { id: ConnectionId, bytes: bytes::Bytes },
    /// There is room, as [`Host::want_room`] asked.
    Room { id: ConnectionId },
    /// It is over; nothing follows.
    Closed { id: ConnectionId, error: Option<String> },
}

#[derive(Debug)]
struct Listen {
    dscp: Dscp,
    spare: Vec<SocketHandle>,
}

/// A host.
pub(crate) struct Host {
    name: String,
    tcp: Tcp,
    interface: Interface,
    sockets: SocketSet<'static>,
    device: Device,
    listens: BTreeMap<u16, Listen>,
    connections: BTreeMap<ConnectionId, Connection>,
    orphans: Vec<(SocketHandle, Time)>,
    meters: BTreeMap<Flow, Meter>,
    /// Those whose flow was used again.
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

impl Host {
    /// A host with these addresses (at most 8), and the longest packet of its links.
    pub(crate) fn new(name: &str, addresses: &[IpAddr], mtu: usize, tcp: &Tcp, seed: u64) -> Host {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut device = Device::new(mtu);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|there| {
            for address in addresses {
                let length = if address.is_ipv4() { 32 } else { 128 };
                // As many as there is room for, as was checked.
                let _ = there.push(IpCidr::new((*address).into(), length));
            }
        });
        // What goes where is the network's affair: there is one way out.
        let _ = interface.routes_mut().add_default_ipv4_route(Ipv4Address::new(192, 0, 2, 1));
        let to = Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let _ = interface.routes_mut().add_default_ipv6_route(to);
        Host {
            name: name.to_owned(),
            tcp: tcp.clone(),
            interface,
            sockets: SocketSet::new(Vec::new()),
            device,
            listens: BTreeMap::new(),
            connections: BTreeMap::new(),
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

    /// Accepts connections at a port; what it sends on them has this mark.
    pub(crate) fn listen(&mut self, port: u16, dscp: Dscp) {
        self.listens.insert(port, Listen { dscp, spare: Vec::new() });
        self.stock(port);
    }

    /// Makes a connection.
    pub(crate) fn connect(
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
        let asked = socket.connect(self.interface.context(), remote, local);
        let handle = self.sockets.add(socket);
        self.begin(flow, Meter::new(dscp, true));
        let until = match asked {
            Ok(()) => now + self.tcp.connect_timeout,
            Err(_) => now, // an address of another family: told at the next poll
        };
        let stage = Stage::Opening { until, accepted: None };
        self.connections.insert(id, Connection::new(handle, flow, stage));
        self.due = Some(now);
        id
    }

    /// Queues octets to be sent.
    pub(crate) fn write(&mut self, now: Time, id: ConnectionId, bytes: bytes::Bytes) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.write(bytes);
            self.due = Some(now);
        }
    }

    /// Octets that wait to be taken by TCP.
    pub(crate) fn waiting(&self, id: ConnectionId) -> usize {
        self.connections.get(&id).map_or(0, Connection::waiting)
    }

    /// Octets that the other end has acknowledged.
    pub(crate) fn taken(&self, id: ConnectionId) -> Option<u64> {
        let connection = self.connections.get(&id)?;
        let socket = self.sockets.get::<Socket<'_>>(connection.handle);
        Some(connection.handed().saturating_sub(socket.send_queue() as u64))
    }

    /// Says [`HostEvent::Room`] once fewer than so many octets wait.
    pub(crate) fn want_room(&mut self, now: Time, id: ConnectionId, below: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.wants = Some(below);
            self.due = Some(now);
        }
    }

    /// Closes after what was written; [`HostEvent::Closed`] follows.
    pub(crate) fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.close();
            self.due = Some(now);
        }
    }

    /// Ends a connection at once; nothing follows.
    pub(crate) fn drop_now(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(&id) {
            self.sockets.get_mut::<Socket<'_>>(connection.handle).abort();
            self.orphans.push((connection.handle, now));
            self.due = Some(now);
        }
    }

    /// A packet came; `mtu` says how long one may be that goes back there.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        octets: Vec<u8>,
        mtu: impl FnOnce(IpAddr) -> usize,
    ) {
        let packet = match Packet::read(octets, 0, now) {
            Ok(packet) => packet,
            Err((octets, _)) => return self.device.recycle(octets),
        };
        let syn = Segment::from_packet(&packet).filter(Segment::is_syn);
        let transport = packet.header().transport;
        let mut octets = packet.into_octets();
        if let Some(syn) = syn {
            let headers = if syn.from.is_ipv4() { 40 } else { 60 };
            let most = mtu(syn.from.ip()).saturating_sub(headers);
            tcp::clamp(&mut octets, transport, u16::try_from(most).unwrap_or(u16::MAX));
            let flow = Flow { local: syn.to, remote: syn.from };
            if let Some(listen) = self.listens.get(&syn.to.port()).filter(|_| syn.is_first()) {
                let dscp = listen.dscp;
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

    /// Memory of a packet that is no more.
    pub(crate) fn recycle(&mut self, octets: Vec<u8>) {
        self.device.recycle(octets);
    }

    /// When it wants to be polled.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// What happened; `None` once nothing is left.
    pub(crate) fn event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// A packet to be sent; `None` once nothing is left.
    pub(crate) fn packet(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    /// Lets TCP and the connections do what they can now.
    pub(crate) fn poll(&mut self, now: Time) {
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
            if at > now { at } else { now + STUCK }
        });
        let connections = self.connections.values().filter_map(Connection::deadline);
        let orphans = self.orphans.iter().map(|(_, since)| *since + ORPHANED);
        let own = connections.chain(orphans).map(|due| due.max(now + STUCK)).min();
        [at, own].into_iter().flatten().min()
    }

    /// Marks what TCP sends, and counts it.
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
                let listen = self.listens.get(&flow.local.port()).map(|listen| listen.dscp);
                let meter = self.meters.get_mut(&flow);
                // Who listens answers with his mark even where there is no connection.
                let dscp = meter.as_ref().map(|meter| meter.dscp).or(listen);
                packet.set_dscp(dscp.unwrap_or(Dscp::CS0));
                if let Some(meter) = meter {
                    meter.count(now.duration_since(Time::ZERO), &segment);
                }
            }
            self.packets.push_back(packet.into_octets());
        }
    }

    /// Takes the connections that came, and puts new sockets in their places.
    fn accept(&mut self, now: Time) {
        let is_taken = |handle: &SocketHandle| {
            self.sockets.get::<Socket<'_>>(*handle).state() != State::Listen
        };
        let taken = self.listens.iter().filter(|(_, listen)| listen.spare.iter().any(is_taken));
        let ports: Vec<u16> = taken.map(|(port, _)| *port).collect();
        for port in ports {
            let Some(listen) = self.listens.get_mut(&port) else { continue };
            let (still, came): (Vec<_>, Vec<_>) = listen.spare.iter().partition(|handle| {
                self.sockets.get::<Socket<'_>>(**handle).state() == State::Listen
            });
            listen.spare = still;
            for handle in came {
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
                let stage = Stage::Opening { until, accepted: Some(port) };
                self.connections.insert(id, Connection::new(handle, flow, stage));
            }
            self.stock(port);
        }
    }

    /// Serves a connection; whether TCP may have something to do because of it.
    fn serve(&mut self, now: Time, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let socket = self.sockets.get_mut::<Socket<'_>>(connection.handle);
        let meter = self.meters.get(&connection.flow);
        let (sent, seen) = meter.map_or((0, None), |meter| (meter.sent.octets, meter.seen));
        let headers = if connection.flow.local.is_ipv4() { 40 } else { 60 };
        let segment = self.device.mtu().saturating_sub(headers + 12);
        let ends = connection::Ends { id, sent, seen, not_sent: self.tcp.not_sent, segment };
        let served = connection.serve(now, ends, socket, &mut self.events);
        if served.over {
            self.orphans.push((connection.handle, now));
            self.connections.remove(&id);
        }
        served.again
    }

    /// Removes sockets that have nothing more to say.
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

    fn stock(&mut self, port: u16) {
        loop {
            let Some(listen) = self.listens.get(&port) else { return };
            if listen.spare.len() >= BACKLOG {
                return;
            }
            let mut socket = self.socket();
            if socket.listen(port).is_err() {
                return; // port 0, which was checked
            }
            let handle = self.sockets.add(socket);
            if let Some(listen) = self.listens.get_mut(&port) {
                listen.spare.push(handle);
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
        socket.set_nagle_enabled(false);
        socket.set_timeout(Some(duration(self.tcp.dead_after)));
        // Two may be lost.
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

    /// Whether what a meter watched is over.
    fn is_past(&self, flow: Flow, meter: &Meter) -> bool {
        meter.opened.is_some() && !self.connections.values().any(|one| one.flow == flow)
    }

    fn begin(&mut self, flow: Flow, meter: Meter) {
        if let Some(past) = self.meters.insert(flow, meter) {
            self.past.push((flow, past));
        }
    }

    /// What each connection sent, in the order in which they were opened.
    pub(crate) fn usage(&self) -> Vec<ConnectionCount> {
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
                })
            })
            .collect();
        counts.sort_by_key(|count| (count.opened, count.local, count.remote));
        counts
    }
}
