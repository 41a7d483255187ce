//! Where the hosts' packets come in and go out: TUN devices, or packet sockets at the far ends of
//! veth pairs.

use crate::carrier::hosts::{HostPort, Hosts};
use crate::carrier::interfaces;
use anyhow::{Context, Result};
use network::NetworkPlan;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use testbed::batch::{self, FRAMES};
use testbed::netns::Netns;
use testbed::packet_socket::PacketSocket;
use testbed::tun;

/// The most packets read from a port before others, and the clock, are looked at.
pub(crate) const TURN: usize = FRAMES;

/// Memory of packets, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Vec<u8>>);

impl Pool {
    /// Pieces kept, at most: some megabytes.
    const KEPT: usize = 4_096;

    /// These octets, in memory that was used before if there is some.
    pub(crate) fn copy(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut memory =
            self.0.pop().unwrap_or_else(|| Vec::with_capacity(octets.len().max(2_048)));
        memory.clear();
        memory.extend_from_slice(octets);
        memory
    }

    /// Takes memory back.
    pub(crate) fn give(&mut self, memory: Vec<u8>) {
        if self.0.len() < Pool::KEPT {
            self.0.push(memory);
        }
    }
}

/// Packets between the hosts' kernels and us. Ports are numbered as in [`Hosts::ports`].
pub(crate) trait Ports: Send {
    /// What becomes readable when packets wait, by port.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Reads packets that wait, at most [`TURN`]. Gives whether more may wait.
    ///
    /// # Errors
    /// The port is gone.
    fn receive(&mut self, port: usize, pool: &mut Pool, into: &mut Vec<Vec<u8>>) -> Result<bool>;

    /// Sends a packet, at the latest with the next [`Ports::flush`]. Gives whether the host took it
    /// as far as is known.
    fn send(&mut self, port: usize, octets: Vec<u8>, pool: &mut Pool) -> bool;

    /// Sends what has not been sent yet. Gives how many packets hosts did not take.
    fn flush(&mut self, pool: &mut Pool) -> u64;

    /// Packets that hosts sent, so far, and that found no room before they could be read.
    fn not_read(&mut self) -> u64;
}

/// TUN devices, one for each port.
#[derive(Debug)]
pub(crate) struct TunPorts {
    files: Vec<File>,
    /// The counters of each port's namespace (proc_net_dev(5)), and the port's name there.
    counters: Vec<(File, String)>,
    buffer: Vec<u8>,
}

impl TunPorts {
    /// Makes the devices in the hosts, and configures them.
    pub(crate) fn new(plan: &NetworkPlan, hosts: &Hosts, ports: &[HostPort]) -> Result<TunPorts> {
        let mut files = Vec::with_capacity(ports.len());
        let mut counters = Vec::with_capacity(ports.len());
        for HostPort { node, port } in ports {
            let namespace = hosts.namespace(*node).context("a host without a namespace")?;
            let node = plan.nodes.get(*node).context("a host that is not in the plan")?;
            let port = node.ports.get(*port).context("a port that is not in the plan")?;
            files.push(namespace.within(|| tun::open(&port.name))?);
            counters.push((namespace.within(interfaces::open)?, port.name.clone()));
        }
        hosts.configure(plan, &[])?;
        Ok(TunPorts { files, counters, buffer: vec![0; router::packet::MAX_LENGTH] })
    }
}

impl Ports for TunPorts {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.files.iter().map(AsFd::as_fd).collect()
    }

    fn receive(&mut self, port: usize, pool: &mut Pool, into: &mut Vec<Vec<u8>>) -> Result<bool> {
        let Some(mut file) = self.files.get(port) else { return Ok(false) };
        for _ in 0..TURN {
            match file.read(&mut self.buffer) {
                Ok(length) => {
                    into.push(pool.copy(self.buffer.get(..length).unwrap_or_default()));
                }
                Err(error) => return nothing_more(&error).context("reading a TUN device"),
            }
        }
        Ok(true)
    }

    fn send(&mut self, port: usize, octets: Vec<u8>, pool: &mut Pool) -> bool {
        let taken = self.files.get(port).is_some_and(|mut file| file.write(&octets).is_ok());
        pool.give(octets);
        taken
    }

    fn flush(&mut self, _: &mut Pool) -> u64 {
        0
    }

    fn not_read(&mut self) -> u64 {
        let of = |(file, name): &mut (File, String)| {
            let all = interfaces::read(file).ok()?;
            Some(all.iter().find(|interface| interface.name == *name)?.not_sent)
        };
        self.counters.iter_mut().filter_map(of).sum()
    }
}

/// No packet waits, or the interface is down: neither is an error.
fn nothing_more(error: &io::Error) -> io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NetworkDown => Ok(false),
        // A TUN device that is down returns EIO.
        _ if error.raw_os_error() == Some(nix::libc::EIO) => Ok(false),
        kind => Err(kind.into()),
    }
}

/// Octets of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// Packet sockets at the far ends of veth pairs, one for each port. The far ends stand in a
/// namespace of their own.
#[derive(Debug)]
pub(crate) struct PacketPorts {
    ends: Vec<FarEnd>,
    memory: Vec<u8>,
    slot: usize,
    not_read: u64,
    /// Keeps the far ends, and so the pairs.
    _namespace: Netns,
}

