//! The receiver: UDP and TCP on one port, of both families, for a bounded time.

pub(crate) mod echo;
pub(crate) mod incoming;

use crate::clock::{self, LoadClock};
use crate::measure::{Ahead, Arrival, FlowKey, Measured, Meter};
use crate::plan::{LONGEST, MAX_BLOCK, MAX_TCP_FLOWS, udp_overhead};
use crate::receive::incoming::{canonical, enable_tos_reports, take};
use crate::send::NAP;
use crate::send::stream::{PATIENCE, is_patience};
use anyhow::{Context as _, Result, bail};
use load_header::{HEADER, LoadHeader};
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;
use socket2::{Domain, Socket, Type};
use std::io::Read as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testbed::clock::is_interrupted;

/// What the socket is asked to hold while we are busy, in octets.
const BUFFER: usize = 8 << 20;
/// After all flows have ended, how long stragglers are waited for.
const GRACE: u64 = 300_000_000;

/// The parameters of a receiver.
#[derive(Clone, Debug)]
pub struct Reception {
    /// Where it listens, UDP and TCP; port 0 for any that is free in both. `[::]` takes IPv4 too.
    pub listen: SocketAddr,
    /// It ends after this at the latest; up to an hour.
    pub limit: Duration,
    /// It ends earlier once so many flows have ended, and all others that came.
    pub flows: usize,
    /// The length of an interval of the rows; 100 ms as a rule.
    pub interval: Duration,
    /// Whether each packet of UDP is sent back, with the mark it came with, from the address it
    /// listens at.
    pub echo: bool,
    /// How far the receiver's clock is ahead of the senders': taken off what arrives.
    pub ahead: Ahead,
}

/// Why a receiver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All flows have ended.
    AllEnded,
    /// The time was over.
    TimeOver,
    /// The program was interrupted.
    Interrupted,
}

/// The result of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The numbers.
    pub measured: Measured,
    /// The clock that the senders used; of several, the last.
    pub clock: LoadClock,
    /// The event that ended the reception.
    pub ending: Ending,
    /// Packets that arrived and were lost because we did not read fast enough: the receiver's fault,
    /// and part of what is counted as lost.
    pub dropped_here: u64,
}

/// Listens, and measures what arrives.
#[derive(Debug)]
pub struct Receiver {
    setup: Reception,
    udp: Socket,
    tcp: TcpListener,
    address: SocketAddr,
}

/// The state that the threads share.
struct Shared {
    meter: Mutex<Meter>,
    stop: AtomicBool,
    realtime: AtomicBool,
    connections: AtomicUsize,
}

impl Shared {
    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A header arrived now, with so many octets of payload and, over UDP, a code point.
    fn arrived(
        &self,
        header: &LoadHeader,
        source: SocketAddr,
        octets: u32,
        udp: Option<Option<u8>>,
    ) {
        let flow = FlowKey { run: header.run, flow: header.flow, source };
        let received = LoadClock::from_header(header).now();
        if header.end {
            return self.meter().ended(flow, header.sequence, received);
        }
        self.realtime.store(header.realtime, Ordering::Relaxed);
        let LoadHeader { sequence, sent, .. } = *header;
        let overhead = udp.map_or(0, |_| udp_overhead(source.is_ipv4()));
        let tos = udp.flatten();
        self.meter().take(&Arrival { flow, sequence, sent, received, octets, overhead, tos });
    }
}

impl Receiver {
    /// Opens its sockets.
    ///
    /// # Errors
    /// The address is not ours, the port is taken, or a setup out of range.
    pub fn bind(setup: Reception) -> Result<Receiver> {
        if setup.limit.is_zero() || setup.limit > LONGEST {
            bail!("a receiver's time is above 0 and up to an hour, not {:?}", setup.limit);
        }
        if setup.interval < Duration::from_millis(1) {
            bail!("an interval has at least 1 ms, not {:?}", setup.interval);
        }
        // A port that is free for UDP may be taken for TCP.
        let tries = if setup.listen.port() == 0 { 8 } else { 1 };
        let mut opened = open(setup.listen);
        for _ in 1..tries {
            if opened.is_err() {
                opened = open(setup.listen);
            }
        }
        let (udp, tcp) = opened.with_context(|| format!("listening at {}", setup.listen))?;
        let address = tcp.local_addr()?;
        Ok(Receiver { setup, udp, tcp, address })
    }

