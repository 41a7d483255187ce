//! TCP sockets of listeners and channels: their mark, their timeouts, and the mark of the peer's
//! handshake.

use crate::config::value::Remote;
use crate::config::{ChannelSocket, ListenSocket, Tcp};
use dscp::{Dscp, socket as marks};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections the kernel queues until they are accepted.
const BACKLOG: i32 = 128;

/// Keepalive times the kernel accepts, in whole seconds (tcp(7): TCP_KEEPIDLE).
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32_767));

/// Probes between the first one and the moment when an idle peer counts as dead.
const PROBES: u32 = 4;

/// TCP_NOTSENT_LOWAT: unsent octets the kernel accepts. A few packets keep a connection busy; the
/// rest waits in this process, where a transfer can still be stopped or overtaken. The kernel asks
/// for more when half of it is gone. It does not limit octets in flight.
const NOT_SENT: u32 = 32 << 10;

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {label}: {error}")]
pub struct ListenError {
    /// The address.
    address: SocketAddr,
    /// The channel or service.
    label: String,
    /// The cause.
    error: io::Error,
}

impl ListenError {
    pub(super) fn new(listener: &ListenSocket, error: io::Error) -> ListenError {
        ListenError { address: listener.address, label: listener.label.clone(), error }
    }
}

/// Why a channel was not connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the channel is not configured")]
    NotConfigured,
    #[error("{host}: no answer from the resolver within {timeout:?}")]
    ResolverSilent { host: String, timeout: Duration },
    #[error("{host}: {error}")]
    Unresolved { host: String, error: io::Error },
    #[error("{host}: no address")]
    NoAddress { host: String },
    /// None of several places.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Everywhere(Vec<ConnectError>),
    /// No address answered.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Failed(Vec<AddressError>),
}

/// Why an address was not connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{0}: {1}")]
    Failed(SocketAddr, io::Error),
    #[error("{0}: no answer within {1:?}")]
    Silent(SocketAddr, Duration),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connected {
    /// The stream.
    pub(crate) stream: TcpStream,
    /// The mark of the peer's handshake, where the kernel reports it.
    pub(crate) seen: Option<Dscp>,
}

/// A socket with its mark and its options, all set before `connect` and `listen`: SYN and SYN-ACK
/// carry the mark, the user timeout limits the handshake too, and accepted connections inherit the
/// listener's options.
fn prepared(address: SocketAddr, tcp: &Tcp, label: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    marks::mark(&socket, tcp.dscp)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(NOT_SENT)?;
    socket.set_tcp_user_timeout(Some(tcp.user_timeout))?;
    socket.set_tcp_keepalive(&keepalive(tcp))?;
    if let Some(name) = &tcp.congestion {
        // The system may not have this algorithm, or not permit it
        // (tcp_allowed_congestion_control).
        if let Err(error) = socket.set_tcp_congestion(name.as_bytes()) {
            tracing::warn!(channel = label, congestion = name, %error,
                "congestion control not permitted or not there: the system's stays");
        }
    }
    Ok(socket)
}

/// Keepalive probes of an idle connection, such that its peer counts as dead when nothing was
/// received for the user timeout. With a user timeout the kernel uses that instead of the number
/// of probes, but checks only when a probe is due.
fn keepalive(tcp: &Tcp) -> TcpKeepalive {
    let whole =
        |time: Duration| Duration::from_secs(time.clamp(KEEPALIVE.0, KEEPALIVE.1).as_secs());
    let idle = whole(tcp.keepalive);
    let rest = match tcp.user_timeout.saturating_sub(idle) {
        Duration::ZERO => idle,
        rest => rest,
    };
    TcpKeepalive::new().with_time(idle).with_interval(whole(rest / PROBES)).with_retries(PROBES)
}

/// Logs that the marks of peers cannot be observed on a socket, and why.
fn warn_mark_unobservable(label: &str, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::info!(channel = label, %error, "the marks of peers cannot be seen here");
    }
}

/// Lets a socket share its address with another one of this user that does so too, or ends that.
pub(super) fn share(listener: &TcpListener, on: bool) -> io::Result<()> {
    SockRef::from(listener).set_reuse_port(on)
}

