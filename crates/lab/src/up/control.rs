//! The socket by which a running network is asked.

use super::ask::{Ask, Asker, Passed, Told};
use super::protocol::{Answer, LINE_MAX, Question, socket_name};
use crate::clock;
use crate::pcapng::Pcapng;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Connections at once, at most.
const CONNECTIONS: usize = 256;
/// How long a client may take for its question.
const PATIENCE: Duration = Duration::from_secs(10);
/// Packets that wait for a capture's reader, at most.
const CAPTURE_QUEUE: usize = 16_384;
/// How often a capture without packets looks whether it shall end.
const CAPTURE_LOOK: Duration = Duration::from_millis(200);

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
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Usage::error(
                format!("a network {name} is up already: `lab down {name}`, or `--name`"),
            )),
            Err(error) => Err(error).context("the control socket"),
        }
    }

    /// Answers from now on, in threads of their own.
    pub(crate) fn serve(self, about: About, asker: &Asker) -> Result<()> {
        let asker = asker.another()?;
        let about = Arc::new(about);
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in self.listener.incoming() {
                let (Ok(stream), Ok(asker)) = (stream, asker.another()) else { continue };
                if open.load(Ordering::Relaxed) >= CONNECTIONS {
                    continue;
                }
                open.fetch_add(1, Ordering::Relaxed);
                let (about, counted) = (about.clone(), open.clone());
                let served = std::thread::Builder::new().spawn(move || {
                    // A client that went away, or was none of ours, is nobody's concern.
                    let _ = Connection { stream, asker, about: &about }.serve();
                    counted.fetch_sub(1, Ordering::Relaxed);
                });
                if served.is_err() {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(())
    }
}

struct Connection<'a> {
    stream: UnixStream,
    asker: Asker,
    about: &'a About,
}

impl Connection<'_> {
    fn serve(mut self) -> Result<()> {
        // As this process sees it, who has its user id has it in a user namespace of ours, too.
        let peer = getsockopt(&self.stream, PeerCredentials)?;
        if peer.uid() != geteuid().as_raw() {
            return self.say(&Answer::Wrong("this network is another user's".to_owned()));
        }
        self.stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(&self.stream).take(LINE_MAX).read_line(&mut line)?;
        let question = serde_json::from_str(&line);
        match question {
            Ok(question) => self.answer(question),
            Err(error) => self.say(&Answer::Wrong(format!("no question: {error}"))),
        }
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
                    Ok(Told::Status(mut status)) => {
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
                self.say(&Answer::Enter { network, user })?;
                self.until_it_ends()
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

    fn capture(&mut self, port: &str) -> Result<()> {
        let (to, passed) = sync_channel::<Passed>(CAPTURE_QUEUE);
        let answer = plain(self.asker.ask(Ask::Listen { port: port.to_owned(), to }));
        self.say(&answer)?;
        if !matches!(answer, Answer::Done) {
            return Ok(());
        }
        let mut file = Pcapng::new(std::io::BufWriter::new(&self.stream), port)?;
        loop {
            match passed.recv_timeout(CAPTURE_LOOK) {
                Ok(packet) => {
                    file.packet(packet.at, packet.inbound, &packet.octets)?;
                    // What comes in a burst is written at once.
                    for packet in passed.try_iter().take(CAPTURE_QUEUE) {
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

/// Whether the other end has closed; nothing is ever said there.
fn is_closed(stream: &UnixStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let mut octet = [0];
    let mut reader: &UnixStream = stream;
    let closed = matches!(reader.read(&mut octet), Ok(0));
    let _ = stream.set_nonblocking(false);
    closed
}

fn plain(told: Result<Told, String>) -> Answer {
    match told {
        Ok(Told::Status(status)) => Answer::Status(status),
        Ok(Told::Flows(flows)) => Answer::Flows(flows),
        Ok(Told::Done) => Answer::Done,
        Err(wrong) => Answer::Wrong(wrong),
    }
}