    /// Where it listens, with the port it was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Receives until the flows have ended, the time is over, or the program is interrupted.
    ///
    /// # Errors
    /// A socket that fails for good.
    pub fn run(self) -> Result<Received> {
        let interval = u64::try_from(self.setup.interval.as_nanos()).unwrap_or(u64::MAX);
        let shared = Shared {
            meter: Mutex::new(Meter::new(interval).ahead(self.setup.ahead)),
            stop: AtomicBool::new(false),
            realtime: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        };
        let (ending, dropped_here) = std::thread::scope(|scope| -> Result<(Ending, u64)> {
            let udp = scope.spawn(|| datagrams(&self.udp, self.setup.echo, &shared));
            scope.spawn(|| {
                while !shared.stop.load(Ordering::Relaxed) {
                    let Ok((stream, source)) = self.tcp.accept() else {
                        let soon = LoadClock::Monotonic.now().saturating_add(NAP / 5);
                        if clock::sleep_until(soon).is_err() {
                            return;
                        }
                        continue;
                    };
                    if shared.connections.fetch_add(1, Ordering::Relaxed) < MAX_TCP_FLOWS {
                        let shared = &shared;
                        scope.spawn(move || blocks(stream, canonical(source), shared));
                    } else {
                        shared.connections.fetch_sub(1, Ordering::Relaxed);
                        shared.meter().foreign();
                    }
                }
            });
            let ending = self.wait(&shared);
            shared.stop.store(true, Ordering::Relaxed);
            let dropped = udp.join().unwrap_or_else(|_| bail!("the receiving thread died"));
            Ok((ending?, dropped?))
        })?;
        let realtime = shared.realtime.load(Ordering::Relaxed);
        let measured = shared.meter().measured();
        let clock = if realtime { LoadClock::Realtime } else { LoadClock::Monotonic };
        Ok(Received { measured, clock, ending, dropped_here })
    }

    fn wait(&self, shared: &Shared) -> Result<Ending> {
        let begin = LoadClock::Monotonic.now();
        let limit = u64::try_from(self.setup.limit.as_nanos()).unwrap_or(u64::MAX);
        let deadline = begin.saturating_add(limit);
        let mut until = deadline;
        loop {
            let now = LoadClock::Monotonic.now();
            if is_interrupted() {
                return Ok(Ending::Interrupted);
            }
            if now >= until {
                return Ok(if until < deadline { Ending::AllEnded } else { Ending::TimeOver });
            }
            if until == deadline && shared.meter().all_ended(self.setup.flows) {
                until = until.min(now + GRACE);
            }
            clock::sleep_until(until.min(now + NAP / 5))?;
        }
    }
}

fn open(listen: SocketAddr) -> Result<(Socket, TcpListener)> {
    let udp = Socket::new(Domain::for_address(listen), Type::DGRAM, None)?;
    let both = listen.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if listen.is_ipv6() {
        udp.set_only_v6(!both)?;
    }
    udp.bind(&listen.into())?;
    // Less than asked for is given where the system has a limit; what is lost by it is counted.
    let _ = udp.set_recv_buffer_size(BUFFER);
    udp.set_read_timeout(Some(PATIENCE))?;
    enable_tos_reports(&udp, listen.is_ipv4() || both, listen.is_ipv6());
    let _ = setsockopt(&udp, sockopt::RxqOvfl, &1);
    let port = udp.local_addr()?.as_socket().map_or(0, |address| address.port());
    let tcp = Socket::new(Domain::for_address(listen), Type::STREAM, None)?;
    if listen.is_ipv6() {
        tcp.set_only_v6(!both)?;
    }
    tcp.set_reuse_address(true)?;
    tcp.bind(&SocketAddr::new(listen.ip(), port).into())?;
    tcp.listen(128)?;
    tcp.set_nonblocking(true)?;
    Ok((udp, tcp.into()))
}