/// Listens; with `beside`, shares the address with another socket. IPv6 listeners accept IPv6
/// only: a dual-stack listener would leave IPv4 peers unmarked.
pub(crate) fn listen(listener: &ListenSocket, beside: bool) -> io::Result<TcpListener> {
    let socket = prepared(listener.address, &listener.tcp, &listener.label)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(beside)?;
    if listener.address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    warn_mark_unobservable(&listener.label, marks::keep_syn(&socket));
    socket.bind(&listener.address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The next connection of a listener.
pub(crate) async fn accept(listener: &TcpListener) -> io::Result<(Connected, SocketAddr)> {
    let (stream, remote) = listener.accept().await?;
    let seen = marks::seen_on_accepted(&stream);
    Ok((Connected { stream, seen }, remote))
}

/// Connects to the first address that answers, of all places where the peer is; each address has its own time limit.
/// `first` counts the places from which on they are tried.
pub(crate) async fn connect(
    channel: &ChannelSocket,
    first: usize,
) -> Result<Connected, ConnectError> {
    let places: Vec<&Remote> = channel.remotes().collect();
    let mut errors = Vec::new();
    for remote in places.iter().cycle().skip(first % places.len().max(1)).take(places.len()) {
        match connect_to_host(channel, remote).await {
            Ok(connected) => return Ok(connected),
            Err(error) => errors.push(error),
        }
    }
    match errors.pop() {
        Some(error) if errors.is_empty() => Err(error),
        last => Err(ConnectError::Everywhere(errors.into_iter().chain(last).collect())),
    }
}

async fn connect_to_host(
    channel: &ChannelSocket,
    remote: &Remote,
) -> Result<Connected, ConnectError> {
    let timeout = channel.connect_timeout;
    let host = || remote.host.clone();
    let addresses = tokio::time::timeout(timeout, resolve(remote))
        .await
        .map_err(|_| ConnectError::ResolverSilent { host: host(), timeout })?
        .map_err(|error| ConnectError::Unresolved { host: host(), error })?;
    let mut errors = Vec::new();
    for address in addresses {
        let outcome = tokio::time::timeout(timeout, connect_to(address, channel)).await;
        match outcome {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => errors.push(AddressError::Failed(address, error)),
            Err(_) => errors.push(AddressError::Silent(address, timeout)),
        }
    }
    match errors.is_empty() {
        true => Err(ConnectError::NoAddress { host: host() }),
        false => Err(ConnectError::Failed(errors)),
    }
}

pub(crate) async fn resolve(remote: &Remote) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((remote.host.as_str(), remote.port)).await?.collect())
}

