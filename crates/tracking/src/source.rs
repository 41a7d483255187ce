//! Where events are found: in files, in a database, or in both. Who asks does not know which.

use crate::event::Event;
use crate::names::Key;
use base::Utc;
use std::ops::ControlFlow;

/// Which events are wanted, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Those with this key; `None`: all.
    pub key: Option<Key<'a>>,
    /// Within these times, both included.
    pub times: (Utc, Utc),
    /// The newest first.
    pub newest_first: bool,
}

/// Some of the events that were asked for, of one node, in the order in which it wrote them.
pub struct Part<'a> {
    /// Neither this part nor any later one of its source has an event before this time; with the newest
    /// first, none after it.
    pub bound: Utc,
    /// Reads them.
    pub read: Box<dyn FnOnce() -> Vec<Event> + 'a>,
}

impl Part<'_> {
    /// Of events that are read already; `None` where there are none.
    pub fn from_events(events: Vec<Event>, newest_first: bool) -> Option<Part<'static>> {
        let times = events.iter().map(|event| event.time);
        let bound = if newest_first { times.max() } else { times.min() }?;
        Some(Part { bound, read: Box::new(move || events) })
    }
}

impl std::fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("bound", &self.bound).finish_non_exhaustive()
    }
}

/// Parts of a source, made when they are wanted.
pub type Parts<'a> = Box<dyn Iterator<Item = Part<'a>> + 'a>;

/// What is done with each event, until it breaks.
pub type Each<'a> = &'a mut dyn FnMut(Event) -> ControlFlow<()>;

/// Where events are found.
pub trait Source {
    /// The events that are asked for.
    fn parts<'a>(&'a self, asked: Asked<'a>) -> Parts<'a>;

    /// The time of the first event that is still here.
    fn since(&self) -> Option<Utc>;

    /// What could not be read so far, in sentences that may be shown.
    fn notes(&self) -> Vec<String>;

    /// The nodes whose events may be here; none where there is no site of several nodes.
    fn nodes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Events with this key, in the order in which they happened.
    fn find(&self, key: Key<'_>) -> Vec<Event> {
        let mut found = Vec::new();
        let asked = Asked { key: Some(key), times: ALWAYS, newest_first: false };
        in_order(self.parts(asked), false, &mut |event| {
            found.push(event);
            ControlFlow::Continue(())
        });
        found
    }

    /// Events with this key, the newest first, until `each` breaks.
    fn find_newest(&self, key: Key<'_>, times: (Utc, Utc), each: Each<'_>) {
        let asked = Asked { key: Some(key), times, newest_first: true };
        in_order(self.parts(asked), true, each);
    }

    /// All events within these times, in their order, until `each` breaks.
    fn scan(&self, times: (Utc, Utc), each: Each<'_>) {
        in_order(self.parts(Asked { key: None, times, newest_first: false }), false, each);
    }

    /// As [`Source::scan`], the newest first.
    fn scan_newest(&self, times: (Utc, Utc), each: Each<'_>) {
        in_order(self.parts(Asked { key: None, times, newest_first: true }), true, each);
    }
}

/// Any time.
pub const ALWAYS: (Utc, Utc) = (Utc(0), Utc(u64::MAX));

/// Several sources as one: no event is in two of them.
#[derive(Default)]
pub struct Joined(pub Vec<Box<dyn Source>>);

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Joined").field(&self.0.len()).finish()
    }
}

impl Source for Joined {
    fn parts<'a>(&'a self, asked: Asked<'a>) -> Parts<'a> {
        let mut all: Vec<_> = self.0.iter().map(|source| source.parts(asked).peekable()).collect();
        Box::new(std::iter::from_fn(move || {
            let heads = all.iter_mut().enumerate().filter_map(|(n, parts)| {
                parts.peek().map(|part| (place_of(part.bound, asked.newest_first), n))
            });
            let (_, first) = heads.min()?;
            all.get_mut(first)?.next()
        }))
    }

    fn since(&self) -> Option<Utc> {
        self.0.iter().filter_map(|source| source.since()).min()
    }

    fn notes(&self) -> Vec<String> {
        self.0.iter().flat_map(|source| source.notes()).collect()
    }

