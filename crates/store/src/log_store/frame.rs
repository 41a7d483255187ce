//! Frames of the log: one for each batch.
//!
//! ```text
//!  checksum 8 | sequence 8 | group 8 | octets of the head 4 | octets of the data 4 | head | data | padding
//! ```
//!
//! Numbers are little-endian, and a frame begins at a multiple of 8. The head lists the changes with
//! their keys and small values; the data are records and contents, each behind its checksum. The checksum
//! of the frame covers its head and not its data, so that an index is rebuilt without reading contents,
//! and each piece of data is checked whenever it is read. All are XXH3 of 64 bits. The checksum of a frame
//! has the segment's number as its seed, and that of a piece also the key that owns it, so that what is
//! left in a recycled segment, or belongs to another message, is invalid.

use super::index::{Key, Location};
use crate::safeguard::{Safeguard, stands};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, QueueId};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Octets in front of the head.
pub(super) const HEADER: usize = 32;

/// Most octets of a head, or of the data of one frame.
pub(super) const MAX_PART: usize = 1 << 30;

/// The number of a segment.
pub(super) type SegmentId = u32;

/// Frames begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// Octets in front of each piece of data: its checksum.
pub(super) const PIECE_HEADER: usize = 8;

/// The checksum of a piece of data of this key in this segment.
pub(super) fn checksum(segment: SegmentId, key: Key, octets: &[u8]) -> u64 {
    let (kind, id) = match key {
        Key::Entry(precedence, id) => (u64::from(precedence.number()), id.0),
        Key::Body(id) => (u64::from(u8::MAX), id.0),
    };
    let seed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(segment) << 8) ^ kind;
    xxh3_64_with_seed(octets, seed)
}

/// The data in these octets, which begin with their checksum; `None` if it is wrong.
pub(super) fn piece(segment: SegmentId, key: Key, octets: &[u8]) -> Option<&[u8]> {
    let (sum, data) = octets.split_first_chunk::<PIECE_HEADER>()?;
    let safeguard = match key {
        Key::Entry(..) => Safeguard::RecordSum,
        Key::Body(_) => Safeguard::ContentSum,
    };
    let is_right = u64::from_le_bytes(*sum) == checksum(segment, key, data);
    (is_right || !stands(safeguard)).then_some(data)
}

/// A piece of data in its frame, from the beginning of the data: first its checksum, then so many octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: u32,
    pub length: u32,
}

/// One change, as the log has it. `old` are the segments that hold earlier versions of the key: as
/// long as one of them exists, this change must exist too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    PutEntry {
        precedence: Precedence,
        id: EntryId,
        queue: QueueId,
        data: Piece,
        old: Vec<SegmentId>,
    },
    DeleteEntry {
        precedence: Precedence,
        id: EntryId,
        old: Vec<SegmentId>,
    },
    PutBody {
        id: BodyId,
        data: Piece,
        old: Vec<SegmentId>,
    },
    /// In a file of its own, whose blocks have these checksums.
    PutBodyFile {
        id: BodyId,
        number: u64,
        length: u64,
        sums: Arc<[u64]>,
        old: Vec<SegmentId>,
    },
    DeleteBody {
        id: BodyId,
        old: Vec<SegmentId>,
    },
    PutSeen {
        key: Digest,
        until: Utc,
        record: Bytes,
    },
    /// Keys that expired before this time are absent.
    ForgetSeen {
        before: Utc,
    },
    PutMeta {
        name: String,
        value: Bytes,
    },
    /// So many octets of an earlier segment are in use: what follows there was never confirmed. In the
    /// segment itself: the store was closed in order.
    Ends {
        segment: SegmentId,
        used: u64,
    },
    /// The segments that exist, with the octets of their files.
    Segments {
        all: Vec<(SegmentId, u64)>,
    },
    /// Nothing needs this segment: it is given up.
    Retired {
        segment: SegmentId,
    },
}

/// What of a frame is known from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub sequence: u64,
    /// The frames of one write.
    pub group: u64,
    pub head: usize,
    pub data: usize,
}

/// A segment that begins with one frame, right in itself, whose head and data are these.
#[cfg(any(test, feature = "testing"))]
pub(super) fn segment_of(head: &[u8], data: &[u8]) -> Vec<u8> {
    let frame = FrameWriter { head: head.to_vec(), data: data.to_vec() };
    let mut out = Vec::new();
    frame.finish(1, (1, 1), &mut out);
    out
}

impl Header {
    /// Octets of the whole frame.
    pub(super) fn frame(&self) -> usize {
        (HEADER + self.head + self.data).next_multiple_of(ALIGNMENT)
    }

