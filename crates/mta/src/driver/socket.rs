//! TCP sockets with their mark. DSCP belongs to a connection for life, so it is set before
//! `connect` and before `listen`: then SYN and SYN-ACK carry it too.

use crate::config::value::Remote;
use crate::config::{ChannelSocket, ListenSocket, Tcp};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections the kernel holds until we accept them.
const BACKLOG: i32 = 128;

fn marked(address: SocketAddr, tcp: &Tcp, label: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    mark(&socket, address, tcp)?;
    if let Some(name) = &tcp.congestion {
        // Not every system has it, nor permits it (tcp_allowed_congestion_control).
        if let Err(error) = socket.set_tcp_congestion(name.as_bytes()) {
            tracing::warn!(channel = label, congestion = name, %error,
                "congestion control not permitted or not there: the system's stays");
        }
    }
    Ok(socket)
}

fn mark(socket: &Socket, address: SocketAddr, tcp: &Tcp) -> io::Result<()> {
    let octet = u32::from(tcp.dscp.tos());
    if address.is_ipv4() { socket.set_tos_v4(octet) } else { socket.set_tclass_v6(octet) }
}

/// Says which system settings work against marks and idle channels.
pub(super) fn advise() {
    let is_on = |setting: &str| {
        let value = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{setting}"));
        value.is_ok_and(|value| value.trim() != "0")
    };
    if is_on("tcp_reflect_tos") {
        tracing::warn!(
            "net.ipv4.tcp_reflect_tos is on: answers carry the mark of whoever connects, \
             not the channel's; set it to 0"
        );
    }
    if is_on("tcp_slow_start_after_idle") {
        tracing::info!(
            "net.ipv4.tcp_slow_start_after_idle is on: a channel that was idle begins slowly \
             again; 0 suits precedence channels better"
        );
    }
}

/// What accepted and connected sockets have in common: no delay, and an end for dead peers.
fn tune(stream: &TcpStream, tcp: &Tcp) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(tcp.user_timeout))?;
    let keepalive = TcpKeepalive::new().with_time(tcp.keepalive).with_interval(tcp.keepalive / 4);
    socket.set_tcp_keepalive(&keepalive)
}

/// Listens. IPv6 listeners take IPv6 only: a dual-stack one would leave IPv4 peers unmarked.
pub(super) fn listen(listener: &ListenSocket) -> io::Result<TcpListener> {
    let socket = marked(listener.address, &listener.tcp, &listener.label)?;
    socket.set_reuse_address(true)?;
    if listener.address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&listener.address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The next connection of a listener.
pub(super) async fn accept(
    listener: &TcpListener,
    tcp: &Tcp,
) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, remote) = listener.accept().await?;
    tune(&stream, tcp)?;
    Ok((stream, remote))
}

/// Connects to the first address of the remote host that answers, each with its own time.
pub(super) async fn connect(channel: &ChannelSocket) -> Result<TcpStream, String> {
    let timeout = channel.connect_timeout;
    let remote = &channel.remote;
    let addresses = tokio::time::timeout(timeout, resolve(remote))
        .await
        .map_err(|_| format!("{}: no answer from the resolver within {timeout:?}", remote.host))?
        .map_err(|e| format!("{}: {e}", remote.host))?;
    let mut errors = Vec::new();
    for address in addresses {
        let outcome = tokio::time::timeout(timeout, connect_to(address, channel)).await;
        match outcome {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => errors.push(format!("{address}: {error}")),
            Err(_) => errors.push(format!("{address}: no answer within {timeout:?}")),
        }
    }
    match errors.is_empty() {
        true => Err(format!("{}: no address", remote.host)),
        false => Err(errors.join("; ")),
    }
}

async fn resolve(remote: &Remote) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((remote.host.as_str(), remote.port)).await?.collect())
}

async fn connect_to(address: SocketAddr, channel: &ChannelSocket) -> io::Result<TcpStream> {
    let socket = marked(address, &channel.tcp, &channel.label)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    tune(&stream, &channel.tcp)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tcp() -> Tcp {
        Tcp {
            dscp: dscp::Dscp::CS3,
            congestion: Some("no-such-control".to_owned()),
            user_timeout: Duration::from_secs(7),
            keepalive: Duration::from_secs(8),
        }
    }

    fn channel(host: &str, port: u16) -> ChannelSocket {
        ChannelSocket {
            remote: Remote { host: host.to_owned(), port },
            tcp: tcp(),
            connect_timeout: Duration::from_secs(5),
            label: "act/flash".to_owned(),
        }
    }

    #[tokio::test]
    async fn both_ends_are_marked_and_tuned_in_both_families() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let address = any.parse().unwrap();
            let label = "act/flash".to_owned();
            let listener = listen(&ListenSocket { address, tcp: tcp(), label }).unwrap();
            let at = listener.local_addr().unwrap();
            let out = connect(&channel(&at.ip().to_string(), at.port())).await.unwrap();
            let (inward, from) = accept(&listener, &tcp()).await.unwrap();
            assert_eq!(from, out.local_addr().unwrap());
            for stream in [&out, &inward] {
                let socket = SockRef::from(stream);
                let octet =
                    if at.is_ipv4() { socket.tos_v4() } else { socket.tclass_v6() }.unwrap();
                assert_eq!(octet, 0x60);
                assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
                assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(7)));
            }
        }
    }

    #[tokio::test]
    async fn errors_name_every_address_tried() {
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = ListenSocket { address, tcp: tcp(), label: String::new() };
        let port = listen(&listener).unwrap().local_addr().unwrap().port();
        let error = connect(&channel("127.0.0.1", port)).await.unwrap_err();
        assert!(error.starts_with(&format!("127.0.0.1:{port}: ")), "{error}");
        let error = connect(&channel("no-such-host.invalid", 1)).await.unwrap_err();
        assert!(error.starts_with("no-such-host.invalid: "), "{error}");
    }
}
