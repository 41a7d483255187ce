use super::super::inbox::Work;
use super::*;
use engine::journal::QueueId;
use std::path::Path;
use std::time::Duration;
use store::Options;

const ROUTINE: Precedence = Precedence::Routine;

/// Between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(50);

/// One test counts the threads of this process, so the tests exclude each other.
static THREADS_ARE_COUNTED: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Another test may be starting a child: until that has replaced its image it shares the file of the lock.
fn open(directory: &Path) -> Arc<dyn QueueStore> {
    for _ in 0..100 {
        match store::open(directory, Options::default()) {
            Err(StoreError::Locked { .. }) => std::thread::park_timeout(PAUSE),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", directory.display());
}

fn batch(n: u64, source: BodySource) -> Batch {
    let (precedence, id) = (Precedence::Routine, EntryId(n));
    let key = Digest([n as u8; 32]);
    vec![
        Op::PutBody { id: BodyId(n), source },
        Op::PutEntry { precedence, id, queue: QueueId(1), record: Bytes::from_static(b"record") },
        Op::PutSeen { key, until: Utc(n), record: Bytes::new(), absent: false },
    ]
}

/// Starts every kind of work at once and stops the threads in the middle of it.
async fn stop_while_working(store: &Arc<dyn QueueStore>, round: u64) -> u64 {
    let inbox = Arc::<Inbox>::default();
    let mut threads = StoreThreads::start(Arc::clone(store), Arc::clone(&inbox)).unwrap();
    let large = SpoolId(1);
    threads.spool_open(large);
    for _ in 0..3 {
        threads.spool_append(large, ROUTINE, Bytes::from(vec![7; 1 << 19]), None);
    }
    let first = round * 100;
    threads.commit(Token(0), ROUTINE, batch(first, BodySource::Spool(large)));
    for n in 1..50 {
        let octets = BodySource::Octets(Bytes::from_static(b"body"));
        threads.commit(Token(n), ROUTINE, batch(first + n, octets));
        threads.load(Token(1_000 + n), ROUTINE, EntryId(n));
        threads.look_up(Token(2_000 + n), ROUTINE, vec![Digest([n as u8; 32])]);
        threads.read_content(Token(3_000 + n), ROUTINE, (BodyId(n), 0, 10), None, 1);
    }
    threads.forget_seen(Token(4_000), Utc(first), 10);
    threads.shutdown(|| ()).await.unwrap();
    let mut committed = 0;
    while let Some(work) = inbox.pop() {
        if let Work::Answer(DriverAnswer::Committed { result, .. }) = work {
            result.unwrap();
            committed += 1;
        }
    }
    committed
}

#[tokio::test]
async fn a_stop_commits_what_was_asked_for_and_closes_the_store() {
    let _alone = THREADS_ARE_COUNTED.lock().await;
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let store = open(directory.path());
        assert!(!store.sweep().repaired, "round {round}");
        assert_eq!(store.entry_count().unwrap(), round * 50);
        assert_eq!(stop_while_working(&store, round).await, 50, "round {round}");
        assert!(matches!(store.entry_count(), Err(StoreError::Closed)), "round {round}");
        // No thread is left that could keep the store open.
        tokio::task::yield_now().await;
        let named = |name| {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            tasks
                .filter(|task| {
                    std::fs::read_to_string(task.path().join("comm"))
                        .is_ok_and(|c| c.trim() == name)
                })
                .count()
        };
        assert_eq!([named("committer"), named("reader"), named("learner"), named("disk")], [0; 4]);
    }
}

/// The disk hangs: octets of a file are in flight, and a commit waits behind them.
async fn stop_while_it_hangs(store: &Arc<dyn QueueStore>, hangs: std::sync::mpsc::Receiver<()>) {
    let mut threads = StoreThreads::start(Arc::clone(store), Arc::default()).unwrap();
    let hangs = Arc::new(std::sync::Mutex::new(hangs));
    for level in [ROUTINE; THREADS].into_iter().chain([Precedence::Flash; URGENT_THREADS]) {
        let hangs = Arc::clone(&hangs);
        threads.threads.submit(level, move || assert!(hangs.lock().unwrap().recv().is_err()));
    }
    let large = SpoolId(1);
    threads.spool_open(large);
    for _ in 0..3 {
        threads.spool_append(large, ROUTINE, Bytes::from(vec![7; 1 << 19]), None);
    }
    threads.commit(Token(0), ROUTINE, batch(1, BodySource::Spool(large)));
    let closing = threads.shutdown(|| ());
    assert!(tokio::time::timeout(Duration::from_millis(50), closing).await.is_err());
}

#[test]
fn who_waits_no_longer_for_a_disk_that_hangs_is_free() {
    let _alone = THREADS_ARE_COUNTED.blocking_lock();
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let (over, hangs) = std::sync::mpsc::channel();
    let (ended, has_ended) = std::sync::mpsc::channel();
    let stopping = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(stop_while_it_hangs(&store, hangs));
        runtime.shutdown_background();
        ended.send(()).unwrap();
    });
    let free = has_ended.recv_timeout(Duration::from_secs(10));
    drop(over);
    stopping.join().unwrap();
    assert!(free.is_ok(), "it waited for the disk");
}