    /// Reads a header; `None` if its lengths are impossible.
    pub(super) fn read(octets: &[u8; HEADER]) -> Option<Header> {
        let mut reader = Reader(octets.get(8..)?);
        let (sequence, group) = (reader.u64()?, reader.u64()?);
        let (head, data) = (reader.length()?, reader.length()?);
        Some(Header { sequence, group, head, data })
    }
}

impl Change {
    /// The same, with data that begin here in the segment.
    pub(super) fn placed(mut self, start: u64) -> Change {
        if let Change::PutEntry { data, .. } | Change::PutBody { data, .. } = &mut self {
            data.offset = short_u64(start).saturating_add(data.offset);
        }
        self
    }

    /// Whether it is about remembered keys.
    pub(super) fn is_of_keys(&self) -> bool {
        matches!(self, Change::PutSeen { .. } | Change::ForgetSeen { .. })
    }

    /// Octets that it takes in a footer.
    pub(super) fn octets(&self) -> u64 {
        let mut octets = Vec::new();
        self.write(&mut octets);
        octets.len() as u64
    }

    /// Appends it.
    pub(super) fn write(&self, w: &mut Vec<u8>) {
        match self {
            Change::PutEntry { precedence, id, queue, data, old } => {
                w.extend_from_slice(&[1, precedence.number()]);
                put_u64(w, id.0);
                put_u64(w, queue.0);
                put_piece(w, *data);
                put_old(w, old);
            }
            Change::DeleteEntry { precedence, id, old } => {
                w.extend_from_slice(&[2, precedence.number()]);
                put_u64(w, id.0);
                put_old(w, old);
            }
            Change::PutBody { id, data, old } => {
                w.push(3);
                put_u64(w, id.0);
                put_piece(w, *data);
                put_old(w, old);
            }
            Change::PutBodyFile { id, number, length, sums, old } => {
                w.push(4);
                put_u64(w, id.0);
                put_u64(w, *number);
                put_u64(w, *length);
                put_u32(w, short(sums.len()));
                sums.iter().for_each(|sum| put_u64(w, *sum));
                put_old(w, old);
            }
            Change::DeleteBody { id, old } => {
                w.push(5);
                put_u64(w, id.0);
                put_old(w, old);
            }
            Change::PutSeen { key, until, record } => {
                w.push(6);
                w.extend_from_slice(&key.0);
                put_u64(w, until.0);
                put_octets(w, record);
            }
            Change::ForgetSeen { before } => {
                w.push(7);
                put_u64(w, before.0);
            }
            Change::PutMeta { name, value } => {
                w.push(8);
                put_octets(w, name.as_bytes());
                put_octets(w, value);
            }
            Change::Ends { segment, used } => {
                w.push(9);
                put_u32(w, *segment);
                put_u64(w, *used);
            }
            Change::Segments { all } => {
                w.push(10);
                put_u32(w, short(all.len()));
                for (segment, octets) in all {
                    put_u32(w, *segment);
                    put_u64(w, *octets);
                }
            }
            Change::Retired { segment } => {
                w.push(11);
                put_u32(w, *segment);
            }
        }
    }
}

/// A frame being written.
#[derive(Debug, Default)]
pub(super) struct FrameWriter {
    head: Vec<u8>,
    data: Vec<u8>,
}

impl FrameWriter {
    /// Adds data of a key; returns where it is.
    pub(super) fn data(&mut self, segment: SegmentId, key: Key, octets: &[u8]) -> Piece {
        let piece = Piece { offset: short(self.data.len()), length: short(octets.len()) };
        put_u64(&mut self.data, checksum(segment, key, octets));
        self.data.extend_from_slice(octets);
        piece
    }

    /// Adds a change.
    pub(super) fn change(&mut self, change: &Change) {
        change.write(&mut self.head);
    }

    /// Octets of the frame so far.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        (HEADER + self.head.len() + self.data.len()).next_multiple_of(ALIGNMENT)
    }

    /// Appends the frame; returns where its data begin in `out`.
    pub(super) fn finish(
        self,
        segment: SegmentId,
        (sequence, group): (u64, u64),
        out: &mut Vec<u8>,
    ) -> usize {
        let start = out.len();
        put_u64(out, 0);
        put_u64(out, sequence);
        put_u64(out, group);
        put_u32(out, short(self.head.len()));
        put_u32(out, short(self.data.len()));
        out.extend_from_slice(&self.head);
        let sum = out.get(start + 8..).map_or(0, |rest| frame_checksum(segment, rest));
        if let Some(place) = out.get_mut(start..start + 8) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        let data = out.len();
        out.extend_from_slice(&self.data);
        let length = (out.len() - start).next_multiple_of(ALIGNMENT);
        out.resize(start + length, 0);
        data
    }
}

