//! The network between a store and its server: it is cut after a number of octets, or holds them back.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// From the store to the server, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

#[derive(Debug, Default)]
struct State {
    /// The next cut: after so many octets that way.
    cut: Option<(Way, usize)>,
    /// After the cut no connection is taken.
    refuses: bool,
    /// What the store sends on the connections of now is held back.
    holds: bool,
    /// The number of the last connection, and of the last of those that are held.
    last: u64,
    held: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Listens, and leads to a server.
#[derive(Debug)]
pub(crate) struct Cutter {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Cutter {
    pub(crate) fn start(server: SocketAddr) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let ours = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut state = ours.lock();
                state.last += 1;
                let number = state.last;
                if state.refuses {
                    continue;
                }
                drop(state);
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (way, from, to) in
                    [(Way::There, &client, &server), (Way::Back, &server, &client)]
                {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let ours = Arc::clone(&ours);
                    thread::spawn(move || pump(way, number, from, to, &ours));
                }
            }
        });
        Cutter { address, shared }
    }

    /// Cuts the connection after so many further octets that way; no other one is taken then, if `refuses`.
    pub(crate) fn cut_after(&self, way: Way, octets: usize, refuses: bool) {
        let mut state = self.shared.lock();
        (state.cut, state.refuses) = (Some((way, octets)), false);
        if refuses {
            // Decided at the cut.
            state.held = u64::MAX;
        }
    }

    /// Whether the cut was made.
    pub(crate) fn has_cut(&self) -> bool {
        self.shared.lock().cut.is_none()
    }

    /// Takes connections again, and cuts none.
    pub(crate) fn heal(&self) {
        let mut state = self.shared.lock();
        (state.cut, state.refuses, state.held) = (None, false, 0);
    }

    /// Holds back what the store sends on the connections that there are.
    pub(crate) fn hold(&self) {
        let mut state = self.shared.lock();
        (state.holds, state.held) = (true, state.last);
    }

    /// Lets it go on, also of connections that the store has given up.
    pub(crate) fn let_go(&self) {
        self.shared.lock().holds = false;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Octets that may pass; true: the connection ends then.
    fn may_pass(&self, way: Way, number: u64, octets: usize) -> (usize, bool) {
        let mut state = self.lock();
        while way == Way::There && state.holds && number <= state.held {
            state = self.changed.wait(state).unwrap();
        }
        match state.cut {
            Some((cut, left)) if cut == way => {
                if octets >= left {
                    state.cut = None;
                    if state.held == u64::MAX {
                        state.refuses = true;
                    }
                    return (left, true);
                }
                state.cut = Some((cut, left - octets));
                (octets, false)
            }
            _ => (octets, false),
        }
    }
}

fn pump(way: Way, number: u64, mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let (passes, ends) = shared.may_pass(way, number, count);
        if to.write_all(&buffer[..passes]).is_err() || ends {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
