//! One TCP connection: a reader that stops while too much input is unstored or too much output is
//! unsent, and a writer with an observable queue.

use super::budget::Share;
use super::inbox::{Inbox, Ready};
use super::monitoring::gauge::Gauge;
use super::send_timeout::SendTimeout;
use crate::pcap::Tap;
use base::{AssociationId, Instant, Precedence};
use bytes::{Buf, Bytes};
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

/// A connection. It makes progress only in [`Connection::serve`].
pub(super) struct Connection {
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

impl Connection {
    /// Starts a connection of this level. It must be served whenever `inbox` names it.
    pub(super) fn start(
        (association, level): (AssociationId, Precedence),
        stream: TcpStream,
        inbox: &Arc<Inbox>,
        share: Share,
        tap: Option<Tap>,
    ) -> Connection {
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
        Connection {
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

    /// Reads and writes one slice; [`Connection::arrival`] returns the events.
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
mod tests {
    use super::super::budget::{BudgetOwner, Budgets};
    use super::*;
    use node::config::Limits;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    const ID: AssociationId = AssociationId(1);

    fn roomy() -> Share {
        Budgets::new(&Limits::default()).share(BudgetOwner::Users([127, 0, 0, 1].into()))
    }

    /// A connection with a driver of its own, for tests.
    struct Served {
        connection: Connection,
        inbox: Arc<Inbox>,
    }

    impl Served {
        fn start(stream: TcpStream, share: Share) -> Served {
            let inbox = Arc::<Inbox>::default();
            let who = (ID, Precedence::Routine);
            let connection = Connection::start(who, stream, &inbox, share, None);
            Served { connection, inbox }
        }

        /// Serves the connection until it has an event.
        async fn recv(&mut self) -> Arrival {
            loop {
                if let Some(arrival) = self.connection.arrival() {
                    return arrival;
                }
                self.inbox.filled().await;
                assert!(self.inbox.pop().is_some());
                self.connection.serve();
                tokio::task::yield_now().await;
            }
        }
    }

    async fn pair() -> (Served, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        (Served::start(ours, roomy()), peer)
    }

    async fn closed(served: &mut Served) -> Option<String> {
        loop {
            match served.recv().await {
                Arrival::Closed { error, .. } => return error,
                Arrival::Bytes { .. } => {}
            }
        }
    }

    #[tokio::test]
    async fn what_was_written_arrives_before_the_close_even_against_unread_octets() {
        let (mut served, mut peer) = pair().await;
        peer.write_all(&[1; 100]).await.unwrap();
        let parts: Vec<Bytes> = (0..500u32).map(|n| vec![n as u8; n as usize].into()).collect();
        for part in &parts {
            served.connection.write(part.clone());
        }
        served.connection.close();
        peer.write_all(&[2; 100]).await.unwrap();
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).await.unwrap();
            got
        });
        assert_eq!(closed(&mut served).await, None);
        assert_eq!(reader.await.unwrap(), parts.concat());
        served.connection.outgoing.below(1).await;
    }

