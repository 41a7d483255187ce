//! A network between two sites that stops or breaks where a test chooses.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What happens, once, to the first connection over which so many octets went to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// After so many octets the connection is cut, both ways.
    Cut(u64),
    /// After so many octets in the other direction, from the server, the connection is cut, both ways.
    CutAnswers(u64),
    /// After so many octets nothing passes any more, either way, until [`Proxy::release`].
    Hold(u64),
    /// After so many octets the server's next answer is lost, with the connection.
    LoseAnswer(u64),
    /// After so many octets nothing passes any more from the server to the client, until [`Proxy::release`].
    HoldAnswers(u64),
}

impl Disposition {
    /// Whether it counts what goes to the server.
    fn counts_to_server(self) -> bool {
        !matches!(self, Disposition::CutAnswers(_))
    }

    fn after(self) -> u64 {
        match self {
            Disposition::Cut(octets)
            | Disposition::CutAnswers(octets)
            | Disposition::LoseAnswer(octets)
            | Disposition::Hold(octets)
            | Disposition::HoldAnswers(octets) => octets,
        }
    }
}

/// Passes connections on to a server. Its threads end with the connections.
pub(super) struct Proxy {
    /// Where to connect instead.
    pub(super) address: SocketAddr,
    struck: Receiver<()>,
    state: Arc<State>,
}

/// What is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Answers,
    All,
    /// Not held but lost.
    NextAnswer,
}

struct State {
    disposition: Mutex<Option<Disposition>>,
    to_server: AtomicU64,
    to_client: AtomicU64,
    held: Mutex<Held>,
    released: Condvar,
    strike: Sender<()>,
}

impl Proxy {
    pub(super) fn start(server: SocketAddr, disposition: Disposition) -> Proxy {
        let listener = TcpListener::bind((server.ip(), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (strike, struck) = channel();
        let state = Arc::new(State {
            disposition: Mutex::new(Some(disposition)),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            held: Mutex::new(Held::Nothing),
            released: Condvar::new(),
            strike,
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                // A server that is away refuses: the client sees its connection end.
                if let Ok(server) = TcpStream::connect(server) {
                    shared.join(&client, &server);
                }
            }
        });
        Proxy { address, struck, state }
    }

    /// Waits until its disposition struck a connection.
    pub(super) fn wait_until_struck(&self, limit: Duration) {
        self.struck.recv_timeout(limit).expect("so much was never sent over one connection");
    }

    /// Octets that went to the server so far, over all connections.
    pub(super) fn to_server(&self) -> u64 {
        self.state.to_server.load(Ordering::Relaxed)
    }

    /// Octets that came in the other direction so far, over all connections.
    pub(super) fn to_client(&self) -> u64 {
        self.state.to_client.load(Ordering::Relaxed)
    }

    /// Waits until the client has sent nothing for half a second: it waits for what is held.
    pub(super) fn wait_until_quiet(&self, limit: Duration) {
        let pause = Duration::from_millis(50);
        let (mut last, mut quiet, mut waited) = (self.to_server(), 0, Duration::ZERO);
        while quiet < 10 {
            assert!(waited < limit, "the client goes on sending");
            thread::park_timeout(pause);
            waited += pause;
            let now = self.to_server();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
    }

    /// Lets pass what is held.
    pub(super) fn release(&self) {
        *self.state.held.lock().unwrap_or_else(PoisonError::into_inner) = Held::Nothing;
        self.state.released.notify_all();
    }
}

impl State {
    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        for (from, to, counts) in [(client, server, true), (server, client, false)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = Arc::clone(self);
            thread::spawn(move || {
                let _ = state.copy(&from, &to, counts);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }

    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, counts: bool) -> std::io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        let mut passed = 0u64;
        loop {
            let n = from.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            let passes = if counts { &self.to_server } else { &self.to_client };
            let struck = self.strikes(counts, passed + n as u64);
            match struck {
                Some(Disposition::Cut(at) | Disposition::CutAnswers(at)) => {
                    to.write_all(&buffer[..usize::try_from(at - passed).unwrap_or(n).min(n)])?;
                    passes.fetch_add(at - passed, Ordering::Relaxed);
                    from.shutdown(Shutdown::Both)?;
                    to.shutdown(Shutdown::Both)?;
                    let _ = self.strike.send(());
                    return Ok(());
                }
                Some(Disposition::Hold(_)) => self.hold(Held::All),
                Some(Disposition::HoldAnswers(_)) => self.hold(Held::Answers),
                Some(Disposition::LoseAnswer(_)) => self.hold(Held::NextAnswer),
                None => {}
            }
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let bars = |held: Held| held == Held::All || (held == Held::Answers && !counts);
            let mut held = match self.released.wait_while(held, |held| bars(*held)) {
                Ok(held) => held,
                Err(poisoned) => poisoned.into_inner(),
            };
            if *held == Held::NextAnswer && !counts {
                *held = Held::Nothing;
                from.shutdown(Shutdown::Both)?;
                return to.shutdown(Shutdown::Both);
            }
            drop(held);
            to.write_all(&buffer[..n])?;
            passed += n as u64;
            passes.fetch_add(n as u64, Ordering::Relaxed);
        }
    }

    fn hold(&self, what: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = what;
        let _ = self.strike.send(());
    }

    /// The disposition, where it strikes now: it does so once.
    fn strikes(&self, to_server: bool, octets: u64) -> Option<Disposition> {
        let mut disposition = self.disposition.lock().unwrap_or_else(PoisonError::into_inner);
        disposition.take_if(|disposition| {
            disposition.counts_to_server() == to_server && octets > disposition.after()
        })
    }
}