fn frame_checksum(segment: SegmentId, octets: &[u8]) -> u64 {
    xxh3_64_with_seed(octets, u64::from(segment))
}

/// Reads the changes of a frame from its header and head; `None` if the checksum or a field is wrong.
pub(super) fn read_changes(segment: SegmentId, octets: &[u8]) -> Option<(Header, Vec<Change>)> {
    let (sum, rest) = octets.split_first_chunk::<8>()?;
    let is_right = u64::from_le_bytes(*sum) == frame_checksum(segment, rest);
    if !is_right && stands(Safeguard::FrameSum) {
        return None;
    }
    let header = Header::read(octets.first_chunk::<HEADER>()?)?;
    let head = octets.get(HEADER..)?;
    if head.len() != header.head {
        return None;
    }
    Some((header, changes_in(head)?))
}

/// Reads a list of changes.
pub(super) fn changes_in(octets: &[u8]) -> Option<Vec<Change>> {
    let (mut reader, mut changes) = (Reader(octets), Vec::new());
    while !reader.0.is_empty() {
        changes.push(reader.change()?);
    }
    Some(changes)
}

impl Piece {
    /// Where it is in its segment, if the data of its frame begin there.
    pub(super) fn at(&self, segment: SegmentId, data: u64) -> Location {
        Location {
            segment,
            offset: short_u64(data).saturating_add(self.offset),
            length: self.length,
        }
    }
}

