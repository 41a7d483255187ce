//! Finds events.

use crate::event::Event;
use crate::frame::{self, Frames};
use crate::index::Index;
use crate::names::{Key, events_file, hashes, index_file, segments};
use crate::page::Place;
use crate::source::{Asked, Part, Parts, Source};
use base::{Utc, shown};
use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A segment of which a part cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// There is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// The directory is not there.
    #[error("no events were tracked in {}: look at [tracking] of the configuration", .0.display())]
    Nothing(PathBuf),
    /// It may not be read, or the system cannot.
    #[error("cannot read {}: {error} (run this as the daemon's user)", .directory.display())]
    Unreadable {
        /// Which.
        directory: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// Finds events in a directory, while a daemon writes there or not. It sees what was written when it was
/// opened. Damaged parts are left out, and named in [`Reader::damage`].
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    /// The oldest first.
    segments: Vec<Segment>,
    damage: RefCell<Vec<Damage>>,
    /// Whose events they are, in a site of several nodes.
    node: Option<Arc<str>>,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    events: File,
    /// Absent where it is not full yet, or its index is damaged: its events are read whole.
    index: Option<Index>,
    /// In place of the index, once it was needed: hashes in order, and where the events are.
    made: OnceCell<Vec<(u64, u32)>>,
}

impl Reader {
    /// Opens all segments.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn open(directory: &Path) -> Result<Reader, Gone> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Gone::Nothing(directory.to_owned()),
            _ => Gone::Unreadable { directory: directory.to_owned(), error },
        };
        let numbers = segments(directory).map_err(unreadable)?;
        let new = Reader {
            directory: directory.to_owned(),
            segments: Vec::new(),
            damage: RefCell::default(),
            node: None,
        };
        let mut found = Vec::new();
        for number in numbers {
            match new.segment(number) {
                Ok(segment) => found.push(segment),
                // The daemon removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        Ok(Reader { segments: found, ..new })
    }

    fn segment(&self, number: u64) -> io::Result<Segment> {
        let events = File::open(events_file(&self.directory, number))?;
        let path = index_file(&self.directory, number);
        let index = match File::open(&path).and_then(|file| Index::open(file, number)) {
            Ok(index) => Some(index),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.found_damage(path, error.to_string());
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Segment { number, events, index, made: OnceCell::new() })
    }

    fn found_damage(&self, file: PathBuf, why: String) {
        let new = Damage { file, why };
        let mut damage = self.damage.borrow_mut();
        if !damage.contains(&new) {
            damage.push(new);
        }
    }

    /// What could not be read so far.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.borrow().clone()
    }

    /// The place of the first event that is still here; `None`: there is no segment.
    pub fn start(&self) -> Option<Place> {
        self.segments.first().map(|segment| Place::start_of(segment.number))
    }

    /// Its events are this node's.
    #[must_use]
    pub fn of_node(self, node: &str) -> Reader {
        Reader { node: Some(node.into()), ..self }
    }

    fn find_in(&self, segment: &Segment, key: Key<'_>) -> Vec<Event> {
        let hash = key.hash();
        let mut places = match segment.index.as_ref().map(|index| index.places(hash)) {
            Some(Ok(places)) => places,
            Some(Err(error)) => {
                self.found_damage(index_file(&self.directory, segment.number), error.to_string());
                self.made_places(segment, hash)
            }
            None => self.made_places(segment, hash),
        };
        // A recipient may be named twice.
        places.dedup();
        let events = places.into_iter().filter_map(|at| self.read(segment, at.into()));
        let mut its: Vec<Event> = events.collect();
        its.retain(|event| key.is_of(event));
        its
    }

    /// The places of events with this hash, without the index of their segment.
    fn made_places(&self, segment: &Segment, hash: u64) -> Vec<u32> {
        let made = segment.made.get_or_init(|| {
            let mut made = Vec::new();
            for (at, event) in self.whole(segment) {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                hashes(&event, |hash| made.push((hash, at)));
            }
            made.sort_unstable();
            made
        });
        let from = made.partition_point(|(other, _)| *other < hash);
        made.iter().skip(from).take_while(|(other, _)| *other == hash).map(|(_, at)| *at).collect()
    }

    /// Those of a segment that are asked for.
    fn asked(&self, segment: &Segment, asked: Asked<'_>) -> Vec<Event> {
        let mut events: Vec<Event> = match asked.key {
            Some(key) => self.find_in(segment, key),
            None => self.whole(segment).into_iter().map(|(_, event)| event).collect(),
        };
        events.retain_mut(|event| {
            event.node.clone_from(&self.node);
            (asked.times.0..=asked.times.1).contains(&event.time)
        });
        events
    }

    fn read(&self, segment: &Segment, at: u64) -> Option<Event> {
        let path = || events_file(&self.directory, segment.number);
        // Most frames are short: one read has it all.
        let mut octets = vec![0; 512];
        let mut got = segment.events.read_at(&mut octets, at).ok()?;
        octets.truncate(got);
        let length = frame::HEADER + frame::length(&octets).unwrap_or(0);
        if length > got {
            octets.resize(length, 0);
            let rest = octets.get_mut(got..)?;
            segment.events.read_exact_at(rest, at + got as u64).ok()?;
            got = length;
        }
        let frame = octets.get(..got)?;
        let event = frame::payload(segment.number, frame).and_then(frame::decode);
        if event.is_none() {
            self.found_damage(path(), format!("the event at octet {at}"));
        }
        event
    }

    /// All events of a segment.
    fn whole(&self, segment: &Segment) -> Vec<(usize, Event)> {
        let path = events_file(&self.directory, segment.number);
        let octets = match read_all(&segment.events) {
            Ok(octets) => octets,
            Err(error) => {
                self.found_damage(path, error.to_string());
                return Vec::new();
            }
        };
        let mut frames = Frames::new(segment.number, &octets);
        let events = frames
            .by_ref()
            .filter_map(|(at, payload)| frame::decode(payload).map(|event| (at, event)))
            .collect();
        if frames.damaged > 0 {
            let why = format!("events are missing in {} places", frames.damaged);
            self.found_damage(path, why);
        }
        events
    }
}