async fn connect_to(address: SocketAddr, channel: &ChannelSocket) -> io::Result<Connected> {
    let socket = prepared(address, &channel.tcp, &channel.label)?;
    warn_mark_unobservable(&channel.label, marks::keep_mark(&socket));
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    let seen = marks::seen_on_connected(&stream);
    Ok(Connected { stream, seen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::ListenerId;

    fn tcp(dscp: Dscp) -> Tcp {
        Tcp {
            dscp,
            congestion: Some("no-such-control".to_owned()),
            user_timeout: Duration::from_secs(7),
            keepalive: Duration::from_secs(8),
        }
    }

    fn channel(host: &str, port: u16, dscp: Dscp) -> ChannelSocket {
        ChannelSocket {
            remote: Remote { host: host.to_owned(), port },
            others: Vec::new(),
            tcp: tcp(dscp),
            connect_timeout: Duration::from_secs(5),
            label: "act/flash".to_owned(),
        }
    }

    fn unlabelled(address: SocketAddr) -> ListenSocket {
        ListenSocket { id: ListenerId(0), address, tcp: tcp(Dscp::CS3), label: String::new() }
    }

    /// A listener marked CS3, and a connection to it with this mark.
    async fn meet(any: &str, dscp: Dscp) -> (Connected, Connected) {
        let listener = listen(&unlabelled(any.parse().unwrap()), false).unwrap();
        let at = listener.local_addr().unwrap();
        let out = connect(&channel(&at.ip().to_string(), at.port(), dscp), 0).await.unwrap();
        let (inward, from) = accept(&listener).await.unwrap();
        assert_eq!(from, out.stream.local_addr().unwrap());
        (out, inward)
    }

    #[tokio::test]
    async fn places_are_tried_in_order_from_the_one_that_is_named() {
        let at = |listener: &TcpListener| listener.local_addr().unwrap();
        let any = || unlabelled("127.0.0.1:0".parse().unwrap());
        let (one, two) = (listen(&any(), false).unwrap(), listen(&any(), false).unwrap());
        let nobody = {
            let gone = listen(&any(), false).unwrap();
            at(&gone)
        };
        let remote = |at: SocketAddr| Remote { host: at.ip().to_string(), port: at.port() };
        let mut channel = channel("127.0.0.1", nobody.port(), Dscp::CS3);
        channel.others = vec![remote(at(&one)), remote(at(&two))];
        for (first, expected) in [(0, at(&one)), (1, at(&one)), (2, at(&two)), (3, at(&one))] {
            let connected = connect(&channel, first).await.unwrap();
            assert_eq!(connected.stream.peer_addr().unwrap(), expected, "from place {first}");
        }
        channel.others.clear();
        channel.others.push(remote(nobody));
        let error = connect(&channel, 0).await.unwrap_err().to_string();
        assert_eq!(error.matches("refused").count(), 2, "{error}");
    }

    #[tokio::test]
    async fn both_ends_are_marked_and_tuned_in_both_families() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let (out, inward) = meet(any, Dscp::CS3).await;
            for stream in [&out.stream, &inward.stream] {
                let socket = SockRef::from(stream);
                let v4 = stream.local_addr().unwrap().is_ipv4();
                let octet = if v4 { socket.tos_v4() } else { socket.tclass_v6() }.unwrap();
                assert_eq!(octet, 0x60);
                assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
                assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(7)));
                assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(8));
                assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(2));
                assert_eq!(socket.tcp_keepalive_retries().unwrap(), 4);
                assert_eq!(socket.tcp_notsent_lowat().unwrap(), NOT_SENT);
            }
        }
    }

    #[test]
    fn a_silent_peer_is_dead_when_its_time_is_over() {
        // Seconds: user timeout, keepalive; first probe, and the interval of the following ones.
        for (dead_after, idle, first, interval) in
            [(60, 30, 30, 7), (5, 2, 2, 1), (90, 45, 45, 11), (60, 60, 60, 15), (1, 1, 1, 1)]
        {
            let (user_timeout, keepalive) =
                (Duration::from_secs(dead_after), Duration::from_secs(idle));
            let tcp = Tcp { user_timeout, keepalive, ..tcp(Dscp::CS0) };
            let socket = prepared("127.0.0.1:0".parse().unwrap(), &tcp, "").unwrap();
            assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), first);
            assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), interval);
        }
    }

    #[test]
    fn the_congestion_control_of_the_configuration_is_set() {
        let available =
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
        for name in available.unwrap_or_default().split_whitespace() {
            let tcp = Tcp { congestion: Some(name.to_owned()), ..tcp(Dscp::CS0) };
            let socket = prepared("127.0.0.1:0".parse().unwrap(), &tcp, "").unwrap();
            let set = socket.tcp_congestion().unwrap();
            assert!(set.starts_with(name.as_bytes()), "{name}: {set:?}");
        }
    }

    #[tokio::test]
    async fn the_mark_of_the_peer_s_handshake_is_seen() {
        for mark in [Dscp::CS3, Dscp::CS0] {
            let (out, inward) = meet("127.0.0.1:0", mark).await;
            assert_eq!((out.seen, inward.seen), (None, Some(mark)), "IPv4");
            let (out, inward) = meet("[::1]:0", mark).await;
            assert_eq!((out.seen, inward.seen), (Some(Dscp::CS3), Some(mark)), "IPv6");
        }
    }

    #[test]
    fn keepalive_is_at_least_the_second_the_kernel_counts_in() {
        let tcp = Tcp { keepalive: Duration::from_millis(500), ..tcp(Dscp::CS0) };
        let socket = prepared("127.0.0.1:0".parse().unwrap(), &tcp, "").unwrap();
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_name_with_addresses_of_both_families_is_tried_through() {
        // Only the IPv4 address answers; most hosts files give `localhost` both.
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = unlabelled(address);
        let listener = listen(&listener, false).unwrap();
        let port = listener.local_addr().unwrap().port();
        let out = connect(&channel("localhost", port, Dscp::CS3), 0).await.unwrap();
        assert_eq!(out.stream.peer_addr().unwrap().port(), port);
    }

    #[tokio::test]
    async fn errors_name_every_address_tried() {
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = unlabelled(address);
        let port = listen(&listener, false).unwrap().local_addr().unwrap().port();
        let error = connect(&channel("127.0.0.1", port, Dscp::CS3), 0).await.unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(&format!("127.0.0.1:{port}: ")), "{error}");
        let error = connect(&channel("no-such-host.invalid", 1, Dscp::CS3), 0).await.unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("no-such-host.invalid: "), "{error}");
    }
}
