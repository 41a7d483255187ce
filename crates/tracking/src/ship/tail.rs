//! Reads on in the files from where an earlier reading ended, to copy them elsewhere.

use crate::event::Event;
use crate::frame::{self, Frames};
use crate::names::{events_file, segments};
use crate::page::{Page, Pages, Place};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Octets that are read at once, unless one event has more.
pub(crate) const READ: usize = 512 << 10;

/// What follows a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Events, in their order.
    pub(crate) pages: Vec<Page>,
    /// Behind them.
    pub(crate) to: Place,
    /// Segments that were removed before they were read.
    pub(crate) missed: u64,
}

/// Reads a directory of segments, also while they are written and removed.
#[derive(Debug)]
pub(crate) struct Tail {
    directory: PathBuf,
}

impl Tail {
    pub(crate) fn new(directory: &Path) -> Tail {
        Tail { directory: directory.to_owned() }
    }

    /// What was written from one place on, up to another one, which is the end of what is durable; some of it
    /// where there is much. Without pages, and `to` where it began: there is nothing more yet.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn read(&self, from: Place, until: Place) -> io::Result<Stretch> {
        let mut stretch = Stretch { to: from, ..Stretch::default() };
        while stretch.to < until {
            let Some(file) = self.open(&mut stretch, until)? else { break };
            let segment = stretch.to.segment();
            let is_last = segment >= until.segment();
            let end = if is_last { until.at() } else { file.metadata()?.len() };
            if stretch.to.at() < end {
                let at = stretch.to.at();
                self.take(&file, segment, (at, end), &mut stretch)?;
                if !stretch.pages.is_empty() {
                    break;
                }
            } else if is_last {
                break;
            } else {
                stretch.to = Place::start_of(segment + 1);
            }
        }
        Ok(stretch)
    }

    /// The segment of a place; the next one that there is, where that was removed.
    fn open(&self, stretch: &mut Stretch, until: Place) -> io::Result<Option<File>> {
        loop {
            let wanted = stretch.to.segment();
            match File::open(events_file(&self.directory, wanted)) {
                Ok(file) => {
                    stretch.to = stretch.to.max(Place::start_of(wanted));
                    return Ok(Some(file));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) => {}
            }
            let all = segments(&self.directory)?;
            let oldest = all.first().copied();
            let Some(next) = all.into_iter().find(|number| *number > wanted) else {
                return Ok(None);
            };
            if next > until.segment() {
                return Ok(None);
            }
            // The oldest are removed first, so where there is an older one this one was left out by the writer
            // (`Writer::go_on_after`). Before the first reading of all nothing was missed.
            if stretch.to > Place::default() && oldest.is_none_or(|oldest| oldest > wanted) {
                stretch.missed += next - wanted;
            }
            stretch.to = Place::start_of(next);
        }
    }

    /// Takes whole frames between these octets of a segment.
    fn take(
        &self,
        file: &File,
        segment: u64,
        (at, end): (u64, u64),
        stretch: &mut Stretch,
    ) -> io::Result<()> {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        // The second time for an event that is longer.
        for size in [READ, frame::HEADER + frame::MAX_PAYLOAD] {
            let mut octets = vec![0; left.min(size)];
            file.read_exact_at(&mut octets, at)?;
            let mut frames = Frames::within(segment, &octets);
            let mut pages = Pages::default();
            for (place, payload) in frames.by_ref() {
                let Some(event) = frame::decode(payload) else { continue };
                let its = Place::new(segment, at + place as u64);
                if std::mem::take(&mut stretch.missed) > 0 {
                    put_gap(&mut pages, its, &event);
                }
                pages.add(its, &event, payload);
            }
            let is_all = octets.len() == left;
            // Octets at the end of a segment that are not a frame never become one.
            let read = if is_all { octets.len() } else { frames.end };
            stretch.pages = pages.done();
            stretch.to = Place::new(segment, at + read as u64);
            if read > 0 {
                return Ok(());
            }
        }
        // Longer than any event: damaged throughout.
        stretch.to = Place::new(segment, at + (left.min(READ)) as u64);
        Ok(())
    }
}

