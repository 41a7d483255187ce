use super::*;
use crate::driver::budget::{BudgetOwner, Budgets};
use node::config::Limits;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

const ID: AssociationId = AssociationId(1);

fn roomy() -> Share {
    Budgets::new(&Limits::default()).share(BudgetOwner::Users([127, 0, 0, 1].into()))
}

/// A connection with a driver of its own, for tests.
struct Served {
    connection: TcpConnection,
    inbox: Arc<Inbox>,
}

impl Served {
    fn start(stream: TcpStream, share: Share) -> Served {
        let inbox = Arc::<Inbox>::default();
        let who = (ID, Precedence::Routine);
        let connection = TcpConnection::start(who, stream, &inbox, share, None);
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
fn answer(connection: &TcpConnection, arrival: Arrival) -> bool {
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
    SockRef::from(&ours).set_tcp_user_timeout(timeout).unwrap();
    let mut served = Served::start(ours, roomy());
    let sender = tokio::spawn(async move { while peer.write_all(&[7; CHUNK]).await.is_ok() {} });
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
    SockRef::from(&ours).set_tcp_user_timeout(Some(limit)).unwrap();
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
    SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    let error = closed(&mut served).await.unwrap();
    assert!(error.contains("reset"), "{error}");
}

/// Of a connection on which both ends write the kernel delays acknowledgements, until content has come.
#[tokio::test]
async fn content_is_acknowledged_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (ours, _) = listener.accept().await.unwrap();
    // The same socket, to be asked.
    let twin = SockRef::from(&ours).try_clone().unwrap();
    let mut served = Served::start(ours, roomy());
    let peer = tokio::spawn(async move {
        for _ in 0..8 {
            peer.write_all(&[1; 10]).await.unwrap();
            peer.read_exact(&mut [0; 10]).await.unwrap();
        }
        peer.write_all(&[3; 2_041]).await.unwrap();
        peer
    });
    for n in 0..8 {
        assert!(matches!(served.recv().await, Arrival::Bytes { .. }));
        assert!(n < 7 || !twin.tcp_quickack().unwrap(), "short reads leave it to the kernel");
        served.connection.write(Bytes::from_static(&[2; 10]));
    }
    assert!(matches!(served.recv().await, Arrival::Bytes { .. }));
    assert!(twin.tcp_quickack().unwrap());
    drop(peer.await.unwrap());
}
