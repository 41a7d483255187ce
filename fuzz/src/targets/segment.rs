//! A segment of the log that holds the queue. The first octet chooses: the octets as they are, or the head
//! of a frame that is right in itself.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use std::path::Path;
use std::sync::Arc;
use store::faulty::FaultyDisk;
use store::queue::{commit_one, for_each_entry};
use store::{BatchId, Disk, LogStore, Options, QueueStore};

const SEGMENT: &str = "log/00000001.segment";
const SIZE: u64 = 4096;

fn options() -> Options {
    Options { spool_memory: 1 << 16, run_keys: 2, segment: SIZE, ..Options::default() }
}

fn batch(n: u64) -> Batch {
    let (precedence, record) = (Precedence::Routine, Bytes::from_static(b"a record"));
    vec![
        Op::PutBody { id: BodyId(n), source: BodySource::Octets(Bytes::from_static(b"content")) },
        Op::PutEntry { precedence, id: EntryId(n), queue: QueueId(7), record },
        Op::PutSeen { key: Digest([9; 32]), until: Utc(n), record: Bytes::new(), absent: false },
        Op::DeleteEntry { precedence: Precedence::Flash, id: EntryId(n) },
        Op::ForgetSeen { before: Utc(3), most: 1 },
        Op::PutMeta { name: "epoch".to_owned(), value: Bytes::from_static(b"1") },
    ]
}

pub(super) fn run(octets: &[u8]) {
    let Some((how, octets)) = octets.split_first() else { return };
    let octets = match how % 2 {
        0 => octets.to_vec(),
        _ => LogStore::segment_of(octets, &[7; 64]),
    };
    let disk = Arc::new(FaultyDisk::new());
    disk.create_dir(Path::new("log")).expect("a disk without faults");
    let size = (octets.len() as u64).max(SIZE).next_multiple_of(SIZE);
    let file = disk.random(Path::new(SEGMENT), Some(size)).expect("a disk without faults");
    file.write(0, &octets).expect("a disk without faults");
    for number in 0..2 {
        let store = LogStore::with_disk(Arc::clone(&disk) as Arc<dyn Disk>, options());
        let store = store.expect("a disk without faults");
        store.verify(&mut |_| true).expect("a disk without faults");
        let mut entries = 0;
        for_each_entry(&store, |_| entries += 1).expect("a disk without faults");
        commit_one(&store, BatchId(number), batch(1 << 60)).expect("there is room");
        // It comes to an end, whatever the segment holds.
        let ends = (0..1_000).any(|_| store.tidy().expect("a disk without faults") == 0);
        assert!(ends, "work without end");
        if number == 0 {
            store.repair().expect("a disk without faults");
        }
        let found = store.entry((Precedence::Routine, EntryId(1 << 60)));
        assert_eq!(found.expect("a disk without faults").as_deref(), Some(&b"a record"[..]));
        store.close();
    }
}

/// A segment that a store wrote, whole and as the head of one frame.
pub fn seeds() -> [(&'static str, Vec<u8>); 2] {
    let disk = Arc::new(FaultyDisk::new());
    let store = LogStore::with_disk(Arc::clone(&disk) as Arc<dyn Disk>, options());
    let store = store.expect("a disk without faults");
    for n in 1..3 {
        commit_one(&store, BatchId(n), batch(n)).expect("there is room");
    }
    store.close();
    let octets = disk.read_range(Path::new(SEGMENT), 0, 900).expect("a disk without faults");
    let whole = [&[0], &octets[..]].concat();
    // The head of the second frame: behind that of the first, which is as long as it states.
    let head_at = |frame: usize| {
        let length = octets.get(frame + 24..frame + 28)?.try_into().ok()?;
        octets.get(frame + 32..frame + 32 + u32::from_le_bytes(length) as usize)
    };
    let first = head_at(0).map_or(0, <[u8]>::len);
    let second = head_at((32 + first).next_multiple_of(8)).unwrap_or_default();
    [("whole", whole), ("head", [&[1], second].concat())]
}
