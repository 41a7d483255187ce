//! The control socket of a running network.

pub(crate) mod ask;
pub mod client;
pub(crate) mod pcapng;
pub(crate) mod protocol;
pub(crate) mod status;

use crate::carrier::tap::{TapReceiver, tap};
use crate::control::ask::{Ask, Asker, Reply};
use crate::control::pcapng::Pcapng;
use crate::control::protocol::{Answer, Question, socket_name};
use anyhow::{Context, Result, bail};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use testbed::clock::{self, Deadline};
use text::UsageError;

/// The longest question, in octets.
const MAX_QUESTION: usize = 64 << 10;
/// How often a capture without packets checks whether it must end.
const CAPTURE_LOOK: Duration = Duration::from_millis(200);

/// Limits on clients.
#[derive(Clone, Copy, Debug)]
struct ClientLimits {
    /// Simultaneous connections.
    connections: usize,
    /// Connections that stay open: captures and programs in hosts. The rest is for questions, so
    /// that `lab status` and `lab down` always work.
    staying: usize,
    /// Captures among those.
    captures: usize,
    /// How long a client may take to send its question, and to receive the answer.
    patience: Duration,
}

const LIMITS: ClientLimits = ClientLimits {
    connections: 256,
    staying: 224,
    captures: 32,
    patience: Duration::from_secs(10),
};

/// Current counts of what [`ClientLimits`] bounds.
#[derive(Debug, Default)]
struct Taken {
    connections: Arc<AtomicUsize>,
    staying: Arc<AtomicUsize>,
    captures: Arc<AtomicUsize>,
}

/// One unit of a limited count; released when dropped.
#[derive(Debug)]
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn acquire(taken: &Arc<AtomicUsize>, most: usize, what: &str) -> Result<Slot, String> {
        let slot = Slot(taken.clone());
        match taken.fetch_add(1, Ordering::Relaxed) {
            before if before < most => Ok(slot),
            _ => Err(format!("too many {what} at once: {most} at most; end some of them")),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bound socket: it reserves the network's name.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
}

/// What every connection needs.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The network's name.
    pub(crate) name: String,
    /// The files of the hosts' network namespaces, by host.
    pub(crate) hosts: BTreeMap<String, String>,
    /// That of the user namespace, where there is one.
    pub(crate) user: Option<String>,
}

impl Control {
    /// Binds it, in the network namespace of this process.
    ///
    /// # Errors
    /// A network of this name is up already.
    pub(crate) fn bind(name: &str) -> Result<Control> {
        let address = SocketAddr::from_abstract_name(socket_name(geteuid().as_raw(), name))?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Control { listener }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => Err(UsageError::error(format!(
                "a network {name} is up already: `lab down {name}`, or `--name`"
            ))),
            Err(error) => Err(error).context("the control socket"),
        }
    }

    /// Answers from now on, in threads of their own.
    pub(crate) fn serve(self, about: About, asker: &Asker) -> Result<()> {
        self.serve_within(LIMITS, about, asker)
    }

    fn serve_within(self, limits: ClientLimits, about: About, asker: &Asker) -> Result<()> {
        let asker = asker.another()?;
        let about = Arc::new(about);
        let taken = Arc::new(Taken::default());
        std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in self.listener.incoming() {
                let (Ok(stream), Ok(asker)) = (stream, asker.another()) else { continue };
                let (about, taken) = (about.clone(), taken.clone());
                let slot = Slot::acquire(&taken.connections, limits.connections, "connections");
                let mut connection = ControlConnection { stream, asker, about, limits, taken };
                let slot = match slot {
                    Ok(slot) => slot,
                    Err(why) => {
                        // One line fits into the buffer of a new socket, so this does not block.
                        let _ = connection.send(&Answer::Wrong(why));
                        continue;
                    }
                };
                // Without a thread the client finds the connection closed.
                let _ = std::thread::Builder::new().spawn(move || {
                    // An error of one client does not concern the network.
                    let _ = connection.serve();
                    drop(slot);
                });
            }
        })?;
        Ok(())
    }
}

struct ControlConnection {
    stream: UnixStream,
    asker: Asker,
    about: Arc<About>,
    limits: ClientLimits,
    taken: Arc<Taken>,
}

impl ControlConnection {
    fn serve(mut self) -> Result<()> {
        // The same user has the same id here, also in a user namespace of this process.
        let peer = getsockopt(&self.stream, PeerCredentials)?;
        if peer.uid() != geteuid().as_raw() {
            return self.send(&Answer::Wrong("this network is another user's".to_owned()));
        }
        self.stream.set_write_timeout(Some(self.limits.patience))?;
        let line = match self.line() {
            Ok(line) => line,
            Err(why) => return self.send(&Answer::Wrong(format!("no question: {why}"))),
        };
        match serde_json::from_slice(&line) {
            Ok(question) => self.answer(question),
            Err(error) => self.send(&Answer::Wrong(format!("no question: {error}"))),
        }
    }

