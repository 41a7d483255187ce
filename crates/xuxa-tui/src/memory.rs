//! A mailbox in memory: to try the interface without an MTA, and for its tests. What is submitted to
//! this user arrives here.

use base::{Precedence, Utc};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::backend::{Backend, BackendError};
use crate::draft::{Body, Draft, Reports};
use crate::model::{
    BookEntry, Counts, File, From, Kind, Number, Opened, Order, Page, Query, Receipt, Row, Sent,
    SentState, Who,
};

/// A message that is kept.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The heading.
    pub fields: Vec<(String, String)>,
    /// The text.
    pub text: String,
    /// Files: name and octets.
    pub files: Vec<(String, Vec<u8>)>,
    /// Whom an answer goes to.
    pub answer_to: Vec<String>,
    /// The originator asked for a notification.
    pub wants_receipt: bool,
}

/// The place of a row in both orders.
type ByPrecedence = BTreeMap<(Precedence, Number), ()>;

#[derive(Debug, Default)]
struct Mailbox {
    rows: BTreeMap<Number, (Row, Stored)>,
    by_precedence: ByPrecedence,
    unread: u64,
    sent: Vec<Sent>,
    arrived: VecDeque<Row>,
    acknowledged: BTreeSet<Number>,
    last: Number,
}

/// The mailbox, with what tests can make of its store.
#[derive(Debug)]
pub struct Memory {
    who: Who,
    utc: fn() -> Utc,
    mailbox: RefCell<Mailbox>,
    /// The address book.
    pub book: Vec<BookEntry>,
    /// How long each answer takes.
    pub answer_after: Cell<Duration>,
    is_bound: Cell<bool>,
    is_away: Cell<bool>,
    change: Notify,
    /// Most rows of one page so far.
    largest_page: Cell<usize>,
}

impl Memory {
    /// An empty mailbox; `utc` reads the clock.
    pub fn new(who: Who, utc: fn() -> Utc) -> Memory {
        Memory {
            who,
            utc,
            mailbox: RefCell::default(),
            book: Vec::new(),
            answer_after: Cell::default(),
            is_bound: Cell::new(false),
            is_away: Cell::new(false),
            change: Notify::new(),
            largest_page: Cell::new(0),
        }
    }

    /// Delivers a message; who is bound gets an alert. Returns its number.
    pub fn deliver(&self, mut row: Row, stored: Stored) -> Number {
        let mut mailbox = self.mailbox.borrow_mut();
        mailbox.last += 1;
        row.number = mailbox.last;
        mailbox.by_precedence.insert((row.precedence, row.number), ());
        mailbox.unread += u64::from(row.is_unread);
        if self.is_bound.get() {
            mailbox.arrived.push_back(row.clone());
        }
        let number = row.number;
        mailbox.rows.insert(number, (row, stored));
        self.change.notify_waiters();
        number
    }

    /// Ends the association; as long as it is away, no other can be opened.
    pub fn set_away(&self, is_away: bool) {
        self.is_away.set(is_away);
        if is_away {
            self.is_bound.set(false);
        }
        self.change.notify_waiters();
    }

    /// Most rows that one page had.
    pub fn largest_page(&self) -> usize {
        self.largest_page.get()
    }

    /// Waits as long as an answer takes; no association, no answer.
    async fn answer(&self) -> Result<(), BackendError> {
        sleep(self.answer_after.get()).await;
        match self.is_bound.get() {
            true => Ok(()),
            false => Err(BackendError::Lost("the store closed the connection".to_owned())),
        }
    }

    /// Delivers a draft to this user, and reports the delivery.
    fn loop_back(&self, draft: &Draft, files: Vec<(String, Vec<u8>)>) {
        let text = match &draft.body {
            Body::Text(text) => text.clone(),
            Body::Canned(size) => {
                let line = "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG 1234567890\n";
                line.chars()
                    .cycle()
                    .take(usize::try_from(*size).unwrap_or(0).min(100_000))
                    .collect()
            }
        };
        let time = (self.utc)();
        let size = text.len() + files.iter().map(|(_, octets)| octets.len()).sum::<usize>();
        let row = Row {
            number: 0,
            kind: Kind::Message,
            precedence: draft.precedence,
            is_unread: true,
            from: "me".to_owned(),
            subject: draft.subject.clone(),
            time,
            size: size as u64,
        };
        let fields = [
            ("From", self.who.user.clone()),
            ("To", draft.to.join("\n")),
            ("Info", draft.copy.join("\n")),
            ("Precedence", crate::draw::style::name(draft.precedence).to_owned()),
            ("DTG", crate::text::dtg(draft.time)),
            ("Subject", draft.subject.clone()),
            ("SIC", draft.sics.join(", ")),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let stored = Stored {
            fields: fields.map(|(label, value)| (label.to_owned(), value)).collect(),
            text,
            files,
            answer_to: vec!["me".to_owned()],
            wants_receipt: draft.reports == Reports::Receipt,
        };
        self.deliver(row, stored);
    }
}

impl Backend for Memory {
    fn who(&self) -> Who {
        self.who.clone()
    }

