//! Asking a network that is up.

use crate::carrier::flood::{FloodAsk, FloodStatus};
use crate::control::ask::FlowAsk;
use crate::control::protocol::{Answer, MAX_LINE, Question, socket_name, socket_prefix};
use crate::control::status::NetworkStatus;
use anyhow::{Context, Result, bail};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use router::policy::TableFlow;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use text::UsageError;

/// A network that is up.
#[derive(Clone, Debug)]
pub struct ControlClient {
    name: String,
}

/// Access to a host, as long as the network is up.
#[derive(Debug)]
pub struct HostAccess {
    /// The file of its network namespace.
    pub network: String,
    /// That of its user namespace, where it is another than ours.
    pub user: Option<String>,
    /// Ends with the network.
    pub connection: UnixStream,
}

impl ControlClient {
    /// The network of this name, or the only one that is up.
    ///
    /// # Errors
    /// None is up, several are and none was named, or none has that name.
    pub fn find(name: Option<&str>) -> Result<ControlClient> {
        let up = names()?;
        let known = up.join(", ");
        match (name, up.as_slice()) {
            (_, []) => Err(UsageError::error("no network is up: `lab up TOPOLOGY` keeps one up")),
            (None, [only]) => Ok(ControlClient { name: only.clone() }),
            (None, _) => {
                Err(UsageError::error(format!("several networks are up: name one of {known}")))
            }
            (Some(name), _) if up.iter().any(|other| other == name) => {
                Ok(ControlClient { name: name.to_owned() })
            }
            (Some(name), _) => {
                Err(UsageError::error(format!("no network {name} is up; up: {known}")))
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All its counters.
    ///
    /// # Errors
    /// It has ended meanwhile.
    pub fn status(&self) -> Result<NetworkStatus> {
        match self.ask(&Question::Status)?.0 {
            Answer::Status(status) => Ok(*status),
            other => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// Changes, or lists, the flows of a router; the answer is empty after a change.
    ///
    /// # Errors
    /// There is no such router, table or flow, or the flow is wrong.
    pub fn flow(&self, router: &str, ask: FlowAsk) -> Result<Vec<(String, Vec<TableFlow>)>> {
        match self.ask(&Question::Flow { router: router.to_owned(), ask })?.0 {
            Answer::Flows(flows) => Ok(flows),
            Answer::Done => Ok(Vec::new()),
            other => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// Has the network make packets itself, as if a host had sent them, and count what of them comes to
    /// the other.
    ///
    /// # Errors
    /// There is no such host, or no route; it is out of bounds; the kernel forwards.
    pub fn flood(&self, ask: FloodAsk) -> Result<()> {
        match self.ask(&Question::Flood(ask))?.0 {
            Answer::Done => Ok(()),
            other => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// The state of all floods, in the order of their requests.
    ///
    /// # Errors
    /// It has ended meanwhile.
    pub fn floods(&self) -> Result<Vec<FloodStatus>> {
        match self.ask(&Question::Floods)?.0 {
            Answer::Floods(floods) => Ok(floods),
            other => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// Access to a host: its network namespace and its user.
    ///
    /// # Errors
    /// There is no such host.
    pub fn enter(&self, host: &str) -> Result<HostAccess> {
        let (answer, reader) = self.ask(&Question::Enter { host: host.to_owned() })?;
        match answer {
            Answer::Enter { network, user } => {
                Ok(HostAccess { network, user, connection: reader.into_inner() })
            }
            other => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// A pcapng file of what passes a port, as it passes, until the reader is dropped.
    ///
    /// # Errors
    /// There is no such port.
    pub fn capture(&self, port: &str) -> Result<BufReader<UnixStream>> {
        match self.ask(&Question::Capture { port: port.to_owned() })? {
            (Answer::Done, reader) => Ok(reader),
            (other, _) => bail!("not an answer to this question: {other:?}"),
        }
    }

    /// Ends it, and waits until its process is gone. One that others have ended meanwhile is as well.
    ///
    /// # Errors
    /// It is there, and cannot be reached.
    pub fn down(&self) -> Result<()> {
        let (_, mut reader) = match self.ask(&Question::Down) {
            Err(_) if !names()?.contains(&self.name) => return Ok(()),
            other => other?,
        };
        let mut rest = Vec::new();
        // A process that ends may reset the connection: it is gone in either case.
        let _ = reader.read_to_end(&mut rest);
        Ok(())
    }

    fn ask(&self, question: &Question) -> Result<(Answer, BufReader<UnixStream>)> {
        let uid = geteuid().as_raw();
        let address = SocketAddr::from_abstract_name(socket_name(uid, &self.name))?;
        let gone = || format!("the network {} has ended", self.name);
        let mut stream = UnixStream::connect_addr(&address).with_context(gone)?;
        // Anybody may have bound a name of this form.
        if getsockopt(&stream, PeerCredentials)?.uid() != uid {
            bail!("the network {} is another user's", self.name);
        }
        let mut line = serde_json::to_string(question)?;
        line.push('\n');
        // A network that refuses a client has sent the reason and closed its end.
        let asked = stream.write_all(line.as_bytes());
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        (&mut reader).take(MAX_LINE).read_line(&mut line).with_context(gone)?;
        if line.is_empty() {
            asked.with_context(gone)?;
        }
        match serde_json::from_str(&line).with_context(gone)? {
            Answer::Wrong(why) => Err(UsageError::error(why)),
            answer => Ok((answer, reader)),
        }
    }
}

/// The names of this user's networks that are up, in their order.
///
/// # Errors
/// The kernel does not list its sockets.
pub fn names() -> Result<Vec<String>> {
    let path = "/proc/net/unix";
    let sockets = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    let prefix = format!("@{}", socket_prefix(geteuid().as_raw()));
    // The last column; a socket that listens, and each connection to it, has a line.
    let name =
        |line: &str| line.split_whitespace().last()?.strip_prefix(&prefix).map(str::to_owned);
    let mut names: Vec<String> = sockets.lines().filter_map(name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