/// Stands for the events of segments that were removed too early. Nobody counted them: it was one at least.
fn put_gap(pages: &mut Pages, at: Place, before: &Event) {
    let gap = Event::lost(before.time, 1);
    if let Ok(payload) = postcard::to_allocvec(&gap) {
        pages.add(at, &gap, &payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::LOST;
    use crate::writer::Writer;
    use base::Utc;

    fn event(n: u64) -> Event {
        let message = Some(format!("m{}", n / 3));
        Event {
            time: Utc(n * 1_000),
            message,
            detail: "x".repeat(n as usize % 50),
            ..Event::default()
        }
    }

    fn write(writer: &mut Writer, numbers: std::ops::Range<u64>) {
        for n in numbers {
            assert!(writer.append(&event(n)));
            writer.write().map_err(|(error, _)| error).unwrap();
        }
        writer.sync().unwrap();
    }

    fn times(pages: &[Page]) -> Vec<u64> {
        let events = pages.iter().flat_map(|page| Page::read(&page.octets).unwrap());
        events.map(|event| event.time.0 / 1_000).collect()
    }

    fn rest(tail: &Tail, from: &mut Place, until: Place) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let stretch = tail.read(*from, until).unwrap();
            *from = stretch.to;
            if stretch.pages.is_empty() {
                return seen;
            }
            seen.extend(times(&stretch.pages));
        }
    }

    #[test]
    fn each_event_is_read_once_over_segments_and_while_they_grow() {
        let directory = tempfile::tempdir().unwrap();
        let tail = Tail::new(directory.path());
        let mut writer = Writer::open(directory.path(), 8 << 20).unwrap();
        let mut from = Place::default();
        let mut seen = Vec::new();
        for part in 0..40 {
            write(&mut writer, part * 100..part * 100 + 100);
            seen.extend(rest(&tail, &mut from, writer.place()));
        }
        assert_eq!(seen, (0..4_000).collect::<Vec<_>>());
        assert!(from.segment() > 2, "several segments were needed: {from:?}");
        assert_eq!(rest(&tail, &mut Place::default(), writer.place()), seen);
        // What is not durable yet is not read.
        let until = writer.place();
        assert!(writer.append(&event(4_000)));
        writer.write().map_err(|(error, _)| error).unwrap();
        assert!(rest(&tail, &mut from, until).is_empty());
    }

    #[test]
    fn a_page_is_short_and_of_a_short_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
        let at = |seconds: u64| Event { time: Utc(seconds * 1_000_000), ..Event::default() };
        for seconds in [100, 160, 161, 99, 100] {
            assert!(writer.append(&at(seconds)));
        }
        let long = Event { detail: "y".repeat(700_000), ..at(100) };
        assert!(writer.append(&long) && writer.append(&at(101)));
        writer.write().map_err(|(error, _)| error).unwrap();
        let tail = Tail::new(directory.path());
        let mut from = Place::default();
        let mut pages = Vec::new();
        while from < writer.place() {
            let stretch = tail.read(from, writer.place()).unwrap();
            assert!(stretch.to > from);
            from = stretch.to;
            pages.extend(stretch.pages);
        }
        let spans: Vec<_> = pages
            .iter()
            .map(|p| (p.times.0.0 / 1_000_000, p.times.1.0 / 1_000_000, p.count))
            .collect();
        assert_eq!(
            spans,
            [(100, 160, 2), (161, 161, 1), (99, 100, 2), (100, 100, 1), (101, 101, 1)]
        );
    }

    #[test]
    fn segments_that_were_removed_before_leave_a_gap() {
        let directory = tempfile::tempdir().unwrap();
        let tail = Tail::new(directory.path());
        let mut writer = Writer::open(directory.path(), 16 << 20).unwrap();
        write(&mut writer, 0..10);
        let mut from = Place::default();
        assert_eq!(rest(&tail, &mut from, writer.place()).len(), 10);
        write(&mut writer, 10..5_000);
        std::fs::remove_file(events_file(directory.path(), 1)).unwrap();
        let stretch = tail.read(from, writer.place()).unwrap();
        let first = Page::read(&stretch.pages[0].octets).unwrap();
        assert_eq!((&*first[0].kind, first[0].time), (LOST, first[1].time));
        assert!(stretch.pages[0].hashes.contains(&crate::Key::Lost.hash()));
        // A new copy of a directory whose first segment went long ago misses nothing.
        let fresh = tail.read(Place::default(), writer.place()).unwrap();
        assert!(Page::read(&fresh.pages[0].octets).unwrap().iter().all(|e| e.kind != LOST));
    }

    #[test]
    fn what_is_damaged_is_left_out_and_does_not_stop_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
        write(&mut writer, 0..100);
        let path = events_file(directory.path(), 1);
        let mut octets = std::fs::read(&path).unwrap();
        octets[200..230].fill(0xe7);
        std::fs::write(&path, &octets).unwrap();
        let seen = rest(&Tail::new(directory.path()), &mut Place::default(), writer.place());
        assert!(seen.len() < 100 && seen.len() > 90 && seen.contains(&99), "{seen:?}");
    }
}