    async fn connect(&self) -> Result<(), BackendError> {
        sleep(self.answer_after.get()).await;
        if self.is_away.get() {
            return Err(BackendError::Lost("connection refused".to_owned()));
        }
        self.is_bound.set(true);
        Ok(())
    }

    async fn list(&self, query: Query, from: From, count: usize) -> Result<Page, BackendError> {
        self.answer().await?;
        let mailbox = self.mailbox.borrow();
        let found = |number: &Number| {
            let (row, _) = mailbox.rows.get(number)?;
            query.matches(row).then(|| row.clone())
        };
        // One more than wanted, which decides whether it is the last page.
        let page = match query.order {
            Order::Arrival => {
                let numbers = mailbox.rows.keys();
                match &from {
                    From::Top => numbers.rev().filter_map(found).take(count + 1).collect(),
                    From::Bottom => numbers.filter_map(found).take(count + 1).collect::<Vec<_>>(),
                    From::After(row) => {
                        let below = mailbox.rows.range(..row.number).rev();
                        below.map(|(n, _)| n).filter_map(found).take(count + 1).collect()
                    }
                    From::Before(row) => {
                        let above = mailbox.rows.range(row.number + 1..);
                        above.map(|(n, _)| n).filter_map(found).take(count + 1).collect()
                    }
                }
            }
            Order::Precedence => {
                let keys = &mailbox.by_precedence;
                let found = |(_, number): &(Precedence, Number)| found(number);
                let place = |row: &Row| (row.precedence, row.number);
                match &from {
                    From::Top => keys.keys().rev().filter_map(found).take(count + 1).collect(),
                    From::Bottom => keys.keys().filter_map(found).take(count + 1).collect(),
                    From::After(row) => {
                        let below = keys.range(..place(row)).rev().map(|(key, ())| key);
                        below.filter_map(found).take(count + 1).collect()
                    }
                    From::Before(row) => {
                        let above = keys.range(place(row)..).map(|(key, ())| key).skip(1);
                        above.filter_map(found).take(count + 1).collect()
                    }
                }
            }
        };
        let is_last = page.len() <= count;
        let mut rows: Vec<Row> = page.into_iter().take(count).collect();
        if matches!(from, From::Before(_) | From::Bottom) {
            rows.reverse();
        }
        self.largest_page.set(self.largest_page.get().max(rows.len()));
        Ok(Page { rows, is_last })
    }

    async fn counts(&self) -> Result<Counts, BackendError> {
        self.answer().await?;
        let mailbox = self.mailbox.borrow();
        let total = mailbox.rows.len() as u64;
        Ok(Counts { total, unread: mailbox.unread, unread_by_precedence: None })
    }

    async fn open(&self, number: Number) -> Result<Opened, BackendError> {
        self.answer().await?;
        let mut mailbox = self.mailbox.borrow_mut();
        let is_acknowledged = mailbox.acknowledged.contains(&number);
        let (row, stored) = mailbox.rows.get_mut(&number).ok_or(BackendError::Gone(number))?;
        let was_unread = std::mem::replace(&mut row.is_unread, false);
        let (row, stored) = (row.clone(), stored.clone());
        mailbox.unread -= u64::from(was_unread);
        let file = |(name, octets): (String, Vec<u8>)| File { name, size: octets.len() as u64 };
        Ok(Opened {
            row,
            fields: stored.fields,
            text: stored.text,
            text_left: 0,
            files: stored.files.into_iter().map(file).collect(),
            answer_to: stored.answer_to,
            others_to: Vec::new(),
            others_copy: Vec::new(),
            receipt: match (stored.wants_receipt, is_acknowledged) {
                (_, true) => Receipt::Sent,
                (true, false) => Receipt::Asked,
                (false, false) => Receipt::NotAsked,
            },
        })
    }

