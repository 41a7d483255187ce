//! Measures a large mailbox over the real store: deliveries, lists, fetches and the open, at several sizes.
//!
//! `cargo run --release -p mailbox --example large -- <directory> [items ...]`
//!
//! The messages are the same in every run: contents of 1 kB, one in 100 Flash, one in 100 with the subject that is
//! filtered for. Each figure is a median of 21; of deliveries, of 201.

use base::ber::universal as u;
use base::rng::Rng;
use base::{BodyId, Precedence};
use engine::journal::{ItemId, MailboxId, Op};
use mailbox::testing::{Copies, Copy, at};
use mailbox::{
    Access, Answer, Ask, Mailbox, Outcome, Query, Quota, Registrations, Row, Step, Totals,
};
use p7::attributes as a;
use p7::operation::{FetchArgument, ListArgument};
use p7::{AttributeSelection, Filter, MsError, Range, Selector, SequenceNumber, Value};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::queue::commit_one;
use store::{BatchId, Committed, ModelStore, Options, QueueStore};

const ID: MailboxId = MailboxId(1);
/// Octets of text in a message.
const OCTETS: usize = 1_000;
/// Messages of one group of commits while filling.
const GROUP: usize = 500;
/// Octets of the store's cache.
const CACHE: usize = 64 << 20;
/// Items of a list.
const LISTED: i64 = 50;

type Failure = Box<dyn Error>;

#[expect(clippy::disallowed_methods, reason = "a measurement is made with a clock")]
fn now() -> Instant {
    Instant::now()
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let directory = PathBuf::from(args.next().ok_or("give a directory")?);
    let sizes: Vec<u32> = args.map(|size| size.parse()).collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() { vec![1_000, 100_000, 500_000] } else { sizes };
    let mut rows = vec![header()];
    let mut world = World::open(&directory)?;
    for size in sizes {
        let filling = now();
        world.fill(size)?;
        eprintln!("{size} items after {:.1} s", filling.elapsed().as_secs_f64());
        rows.push(world.measure(size, &directory)?);
    }
    world.store.close();
    print(&rows);
    Ok(())
}

fn header() -> Vec<String> {
    let names = [
        "Items",
        "Made, ms",
        "Durable, ms",
        "p99, ms",
        "New: list of 50, ms",
        "First page, ms",
        "Last page, ms",
        "Flash, ms",
        "By subject, ms",
        "Matches none, s",
        "Longest step, ms",
        "Fetch, ms",
        "Open, s",
    ];
    names.map(str::to_owned).to_vec()
}

/// Right-aligned columns of a Markdown table.
fn print(rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for (at, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if at == 0 {
            let rules = widths.iter().map(|width| format!("{:->width$}:", ""));
            println!("|{}|", rules.map(|rule| format!("-{rule}")).collect::<Vec<_>>().join("|"));
        }
    }
}

struct World {
    store: Arc<dyn QueueStore>,
    mailbox: Mailbox,
    registrations: Registrations,
    access: Access,
    copies: Copies,
    rng: Rng,
    batches: u64,
    longest: Duration,
}

impl World {
    fn open(directory: &Path) -> Result<World, Failure> {
        let store = store::open(directory, Options { cache: CACHE, ..Options::default() })?;
        Ok(World {
            mailbox: load(&*store)?,
            store,
            registrations: Registrations::default(),
            access: Access { is_1994: true, ..Access::default() },
            copies: Copies::default(),
            rng: Rng::new(1),
            batches: 0,
            longest: Duration::ZERO,
        })
    }

    fn batch(&mut self) -> BatchId {
        self.batches += 1;
        BatchId(self.batches)
    }

    /// The next message, and what of it is new to the store.
    fn copy(&mut self) -> Result<Copy, Failure> {
        let level = match self.rng.next_u64() % 100 {
            0 => Precedence::Flash,
            1..=9 => Precedence::Immediate,
            10..=29 => Precedence::Priority,
            30..=39 => Precedence::Deferred,
            _ => Precedence::Routine,
        };
        let number = u64::from(self.mailbox.totals().last) + 1;
        let subject = if self.rng.next_u64().is_multiple_of(100) { "Convoy" } else { "Weather" };
        let copy = self.copies.message(at(number), level, subject, OCTETS);
        copy.ok_or_else(|| "no message".into())
    }