    /// The question's line. The limit is for the whole line, in however many pieces it arrives.
    fn line(&mut self) -> Result<Vec<u8>> {
        let end = Deadline::after(self.limits.patience);
        let (mut line, mut piece) = (Vec::new(), [0; 4_096]);
        while line.len() <= MAX_QUESTION {
            if end.has_passed() {
                bail!("none within {:?}", self.limits.patience);
            }
            // A timeout of zero would mean no timeout.
            self.stream.set_read_timeout(Some(end.left().max(Duration::from_millis(1))))?;
            let read = match self.stream.read(&mut piece) {
                Ok(0) => return Ok(line),
                Ok(read) => piece.get(..read).unwrap_or_default(),
                Err(error) if is_patience(error.kind()) => continue,
                Err(error) => return Err(error.into()),
            };
            match read.iter().position(|octet| *octet == b'\n') {
                Some(at) => {
                    line.extend_from_slice(read.get(..at).unwrap_or_default());
                    return Ok(line);
                }
                None => line.extend_from_slice(read),
            }
        }
        bail!("longer than {MAX_QUESTION} octets")
    }

    fn send(&mut self, answer: &Answer) -> Result<()> {
        let mut line = serde_json::to_string(answer)?;
        line.push('\n');
        Ok(self.stream.write_all(line.as_bytes())?)
    }

    fn answer(&mut self, question: Question) -> Result<()> {
        match question {
            Question::Status => {
                let answer = match self.asker.ask(Ask::Status) {
                    Ok(Reply::Status(mut status)) => {
                        status.name.clone_from(&self.about.name);
                        Answer::Status(status)
                    }
                    other => plain(other),
                };
                self.send(&answer)
            }
            Question::Flow { router, ask } => {
                let answer = plain(self.asker.ask(Ask::Flow { router, ask }));
                self.send(&answer)
            }
            Question::Enter { host } => {
                let Some(network) = self.about.hosts.get(&host) else {
                    let known = self.about.hosts.keys().cloned().collect::<Vec<_>>().join(", ");
                    return self.send(&Answer::Wrong(format!("no host {host}: there are {known}")));
                };
                let (network, user) = (network.clone(), self.about.user.clone());
                let _slot = match self.stays() {
                    Ok(slot) => slot,
                    Err(why) => return self.send(&Answer::Wrong(why)),
                };
                self.send(&Answer::Enter { network, user })?;
                self.until_it_ends()
            }
            Question::Flood(ask) => {
                let answer = plain(self.asker.ask(Ask::Flood(ask)));
                self.send(&answer)
            }
            Question::Floods => {
                let answer = plain(self.asker.ask(Ask::Floods));
                self.send(&answer)
            }
            Question::Capture { port } => self.capture(&port),
            Question::Down => {
                self.send(&Answer::Done)?;
                clock::interrupt();
                self.asker.wake();
                self.until_it_ends()
            }
        }
    }

    /// Keeps the connection open: its end shows each side that the other has ended.
    fn until_it_ends(&mut self) -> Result<()> {
        self.stream.set_read_timeout(None)?;
        let mut octets = [0; 64];
        while self.stream.read(&mut octets)? > 0 {}
        Ok(())
    }

    /// A slot for a connection that stays.
    fn stays(&self) -> Result<Slot, String> {
        let what = "captures and programs in hosts";
        Slot::acquire(&self.taken.staying, self.limits.staying, what)
    }

    fn capture(&mut self, port: &str) -> Result<()> {
        let slots = self.stays().and_then(|stays| {
            Ok((stays, Slot::acquire(&self.taken.captures, self.limits.captures, "captures")?))
        });
        let _slots = match slots {
            Ok(slots) => slots,
            Err(why) => return self.send(&Answer::Wrong(why)),
        };
        let (to, receiver) = tap();
        let answer = plain(self.asker.ask(Ask::Listen { port: port.to_owned(), to }));
        let is_listening = matches!(answer, Answer::Done);
        let done = self.send(&answer).and_then(|()| match is_listening {
            true => self.pass_on(port, &receiver),
            false => Ok(()),
        });
        // Without this the driver would keep the tap until the next packet.
        drop(receiver);
        let _ = self.asker.ask(Ask::Sweep);
        done
    }

    fn pass_on(&self, port: &str, receiver: &TapReceiver) -> Result<()> {
        // A client that stops reading misses packets, and keeps only its own slot.
        self.stream.set_write_timeout(None)?;
        let mut file = Pcapng::new(std::io::BufWriter::new(&self.stream), port)?;
        loop {
            match receiver.next(CAPTURE_LOOK) {
                Ok(packet) => {
                    file.packet(packet.at, packet.inbound, &packet.octets)?;
                    // A burst is written with one flush.
                    for packet in receiver.there() {
                        file.packet(packet.at, packet.inbound, &packet.octets)?;
                    }
                    file.flush()?;
                }
                Err(RecvTimeoutError::Timeout) if is_closed(&self.stream) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the network ended"),
            }
        }
    }
}

fn is_patience(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Whether the other end has closed; it never sends.
fn is_closed(stream: &UnixStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let mut octet = [0];
    let mut reader: &UnixStream = stream;
    let closed = matches!(reader.read(&mut octet), Ok(0));
    let _ = stream.set_nonblocking(false);
    closed
}

fn plain(notified: Result<Reply, String>) -> Answer {
    match notified {
        Ok(Reply::Status(status)) => Answer::Status(status),
        Ok(Reply::Flows(flows)) => Answer::Flows(flows),
        Ok(Reply::Floods(floods)) => Answer::Floods(floods),
        Ok(Reply::Done) => Answer::Done,
        Err(wrong) => Answer::Wrong(wrong),
    }
}

#[cfg(test)]
mod tests;