#[derive(Debug)]
struct FarEnd {
    socket: PacketSocket,
    /// Ethernet headers for IPv4 and IPv6.
    headers: [[u8; ETHERNET]; 2],
    waiting: Vec<Vec<u8>>,
}

impl PacketPorts {
    /// Makes the pairs, and configures the hosts' ends.
    pub(crate) fn new(
        plan: &NetworkPlan,
        hosts: &Hosts,
        ports: &[HostPort],
    ) -> Result<PacketPorts> {
        let namespace = Netns::new().context("a namespace for the far ends")?;
        // It only forwards packets; its kernel must send nothing of its own.
        let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        let mut lines = Vec::new();
        let mut names = Vec::new();
        let mut longest = 0;
        for (number, HostPort { node, port }) in ports.iter().enumerate() {
            let host = hosts.namespace(*node).context("a host without a namespace")?;
            let node = plan.nodes.get(*node).context("a host that is not in the plan")?;
            let port = node.ports.get(*port).context("a port that is not in the plan")?;
            let (near, mtu) = (&port.name, port.mtu);
            longest = longest.max(mtu);
            lines.push(format!(
                "link add far{number} mtu {mtu} type veth peer name {near} mtu {mtu} netns {}",
                host.path()
            ));
            names.push((host, near));
        }
        namespace.ip(&lines)?;
        let mut ends = Vec::with_capacity(ports.len());
        for (number, (host, near)) in names.into_iter().enumerate() {
            let far = format!("far{number}");
            host.within(|| batch::without_offloads(near))?;
            host.ip(&[format!("link set dev {near} address {}", mac_text(mac(number)))])?;
            let socket = namespace.within(|| {
                batch::without_offloads(&far)?;
                PacketSocket::far_end(&far)
            })?;
            let headers = [[0x08, 0x00], [0x86, 0xdd]].map(|kind| header(mac(number), kind));
            ends.push(FarEnd { socket, headers, waiting: Vec::with_capacity(TURN) });
        }
        let up = (0..ends.len()).map(|number| format!("link set dev far{number} up"));
        namespace.ip(&up.collect::<Vec<_>>())?;
        // Without address resolution every packet goes to whoever is at the other end.
        hosts.configure(plan, &["arp off"])?;
        let slot = longest + ETHERNET;
        Ok(PacketPorts {
            ends,
            memory: vec![0; slot * FRAMES],
            slot,
            not_read: 0,
            _namespace: namespace,
        })
    }
}

/// A locally administered address for the host's end of a pair.
fn mac(number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

/// From an address that is nobody's.
fn header(to: [u8; 6], kind: [u8; 2]) -> [u8; ETHERNET] {
    let [a, b, c, d, e, f] = to;
    let [g, h] = kind;
    [a, b, c, d, e, f, 0x02, 0, 0, 1, 0, 0, g, h]
}

impl Ports for PacketPorts {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.ends.iter().map(|end| end.socket.as_fd()).collect()
    }

    fn receive(&mut self, port: usize, pool: &mut Pool, into: &mut Vec<Vec<u8>>) -> Result<bool> {
        let Some(end) = self.ends.get(port) else { return Ok(false) };
        let mut lengths = [0; FRAMES];
        let received = match end.socket.receive_all(&mut self.memory, self.slot, &mut lengths) {
            Ok(received) => received,
            Err(error) => return nothing_more(&error).context("packet(7)"),
        };
        let frames = self.memory.chunks_exact(self.slot).zip(lengths).take(received);
        for (slot, length) in frames {
            // What is not IP (nothing asks for addresses here) is nobody's.
            let packet = match slot.get(..length).and_then(|frame| frame.split_at_checked(ETHERNET))
            {
                Some((header, packet)) if is_ip(header) => packet,
                _ => continue,
            };
            into.push(pool.copy(packet));
        }
        Ok(received == FRAMES)
    }

    fn send(&mut self, port: usize, octets: Vec<u8>, _: &mut Pool) -> bool {
        let Some(end) = self.ends.get_mut(port) else { return false };
        end.waiting.push(octets);
        true
    }

    fn flush(&mut self, pool: &mut Pool) -> u64 {
        let mut lost = 0;
        for end in &mut self.ends {
            let mut left = end.waiting.as_slice();
            while !left.is_empty() {
                let [four, six] = &end.headers;
                let frames = left.iter().take(FRAMES).map(|packet| {
                    let version = packet.first().map_or(4, |first| first >> 4);
                    (if version == 6 { &six[..] } else { &four[..] }, packet.as_slice())
                });
                // A frame that is not taken is lost, as on any network; the next ones are tried.
                let sent = end.socket.send_all(frames).unwrap_or(0);
                lost += u64::from(sent == 0);
                left = left.get(sent.max(1)..).unwrap_or_default();
            }
            end.waiting.drain(..).for_each(|packet| pool.give(packet));
        }
        lost
    }

    fn not_read(&mut self) -> u64 {
        let dropped = self.ends.iter().filter_map(|end| end.socket.dropped().ok());
        self.not_read += dropped.sum::<u64>();
        self.not_read
    }
}

/// Whether an Ethernet header is that of an IP packet.
pub(crate) fn is_ip(header: &[u8]) -> bool {
    header.ends_with(&[0x08, 0x00]) || header.ends_with(&[0x86, 0xdd])
}