    #[tokio::test]
    async fn reading_stops_while_too_much_is_not_stored() {
        let (mut served, peer) = pair().await;
        let (mut peer_read, mut peer_write) = peer.into_split();
        const TOTAL: usize = 64 << 20;
        let sender = tokio::spawn(async move {
            for _ in 0..TOTAL / CHUNK {
                peer_write.write_all(&[7; CHUNK]).await.unwrap();
            }
        });
        let mut got = 0;
        while got <= MAX_UNSTORED - CHUNK {
            let Arrival::Bytes { bytes, .. } = served.recv().await else { panic!() };
            got += bytes.len();
        }
        // At most the chunk that crossed the limit follows.
        let more = tokio::time::timeout(Duration::from_millis(300), async {
            while let Arrival::Bytes { bytes, .. } = served.recv().await {
                got += bytes.len();
            }
        });
        assert!(more.await.is_err());
        assert!(got < MAX_UNSTORED + CHUNK, "{got}");
        assert!(!sender.is_finished());
        served.connection.incoming.sub(got);
        while got < TOTAL {
            let Arrival::Bytes { bytes, .. } = served.recv().await else { panic!() };
            served.connection.incoming.sub(bytes.len());
            got += bytes.len();
        }
        sender.await.unwrap();
        served.connection.close();
        assert_eq!(closed(&mut served).await, None);
        assert_eq!(peer_read.read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn nothing_is_read_of_a_peer_that_holds_as_much_as_it_may() {
        let limits = Limits { memory_per_peer: 1_000, ..Limits::default() };
        let mut budgets = Budgets::new(&limits);
        let [act, act_too, rome] =
            [1, 1, 2].map(|n| budgets.share(BudgetOwner::Users([127, 0, 0, n].into())));
        let other = act_too.gauge();
        other.add(1_000);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connections = Vec::new();
        for share in [act, rome] {
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            peer.write_all(b"hello").await.unwrap();
            let (ours, _) = listener.accept().await.unwrap();
            connections.push((Served::start(ours, share), peer));
        }
        let is_octets = |arrival| matches!(arrival, Arrival::Bytes { .. });
        assert!(is_octets(connections[1].0.recv().await), "another is read");
        let quiet = Duration::from_millis(200);
        assert!(tokio::time::timeout(quiet, connections[0].0.recv()).await.is_err());
        other.sub(1);
        assert!(is_octets(connections[0].0.recv().await));
    }

    #[tokio::test]
    async fn no_more_is_read_or_written_at_once_than_a_slice() {
        let (mut served, mut peer) = pair().await;
        peer.write_all(&[7; 8 * CHUNK]).await.unwrap();
        served.connection.write(Bytes::from(vec![8; 3 * CHUNK]));
        let mut got = 0;
        while got < 8 * CHUNK || served.connection.outgoing.octets() > 0 {
            served.inbox.filled().await;
            assert!(served.inbox.pop().is_some());
            let before = served.connection.outgoing.octets();
            served.connection.serve();
            assert!(before - served.connection.outgoing.octets() <= CHUNK);
            let mut read = 0;
            while let Some(Arrival::Bytes { bytes, .. }) = served.connection.arrival() {
                served.connection.incoming.sub(bytes.len());
                read += bytes.len();
            }
            assert!(read <= 2 * CHUNK, "{read}");
            got += read;
            tokio::task::yield_now().await;
        }
    }

    /// Answers each octet that arrives with this many octets.
    const ANSWERS: usize = 8;

    /// Answers one event as a driver does; `false` once the connection is over.
    fn answer(connection: &Connection, arrival: Arrival) -> bool {
        let Arrival::Bytes { bytes, .. } = arrival else { return false };
        for piece in bytes.chunks(64) {
            connection.write(Bytes::from(vec![8; piece.len() * ANSWERS]));
        }
        connection.incoming.sub(bytes.len());
        true
    }

    #[tokio::test]
    async fn a_peer_that_asks_and_does_not_read_is_not_read_until_it_does() {
        let (mut served, peer) = pair().await;
        let (mut peer_read, mut peer_write) = peer.into_split();
        const TOTAL: usize = 16 << 20;
        let sender = tokio::spawn(async move {
            for _ in 0..TOTAL / CHUNK {
                peer_write.write_all(&[7; CHUNK]).await.unwrap();
            }
            peer_write // not closed yet
        });
        while served.connection.outgoing.octets() < MAX_UNSENT {
            let arrival = served.recv().await;
            assert!(answer(&served.connection, arrival));
        }
        // Beyond the limit only octets that had already been read arrive.
        let mut most = 0;
        let quiet = Duration::from_millis(300);
        while let Ok(arrival) = tokio::time::timeout(quiet, served.recv()).await {
            assert!(answer(&served.connection, arrival));
            most = most.max(served.connection.outgoing.octets());
        }
        assert!(most < MAX_UNSENT + (MAX_UNSTORED + CHUNK) * ANSWERS, "{most}");
        assert!(!sender.is_finished());

        let reader = tokio::spawn(async move {
            let mut got = 0;
            let mut buffer = vec![0; CHUNK];
            while got < TOTAL * ANSWERS {
                got += peer_read.read(&mut buffer).await.unwrap();
            }
            got
        });
        tokio::pin!(reader);
        let got = loop {
            tokio::select! {
                got = &mut reader => break got.unwrap(),
                arrival = served.recv() => assert!(answer(&served.connection, arrival)),
            }
        };
        let _peer_write = sender.await.unwrap();
        assert_eq!(got, TOTAL * ANSWERS);
    }

    #[tokio::test]
    async fn a_peer_that_never_reads_is_dropped_after_the_user_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        let timeout = Some(Duration::from_secs(1));
        socket2::SockRef::from(&ours).set_tcp_user_timeout(timeout).unwrap();
        let mut served = Served::start(ours, roomy());
        let sender =
            tokio::spawn(async move { while peer.write_all(&[7; CHUNK]).await.is_ok() {} });
        let error = loop {
            match served.recv().await {
                Arrival::Closed { error, .. } => break error.unwrap(),
                arrival => assert!(answer(&served.connection, arrival)),
            }
        };
        assert!(error.contains("timed out"), "{error}");
        sender.await.unwrap();
    }

    /// The peer's window opens a little at a time, never for all that the kernel has to send.
    #[tokio::test]
    async fn a_peer_that_reads_slowly_all_the_time_is_not_dropped() {
        let listener = tokio::net::TcpSocket::new_v4().unwrap();
        listener.set_recv_buffer_size(2_048).unwrap();
        listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listener.listen(1).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        let limit = Duration::from_secs(2);
        socket2::SockRef::from(&ours).set_tcp_user_timeout(Some(limit)).unwrap();
        let mut served = Served::start(ours, roomy());
        served.connection.write(Bytes::from(vec![7; 200_000]));
        let clock = crate::clock::Clock::start();
        let began = clock.now().mono;
        let mut buffer = [0; 24];
        while clock.now().mono.since(began) < 3 * limit {
            tokio::select! {
                arrival = served.recv() => {
                    if let Arrival::Closed { error, .. } = arrival { panic!("{error:?}") }
                }
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            assert!(peer.read(&mut buffer).await.unwrap() > 0);
            served.connection.look(clock.now().mono);
        }
    }

    #[tokio::test]
    async fn what_the_peer_has_taken_is_known_and_what_waits_is_not_taken() {
        let (mut served, mut peer) = pair().await;
        served.connection.write(Bytes::from(vec![7; 1_000]));
        let reader = tokio::spawn(async move {
            peer.read_exact(&mut [0; 1_000]).await.unwrap();
            // The peer's octet carries an acknowledgement for all it received.
            peer.write_all(&[8]).await.unwrap();
            peer
        });
        let arrival = served.recv().await;
        assert!(answer(&served.connection, arrival));
        assert!((1_000..1_100).contains(&served.connection.taken().unwrap()));
        // More than all buffers hold.
        served.connection.write(Bytes::from(vec![7; 64 << 20]));
        assert!(served.connection.taken().unwrap() < 64 << 20);
        drop(reader.await.unwrap());
        let _ = closed(&mut served).await;
        assert_eq!(served.connection.taken(), None, "nothing is kept open by looking");
    }

    #[tokio::test]
    async fn a_reset_is_reported() {
        let (mut served, peer) = pair().await;
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        let error = closed(&mut served).await.unwrap();
        assert!(error.contains("reset"), "{error}");
    }
}