    async fn extract(&self, number: Number, to: PathBuf) -> Result<Vec<PathBuf>, BackendError> {
        self.answer().await?;
        let stored = self.mailbox.borrow().rows.get(&number).map(|(_, stored)| stored.clone());
        let stored = stored.ok_or(BackendError::Gone(number))?;
        let failed = |path: &Path, error: std::io::Error| {
            BackendError::Failed(format!("cannot write {}: {error}", path.display()))
        };
        tokio::fs::create_dir_all(&to).await.map_err(|error| failed(&to, error))?;
        let mut written = Vec::new();
        for (at, (_, octets)) in stored.files.iter().enumerate() {
            // The names of this demonstration are its own.
            let path = to.join(format!("message-{number}-{at}.bin"));
            let file = tokio::fs::File::create_new(&path).await;
            let mut file = file.map_err(|error| failed(&path, error))?;
            file.write_all(octets).await.map_err(|error| failed(&path, error))?;
            file.flush().await.map_err(|error| failed(&path, error))?;
            written.push(path);
        }
        Ok(written)
    }

    async fn delete(&self, number: Number) -> Result<(), BackendError> {
        self.answer().await?;
        let mut mailbox = self.mailbox.borrow_mut();
        let (row, _) = mailbox.rows.remove(&number).ok_or(BackendError::Gone(number))?;
        mailbox.by_precedence.remove(&(row.precedence, number));
        mailbox.unread -= u64::from(row.is_unread);
        Ok(())
    }

    async fn check(&self, draft: &Draft) -> Result<Vec<String>, BackendError> {
        sleep(self.answer_after.get()).await;
        let is_known = |name: &&String| {
            name.starts_with('/') || self.book.iter().any(|entry| entry.name == **name)
        };
        if let Some(name) = draft.to.iter().chain(&draft.copy).find(|name| !is_known(name)) {
            return Err(BackendError::Failed(format!(
                "recipient {name:?}: neither an O/R address (/C=XX/.../) nor a name of the address book (key 3)"
            )));
        }
        for path in &draft.files {
            if !path.is_file() {
                let shown = path.display();
                return Err(BackendError::Failed(format!(
                    "cannot read the file {shown}: correct Files"
                )));
            }
        }
        let is_abroad = |name: &&String| name.starts_with("/C=XX/");
        let abroad = draft.to.iter().chain(&draft.copy).filter(is_abroad);
        Ok(abroad.map(|name| format!("no route to the domain of {name} is known here")).collect())
    }

    async fn submit(&self, draft: Draft) -> Result<(), BackendError> {
        self.answer().await?;
        let mut files = Vec::new();
        for path in &draft.files {
            let octets = std::fs::read(path).map_err(|error| {
                BackendError::Failed(format!("cannot read {}: {error}", path.display()))
            })?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, octets));
        }
        let to_me = |name: &&String| **name == "me" || **name == self.who.user;
        let names = || draft.to.iter().chain(&draft.copy);
        let state = |name: &String| match to_me(&name) {
            true => SentState::Delivered,
            false => SentState::Transferred,
        };
        let size = match &draft.body {
            Body::Text(text) => text.len() as u64,
            Body::Canned(size) => *size,
        };
        self.mailbox.borrow_mut().sent.push(Sent {
            identifier: draft.identifier.clone(),
            precedence: draft.precedence,
            subject: draft.subject.clone(),
            time: (self.utc)(),
            size,
            recipients: names().map(|name| (name.clone(), state(name))).collect(),
        });
        if names().any(|name| to_me(&name)) {
            self.loop_back(&draft, files);
        }
        Ok(())
    }

    async fn acknowledge(&self, number: Number) -> Result<(), BackendError> {
        self.answer().await?;
        let mut mailbox = self.mailbox.borrow_mut();
        if !mailbox.rows.contains_key(&number) {
            return Err(BackendError::Gone(number));
        }
        mailbox.acknowledged.insert(number);
        Ok(())
    }

    async fn sent(&self, count: usize) -> Result<Vec<Sent>, BackendError> {
        Ok(self.mailbox.borrow().sent.iter().rev().take(count).cloned().collect())
    }

    async fn book(&self) -> Result<Vec<BookEntry>, BackendError> {
        Ok(self.book.clone())
    }

    async fn alert(&self) -> Result<Row, BackendError> {
        loop {
            let changed = self.change.notified();
            let next = self.mailbox.borrow_mut().arrived.pop_front();
            if let Some(row) = next {
                return Ok(row);
            }
            if !self.is_bound.get() {
                return Err(BackendError::Lost("the store closed the connection".to_owned()));
            }
            changed.await;
        }
    }

    async fn close(&self) {
        self.is_bound.set(false);
    }
}
