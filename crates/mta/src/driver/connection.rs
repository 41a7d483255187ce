//! One TCP connection: a reader that stops while too much of what it read is not yet stored or too
//! much waits to be written, and a writer whose queue can be watched.

use super::budget::Share;
use super::gauge::Gauge;
use crate::pcap::Tap;
use base::AssociationId;
use bytes::{Buf, Bytes};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Most octets read at once.
const CHUNK: usize = 64 << 10;

/// Octets read and neither handled nor stored at which reading stops.
const UNSTORED_MAX: usize = 256 << 10;

/// Octets to be written at which reading stops: a peer that asks and never reads the answers gets
/// no more of them. Content is queued only while much less waits, so that two ends that both send
/// do not wait for each other.
const UNSENT_MAX: usize = 1 << 20;

/// Buffers written with one system call.
const GATHERED: usize = 64;

/// How long the peer may take to close after we did.
const LINGER: Duration = Duration::from_secs(5);

/// What a connection tells the driver.
pub(super) enum Arrival {
    /// Octets arrived.
    Bytes { association: AssociationId, bytes: Bytes },
    /// It is over. Nothing follows.
    Closed { association: AssociationId, error: Option<String> },
}

/// The driver's side of a connection.
pub(super) struct Connection {
    /// Dropped to close.
    writes: Option<mpsc::UnboundedSender<Bytes>>,
    /// Octets to write.
    pub(super) outgoing: Arc<Gauge>,
    /// Octets read and neither handled nor stored.
    pub(super) incoming: Arc<Gauge>,
    closing: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Connection {
    /// Serves a connection until it ends; its arrivals go to `arrivals`.
    pub(super) fn start(
        association: AssociationId,
        stream: TcpStream,
        arrivals: mpsc::Sender<Arrival>,
        share: Share,
        tap: Option<Tap>,
    ) -> Connection {
        let (writes, queue) = mpsc::unbounded_channel();
        let (outgoing, incoming) = (share.gauge(), share.gauge());
        let closing = Arc::<AtomicBool>::default();
        let (read_half, write_half) = stream.into_split();
        let reader = Reader {
            association,
            half: read_half,
            incoming: Arc::clone(&incoming),
            outgoing: Arc::clone(&outgoing),
            closing: Arc::clone(&closing),
            share,
            arrivals: arrivals.clone(),
            tap: tap.clone(),
        };
        let writer =
            Writer { half: write_half, queue, outgoing: Arc::clone(&outgoing), tap: tap.clone() };
        let sent = Arc::clone(&outgoing);
        let task = tokio::spawn(async move {
            let ended = serve(reader, writer).await;
            sent.release();
            if let Some(tap) = tap {
                tap.closed();
            }
            let error = ended.err().map(|e| e.to_string());
            // The driver is gone only when all is over.
            let _ = arrivals.send(Arrival::Closed { association, error }).await;
        });
        let task = task.abort_handle();
        Connection { writes: Some(writes), outgoing, incoming, closing, task }
    }

    /// Ends it at once, whatever was not read or written. Nothing is told.
    pub(super) fn drop_now(self) {
        self.outgoing.release();
        self.task.abort();
    }

    /// Queues octets.
    pub(super) fn write(&self, bytes: Bytes) {
        if let Some(writes) = &self.writes {
            self.outgoing.add(bytes.len());
            // Refused only once the connection ended, which the driver will hear.
            let _ = writes.send(bytes);
        }
    }

    /// Closes after what was queued.
    pub(super) fn close(&mut self) {
        // From here on what is read is dropped, so that nothing needs to hold the reader up.
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
    // All is written and our side is shut. Closing before the peer does would make the kernel
    // send RST if octets are still to come, and RST may overtake what we wrote.
    match tokio::time::timeout(LINGER, read).await {
        Ok(ended) => ended,
        Err(_) => Ok(()),
    }
}

struct Reader {
    association: AssociationId,
    half: OwnedReadHalf,
    incoming: Arc<Gauge>,
    outgoing: Arc<Gauge>,
    closing: Arc<AtomicBool>,
    share: Share,
    arrivals: mpsc::Sender<Arrival>,
    tap: Option<Tap>,
}

impl Reader {
    async fn run(self) -> io::Result<()> {
        loop {
            self.incoming.below(UNSTORED_MAX).await;
            self.outgoing.below(UNSENT_MAX).await;
            if !self.closing.load(Ordering::Acquire) {
                self.share.room().await;
            }
            self.half.readable().await?;
            let bytes = match self.read_some() {
                Ok(bytes) if bytes.is_empty() => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            if let Some(tap) = &self.tap {
                tap.received(&bytes);
            }
            if self.closing.load(Ordering::Acquire) {
                continue;
            }
            self.incoming.add(bytes.len());
            let arrival = Arrival::Bytes { association: self.association, bytes };
            if self.arrivals.send(arrival).await.is_err() {
                return Ok(()); // the driver ended
            }
        }
    }
}

impl Reader {
    /// What has arrived, up to [`CHUNK`]; nothing at the end. Read into a buffer that all
    /// connections of the thread share and copied out of it: most reads are short, and making a
    /// large buffer for each of them costs more than the copy.
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
    /// Writes until the queue is closed, then shuts our side.
    async fn run(mut self) -> io::Result<()> {
        let mut batch = Vec::with_capacity(GATHERED);
        while self.queue.recv_many(&mut batch, GATHERED).await > 0 {
            let mut waiting: VecDeque<Bytes> = batch.drain(..).collect();
            while !waiting.is_empty() {
                let slices: Vec<IoSlice<'_>> = waiting.iter().map(|b| IoSlice::new(b)).collect();
                let mut written = self.half.write_vectored(&slices).await?;
                if written == 0 && waiting.iter().any(|b| !b.is_empty()) {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.outgoing.sub(written);
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

#[cfg(test)]
mod tests {
    use super::super::budget::{Budgets, Payer};
    use super::*;
    use node::config::Limits;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    const ID: AssociationId = AssociationId(1);

    fn roomy() -> Share {
        Budgets::new(&Limits::default()).share(Payer::Users([127, 0, 0, 1].into()))
    }

    async fn pair() -> (Connection, TcpStream, mpsc::Receiver<Arrival>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        let (arrivals, received) = mpsc::channel(16);
        (Connection::start(ID, ours, arrivals, roomy(), None), peer, received)
    }

    async fn closed(received: &mut mpsc::Receiver<Arrival>) -> Option<String> {
        loop {
            match received.recv().await.unwrap() {
                Arrival::Closed { error, .. } => return error,
                Arrival::Bytes { .. } => {}
            }
        }
    }

    #[tokio::test]
    async fn what_was_written_arrives_before_the_close_even_against_unread_octets() {
        let (mut connection, mut peer, mut received) = pair().await;
        peer.write_all(&[1; 100]).await.unwrap();
        let parts: Vec<Bytes> = (0..500u32).map(|n| vec![n as u8; n as usize].into()).collect();
        for part in &parts {
            connection.write(part.clone());
        }
        connection.close();
        peer.write_all(&[2; 100]).await.unwrap();
        let mut got = Vec::new();
        peer.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, parts.concat());
        drop(peer);
        assert_eq!(closed(&mut received).await, None);
        connection.outgoing.below(1).await;
    }

    #[tokio::test]
    async fn reading_stops_while_too_much_is_not_stored() {
        let (connection, peer, mut received) = pair().await;
        let (mut peer_read, mut peer_write) = peer.into_split();
        const TOTAL: usize = 64 << 20;
        let sender = tokio::spawn(async move {
            for _ in 0..TOTAL / CHUNK {
                peer_write.write_all(&[7; CHUNK]).await.unwrap();
            }
        });
        let mut got = 0;
        while got <= UNSTORED_MAX - CHUNK {
            let Arrival::Bytes { bytes, .. } = received.recv().await.unwrap() else { panic!() };
            got += bytes.len();
        }
        // Beyond the limit at most the chunk that crossed it comes.
        let more = tokio::time::timeout(Duration::from_millis(300), async {
            while let Some(Arrival::Bytes { bytes, .. }) = received.recv().await {
                got += bytes.len();
            }
        });
        assert!(more.await.is_err());
        assert!(got < UNSTORED_MAX + CHUNK, "{got}");
        assert!(!sender.is_finished());
        connection.incoming.sub(got);
        while got < TOTAL {
            let Arrival::Bytes { bytes, .. } = received.recv().await.unwrap() else { panic!() };
            connection.incoming.sub(bytes.len());
            got += bytes.len();
        }
        sender.await.unwrap();
        drop(connection);
        assert_eq!(peer_read.read(&mut [0; 1]).await.unwrap(), 0);
        assert_eq!(closed(&mut received).await, None);
    }

    #[tokio::test]
    async fn nothing_is_read_of_a_peer_that_holds_as_much_as_it_may() {
        let limits = Limits { memory_per_peer: 1_000, ..Limits::default() };
        let mut budgets = Budgets::new(&limits);
        let [act, act_too, rome] =
            [1, 1, 2].map(|n| budgets.share(Payer::Users([127, 0, 0, n].into())));
        let other = act_too.gauge();
        other.add(1_000);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connections = Vec::new();
        for share in [act, rome] {
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            peer.write_all(b"hello").await.unwrap();
            let (ours, _) = listener.accept().await.unwrap();
            let (arrivals, received) = mpsc::channel(16);
            connections.push((Connection::start(ID, ours, arrivals, share, None), peer, received));
        }
        let heard = |n: usize, connections: &mut Vec<(_, _, mpsc::Receiver<Arrival>)>| {
            connections[n].2.try_recv().is_ok()
        };
        assert!(connections[1].2.recv().await.is_some(), "another is read");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!heard(0, &mut connections));
        other.sub(1);
        assert!(connections[0].2.recv().await.is_some());
    }

    /// Answers each octet that arrives with this many.
    const ANSWERS: usize = 8;

    /// Answers one arrival as a driver does; `false` where the connection is over.
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
        let (connection, peer, mut received) = pair().await;
        let (mut peer_read, mut peer_write) = peer.into_split();
        const TOTAL: usize = 16 << 20;
        let sender = tokio::spawn(async move {
            for _ in 0..TOTAL / CHUNK {
                peer_write.write_all(&[7; CHUNK]).await.unwrap();
            }
            peer_write // not closed yet
        });
        while connection.outgoing.octets() < UNSENT_MAX {
            assert!(answer(&connection, received.recv().await.unwrap()));
        }
        // Beyond the limit comes only what had been read by then.
        let mut most = 0;
        let quiet = Duration::from_millis(300);
        while let Ok(arrival) = tokio::time::timeout(quiet, received.recv()).await {
            assert!(answer(&connection, arrival.unwrap()));
            most = most.max(connection.outgoing.octets());
        }
        assert!(most < UNSENT_MAX + (UNSTORED_MAX + CHUNK) * ANSWERS, "{most}");
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
                arrival = received.recv() => assert!(answer(&connection, arrival.unwrap())),
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
        let (arrivals, mut received) = mpsc::channel(16);
        let connection = Connection::start(ID, ours, arrivals, roomy(), None);
        let sender =
            tokio::spawn(async move { while peer.write_all(&[7; CHUNK]).await.is_ok() {} });
        let error = loop {
            match received.recv().await.unwrap() {
                Arrival::Closed { error, .. } => break error.unwrap(),
                arrival => assert!(answer(&connection, arrival)),
            }
        };
        assert!(error.contains("timed out"), "{error}");
        sender.await.unwrap();
    }

    #[tokio::test]
    async fn a_reset_is_told() {
        let (_connection, peer, mut received) = pair().await;
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        let error = closed(&mut received).await.unwrap();
        assert!(error.contains("reset"), "{error}");
    }
}
