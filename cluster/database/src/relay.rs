//! The network in front of a server: a program between it and its clients that cuts their connections.

use anyhow::{Context as _, Result};
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use testbed::clock::pause;

/// Octets that are passed on at once.
const PIECE: usize = 64 << 10;
/// Longest connection to the server, which is on this machine.
const CONNECT: Duration = Duration::from_secs(5);

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It passes on what comes, so much later.
    Passes(Duration),
    /// It takes what comes and keeps it.
    Silent,
    /// It resets each connection.
    Resets,
    /// The relay ends.
    Over,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    /// Tried one after the other; the next connection begins with the next one.
    targets: Vec<SocketAddr>,
    /// How often all connections were reset: one that is older passes nothing on any more.
    resets: u64,
    /// Both ends of each connection; those that ended are removed with the next one.
    connections: Vec<[std::sync::Weak<TcpStream>; 2]>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Passes connections on to a server, until a call changes that. Listens on 127.0.0.1.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens on a free port, for the server at this address.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(target: SocketAddr) -> Result<Relay> {
        Relay::over(&[target])
    }

    /// As [`Relay::start`], for the first of these that takes a connection; each connection begins with
    /// another one.
    ///
    /// # Errors
    /// As there.
    pub fn over(targets: &[SocketAddr]) -> Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a free port")?;
        let address = listener.local_addr()?;
        let mode = Mode::Passes(Duration::ZERO);
        let targets = targets.to_vec();
        let state = Mutex::new(State { mode, targets, resets: 0, connections: Vec::new() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let of_it = Arc::clone(&shared);
        let accepting = Some(spawn(move || of_it.accept(&listener)));
        Ok(Relay { address, shared, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets all connections (RST), and each new one. What a silence kept is lost.
    pub fn cut(&self) {
        let mut state = self.shared.lock();
        state.mode = Mode::Resets;
        state.reset();
        self.shared.changed.notify_all();
    }

    /// Keeps all connections and passes nothing on, as a network that loses everything does: nobody
    /// learns that the other is not there.
    pub fn silence(&self) {
        self.shared.change(Mode::Silent);
    }

    /// Passes each piece on so much later, in both directions.
    pub fn delay(&self, time: Duration) {
        self.shared.change(Mode::Passes(time));
    }

    /// Passes everything on again, what a silence kept too.
    pub fn resume(&self) {
        self.delay(Duration::ZERO);
    }

    /// Leads new connections to another server.
    pub fn lead_to(&self, target: SocketAddr) {
        self.shared.lock().targets = vec![target];
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.change(Mode::Over);
        self.shared.lock().reset();
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    /// Ends all connections with a reset: their threads wake up and close the last handle.
    fn reset(&mut self) {
        self.resets += 1;
        for end in self.connections.drain(..).flatten().filter_map(|end| end.upgrade()) {
            abort(&end);
        }
    }
}

/// The connection is reset once its last handle is closed, and nobody reads from it any longer.
fn abort(end: &TcpStream) {
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(end, sockopt::Linger, &at_once);
    // Towards our own threads only: nothing is sent for it.
    let _ = end.shutdown(Shutdown::Read);
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, mode: Mode) {
        self.lock().mode = mode;
        self.changed.notify_all();
    }

    /// Waits out a silence; how long a piece is delayed, or `None` where a connection that began after so many
    /// resets is to end.
    fn passes(&self, resets: u64) -> Option<Duration> {
        let silent = |state: &mut State| state.mode == Mode::Silent && state.resets == resets;
        let state = self.changed.wait_while(self.lock(), silent);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.mode {
            Mode::Passes(delay) if state.resets == resets => Some(delay),
            _ => None,
        }
    }

    fn next_targets(&self) -> Vec<SocketAddr> {
        let mut state = self.lock();
        let targets = state.targets.clone();
        if !targets.is_empty() {
            state.targets.rotate_left(1);
        }
        targets
    }

    fn accept(self: &Arc<Shared>, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if self.lock().mode == Mode::Over {
                return;
            }
            let shared = Arc::clone(self);
            // A thread for each: a silence must not keep the next one from being accepted.
            spawn(move || shared.connect(client));
        }
    }

    fn connect(self: Arc<Shared>, client: TcpStream) {
        let client = Arc::new(client);
        let resets = self.lock().resets;
        if self.passes(resets).is_none() {
            return abort(&client);
        }
        let targets = self.next_targets();
        let connect = |target| TcpStream::connect_timeout(target, CONNECT).ok();
        let Some(server) = targets.iter().find_map(connect) else { return abort(&client) };
        let server = Arc::new(server);
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let mut state = self.lock();
        if matches!(state.mode, Mode::Resets | Mode::Over) || state.resets != resets {
            return [client, server].iter().for_each(|end| abort(end));
        }
        state.connections.retain(|[end, _]| end.strong_count() > 0);
        state.connections.push([Arc::downgrade(&client), Arc::downgrade(&server)]);
        drop(state);
        let (shared, ends) = (Arc::clone(&self), [Arc::clone(&server), Arc::clone(&client)]);
        spawn(move || shared.pass(&ends[0], &ends[1], resets));
        self.pass(&client, &server, resets);
    }

    /// Passes on what one end sends until it ends.
    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, resets: u64) {
        let mut piece = vec![0; PIECE];
        loop {
            let octets = from.read(&mut piece).unwrap_or(0);
            let Some(delay) = self.passes(resets) else { return };
            if !delay.is_zero() {
                pause(delay);
            }
            let received = piece.get(..octets).unwrap_or_default();
            if received.is_empty() || to.write_all(received).is_err() {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
        }
    }
}
