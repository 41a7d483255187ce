//! The socket by which a running network is asked.

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
use text::Usage;

/// The longest question, in octets.
const MAX_QUESTION: usize = 64 << 10;
/// How often a capture without packets looks whether it shall end.
const CAPTURE_LOOK: Duration = Duration::from_millis(200);

/// What clients may take up.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections at once.
    connections: usize,
    /// Those among them that stay: captures and programs in hosts. The rest is for questions, so that
    /// a network can always be asked how it is, and be ended.
    staying: usize,
    /// Captures among those.
    captures: usize,
    /// How long a client may take for its question in all, and for taking the answer.
    patience: Duration,
}

const LIMITS: Limits =
    Limits { connections: 256, staying: 224, captures: 32, patience: Duration::from_secs(10) };

/// What is taken up now.
#[derive(Debug, Default)]
struct Taken {
    connections: Arc<AtomicUsize>,
    staying: Arc<AtomicUsize>,
    captures: Arc<AtomicUsize>,
}

/// One of so many; given back when dropped.
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

/// The socket, bound: the network's name is ours.
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
            Err(error) if error.kind() == ErrorKind::AddrInUse => Err(Usage::error(format!(
                "a network {name} is up already: `lab down {name}`, or `--name`"
            ))),
            Err(error) => Err(error).context("the control socket"),
        }
    }

    /// Answers from now on, in threads of their own.
    pub(crate) fn serve(self, about: About, asker: &Asker) -> Result<()> {
        self.serve_within(LIMITS, about, asker)
    }

    fn serve_within(self, limits: Limits, about: About, asker: &Asker) -> Result<()> {
        let asker = asker.another()?;
        let about = Arc::new(about);
        let taken = Arc::new(Taken::default());
        std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in self.listener.incoming() {
                let (Ok(stream), Ok(asker)) = (stream, asker.another()) else { continue };
                let (about, taken) = (about.clone(), taken.clone());
                let slot = Slot::acquire(&taken.connections, limits.connections, "connections");
                let mut connection = Connection { stream, asker, about, limits, taken };
                let slot = match slot {
                    Ok(slot) => slot,
                    Err(why) => {
                        // One line fits into a fresh socket: nothing is waited for.
                        let _ = connection.say(&Answer::Wrong(why));
                        continue;
                    }
                };
                // Without a thread the client finds the connection closed.
                let _ = std::thread::Builder::new().spawn(move || {
                    // A client that went away, or was none of ours, is nobody's concern.
                    let _ = connection.serve();
                    drop(slot);
                });
            }
        })?;
        Ok(())
    }
}

struct Connection {
    stream: UnixStream,
    asker: Asker,
    about: Arc<About>,
    limits: Limits,
    taken: Arc<Taken>,
}

impl Connection {
    fn serve(mut self) -> Result<()> {
        // As this process sees it, who has its user id has it in a user namespace of ours, too.
        let peer = getsockopt(&self.stream, PeerCredentials)?;
        if peer.uid() != geteuid().as_raw() {
            return self.say(&Answer::Wrong("this network is another user's".to_owned()));
        }
        self.stream.set_write_timeout(Some(self.limits.patience))?;
        let line = match self.line() {
            Ok(line) => line,
            Err(why) => return self.say(&Answer::Wrong(format!("no question: {why}"))),
        };
        match serde_json::from_slice(&line) {
            Ok(question) => self.answer(question),
            Err(error) => self.say(&Answer::Wrong(format!("no question: {error}"))),
        }
    }

    /// The question's line. It is to be there in time as a whole, however many pieces it comes in.
    fn line(&mut self) -> Result<Vec<u8>> {
        let end = Deadline::after(self.limits.patience);
        let (mut line, mut piece) = (Vec::new(), [0; 4_096]);
        while line.len() <= MAX_QUESTION {
            if end.has_passed() {
                bail!("none within {:?}", self.limits.patience);
            }
            // A timeout of zero would be none at all.
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

    fn say(&mut self, answer: &Answer) -> Result<()> {
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
                self.say(&answer)
            }
            Question::Flow { router, ask } => {
                let answer = plain(self.asker.ask(Ask::Flow { router, ask }));
                self.say(&answer)
            }
            Question::Enter { host } => {
                let Some(network) = self.about.hosts.get(&host) else {
                    let known = self.about.hosts.keys().cloned().collect::<Vec<_>>().join(", ");
                    return self.say(&Answer::Wrong(format!("no host {host}: there are {known}")));
                };
                let (network, user) = (network.clone(), self.about.user.clone());
                let _slot = match self.stays() {
                    Ok(slot) => slot,
                    Err(why) => return self.say(&Answer::Wrong(why)),
                };
                self.say(&Answer::Enter { network, user })?;
                self.until_it_ends()
            }
            Question::Flood(ask) => {
                let answer = plain(self.asker.ask(Ask::Flood(ask)));
                self.say(&answer)
            }
            Question::Floods => {
                let answer = plain(self.asker.ask(Ask::Floods));
                self.say(&answer)
            }
            Question::Capture { port } => self.capture(&port),
            Question::Down => {
                self.say(&Answer::Done)?;
                clock::interrupt();
                self.asker.wake();
                self.until_it_ends()
            }
        }
    }

    /// Holds the connection: its end tells the client that we are gone, and us that it is.
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
            Err(why) => return self.say(&Answer::Wrong(why)),
        };
        let (to, receiver) = tap();
        let answer = plain(self.asker.ask(Ask::Listen { port: port.to_owned(), to }));
        let is_heard = matches!(answer, Answer::Done);
        let done = self.say(&answer).and_then(|()| match is_heard {
            true => self.pass_on(port, &receiver),
            false => Ok(()),
        });
        // The driver forgets us even where no packet passes.
        drop(receiver);
        let _ = self.asker.ask(Ask::Sweep);
        done
    }

    fn pass_on(&self, port: &str, receiver: &TapReceiver) -> Result<()> {
        // Who reads may stop for as long as it likes, and misses packets; its slot is its own.
        self.stream.set_write_timeout(None)?;
        let mut file = Pcapng::new(std::io::BufWriter::new(&self.stream), port)?;
        loop {
            match receiver.next(CAPTURE_LOOK) {
                Ok(packet) => {
                    file.packet(packet.at, packet.inbound, &packet.octets)?;
                    // What comes in a burst is written at once.
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

/// Whether the other end has closed; nothing is ever said there.
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