    fn nodes(&self) -> Vec<String> {
        let mut nodes: Vec<String> = self.0.iter().flat_map(|source| source.nodes()).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}

/// A number that grows in the order that is wanted.
fn place_of(time: Utc, newest_first: bool) -> u64 {
    if newest_first { !time.0 } else { time.0 }
}

/// Hands over the events of all parts in one order. Parts of which one may have an event before the other's
/// are held in memory beside each other, no others.
fn in_order(parts: Parts<'_>, newest_first: bool, each: Each<'_>) {
    let mut parts = parts.peekable();
    let mut open: Vec<std::iter::Peekable<std::vec::IntoIter<Event>>> = Vec::new();
    loop {
        let next = parts.peek().map(|part| place_of(part.bound, newest_first));
        // Of equal times the part that was opened first: a node's own order stays.
        let heads = open.iter_mut().enumerate().filter_map(|(n, events)| {
            events.peek().map(|event| (place_of(event.time, newest_first), n))
        });
        match (heads.min(), next) {
            (None, None) => return,
            (Some((at, n)), next) if next.is_none_or(|next| at < next) => {
                let Some(event) = open.get_mut(n).and_then(Iterator::next) else { return };
                if each(event).is_break() {
                    return;
                }
            }
            _ => {
                let Some(part) = parts.next() else { return };
                let mut events = (part.read)();
                if newest_first {
                    events.reverse();
                }
                events.sort_by_key(|event| place_of(event.time, newest_first));
                open.retain_mut(|events| events.peek().is_some());
                open.push(events.into_iter().peekable());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of so many nodes, each a list of times; the detail has node and number.
    struct Lists(Vec<Vec<Vec<u64>>>);

    impl Source for Lists {
        fn parts<'a>(&'a self, asked: Asked<'a>) -> Parts<'a> {
            let mut all: Vec<Part<'a>> = Vec::new();
            for (node, parts) in self.0.iter().enumerate() {
                for (n, part) in parts.iter().enumerate() {
                    let event = |(m, time): (usize, &u64)| Event {
                        time: Utc(*time),
                        detail: format!("{node}.{n}.{m}"),
                        ..Event::default()
                    };
                    let events = part.iter().enumerate().map(event).collect();
                    all.extend(Part::from_events(events, asked.newest_first));
                }
            }
            all.sort_by_key(|part| place_of(part.bound, asked.newest_first));
            Box::new(all.into_iter())
        }

        fn since(&self) -> Option<Utc> {
            None
        }

        fn notes(&self) -> Vec<String> {
            vec![]
        }
    }

    fn scanned(source: &dyn Source, newest_first: bool) -> Vec<(u64, String)> {
        let mut seen = Vec::new();
        let mut each = |event: Event| {
            seen.push((event.time.0, event.detail));
            ControlFlow::Continue(())
        };
        match newest_first {
            true => source.scan_newest(ALWAYS, &mut each),
            false => source.scan(ALWAYS, &mut each),
        }
        seen
    }

    #[test]
    fn events_of_several_nodes_come_in_one_order() {
        let one = Lists(vec![vec![vec![1, 4, 4, 9], vec![9, 12]], vec![vec![2, 3, 10], vec![11]]]);
        let two = Lists(vec![vec![vec![0, 13], vec![14]]]);
        let joined = Joined(vec![Box::new(one), Box::new(two)]);
        let seen = scanned(&joined, false);
        let times: Vec<u64> = seen.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [0, 1, 2, 3, 4, 4, 9, 9, 10, 11, 12, 13, 14]);
        let four: Vec<&str> =
            seen.iter().filter(|(t, _)| *t == 4).map(|(_, d)| d.as_str()).collect();
        assert_eq!(four, ["0.0.1", "0.0.2"], "a node's own order stays");
        let mut newest = scanned(&joined, true);
        newest.reverse();
        assert_eq!(newest, seen);
    }

    #[test]
    fn who_has_enough_is_asked_no_further() {
        let lists = Lists(vec![vec![vec![1], vec![2], vec![3]]]);
        let mut seen = 0;
        lists.scan_newest(ALWAYS, &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(seen, 1);
    }
}
