//! The events of a site, for a command that asks.

use super::archive::time;
use super::connection;
use crate::connection::pool::Pool;
use crate::numbers::{stored, unsigned};
use crate::options::Options;
use crate::prepare;
use base::{Utc, shown};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use store::StoreError;
use tokio_postgres::Row;
use tracking::Event;
use tracking::page::{LONGEST, Page, Place};
use tracking::ship::Origin;
use tracking::source::{Asked, Part, Parts, Source};

/// Pages that are read at once: 1 MiB.
const AT_ONCE: usize = 16;

/// Pages that are kept: several questions about one message read the same ones.
const KEPT: usize = 128;

const READING: &str = "reading what was tracked";

/// What the asking node has in its own files, and does not want from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Where it tracks.
    pub origin: Origin,
    /// Its files have all events from there on.
    pub from: Place,
}

/// An origin of events.
#[derive(Clone, Debug)]
struct Known {
    node: Arc<str>,
    /// Its events from one place on, and before another one, are not asked for.
    without: Option<(i64, i64)>,
    last_time: Utc,
    /// It ended in order, its node lives, or it ended long ago: nobody has to know that something is missing.
    is_whole: bool,
}

/// The events of the nodes of a site, in the order of their times. Where the database goes away while it is
/// asked, what was not read is named in [`Source::notes`].
#[derive(Debug)]
pub struct TrackedEvents {
    pool: Pool,
    origins: BTreeMap<i32, Known>,
    /// The columns of what is not asked for.
    without: Arc<(Vec<i32>, Vec<i64>, Vec<i64>)>,
    since: Option<Utc>,
    notes: RefCell<Vec<String>>,
    kept: RefCell<Kept>,
}

/// Pages that were read, by their numbers.
#[derive(Debug, Default)]
struct Kept {
    pages: BTreeMap<i64, Rc<Vec<Event>>>,
    /// The oldest first.
    order: VecDeque<i64>,
}

/// A row of `tracked` without its events: page, origin, first and last time.
type Head = (i64, i32, Utc, Utc);

