//! One TCP connection: a reader that stops while too much input is unstored or too much output is
//! unsent, and a writer with an observable queue.

use super::budget::Share;
use super::inbox::{Inbox, Ready};
use super::monitoring::gauge::Gauge;
use super::send_timeout::SendTimeout;
use crate::pcap::Tap;
use base::{AssociationId, Instant, Precedence};
use bytes::{Buf, Bytes};
use socket2::SockRef;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake as _, Waker};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// Most octets read and most written in one slice, before other connections are served.
const CHUNK: usize = 16 << 10;

/// From so many octets on a read is answered with an acknowledgement at once. What is shorter is an SPDU that has an
/// answer of ours, which carries one. Content is not answered before its checkpoint, and a sender with Nagle's algorithm
/// and little room waits for the acknowledgement of each write: 40 ms, where it is delayed.
const QUICK: usize = 256;

/// Reads per slice, where the first one was short.
const READS: usize = 2;

/// Reading stops at this many octets that are neither handled nor stored.
const MAX_UNSTORED: usize = 256 << 10;

/// Reading stops at this many octets of unsent output: a peer that sends requests and does not
/// read the answers is no longer read. Content is queued only far below this limit, so that two
/// ends that both send do not block each other.
const MAX_UNSENT: usize = 1 << 20;

/// Buffers written with one system call.
const GATHERED: usize = 64;

/// How long to wait for the peer to close after we have closed.
const LINGER: Duration = Duration::from_secs(5);

/// An event that a connection passes to the driver.
pub(super) enum Arrival {
    /// Octets arrived.
    Bytes { association: AssociationId, bytes: Bytes },
    /// The connection is over. No event follows.
    Closed { association: AssociationId, error: Option<String> },
}

/// Events for the driver, in order.
type Arrivals = Rc<RefCell<VecDeque<Arrival>>>;

/// A connection. It makes progress only in [`TcpConnection::serve`].
pub(super) struct TcpConnection {
    /// Dropped to close the connection.
    writes: Option<mpsc::UnboundedSender<Bytes>>,
    /// Octets still to be written.
    pub(super) outgoing: Arc<Gauge>,
    /// Octets read and neither handled nor stored.
    pub(super) incoming: Arc<Gauge>,
    closing: Arc<AtomicBool>,
    /// The socket, while the connection exists.
    socket: Weak<OwnedReadHalf>,
    ready: Arc<Ready>,
    arrivals: Arrivals,
    send_timeout: SendTimeout,
    /// `None` once the connection is over.
    served: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl TcpConnection {
    /// Starts a connection of this level. It must be served whenever `inbox` names it.
    pub(super) fn start(
        (association, level): (AssociationId, Precedence),
        stream: TcpStream,
        inbox: &Arc<Inbox>,
        share: Share,
        tap: Option<Tap>,
    ) -> TcpConnection {
        let (writes, queue) = mpsc::unbounded_channel();
        let (outgoing, incoming) = (share.gauge(), share.gauge());
        let closing = Arc::<AtomicBool>::default();
        let arrivals = Arrivals::default();
        let send_timeout = SendTimeout::new(&stream);
        let (read_half, write_half) = stream.into_split();
        let read_half = Rc::new(read_half);
        let socket = Rc::downgrade(&read_half);
        let reader = Reader {
            association,
            half: read_half,
            incoming: Arc::clone(&incoming),
            outgoing: Arc::clone(&outgoing),
            closing: Arc::clone(&closing),
            share,
            arrivals: Rc::clone(&arrivals),
            tap: tap.clone(),
        };
        let writer =
            Writer { half: write_half, queue, outgoing: Arc::clone(&outgoing), tap: tap.clone() };
        let (sent, last) = (Arc::clone(&outgoing), Rc::clone(&arrivals));
        let served = Box::pin(async move {
            let ended = serve(reader, writer).await;
            sent.release();
            if let Some(tap) = tap {
                tap.closed();
            }
            let error = ended.err().map(|e| e.to_string());
            last.borrow_mut().push_back(Arrival::Closed { association, error });
        });
        let ready = Arc::new(Ready::new(association, level, Arc::clone(inbox)));
        ready.wake_by_ref();
        let served: Pin<Box<dyn Future<Output = ()>>> = served;
        TcpConnection {
            writes: Some(writes),
            outgoing,
            incoming,
            closing,
            socket,
            ready,
            arrivals,
            send_timeout,
            served: Some(served),
        }
    }

    /// Reads and writes one slice; [`TcpConnection::arrival`] returns the events.
    pub(super) fn serve(&mut self) {
        self.ready.begin();
        let Some(served) = &mut self.served else { return };
        let waker = Waker::from(Arc::clone(&self.ready));
        if served.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.served = None;
        }
    }

