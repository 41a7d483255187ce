//! Whoever binds, from whatever address of this machine, under whatever name.

use base::ber::{Element, Writer};
use base::time::Instant;
use bytes::Bytes;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use osi::api::{Config, Indication, Input, Output, Request, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindError};
use p1::names::{ORAddress, ORName};
use p1::p3::{MtsBind, MtsBindError, ObjectName};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Longest wait for an answer, on a busy machine.
const ANSWER: Duration = Duration::from_secs(60);

/// How a bind ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Open,
    /// The bind error.
    Refused(String),
    /// Refused in a layer below, or aborted: the detail of our stack.
    Below(String),
}

impl Answer {
    pub(super) fn authentication_error() -> Answer {
        Answer::Refused("authentication-error".to_owned())
    }

    pub(super) fn busy() -> Answer {
        Answer::Refused("busy".to_owned())
    }
}

/// An association and what came over it.
pub(super) struct Client {
    stream: TcpStream,
    stack: Association,
    pub(super) answer: Answer,
    /// All octets that came.
    pub(super) came: Vec<u8>,
}

/// A TCP connection from this address.
pub(super) fn tcp(to: SocketAddr, from: Ipv4Addr) -> TcpStream {
    let SocketAddr::V4(to) = to else { panic!("{to}") };
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0))).unwrap();
    connect(fd.as_raw_fd(), &SockaddrIn::from(to))
        .unwrap_or_else(|e| panic!("from {from} to {to}: {e}"));
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(ANSWER)).unwrap();
    stream
}

/// A peer binds.
pub(super) fn mta(to: SocketAddr, from: Ipv4Addr, name: &str, password: &str) -> Client {
    let credentials = Credentials::simple(Bytes::copy_from_slice(password.as_bytes()));
    let mut w = Writer::new();
    MtaBindArgument::Authenticated(MtaAuthentication::new(name, credentials)).write(&mut w);
    let config = profiles::p1(Selectors::default(), Selectors::default(), reference());
    let read = |e: &Element<'_>| MtaBindError::read(e).unwrap().to_string();
    Client::bind(tcp(to, from), config, w.into_vec(), &read)
}

/// A user binds.
pub(super) fn user(to: SocketAddr, from: Ipv4Addr, address: &str, password: &str) -> Client {
    let name = ORName::from(address.parse::<ORAddress>().unwrap());
    let credentials = Credentials::simple(Bytes::copy_from_slice(password.as_bytes()));
    let mut w = Writer::new();
    MtsBind::new(ObjectName::UserAgent(name), credentials).write(&mut w);
    let config = profiles::p3(Selectors::default(), Selectors::default(), reference());
    let read = |e: &Element<'_>| MtsBindError::read(e).unwrap().to_string();
    Client::bind(tcp(to, from), config, w.into_vec(), &read)
}

fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"\x04\x01a"),
        common: Bytes::from_static(b"\x17\x0D260102030405Z"),
        additional: Bytes::new(),
    }
}

impl Client {
    fn bind(
        stream: TcpStream,
        config: Config,
        bind: Vec<u8>,
        read: &dyn Fn(&Element<'_>) -> String,
    ) -> Client {
        let stack = Association::new(config, Role::Initiator);
        let answer = Answer::Below("nothing".to_owned());
        let mut client = Client { stream, stack, answer, came: Vec::new() };
        // No time passes: the deadlines are the daemon's matter.
        client.stack.handle(Instant(0), Input::Request(Request::Open { bind: bind.into() }));
        loop {
            while let Some(output) = client.stack.poll() {
                match output {
                    Output::Send(octets) => {
                        // If it is closed, earlier octets can still be read.
                        let _ = client.stream.write_all(&octets);
                    }
                    Output::Close => return client,
                    Output::Indication(i) => {
                        client.answer = match i {
                            Indication::Opened { .. } => Answer::Open,
                            Indication::Refused { bind_error: Some(e), .. } => {
                                Answer::Refused(read(&Element::parse(&e).unwrap()))
                            }
                            Indication::Refused { detail, .. }
                            | Indication::Aborted { detail, .. } => Answer::Below(detail),
                            _ => continue,
                        };
                        return client;
                    }
                }
            }
            let mut piece = [0; 4_096];
            match client.stream.read(&mut piece) {
                Ok(0) => client.stack.handle(Instant(0), Input::Eof),
                Ok(count) => {
                    client.came.extend_from_slice(&piece[..count]);
                    client.stack.handle(Instant(0), Input::Bytes(&piece[..count]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("waiting for an answer to the bind: {error}"),
            }
        }
    }

    /// Whether the other side still holds the connection.
    pub(super) fn is_there(&self) -> bool {
        is_open(&self.stream)
    }
}

/// Whether the other side holds a connection on which nothing came.
pub(super) fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0; 1]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
}