/// Reads packets until `stop` is set; returns how many the system dropped because this was slow.
fn datagrams(socket: &Socket, echo: bool, shared: &Shared) -> Result<u64> {
    let mut payload = vec![0; 65_536];
    let mut dropped = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let incoming = match take(socket, &mut payload) {
            Ok(incoming) => incoming,
            Err(error) if is_patience(&error.into()) => continue,
            Err(error) => return Err(error).context("receiving"),
        };
        dropped = incoming.dropped.unwrap_or(dropped);
        let Some(packet) = payload.get_mut(..incoming.length) else { continue };
        let header = LoadHeader::read(packet);
        if echo {
            // What the system does not take is lost, as on any line.
            let _ = echo::answer(socket, packet, &incoming);
        }
        match (header, incoming.from.map(canonical)) {
            (Some(header), Some(source)) => {
                let length = u32::try_from(incoming.length).unwrap_or(u32::MAX);
                shared.arrived(&header, source, length, Some(incoming.tos));
            }
            _ => shared.meter().foreign(),
        }
    }
    Ok(dropped)
}

/// Reads the blocks of a connection until its end.
fn blocks(mut stream: TcpStream, source: SocketAddr, shared: &Shared) {
    if stream.set_read_timeout(Some(PATIENCE)).is_err() || stream.set_nonblocking(false).is_err() {
        return;
    }
    let mut buffer = vec![0; 65_536];
    let mut parser = Blocks::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let octets = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => buffer.get(..length).unwrap_or_default(),
            Err(error) if is_patience(&error) => continue,
            Err(_) => break,
        };
        let taken = parser.take(octets, |header| {
            shared.arrived(header, source, header.length, None);
        });
        if !taken {
            shared.meter().foreign();
            break;
        }
    }
    shared.connections.fetch_sub(1, Ordering::Relaxed);
}

/// Finds the blocks in a stream, cut anyhow.
#[derive(Debug, Default)]
struct Blocks {
    header: Vec<u8>,
    left: usize,
    current: Option<LoadHeader>,
}

impl Blocks {
    /// Takes octets and calls `whole` for each complete block; false where they are not blocks.
    fn take(&mut self, mut octets: &[u8], mut whole: impl FnMut(&LoadHeader)) -> bool {
        loop {
            let Some(header) = self.current else {
                if octets.is_empty() {
                    return true;
                }
                let wanted = HEADER.saturating_sub(self.header.len()).min(octets.len());
                let (part, rest) = octets.split_at(wanted);
                self.header.extend_from_slice(part);
                octets = rest;
                if self.header.len() < HEADER {
                    return true;
                }
                match LoadHeader::read(&self.header) {
                    Some(header) if header.length <= MAX_BLOCK => {
                        self.left = (header.length as usize).saturating_sub(HEADER);
                        self.current = Some(header);
                    }
                    _ => return false,
                }
                self.header.clear();
                continue;
            };
            let part = self.left.min(octets.len());
            octets = octets.get(part..).unwrap_or_default();
            self.left -= part;
            if self.left > 0 {
                return true;
            }
            whole(&header);
            self.current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(sequence: u64, length: u32) -> (LoadHeader, Vec<u8>) {
        let header =
            LoadHeader { run: 1, flow: 2, sequence, sent: 3, realtime: false, length, end: false };
        let mut octets = header.write().to_vec();
        octets.resize(length as usize, 0x58);
        (header, octets)
    }

    proptest! {
        #[test]
        fn blocks_are_found_at_any_cut(
            lengths in prop::collection::vec(40u32..200, 1..20),
            cuts in prop::collection::vec(1usize..100, 1..40),
        ) {
            let blocks: Vec<_> = (0..).zip(&lengths).map(|(n, l)| block(n, *l)).collect();
            let mut rest: Vec<u8> = blocks.iter().flat_map(|(_, octets)| octets.clone()).collect();
            let (mut parser, mut found) = (Blocks::default(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let after = rest.split_off((*cut).min(rest.len()));
                prop_assert!(parser.take(&rest, |header| found.push(*header)));
                rest = after;
            }
            let sent: Vec<_> = blocks.iter().map(|(header, _)| *header).collect();
            prop_assert_eq!(found, sent);
        }
    }

    #[test]
    fn octets_that_are_not_a_block_are_refused() {
        assert!(!Blocks::default().take(&[0x58; 80], |_| panic!("a block")));
        let (_, octets) = block(0, MAX_BLOCK + 1);
        assert!(!Blocks::default().take(&octets, |_| panic!("a block")));
    }
}