/// A segment is never that long.
fn short_u64(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

/// Callers keep to [`MAX_PART`].
fn short(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn put_u32(w: &mut Vec<u8>, value: u32) {
    w.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(w: &mut Vec<u8>, value: u64) {
    w.extend_from_slice(&value.to_le_bytes());
}

fn put_octets(w: &mut Vec<u8>, octets: &[u8]) {
    put_u32(w, short(octets.len()));
    w.extend_from_slice(octets);
}

fn put_piece(w: &mut Vec<u8>, piece: Piece) {
    put_u32(w, piece.offset);
    put_u32(w, piece.length);
}

fn put_old(w: &mut Vec<u8>, old: &[SegmentId]) {
    put_u32(w, short(old.len()));
    old.iter().for_each(|segment| put_u32(w, *segment));
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[octet]| octet)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        self.u32().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_PART)
    }

    fn octets(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn piece(&mut self) -> Option<Piece> {
        Some(Piece { offset: self.u32()?, length: self.u32()? })
    }

    fn sums(&mut self) -> Option<Arc<[u64]>> {
        let count = self.length()?;
        let mut reader = Reader(self.take(count.checked_mul(8)?)?);
        (0..count).map(|_| reader.u64()).collect()
    }

    fn old(&mut self) -> Option<Vec<SegmentId>> {
        let count = self.length()?;
        let octets = self.take(count.checked_mul(4)?)?;
        let mut reader = Reader(octets);
        (0..count).map(|_| reader.u32()).collect()
    }

    fn precedence(&mut self) -> Option<Precedence> {
        self.u8().and_then(|number| Precedence::from_number(number.into()))
    }

    fn change(&mut self) -> Option<Change> {
        Some(match self.u8()? {
            1 => Change::PutEntry {
                precedence: self.precedence()?,
                id: EntryId(self.u64()?),
                queue: QueueId(self.u64()?),
                data: self.piece()?,
                old: self.old()?,
            },
            2 => Change::DeleteEntry {
                precedence: self.precedence()?,
                id: EntryId(self.u64()?),
                old: self.old()?,
            },
            3 => Change::PutBody { id: BodyId(self.u64()?), data: self.piece()?, old: self.old()? },
            4 => Change::PutBodyFile {
                id: BodyId(self.u64()?),
                number: self.u64()?,
                length: self.u64()?,
                sums: self.sums()?,
                old: self.old()?,
            },
            5 => Change::DeleteBody { id: BodyId(self.u64()?), old: self.old()? },
            6 => Change::PutSeen {
                key: Digest(self.array()?),
                until: Utc(self.u64()?),
                record: Bytes::copy_from_slice(self.octets()?),
            },
            7 => Change::ForgetSeen { before: Utc(self.u64()?) },
            8 => Change::PutMeta {
                name: String::from_utf8(self.octets()?.to_vec()).ok()?,
                value: Bytes::copy_from_slice(self.octets()?),
            },
            9 => Change::Ends { segment: self.u32()?, used: self.u64()? },
            10 => {
                let count = self.length()?;
                let mut reader = Reader(self.take(count.checked_mul(12)?)?);
                let one = |_| Some((reader.u32()?, reader.u64()?));
                Change::Segments { all: (0..count).map(one).collect::<Option<_>>()? }
            }
            11 => Change::Retired { segment: self.u32()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn old() -> impl Strategy<Value = Vec<SegmentId>> {
        prop::collection::vec(any::<u32>(), 0..3)
    }

    fn any_piece() -> impl Strategy<Value = Piece> {
        (any::<u32>(), any::<u32>()).prop_map(|(offset, length)| Piece { offset, length })
    }

    fn change() -> impl Strategy<Value = Change> {
        let precedence = prop::sample::select(&Precedence::ALL[..]);
        let octets = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
        prop_oneof![
            (precedence.clone(), any::<u64>(), any::<u64>(), any_piece(), old()).prop_map(
                |(precedence, id, queue, data, old)| Change::PutEntry {
                    precedence,
                    id: EntryId(id),
                    queue: QueueId(queue),
                    data,
                    old
                }
            ),
            (precedence, any::<u64>(), old()).prop_map(|(precedence, id, old)| {
                Change::DeleteEntry { precedence, id: EntryId(id), old }
            }),
            (any::<u64>(), any_piece(), old()).prop_map(|(id, data, old)| Change::PutBody {
                id: BodyId(id),
                data,
                old
            }),
            (any::<u64>(), any::<u64>(), prop::collection::vec(any::<u64>(), 0..3), old())
                .prop_map(|(id, number, sums, old)| Change::PutBodyFile {
                    id: BodyId(id),
                    number,
                    length: sums.len() as u64,
                    sums: sums.into(),
                    old
                }),
            (any::<u64>(), old()).prop_map(|(id, old)| Change::DeleteBody { id: BodyId(id), old }),
            (any::<[u8; 32]>(), any::<u64>(), octets.clone()).prop_map(|(key, until, record)| {
                Change::PutSeen { key: Digest(key), until: Utc(until), record }
            }),
            any::<u64>().prop_map(|before| Change::ForgetSeen { before: Utc(before) }),
            ("[a-z]{0,9}", octets).prop_map(|(name, value)| Change::PutMeta { name, value }),
            (any::<u32>(), any::<u64>()).prop_map(|(segment, used)| Change::Ends { segment, used }),
            prop::collection::vec((any::<u32>(), any::<u64>()), 0..4)
                .prop_map(|all| Change::Segments { all }),
            any::<u32>().prop_map(|segment| Change::Retired { segment }),
        ]
    }

    fn written(changes: &[Change], data: &[u8]) -> Vec<u8> {
        let mut writer = FrameWriter::default();
        changes.iter().for_each(|change| writer.change(change));
        let key = Key::Body(BodyId(4));
        let at = writer.data(7, key, data);
        let (length, mut out) = (writer.len(), Vec::new());
        let start = writer.finish(7, (3, 2), &mut out);
        assert_eq!(out.len(), length);
        let piece_of = |segment, key| {
            let from = start + at.offset as usize;
            piece(segment, key, &out[from..from + PIECE_HEADER + at.length as usize])
        };
        assert_eq!(piece_of(7, key), Some(data));
        assert_eq!((piece_of(8, key), piece_of(7, Key::Body(BodyId(5)))), (None, None));
        out.truncate(start);
        out
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(changes in prop::collection::vec(change(), 0..5)) {
            let octets = written(&changes, b"data");
            let (header, read) = read_changes(7, &octets).unwrap();
            prop_assert_eq!((header.sequence, header.group, header.data), (3, 2, 12));
            prop_assert_eq!(header.frame(), (octets.len() + 12).next_multiple_of(ALIGNMENT));
            prop_assert_eq!(read, changes);
            prop_assert!(read_changes(8, &octets).is_none(), "of another segment");
        }

        #[test]
        fn a_changed_octet_is_noticed(
            changes in prop::collection::vec(change(), 1..4),
            at in any::<prop::sample::Index>(),
            by in 1u8..,
        ) {
            let mut octets = written(&changes, b"");
            let at = at.index(octets.len());
            octets[at] ^= by;
            prop_assert!(read_changes(7, &octets).is_none());
        }

        #[test]
        fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_changes(7, &octets);
            let mut reader = Reader(&octets);
            while reader.change().is_some() {}
        }
    }
}