    /// The next event of the slices served.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().pop_front()
    }

    /// Serves it with this precedence from now on.
    pub(super) fn set_level(&self, level: Precedence) {
        self.ready.set_level(level);
    }

    /// Ends it at once, discarding unread and unsent octets. No event follows.
    pub(super) fn drop_now(self) {
        self.outgoing.release();
    }

    /// Queues octets.
    pub(super) fn write(&self, bytes: Bytes) {
        if let Some(writes) = &self.writes {
            self.outgoing.add(bytes.len());
            // Fails only after the connection ended; the driver gets `Closed` for that.
            let _ = writes.send(bytes);
        }
    }

    /// Octets acknowledged by the peer's TCP, where the kernel reports them.
    pub(super) fn taken(&self) -> Option<u64> {
        let socket = self.socket.upgrade()?;
        let stream: &TcpStream = (*socket).as_ref();
        dscp::socket::taken(stream)
    }

    /// Checks whether the peer accepts what is sent; see [`SendTimeout`].
    pub(super) fn look(&mut self, now: Instant) {
        let Some(socket) = self.socket.upgrade() else { return };
        let stream: &TcpStream = (*socket).as_ref();
        self.send_timeout.look(now, stream);
    }

    /// Closes the connection after the queued output.
    pub(super) fn close(&mut self) {
        // From here on input is discarded, so nothing needs to stop the reader.
        self.closing.store(true, Ordering::Release);
        self.incoming.release();
        self.outgoing.release();
        self.writes = None;
    }
}

async fn serve(reader: Reader, writer: Writer) -> io::Result<()> {
    let mut read = pin!(reader.run());
    tokio::select! {
        ended = &mut read => return ended,
        ended = writer.run() => ended?,
    }
    // All output is written and our side is shut down. If we closed before the peer, the kernel
    // would send RST when more octets arrive, and RST may overtake our last output.
    match tokio::time::timeout(LINGER, read).await {
        Ok(ended) => ended,
        Err(_) => Ok(()),
    }
}

struct Reader {
    association: AssociationId,
    half: Rc<OwnedReadHalf>,
    incoming: Arc<Gauge>,
    outgoing: Arc<Gauge>,
    closing: Arc<AtomicBool>,
    share: Share,
    arrivals: Arrivals,
    tap: Option<Tap>,
}

impl Reader {
    async fn run(self) -> io::Result<()> {
        let mut reads = 0;
        loop {
            self.incoming.below(MAX_UNSTORED).await;
            self.outgoing.below(MAX_UNSENT).await;
            if !self.closing.load(Ordering::Acquire) {
                self.share.room().await;
            }
            self.half.readable().await?;
            let bytes = match self.read_some() {
                Ok(bytes) if bytes.is_empty() => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    reads = 0;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let length = bytes.len();
            if (QUICK..CHUNK).contains(&length) {
                // It may fail only where the connection is gone, which the next read shows.
                let _ =
                    SockRef::from(AsRef::<TcpStream>::as_ref(&*self.half)).set_tcp_quickack(true);
            }
            if let Some(tap) = &self.tap {
                tap.received(&bytes);
            }
            if !self.closing.load(Ordering::Acquire) {
                self.incoming.add(length);
                let arrival = Arrival::Bytes { association: self.association, bytes };
                self.arrivals.borrow_mut().push_back(arrival);
            }
            reads += 1;
            if length == CHUNK || reads == READS {
                reads = 0;
                next_slice().await;
            }
        }
    }
}

impl Reader {
    /// The octets that have arrived, up to [`CHUNK`]; empty at the end of the stream. All
    /// connections of the thread read into one shared buffer and copy out of it: most reads are
    /// short, and a large buffer per read would cost more than the copy.
    fn read_some(&self) -> io::Result<Bytes> {
        thread_local! {
            static SHARED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        SHARED.with_borrow_mut(|shared| {
            shared.resize(CHUNK, 0); // once
            let read = self.half.try_read(shared)?;
            Ok(Bytes::copy_from_slice(shared.get(..read).unwrap_or_default()))
        })
    }
}

struct Writer {
    half: OwnedWriteHalf,
    queue: mpsc::UnboundedReceiver<Bytes>,
    outgoing: Arc<Gauge>,
    tap: Option<Tap>,
}

impl Writer {
    /// Writes until the queue is closed, then shuts down our side.
    async fn run(mut self) -> io::Result<()> {
        let mut batch = Vec::with_capacity(GATHERED);
        while self.queue.recv_many(&mut batch, GATHERED).await > 0 {
            let mut waiting: VecDeque<Bytes> = batch.drain(..).collect();
            let mut of_slice = 0;
            while !waiting.is_empty() {
                if of_slice >= CHUNK {
                    of_slice = 0;
                    next_slice().await;
                }
                let slices = first_of(&waiting, CHUNK - of_slice);
                let mut written = self.half.write_vectored(&slices).await?;
                if written == 0 && waiting.iter().any(|b| !b.is_empty()) {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.outgoing.sub(written);
                of_slice += written;
                while let Some(front) = waiting.front_mut() {
                    let part = written.min(front.len());
                    if let (Some(tap), Some(octets)) = (&self.tap, front.get(..part)) {
                        tap.sent(octets);
                    }
                    front.advance(part);
                    written -= part;
                    if !front.is_empty() {
                        break;
                    }
                    waiting.pop_front();
                }
            }
        }
        self.half.shutdown().await
    }
}

/// The first `most` octets of the queue.
fn first_of(waiting: &VecDeque<Bytes>, mut most: usize) -> Vec<IoSlice<'_>> {
    let mut slices = Vec::with_capacity(waiting.len());
    for bytes in waiting {
        let part = bytes.get(..most).unwrap_or(bytes);
        most -= part.len();
        slices.push(IoSlice::new(part));
        if most == 0 {
            break;
        }
    }
    slices
}

/// Continues in the next slice.
async fn next_slice() {
    let mut asked = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests;