    /// The commit of a delivery, as the daemon makes it.
    fn delivery(&mut self, copy: &Copy) -> Result<Vec<Op>, Failure> {
        let now = at(u64::from(self.mailbox.totals().last) + 1);
        let mut batch = self.mailbox.deliver(now, &copy.arriving())?.batch;
        batch.extend(copy.record.body.map(|id: BodyId| Op::DeleteBody { id }));
        Ok(batch)
    }

    fn fill(&mut self, size: u32) -> Result<(), Failure> {
        while self.mailbox.totals().last < size {
            let left = (size - self.mailbox.totals().last) as usize;
            let (mut puts, mut deliveries) = (Vec::new(), Vec::new());
            for _ in 0..left.min(GROUP) {
                let copy = self.copy()?;
                puts.push((self.batch(), copy.put()));
                let delivery = self.delivery(&copy)?;
                deliveries.extend(delivery);
            }
            // The store syncs each batch that copies contents alone: these are one batch.
            let deliveries = vec![(self.batch(), deliveries)];
            for group in [puts, deliveries] {
                self.store.commit(group).into_iter().try_for_each(Committed::into_result)?;
            }
            while self.store.tidy()? > 0 {}
        }
        Ok(())
    }

    fn measure(&mut self, size: u32, directory: &Path) -> Result<Vec<String>, Failure> {
        let deliveries = self.deliveries(201)?;
        let from =
            |number| Some(Range::SequenceNumber { from: Some(SequenceNumber(number)), to: None });
        let page = |range| Selector { limit: Some(LISTED), range, ..Selector::default() };
        let subject = Value::from_text(u::TELETEX_STRING, "Convoy");
        let flash = Value::from_integer(i64::from(Precedence::Flash.number()));
        let filtered = |kind: a::AttributeType, value| Selector {
            filter: Some(Filter::equality(kind.oid(), value)),
            ..page(None)
        };
        // Each page of new items is listed once.
        let first_new = size / 2;
        let mut at_page = first_new;
        let new = self.median(21, |world| {
            at_page = if at_page + 50 > size { first_new } else { at_page + 50 };
            world.list(page(from(at_page)), LISTED)
        })?;
        let first = self.lists(&page(None), LISTED)?;
        let last = self.lists(&page(from(self.mailbox.totals().last - 49)), LISTED)?;
        let few = i64::from(size / 200).clamp(1, LISTED);
        let flash = self.lists(&filtered(a::PRIMARY_PRECEDENCE, flash), few)?;
        let subject = self.lists(&filtered(a::SUBJECT, subject), few)?;
        self.longest = Duration::ZERO;
        let nothing = Value::from_text(u::TELETEX_STRING, "Nothing");
        let none = now();
        self.list(filtered(a::SUBJECT, nothing), 0)?;
        let none = none.elapsed();
        let longest = self.longest;
        let fetch = self.median(21, World::fetch)?;
        let open = self.reopen(directory)?;
        let seconds = |time: Duration| format!("{:.2}", time.as_secs_f64());
        let mut row = vec![size.to_string()];
        let [made, durable, slow] = deliveries;
        row.extend([made, durable, slow, new, first, last, flash, subject].map(millis));
        row.extend([seconds(none), millis(longest), millis(fetch), seconds(open)]);
        Ok(row)
    }