impl TrackedEvents {
    /// Connects; `own` is left out, and all nodes but `only`.
    ///
    /// # Errors
    /// [`StoreError::NotPrepared`]; [`StoreError::Newer`]; [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn open(
        url: &str,
        options: &Options,
        own: Option<&Own>,
        only: Option<&str>,
    ) -> Result<TrackedEvents, StoreError> {
        let (pool, edge) = connection(url, options)?;
        prepare::check(&edge, pool.target())?;
        let rows = pool.call(READING, |client| async move {
            let sql = "SELECT o.id, o.directory, o.node, o.begun_at, o.last_time, o.complete, \
                EXISTS (SELECT FROM node n WHERE n.name = o.node AND n.died IS NULL \
                    AND n.lease_until > clock_timestamp()) \
                    OR o.copied < clock_timestamp() - interval '7 days', \
                (SELECT first FROM tracked ORDER BY first LIMIT 1) \
                FROM tracked_origin o ORDER BY o.id";
            client.rows(sql, &[]).await
        })?;
        let begun = own.and_then(|own| rows.iter().find(|row| is_of(row, own, true)));
        let begun = begun.map_or(i64::MAX, |row| row.get(3));
        let mut origins = BTreeMap::new();
        for row in &rows {
            let node: &str = row.get(2);
            let without = match own {
                _ if only.is_some_and(|only| only != node) => Some((i64::MIN, i64::MAX)),
                Some(own) if is_of(row, own, true) => Some((own.from.0.cast_signed(), i64::MAX)),
                // What was copied while the node had another name.
                Some(own) if is_of(row, own, false) => Some((own.from.0.cast_signed(), begun)),
                _ => None,
            };
            let known = Known {
                node: node.into(),
                without,
                last_time: Utc(unsigned(row.get(4))),
                is_whole: row.get::<_, bool>(5) || row.get::<_, bool>(6),
            };
            origins.insert(row.get::<_, i32>(0), known);
        }
        let (mut ids, mut from, mut until) = (Vec::new(), Vec::new(), Vec::new());
        for (id, (start, end)) in origins.iter().filter_map(|(id, o)| Some((*id, o.without?))) {
            ids.push(id);
            from.push(start);
            until.push(end);
        }
        let since = rows.first().and_then(|row| row.get::<_, Option<i64>>(7));
        let new = TrackedEvents {
            pool,
            origins,
            without: Arc::new((ids, from, until)),
            since: since.map(|since| Utc(unsigned(since))),
            notes: RefCell::default(),
            kept: RefCell::default(),
        };
        new.note_the_dead();
        Ok(new)
    }

    /// Names nodes that ended in the middle, of which the last events never came.
    fn note_the_dead(&self) {
        let dead = |o: &&Known| !o.is_whole && o.without.is_none_or(|(from, _)| from != i64::MIN);
        for origin in self.origins.values().filter(dead) {
            let node = shown::line(&origin.node);
            self.note(format!(
                "{node} does not run, and did not end in order: what it did after {} is not known here",
                origin.last_time
            ));
        }
    }

    fn note(&self, note: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The answer, or nothing and a note.
    fn read<T>(&self, answer: Result<Vec<T>, StoreError>) -> Vec<T> {
        answer.unwrap_or_else(|error| {
            self.note(format!("{error}; events of other nodes are missing"));
            Vec::new()
        })
    }

    /// The pages that may have an event with this hash.
    fn pages_with(&self, hash: u64, asked: Asked<'_>) -> Vec<Head> {
        let hash = stored(hash);
        let (since, until) = (time(asked.times.0), time(asked.times.1));
        let without = Arc::clone(&self.without);
        let rows = self.pool.call(READING, move |client| {
            let without = Arc::clone(&without);
            async move {
                // OFFSET 0 keeps the order of the search: part by part, and then the pages that were found.
                let sql = "SELECT t.page, t.origin, t.first, t.last \
                    FROM generate_series((SELECT min(page) FROM tracked) >> 10, \
                        (SELECT max(page) FROM tracked) >> 10) part, \
                    LATERAL (SELECT k.page FROM tracked_key k \
                        WHERE (k.page >> 10) = part AND k.hash = $1 OFFSET 0) k, \
                    LATERAL (SELECT page, origin, at, first, last FROM tracked \
                        WHERE page = k.page OFFSET 0) t \
                    WHERE t.last >= $2 AND t.first <= $3 AND NOT EXISTS (SELECT FROM unnest($4::int[], $5::bigint[], $6::bigint[]) \
                        x(origin, start, stop) WHERE x.origin = t.origin \
                        AND t.at >= x.start AND t.at < x.stop)";
                let (ids, from, until_place) = &*without;
                client.rows(sql, &[&hash, &since, &until, ids, from, until_place]).await
            }
        });
        let mut heads: Vec<Head> = self.read(rows).iter().map(head).collect();
        match asked.newest_first {
            true => heads.sort_by_key(|(page, _, _, last)| std::cmp::Reverse((*last, *page))),
            false => heads.sort_by_key(|(page, _, first, _)| (*first, *page)),
        }
        heads
    }

    /// The next pages of a time, behind one of them.
    fn pages_of(&self, asked: Asked<'_>, after: (i64, i64)) -> Vec<(Head, Rc<Vec<Event>>)> {
        let longest = i64::try_from(LONGEST.as_micros()).unwrap_or(i64::MAX);
        let (since, until) = (time(asked.times.0), time(asked.times.1));
        // A page is short, so both of its ends bound the search: an index has one of them.
        let bound = if asked.newest_first {
            until.saturating_add(longest)
        } else {
            since.saturating_sub(longest)
        };
        let (without, newest_first) = (Arc::clone(&self.without), asked.newest_first);
        let rows = self.pool.call(READING, move |client| {
            let without = Arc::clone(&without);
            async move {
                let (ids, from, stop) = &*without;
                let oldest = "SELECT t.page, t.origin, t.first, t.last, t.octets FROM tracked t \
                    WHERE (t.first, t.page) > ($1, $2) AND t.first >= $8 \
                    AND t.first <= $4 AND t.last >= $3 \
                    AND NOT EXISTS (SELECT FROM unnest($5::int[], $6::bigint[], $7::bigint[]) \
                        x(origin, start, stop) WHERE x.origin = t.origin \
                        AND t.at >= x.start AND t.at < x.stop) \
                    ORDER BY t.first, t.page LIMIT 16";
                let newest = "SELECT t.page, t.origin, t.first, t.last, t.octets FROM tracked t \
                    WHERE (t.last, t.page) < ($1, $2) AND t.last >= $3 \
                    AND t.last <= $8 AND t.first <= $4 \
                    AND NOT EXISTS (SELECT FROM unnest($5::int[], $6::bigint[], $7::bigint[]) \
                        x(origin, start, stop) WHERE x.origin = t.origin \
                        AND t.at >= x.start AND t.at < x.stop) \
                    ORDER BY t.last DESC, t.page DESC LIMIT 16";
                let sql = if newest_first { newest } else { oldest };
                let (at, page) = after;
                client.rows(sql, &[&at, &page, &since, &until, ids, from, stop, &bound]).await
            }
        });
        let rows = self.read(rows);
        let with_events = |row: &Row| {
            let head = head(row);
            (head, self.events(head, row.get(4)))
        };
        rows.iter().map(with_events).collect()
    }

    /// The events of a page.
    fn events(&self, (page, origin, ..): Head, octets: &[u8]) -> Rc<Vec<Event>> {
        let mut events = Page::read(octets).unwrap_or_else(|| {
            self.note(format!("page {page} of the site's events is damaged; the rest is shown"));
            Vec::new()
        });
        let node = self.origins.get(&origin).map(|origin| Arc::clone(&origin.node));
        events.iter_mut().for_each(|event| event.node.clone_from(&node));
        Rc::new(events)
    }

    /// Those of these pages, from the database where they are not kept.
    fn read_pages(&self, heads: &[Head]) -> Vec<Rc<Vec<Event>>> {
        let kept = |page: &i64| self.kept.borrow().pages.get(page).cloned();
        let missing: Vec<i64> =
            heads.iter().map(|head| head.0).filter(|page| kept(page).is_none()).collect();
        let mut found: BTreeMap<i64, Rc<Vec<Event>>> =
            heads.iter().filter_map(|head| Some((head.0, kept(&head.0)?))).collect();
        if !missing.is_empty() {
            let rows = self.pool.call(READING, move |client| {
                let missing = missing.clone();
                async move {
                    let sql = "SELECT page, origin, first, last, octets FROM tracked \
                               WHERE page = ANY ($1)";
                    client.rows(sql, &[&missing]).await
                }
            });
            for row in self.read(rows) {
                let head = head(&row);
                let events = self.events(head, row.get(4));
                self.keep(head.0, &events);
                found.insert(head.0, events);
            }
        }
        // What was removed meanwhile is not there.
        heads.iter().filter_map(|head| found.get(&head.0).cloned()).collect()
    }

    fn keep(&self, page: i64, events: &Rc<Vec<Event>>) {
        let Kept { pages, order } = &mut *self.kept.borrow_mut();
        if order.len() >= KEPT
            && let Some(oldest) = order.pop_front()
        {
            pages.remove(&oldest);
        }
        pages.insert(page, Rc::clone(events));
        order.push_back(page);
    }

    fn by_key<'a>(&'a self, key: tracking::Key<'a>, asked: Asked<'a>) -> Parts<'a> {
        let heads = self.pages_with(key.hash(), asked);
        let mut groups: VecDeque<Vec<Head>> = heads.chunks(AT_ONCE).map(<[Head]>::to_vec).collect();
        let parts = std::iter::from_fn(move || {
            let pages = self.read_pages(&groups.pop_front()?);
            let wanted = |event: &&Event| key.is_of(event) && is_within(event, asked.times);
            let its = |page: Rc<Vec<Event>>| -> Vec<Event> {
                page.iter().filter(wanted).cloned().collect()
            };
            let parts = pages
                .into_iter()
                .filter_map(|page| Part::from_events(its(page), asked.newest_first));
            Some(parts.collect::<Vec<_>>())
        });
        Box::new(parts.flatten())
    }

    fn by_time<'a>(&'a self, asked: Asked<'a>) -> Parts<'a> {
        let start = if asked.newest_first { (i64::MAX, i64::MAX) } else { (i64::MIN, i64::MIN) };
        let mut after = Some(start);
        let parts = std::iter::from_fn(move || {
            let pages = self.pages_of(asked, after?);
            after = pages.last().filter(|_| pages.len() == AT_ONCE).map(|(head, _)| {
                let (page, _, first, last) = *head;
                (time(if asked.newest_first { last } else { first }), page)
            });
            let part = |(_, events): (Head, Rc<Vec<Event>>)| {
                let events: Vec<Event> =
                    events.iter().filter(|event| is_within(event, asked.times)).cloned().collect();
                Part::from_events(events, asked.newest_first)
            };
            Some(pages.into_iter().filter_map(part).collect::<Vec<_>>())
        });
        Box::new(parts.flatten())
    }
}

/// Whether an origin has the directory of our own, under the same name or another one.
fn is_of(row: &Row, own: &Own, same_name: bool) -> bool {
    row.get::<_, &[u8]>(1) == own.origin.directory.to_be_bytes()
        && (row.get::<_, &str>(2) == own.origin.node) == same_name
}

fn head(row: &Row) -> Head {
    (row.get(0), row.get(1), Utc(unsigned(row.get(2))), Utc(unsigned(row.get(3))))
}

fn is_within(event: &Event, (since, until): (Utc, Utc)) -> bool {
    (since..=until).contains(&event.time)
}

impl Source for TrackedEvents {
    fn parts<'a>(&'a self, asked: Asked<'a>) -> Parts<'a> {
        match asked.key {
            Some(key) => self.by_key(key, asked),
            None => self.by_time(asked),
        }
    }

    fn since(&self) -> Option<Utc> {
        self.since
    }

    fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    fn nodes(&self) -> Vec<String> {
        let mut nodes: Vec<String> =
            self.origins.values().map(|origin| origin.node.to_string()).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}