impl Source for Reader {
    fn parts<'a>(&'a self, asked: Asked<'a>) -> Parts<'a> {
        let mut segments: Vec<&Segment> =
            self.segments.iter().filter(|segment| segment.may_have(asked.times)).collect();
        if asked.newest_first {
            segments.reverse();
        }
        let part = move |segment: &'a Segment| {
            // What is asked for by a key is found fast, and often in few segments only.
            let times = segment.index.as_ref().filter(|_| asked.key.is_none());
            match times.map(|index| index.summary.times) {
                Some((first, last)) => {
                    let bound = if asked.newest_first { last } else { first };
                    Some(Part { bound, read: Box::new(move || self.asked(segment, asked)) })
                }
                None => Part::from_events(self.asked(segment, asked), asked.newest_first),
            }
        };
        Box::new(segments.into_iter().filter_map(part))
    }

    fn since(&self) -> Option<Utc> {
        self.segments.iter().find_map(|segment| match &segment.index {
            Some(index) => Some(index.summary.times.0),
            None => self.whole(segment).first().map(|(_, event)| event.time),
        })
    }

    fn notes(&self) -> Vec<String> {
        let note = |damage: &Damage| {
            let (file, why) = (damage.file.display().to_string(), shown::line(&damage.why));
            format!("{}: {why}; the rest is shown", shown::line(&file))
        };
        self.damage.borrow().iter().map(note).collect()
    }

    fn nodes(&self) -> Vec<String> {
        self.node.iter().map(|node| node.to_string()).collect()
    }
}

impl Segment {
    fn may_have(&self, (since, until): (Utc, Utc)) -> bool {
        self.index.as_ref().is_none_or(|index| {
            let (first, last) = index.summary.times;
            first <= until && since <= last
        })
    }
}

fn read_all(file: &File) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX)];
    let mut at = 0;
    while let Some(rest) = octets.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at as u64)? {
            0 => break,
            got => at += got,
        }
    }
    octets.truncate(at);
    Ok(octets)
}