    /// Deliveries, each durable before the next: the median until the batch is made, the median until it is durable,
    /// and the 99th percentile of that.
    fn deliveries(&mut self, count: usize) -> Result<[Duration; 3], Failure> {
        let (mut made, mut times) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let copy = self.copy()?;
            let id = self.batch();
            commit_one(&*self.store, id, copy.put())?;
            let start = now();
            let batch = self.delivery(&copy)?;
            made.push(start.elapsed());
            let id = self.batch();
            commit_one(&*self.store, id, batch)?;
            times.push(start.elapsed());
        }
        made.sort_unstable();
        times.sort_unstable();
        let at = |times: &[Duration], part: usize| {
            times.get(times.len() * part / 100).copied().unwrap_or_default()
        };
        Ok([at(&made, 50), at(&times, 50), at(&times, 99)])
    }

    fn median(
        &mut self,
        count: usize,
        mut run: impl FnMut(&mut World) -> Result<(), Failure>,
    ) -> Result<Duration, Failure> {
        let mut times = Vec::new();
        for _ in 0..count {
            let start = now();
            run(self)?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok(times.get(count / 2).copied().unwrap_or_default())
    }

    /// The median of lists of items that were listed before.
    fn lists(&mut self, selector: &Selector, least: i64) -> Result<Duration, Failure> {
        self.list(selector.clone(), least)?;
        self.median(21, |world| world.list(selector.clone(), least))
    }

    fn list(&mut self, selector: Selector, least: i64) -> Result<(), Failure> {
        let shown = [
            a::SUBJECT,
            a::ORIGINATOR_NAME,
            a::PRIMARY_PRECEDENCE,
            a::MESSAGE_DELIVERY_TIME,
            a::RETRIEVAL_STATUS,
        ];
        let requested = shown.map(|kind| AttributeSelection::new(kind.oid())).to_vec();
        let requested_attributes = Some(requested);
        let argument = ListArgument { selector, requested_attributes, ..ListArgument::default() };
        let query = Query::list(&self.mailbox, &self.registrations, &self.access, &argument);
        let Outcome::Listed(result) = self.run(query)? else { return Err("no list".into()) };
        let found = i64::try_from(result.requested.len())?;
        if found < least { Err(format!("{found} items listed").into()) } else { Ok(()) }
    }

    /// An item somewhere, with its heading and content.
    fn fetch(&mut self) -> Result<(), Failure> {
        let number =
            u32::try_from(self.rng.next_u64() % u64::from(self.mailbox.totals().last))? + 1;
        let selection = [a::HEADING, a::CONTENT].map(|kind| AttributeSelection::new(kind.oid()));
        let argument = FetchArgument::precise(SequenceNumber(number), selection.to_vec());
        let query = Query::fetch(&self.mailbox, &self.registrations, &self.access, &argument);
        let Outcome::Fetched(fetched) = self.run(query)? else { return Err("no fetch".into()) };
        let (body, length) = fetched.content.ok_or("no content")?;
        let content = self.store.body(body, 0, usize::try_from(length)?)?.ok_or("no body")?;
        let whole = content.len() as u64 == length && !fetched.payload().head.is_empty();
        if whole { Ok(()) } else { Err("a content is short".into()) }
    }

    fn run(&mut self, query: Result<Query, MsError>) -> Result<Outcome, Failure> {
        let mut query = query.map_err(|error| error.to_string())?;
        let mut answer = Answer::Start;
        loop {
            let start = now();
            let step = query.step(&mut self.mailbox, answer);
            self.longest = self.longest.max(start.elapsed());
            answer = match step {
                Step::Ask(ask) => read(&*self.store, ask)?,
                Step::Commit(batch) => {
                    let id = self.batch();
                    commit_one(&*self.store, id, batch)?;
                    Answer::Committed
                }
                Step::Done(outcome) => return Ok(outcome),
                Step::Error(error) => return Err(error.to_string().into()),
            };
        }
    }

    /// Closes and opens the store, and reads the totals.
    fn reopen(&mut self, directory: &Path) -> Result<Duration, Failure> {
        self.store.close();
        // The last holder gives up the lock.
        self.store = Arc::new(ModelStore::default());
        let start = now();
        let store = store::open(directory, Options { cache: CACHE, ..Options::default() })?;
        self.mailbox = load(&*store)?;
        let elapsed = start.elapsed();
        self.store = store;
        Ok(elapsed)
    }
}

fn load(store: &dyn QueueStore) -> Result<Mailbox, Failure> {
    let value = store.meta(&Totals::name(ID))?;
    let mailbox = Mailbox::open(ID, value.as_deref(), Quota::default())?;
    let mut counts = [0; Precedence::ALL.len()];
    for (count, level) in counts.iter_mut().zip(Precedence::ALL) {
        *count = store.item_count(ID, level)?;
    }
    if mailbox.agrees(counts) { Ok(mailbox) } else { Err("the totals are wrong".into()) }
}

fn millis(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn find(store: &dyn QueueStore, id: ItemId) -> Result<Option<Row>, Failure> {
    for level in Precedence::ALL.into_iter().rev() {
        if let Some(record) = store.entry((level, id.entry()))? {
            return Ok(Row::new(level, id.entry(), record));
        }
    }
    Ok(None)
}

fn read(store: &dyn QueueStore, ask: Ask) -> Result<Answer, Failure> {
    let rows = match ask {
        Ask::Items { mailbox, precedence, after, limit } => {
            let entries = store.items(mailbox, precedence, after, limit)?.into_iter();
            entries.filter_map(|entry| Row::new(entry.precedence, entry.id, entry.record)).collect()
        }
        Ask::Find(ids) => {
            let mut rows = Vec::new();
            for id in ids {
                rows.extend(find(store, id)?);
            }
            rows
        }
    };
    Ok(Answer::Rows(rows))
}
