//! Pages: events of one node that a database keeps together, with what they are found by.

use crate::event::Event;
use crate::frame;
use crate::names::hashes;
use base::Utc;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Octets of events at which a page is full. A question reads whole pages.
pub const FULL: usize = 64 << 10;

/// The longest time between two events of a page: who looks for a time looks at pages that begin so much
/// before it.
pub const LONGEST: Duration = Duration::from_secs(60);

/// What a page begins with: the version of its format.
const VERSION: u8 = 1;

/// A place in the files of a directory: the number of a segment, and octets in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub u64);

impl Place {
    /// Before this octet of a segment. A segment has less than 4 GiB.
    pub(crate) fn new(segment: u64, at: u64) -> Place {
        Place((segment << 32) | at.min(u64::from(u32::MAX)))
    }

    /// Before all events of a segment.
    pub(crate) fn start_of(segment: u64) -> Place {
        Place::new(segment, frame::START.len() as u64)
    }

    pub(crate) fn segment(self) -> u64 {
        self.0 >> 32
    }

    pub(crate) fn at(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

/// How far the files of a tracker are durable.
#[derive(Clone, Debug, Default)]
pub struct Durable(Arc<AtomicU64>);

impl Durable {
    /// Behind all events that a power cut leaves.
    pub fn place(&self) -> Place {
        Place(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn put(&self, place: Place) {
        self.0.store(place.0, Ordering::Release);
    }
}

/// Events of one node that are kept together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where the first of them was written.
    pub at: Place,
    /// The earliest and the latest time.
    pub times: (Utc, Utc),
    /// How many.
    pub count: u64,
    /// They themselves: [`Page::read`].
    pub octets: Vec<u8>,
    /// What they are found by ([`Key::hash`](crate::Key::hash)), each once, in order.
    pub hashes: Vec<u64>,
}

impl Page {
    /// The events of a page's octets, in the order in which they were written; `None`: it is damaged, or of a
    /// later release.
    pub fn read(octets: &[u8]) -> Option<Vec<Event>> {
        let mut rest = octets.strip_prefix(&[VERSION])?;
        let mut events = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (payload, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            events.push(frame::decode(payload)?);
            rest = after;
        }
        rest.is_empty().then_some(events)
    }
}

/// Puts events into pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    done: Vec<Page>,
    open: Option<Page>,
    hashes: BTreeSet<u64>,
}

impl Pages {
    /// Adds an event, as its payload is in the frame that begins there.
    pub(crate) fn add(&mut self, at: Place, event: &Event, payload: &[u8]) {
        let time = event.time;
        let fits = self.open.as_ref().is_none_or(|page| {
            page.octets.len() + payload.len() < FULL
                && page.at.segment() == at.segment()
                && time >= page.times.0
                && time.since(page.times.0) <= LONGEST
        });
        if !fits {
            self.close();
        }
        let page = self.open.get_or_insert_with(|| Page {
            at,
            times: (time, time),
            count: 0,
            octets: vec![VERSION],
            hashes: Vec::new(),
        });
        page.times.1 = page.times.1.max(time);
        page.count += 1;
        page.octets.extend((payload.len() as u32).to_be_bytes());
        page.octets.extend_from_slice(payload);
        hashes(event, |hash| {
            self.hashes.insert(hash);
        });
    }

    fn close(&mut self) {
        if let Some(mut page) = self.open.take() {
            page.hashes = std::mem::take(&mut self.hashes).into_iter().collect();
            self.done.push(page);
        }
    }

    /// All of them.
    pub(crate) fn done(mut self) -> Vec<Page> {
        self.close();
        self.done
    }
}
